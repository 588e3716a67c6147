"""One server without a screen, and the viewers that come and go: the same sight for all, and no harm from any."""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from mlxcache_tui.core.reduce import fold
from mlxcache_tui.store.replay import read_session
from support.engines import MAIN, PATIENCE_S, all_gone, no_server_left, servers
from support.viewer import ViewerProcess

pytestmark = pytest.mark.mlx
STOPPED_S = 10.0
NOBODY = 65_534


class Serve:
    """`serve` on a free port, its output in a file."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.out, self.session = folder / "out", folder / "serve.jsonl"
        command = [*MAIN, "serve", "--demo", "tiny", "--port", "0", "--save", str(self.session), "--", *flags]
        with self.out.open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True)
        self.said: list[str] = []
        self.url = ""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if " answers at " in line:
                self.url = line.split()[-1]
                break
        assert self.url, self.said

    @property
    def port(self) -> str:
        return self.url.rpartition(":")[2]

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[Serve]:
    with no_server_left():
        serve = Serve(folder, *flags)
        try:
            yield serve
        finally:
            if serve.process.poll() is None:
                serve.process.kill()
                serve.process.wait()
            assert serve.process.stderr is not None
            serve.process.stderr.close()


@contextmanager
def viewing(*viewers: ViewerProcess) -> Iterator[tuple[ViewerProcess, ...]]:
    try:
        yield viewers
    finally:
        for viewer in viewers:
            with suppress(ProcessLookupError):
                viewer.process.send_signal(signal.SIGCONT)
            viewer.close()


def seen_by(*viewers: ViewerProcess) -> list[dict[str, Any]]:
    """What each sees of the 200 requests, once all have read the log to its end (each reads it at its own pace)."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        sights = [viewer.do("see 200") for viewer in viewers]
        if all(sight["log"] == sights[0]["log"] for sight in sights) or time.monotonic() > deadline:
            return sights


def test_two_viewers_see_the_same_and_one_that_hangs_slows_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """200 requests from both; in their middle one viewer is stopped for 10 s while the other goes on."""
    with serving(tmp_path, "--prompt-cache-size", "3") as serve:
        with viewing(*(ViewerProcess(serve.url, tmp_path / f"{name}.jsonl") for name in "ab")) as (a, b):
            before = a.do("send 50 returns 0.1")
            b.do("send 40 warranty 0")
            b.process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            during = a.do("send 50 returns 0.1")
            while time.monotonic() - began < STOPPED_S:
                during += a.do("send 1 returns 0.1")
            b.process.send_signal(signal.SIGCONT)
            rest = 200 - len(before) - 40 - len(during)
            b.ask(f"send {rest // 2} warranty 0")
            a.do(f"send {rest - rest // 2} returns 0")
            b.answer()
            with viewing(ViewerProcess(serve.url, tmp_path / "late.jsonl")) as (late,):
                one, other, third = seen_by(a, b, late)
        assert len(one["requests"]) == 200
        assert one["requests"] == other["requests"] == third["requests"]
        assert one["stored"] == other["stored"] == third["stored"]
        assert one["log"] == other["log"] == third["log"]
        assert not any("lost" in text for sight in (one, other, third) for text in sight["notices"])
        assert {label for label, *_ in other["requests"].values()} == {"returns", "warranty"}
        assert len(one["ours"]) + len(other["ours"]) == 200
        ratio = statistics.median(during) / statistics.median(before)
        with capsys.disabled():
            sys.stdout.write(f"\nTTFT {statistics.median(before) * 1000:.1f} ms, {ratio:.2f} times while b stood\n")
        assert ratio < 2
        assert serve.end(signal.SIGTERM) == 0
    assert all_gone()
    for name in "ab":
        state = fold(read_session(tmp_path / f"{name}.jsonl").events)
        assert len([request for request in state.requests.values() if request.number]) == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_prints_the_log_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as serve:
        assert len(servers()) == 1
        assert serve.end(number) == 0
        assert serve.process.stderr is not None
        assert "stopped" in serve.process.stderr.read()
        assert all_gone()
    assert "Starting httpd" in serve.out.read_text()
    assert "Prompt Cache: 0 sequences" in serve.out.read_text()
    recorded = read_session(serve.session)
    assert recorded.damage is None
    assert fold(recorded.events).server.phase == "exited"
    assert not list(Path(os.environ["MLXCACHE_RUNTIME_DIR"]).iterdir())


def test_a_server_that_dies_is_told_and_is_3(tmp_path: Path) -> None:
    with serving(tmp_path) as serve:
        (server,) = servers()
        server.kill()
        assert serve.process.wait(PATIENCE_S) == 3
        assert serve.process.stderr is not None
        assert "ended from outside (SIGKILL" in serve.process.stderr.read()


def test_a_killed_serve_leaves_no_server(tmp_path: Path) -> None:
    with serving(tmp_path) as serve:
        serve.process.kill()
        serve.process.wait()
        assert all_gone()


def test_a_viewer_that_goes_ends_nothing_and_one_that_watches_cannot_send(tmp_path: Path) -> None:
    with serving(tmp_path) as serve:
        first = ViewerProcess(serve.url, tmp_path / "a.jsonl")
        with viewing(first):
            first.do("send 2 returns 0")
        with viewing(ViewerProcess(serve.url, tmp_path / "b.jsonl", watch=True)) as (watcher,):
            seen = watcher.do("see 2")
            assert [request[0] for request in seen["requests"].values()] == ["returns", "returns"]
            assert seen["ours"] == []
            assert any("only watches" in text for text in watcher.do("try"))
            assert len(watcher.do("see 2")["requests"]) == 2
        assert psutil.pid_exists(serve.process.pid)
        assert serve.process.poll() is None
        assert serve.end(signal.SIGTERM) == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path) as serve:
        path = Path(os.environ["MLXCACHE_RUNTIME_DIR"]) / f"{serve.port}.sock"
        code = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        command = ["/usr/bin/env", "python3", "-c", code, str(path)]
        refused = subprocess.run(
            command, user=NOBODY, group=NOBODY, extra_groups=(), capture_output=True, text=True, cwd="/"
        )
        assert "Permission denied" in refused.stderr or "PermissionError" in refused.stderr, refused.stderr
        assert subprocess.run(command, capture_output=True, timeout=PATIENCE_S).returncode == 0


def test_what_it_does_not_take_is_refused(tmp_path: Path) -> None:
    bad = [*MAIN, "serve", "--demo", "tiny", "--", "--prompt-cache-bytes", "lots"]
    done = subprocess.run(bad, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert "is a size such as" in done.stderr
    assert subprocess.run([*MAIN, "serve"], capture_output=True, timeout=PATIENCE_S).returncode == 2
    gone = subprocess.run([*MAIN, "serve", "--model", "/no/such"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert gone.returncode == 3
    assert "no model folder at /no/such" in gone.stderr
