"""The observer as a process: several viewers, slow ones, the leash, and starts that fail."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mlxcache_tui.core.events import (
    EntryInserted,
    EventsLost,
    LookedUp,
    ModelLoadFailed,
    ObserverConnected,
    RequestComposed,
    RequestEnded,
    TextKept,
    UsageReported,
    WorkerDied,
)
from support.live_server import (
    OBSERVE,
    PATIENCE_S,
    Reply,
    Server,
    Start,
    Viewer,
    await_same_stored,
    expand,
    launched,
    rules,
    since,
)

pytestmark = pytest.mark.mlx


# --- several at once, several viewers --------------------------------------------------------------------------------


def test_four_at_once_are_kept_apart(observed: Server, viewer: Viewer) -> None:
    replies: dict[str, Reply] = {}

    def ask(key: str, number: int) -> None:
        replies[key] = observed.ask(f"Number {number}?", rules(f"Four{number}", 20 + number), key=key, max_tokens=6)

    threads = [threading.Thread(target=ask, args=(f"four:{n}", n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        key = f"four:{number}"
        viewer.wait(RequestEnded, key)
        looked = viewer.wait(LookedUp, key)
        assert looked.tokens.count == replies[key].usage["prompt_tokens"]
        assert looked.cached_tokens == replies[key].cached
    viewer.until(
        lambda events: all(
            any(isinstance(e, EntryInserted) and e.key == f"four:{n}" and e.type == "assistant" for e in events)
            for n in range(4)
        ),
        "an entry of each",
    )
    prompts, entries = expand(viewer.events)
    for entry in viewer.all(EntryInserted):
        if entry.key is not None and entry.key.startswith("four:"):
            prompt, tokens = prompts[entry.key], entries[entry.entry]
            shorter = min(len(prompt), len(tokens))
            assert prompt[:shorter] == tokens[:shorter], "an entry begins with the prompt of the request that made it"


def test_two_viewers_are_told_the_same(observed: Server) -> None:
    with Viewer(observed.socket) as one:
        one.greeted()
        with Viewer(observed.socket) as two:
            two.greeted()
            observed.ask("Both?", rules("Both"), key="both", max_tokens=8)
            for viewer in (one, two):
                viewer.wait(EntryInserted, "both")
                viewer.wait(RequestEnded, "both")
                viewer.wait(UsageReported, "both")
            tail_one, tail_two = one.raw[one.since :], two.raw[two.since :]
            begin = next(n for n, line in enumerate(tail_one) if b'"both"' in line)
            again = next(n for n, line in enumerate(tail_two) if b'"both"' in line)
            size = min(len(tail_one) - begin, len(tail_two) - again)
            assert size > 8
            assert tail_one[begin : begin + size] == tail_two[again : again + size]


def test_a_viewer_that_comes_late_is_told_all(observed: Server, viewer: Viewer) -> None:
    observed.ask("Early?", rules("Late"), key="late")
    viewer.wait(EntryInserted, "late")
    viewer.wait(RequestEnded, "late")
    early = [line for line in viewer.raw if b'"late"' in line]
    with Viewer(observed.socket) as late:
        late.greeted()
        assert [line for line in late.raw if b'"late"' in line][: len(early)] == early
        texts = {kept.text_id for kept in late.all(TextKept)}
        (composed,) = late.all(RequestComposed, "late")
        assert {text_id for _, text_id in composed.messages} <= texts
        assert len(late.raw) == len(set(late.raw)), "nothing is told twice"


# --- slow viewers ----------------------------------------------------------------------------------------------------


@since(0, 32, 1)
def test_a_viewer_that_never_reads_holds_nobody_up(start: Start) -> None:
    server = start()
    with Viewer(server.socket, reading=False) as asleep, Viewer(server.socket) as awake:
        awake.greeted()
        for number in range(40):  # refused at once, but their texts are told: 20 MB
            message = {"role": "user", "content": (f"{number} " * 170_000)[:500_000]}
            body = {"messages": [message], "max_tokens": 0}
            assert server.post(body, key=f"big:{number}").status == 400
            awake.wait(RequestEnded, f"big:{number}")  # it keeps up, on a slow machine too
        server.ask("Still quick?", key="quick")
        assert awake.wait(RequestEnded, "quick").outcome == "done"
        assert not awake.all(EventsLost)
        asleep.start()
        server.ask("Awake?", key="after")
        asleep.until(lambda _: bool(asleep.all(EventsLost)), "word of the loss")
        lost = sum(event.count for event in asleep.all(EventsLost))
        assert lost > 0
        server.ask("Now?", key="now")
        asleep.wait(RequestEnded, "now")
        asleep.final("now")
        await_same_stored(server, asleep)  # a snapshot makes good what was lost of the cache


# --- the process -----------------------------------------------------------------------------------------------------


def test_closing_the_leash_ends_the_server(start: Start) -> None:
    reader, writer = os.pipe()
    try:
        server = start(leash=reader)
        os.close(writer)
        writer = -1
        assert server.process.wait(PATIENCE_S) != 0
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)


def test_the_leash_of_a_killed_holder_ends_the_server(start: Start) -> None:
    holder = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin is not None
    assert holder.stdout is not None
    reader = holder.stdout.fileno()  # the holder alone has the writing end
    try:
        server = start(leash=reader)
        holder.kill()
        assert server.process.wait(PATIENCE_S) != 0
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()


def test_without_a_leash_standard_input_means_nothing(observed: Server) -> None:
    assert observed.process.poll() is None, "its input is /dev/null"


def test_a_python_without_mlx_lm_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", str(OBSERVE), "--socket", str(tmp_path / "s"), "--", "--model", "x"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    assert done.returncode not in (0, 2)
    assert len(done.stderr.splitlines()) == 1
    assert "mlx_lm" in done.stderr


def test_a_socket_in_use_is_left_alone(observed: Server, viewer: Viewer) -> None:
    command = [sys.executable, str(OBSERVE), "--socket", str(observed.socket), "--", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    assert "--prompt-cache-size" in done.stdout
    assert [line for line in done.stderr.splitlines() if "unobserved" in line]
    observed.ask("Still observed?", key="mine", max_tokens=1)
    assert viewer.wait(RequestEnded, "mine").outcome == "done"


@since(0, 31, 3)
def test_a_model_that_cannot_be_loaded(short_folder: Path) -> None:
    folder = short_folder / "bad"
    folder.mkdir(mode=0o700)
    with launched(folder / "none", folder) as server, Viewer(server.socket) as viewer:
        failed = viewer.wait(ModelLoadFailed)
        assert failed.model == str(folder / "none")
        assert failed.error
        assert "\n" not in failed.error
        assert viewer.wait(WorkerDied).error
        assert server.process.poll() is None, "0.32 stays up with a dead worker"


@since(0, 31, 3)
def test_a_stale_socket_file_is_replaced(short_folder: Path) -> None:
    folder = short_folder / "stale"
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as old:
        old.bind(str(folder / "s"))
    with launched(folder / "none", folder) as server, Viewer(server.socket) as viewer:
        viewer.wait(ObserverConnected)
