"""The session file: every event, from any thread, through kill -9 and full disks."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mlxcache_tui.core.events import Noticed
from mlxcache_tui.store.recorder import Recorder, save_problem
from mlxcache_tui.store.replay import read_session


def event(number: int, text: str = "") -> Noticed:
    return Noticed(at_ns=number, origin="program", level="info", pane="log", text=text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def wait_for(path: Path, size: int, limit_s: float = 60.0) -> None:
    """Wait until the file has that many bytes."""
    deadline = time.monotonic() + limit_s
    while not path.exists() or path.stat().st_size < size:
        assert time.monotonic() < deadline, f"{path} stayed short"
        time.sleep(0.005)


def numbers(path: Path) -> list[int]:
    session = read_session(path)
    assert session.unknown == 0
    return [event.at_ns for event in session.events]


def test_the_first_event_makes_a_private_file(path: Path) -> None:
    recorder = Recorder(path)
    assert not path.exists()
    recorder.append(event(1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert numbers(path) == [1]
    recorder.close()
    assert recorder.path == path


def test_without_events_there_is_no_file(path: Path) -> None:
    Recorder(path).close()
    assert not path.exists()


def test_later_events_are_written_by_themselves(path: Path) -> None:
    recorder = Recorder(path)
    recorder.append(event(1))
    size = path.stat().st_size
    recorder.append(event(2))
    wait_for(path, size + 1)
    assert numbers(path) == [1, 2]
    recorder.close()


def test_close_writes_the_rest_and_ends_it(path: Path) -> None:
    recorder = Recorder(path)
    for number in range(100):
        recorder.append(event(number))
    recorder.close()
    recorder.append(event(100))
    recorder.close()
    assert numbers(path) == list(range(100))
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            # Cancelled, so it ends without waiting for its time; were it not, it would find nothing to do.
            thread.join(60)
            assert not thread.is_alive()


def test_several_threads_never_mix_their_lines(path: Path) -> None:
    recorder = Recorder(path)

    def write(base: int) -> None:
        for number in range(500):
            recorder.append(event(base + number, "x" * (number % 300)))

    threads = [threading.Thread(target=write, args=(base,)) for base in range(0, 4000, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()
    found = numbers(path)
    assert len(found) == 2000
    for base in range(0, 4000, 1000):
        assert [number for number in found if base <= number < base + 1000] == list(range(base, base + 500))


def test_a_file_that_cannot_be_made_is_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    recorder = Recorder(tmp_path / "nowhere" / "session.jsonl")
    recorder.on_failure = told.append
    for number in range(10):
        recorder.append(event(number))
    recorder.close()
    (line,) = told
    assert line.startswith("the session is no longer recorded: ")
    assert line.endswith("no such file or directory")
    assert "\n" not in line


def test_a_full_disk_is_told_once_and_who_is_told_may_append(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    recorder = Recorder(path)

    def tell(line: str) -> None:
        told.append(line)
        recorder.append(event(99, line))

    recorder.on_failure = tell

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("mlxcache_tui.store.recorder.os.write", full)
        recorder.append(event(1))
    recorder.append(event(2))
    recorder.close()
    assert told == [f"the session is no longer recorded: {path}: no space left on device"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_really_full_device(path: Path) -> None:
    told: list[str] = []
    path.symlink_to("/dev/full")
    recorder = Recorder(path)
    recorder.on_failure = told.append
    recorder.append(event(1))
    recorder.close()
    assert len(told) == 1


def test_a_failure_without_listener_is_quiet(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.append(event(1))
    recorder.close()


def test_short_writes_are_continued(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr("mlxcache_tui.store.recorder.os.write", lambda fd, data: write(fd, bytes(data[:7])))
    recorder = Recorder(path)
    recorder.append(event(1, "x" * 100))
    recorder.close()
    assert numbers(path) == [1]


def test_text_that_no_json_can_hold_does_not_stop_the_rest(path: Path) -> None:
    recorder = Recorder(path)
    recorder.append(event(1, "\ud800"))
    recorder.append(event(2))
    recorder.close()
    assert numbers(path) == [2]


WRITER = """
import sys
from pathlib import Path
from mlxcache_tui.core.events import Noticed
from mlxcache_tui.store.recorder import Recorder
recorder = Recorder(Path(sys.argv[1]))
number = 0
while True:
    recorder.append(Noticed(at_ns=number, origin="program", level="info", pane="log", text="x" * (number % 5000)))
    number += 1
"""


def test_kill_9_leaves_whole_lines_from_the_first_on(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) as process:
        wait_for(path, 1_000_000)
        process.send_signal(signal.SIGKILL)
    session = read_session(path)
    assert [event.at_ns for event in session.events] == list(range(len(session.events)))
    assert len(session.events) > 100


def test_a_file_that_is_there_already_is_not_added_to(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text("mine\n")
    told: list[str] = []
    recorder = Recorder(path)
    recorder.on_failure = told.append
    recorder.append(event(1))
    recorder.close()
    assert path.read_text() == "mine\n"
    assert told == [f"the session is no longer recorded: {path}: file exists"]
    assert recorder.failed


def test_what_cannot_take_a_session_is_told_before(tmp_path: Path) -> None:
    taken = tmp_path / "taken.jsonl"
    taken.touch()
    assert save_problem(str(tmp_path / "new.jsonl")) is None
    assert save_problem("/dev/null") is None
    assert save_problem("~nosuchuser/x") == "~nosuchuser/x: cannot be written: no home is known for ~nosuchuser"
    assert "cannot be written: file name too long" in (save_problem("x" * 300) or "")
    assert "is there already" in (save_problem(str(taken)) or "")
    assert "is a folder" in (save_problem(str(tmp_path)) or "")
    assert "there is no folder" in (save_problem(str(tmp_path / "none" / "new.jsonl")) or "")
