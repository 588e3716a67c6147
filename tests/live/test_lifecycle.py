"""The life of a server that we start, with the real mlx_lm.server on a tiny random model."""

import asyncio
import json
import os
import signal
import subprocess
import threading
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from mlxcache_tui.core.commands import AttachServer, RestartServer, ServerSpec, StartServer, StopServer
from mlxcache_tui.core.events import ServerPhaseChanged
from mlxcache_tui.models.fetch import Kind
from mlxcache_tui.store.replay import read_session
from support.engines import (
    MAIN,
    PATIENCE_S,
    TINY,
    all_gone,
    ask,
    no_server_left,
    notices,
    phase,
    running,
    runtime_files,
    send,
    servers,
    terminal,
    until,
)
from support.live_server import free_port

pytestmark = pytest.mark.mlx

POLICY = " ".join(f"Rule {number}: accessories may be returned within {number} days." for number in range(1, 31))
ENDLESS = 100_000
"""Tokens: no machine makes so many while a test looks."""


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    """What a failing test leaves behind is ended."""
    with no_server_left():
        yield


@pytest.fixture(autouse=True)
def model(own_folders: None, tiny_model: Callable[[Kind], Path]) -> Path:
    """The tiny model is there before any start is timed."""
    return tiny_model("tiny")


# --- start, restart, stop --------------------------------------------------------------------------------------------


async def test_ready_comes_after_the_warm_up_and_a_restart_starts_from_nothing() -> None:
    async with running() as engine:
        await phase(engine, "ready")
        state = engine.state
        (warm_up,) = state.requests.values()
        assert (warm_up.number, warm_up.purpose, warm_up.outcome) == (0, "readiness", "done")
        # The answer and the observer's word come on different ways, the one or the other first.
        await until(engine, lambda now: now.server.loaded is not None)
        assert state.server.loaded is not None
        assert state.server.loaded.seconds > 0
        assert (state.cache.max_count, state.cache.max_bytes) == (10, None)
        first = await ask(engine, "May I?", POLICY)
        again = await ask(engine, "May I, please?", POLICY)
        assert again.reason is not None
        assert again.reason.kind == "hit"
        port, pid = state.server.port, state.server.pid

        engine.submit(RestartServer(flags={"prompt_cache_size": 2, "prompt_cache_bytes": "1GiB"}))
        await until(engine, lambda now: now.server.epoch == 2 and now.server.phase == "ready")
        await until(engine, lambda now: now.server.loaded is not None)
        assert state.server.port == port
        assert state.server.pid != pid
        assert (state.cache.max_count, state.cache.max_bytes) == (2, 1 << 30)
        assert [mark.kind for mark in state.memory.marks] == ["restart"]
        assert any(row.kind == "mark" and "another process" in row.text for row in state.log.rows)
        assert all(record.key not in (first.key, again.key) for record in state.cache.stored.values())
        after = await ask(engine, "May I?", POLICY)
        assert after.reason is not None
        assert after.reason.kind == "restarted"

        engine.submit(StopServer())
        assert await phase(engine, "exited") == "stopped"
        assert not servers()
        engine.submit(RestartServer())
        await until(engine, lambda now: now.server.epoch == 3 and now.server.phase == "ready")
        await until(engine, lambda now: now.cache.max_count == 2)
    assert not servers()
    assert engine.recording is not None
    told = read_session(engine.recording).events
    phases = [event.phase for event in told if isinstance(event, ServerPhaseChanged)]
    assert phases[0] == "starting"
    assert "not_answering" not in phases


async def test_a_port_that_was_asked_for() -> None:
    port = free_port()
    async with running(ServerSpec(model="demo:tiny", port=port)) as engine:
        await phase(engine, "ready")
        assert engine.state.server.url == f"http://127.0.0.1:{port}"


async def test_the_newest_command_wins_and_leaves_one_server() -> None:
    async with running() as engine:
        for size in (1, 2, 3):
            engine.submit(StartServer(spec=ServerSpec(model="demo:tiny", port=0, flags={"prompt_cache_size": size})))
        await until(engine, lambda state: state.server.phase == "ready" and state.cache.max_count == 3)
        assert len(servers()) == 1
        assert notices(engine) == ""


async def test_the_end_leaves_nothing_and_waits_for_no_answer() -> None:
    threads = set(threading.enumerate())
    async with running() as engine:
        await phase(engine, "ready")
        (server,) = servers()
        key = send(engine, "Talk.", max_tokens=ENDLESS)
        await until(engine, lambda state: key in state.requests and bool(state.requests[key].answer))
    assert not psutil.pid_exists(server.pid)
    assert engine.state.requests[key].outcome == "cancelled"
    assert engine.state.server.text == "stopped"
    assert runtime_files() == []
    assert not [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]
    left = [thread for thread in set(threading.enumerate()) - threads if thread.name.startswith("mlxcache")]
    assert not left
    assert len(asyncio.all_tasks()) == 1


async def test_the_end_while_it_starts_leaves_nothing() -> None:
    for pause_s in (0.0, 0.3, 1.0):
        async with running():
            await asyncio.sleep(pause_s)
        assert not servers()


# --- it ends with us however we end ----------------------------------------------------------------------------------


@pytest.fixture
def waiting(tmp_path: Path) -> str:
    """A scenario that sends one request and then waits for ten minutes."""
    scenario = tmp_path / "long.toml"
    scenario.write_text(
        '[[steps]]\nid = "a"\nuser = "hi"\nmax_tokens = 3\n[[steps]]\nid = "b"\nuser = "hi"\nwait = 600\n'
    )
    return str(scenario)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_no_server_outlives_a_run(number: signal.Signals, waiting: str) -> None:
    process = subprocess.Popen([*MAIN, "run", waiting, "--demo", "tiny"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process, process.stderr:
        for line in process.stderr:
            if line.startswith("▸ b"):
                break
        assert len(servers()) == 1
        process.send_signal(number)
        gone = all_gone()
        process.wait(PATIENCE_S)
    assert gone
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)


@pytest.mark.parametrize("how", ["quit", "SIGTERM", "SIGHUP", "SIGKILL", "hang-up"])
def test_no_server_outlives_the_screen(how: str, tmp_path: Path) -> None:
    with terminal("--demo", "tiny", "--port", "0", session=tmp_path / "session.jsonl") as screen:
        screen.await_ready()
        assert len(servers()) == 1
        if how == "quit":
            screen.press(b"\x11")
        elif how == "hang-up":
            screen.hang_up()
        else:
            screen.process.send_signal(signal.Signals[how])
        assert all_gone()
        screen.process.wait(PATIENCE_S)


def test_no_server_outlives_a_run_whose_terminal_is_gone(waiting: str, tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    with terminal("run", waiting, "--demo", "tiny", session=session) as run:
        run.await_ready()
        run.hang_up()
        assert all_gone()
        run.process.wait(PATIENCE_S)


@pytest.mark.parametrize("after_s", [0.2, 0.8, 1.6])
@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
def test_no_server_outlives_a_screen_that_still_starts_one(how: str, after_s: float, tmp_path: Path) -> None:
    with terminal("--demo", "tiny", "--port", "0", session=tmp_path / "session.jsonl") as screen:
        time.sleep(after_s)
        screen.process.send_signal(signal.Signals[how])
        screen.process.wait(PATIENCE_S)
        assert all_gone()


def test_a_run_whose_server_dies_tells_it_and_is_3(tmp_path: Path) -> None:
    scenario = tmp_path / "endless.toml"
    scenario.write_text(
        '[[steps]]\nid = "a"\nuser = "hi"\nmax_tokens = 3\n[[steps]]\nid = "b"\nuser = "hi"\nmax_tokens = 100000\n'
    )
    process = subprocess.Popen([*MAIN, "run", str(scenario), "--demo", "tiny"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process:
        for line in process.stderr:
            if line.startswith("▸ b"):
                break
        (server,) = servers()
        server.kill()
        rest = process.stderr.read()
        assert process.wait(PATIENCE_S) == 3
    assert "ended from outside (SIGKILL" in rest
    assert "Traceback" not in rest


async def test_a_kept_server_stays_and_can_be_attached_to(tmp_path: Path) -> None:
    words = ("--demo", "tiny", "--port", "0", "--keep-server")
    with terminal(*words, session=tmp_path / "session.jsonl") as screen:
        screen.await_ready()
        screen.press(b"\x11")
        await asyncio.to_thread(screen.process.wait, PATIENCE_S)
    (server,) = servers()
    (port,) = {one.laddr.port for one in server.net_connections("tcp") if one.status == "LISTEN"}
    async with running(AttachServer(url=f"http://127.0.0.1:{port}")) as engine:
        await until(engine, lambda state: state.server.phase == "ready" and state.server.observed)
        assert (await ask(engine, "Still there?")).outcome == "done"
        engine.submit(StopServer())
        await until(engine, lambda _: "not started here: it is not stopped" in notices(engine))
        engine.submit(RestartServer())
        await until(engine, lambda _: "not started here: it is not restarted" in notices(engine))
        assert engine.state.server.phase == "ready"
    assert server.is_running()


async def test_a_kept_server_of_an_engine_is_still_restarted_and_stopped_on_demand() -> None:
    async with running(ServerSpec(model="demo:tiny", port=0, keep=True)) as engine:
        await phase(engine, "ready")
        (first,) = servers()
        engine.submit(RestartServer())
        await until(engine, lambda state: state.server.epoch == 2 and state.server.phase == "ready")
        assert not first.is_running()
        (second,) = servers()
    assert second.is_running()


# --- what goes wrong -------------------------------------------------------------------------------------------------


async def test_a_port_that_is_taken_is_told_with_who_and_what_to_do() -> None:
    async with running() as holder:
        await phase(holder, "ready")
        port = holder.state.server.port or 0
        async with running(ServerSpec(model="demo:tiny", port=port)) as engine:
            text = await phase(engine, "exited")
            assert text.startswith(f"port {port} is taken by python")
            assert f"(pid {holder.state.server.pid})" in text
            assert "--url" in text
            assert "--port" in text
        assert len(servers()) == 1
        assert (await ask(holder, "Still there?")).outcome == "done"


def run_on(*words: str) -> tuple[int, str, object]:
    done = subprocess.run(
        [*MAIN, "run", "return-policy", *words, "--json", "-"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    return done.returncode, done.stderr, json.loads(done.stdout) if done.stdout else None


def garbage(tmp_path: Path, model: Path) -> Path:
    folder = tmp_path / "garbage"
    folder.mkdir()
    for file in model.iterdir():
        (folder / file.name).write_bytes(b"garbage" if file.suffix == ".safetensors" else file.read_bytes())
    return folder


@pytest.mark.parametrize("kind", ["no folder", "no config", "no weights", "garbage", "not on the hub"])
def test_a_model_that_cannot_be_loaded_is_one_line_and_3(kind: str, tmp_path: Path, model: Path) -> None:
    folder = tmp_path / "model"
    name, line = (
        str(folder),
        {
            "no folder": f"no model folder at {folder}",
            "no config": "it has no config.json",
            "no weights": "it has no weights",
            "garbage": "garbage did not load: RuntimeError",
            "not on the hub": "acme/nothing did not load: the model is not on this machine and could not be fetched",
        }[kind],
    )
    if kind != "no folder":
        folder.mkdir()
    if kind == "no weights":
        (folder / "config.json").write_text("{}")
    if kind == "garbage":
        name = str(garbage(tmp_path, model))
    if kind == "not on the hub":
        name = "acme/nothing"
    status, err, whole = run_on("--model", name)
    assert status == 3
    assert whole is not None
    assert line in err
    assert "mlxcache_tui" not in err
    assert not servers()


async def test_a_broken_model_can_be_followed_by_a_good_one(tmp_path: Path, model: Path) -> None:
    async with running(ServerSpec(model=str(garbage(tmp_path, model)), port=0)) as engine:
        await phase(engine, "worker_dead")
        engine.submit(StartServer(spec=TINY))
        await phase(engine, "ready")
        assert (await ask(engine, "Hello?")).outcome == "done"
        assert len(servers()) == 1


async def test_a_python_without_mlx_lm(tmp_path: Path) -> None:
    await asyncio.to_thread(venv.create, tmp_path / "empty", symlinks=True)
    python = str(tmp_path / "empty" / "bin" / "python")
    async with running(ServerSpec(model="demo:tiny", port=0, python=python)) as engine:
        text = await phase(engine, "exited")
    assert "mlx_lm is not installed for the Python that was to run it" in text


async def test_no_python_at_all(tmp_path: Path) -> None:
    async with running(ServerSpec(model="demo:tiny", port=0, python=str(tmp_path / "none"))) as engine:
        text = await phase(engine, "exited")
    assert text == f"the server cannot be started with {tmp_path / 'none'}: No such file or directory"
    assert runtime_files() == []


async def test_flags_that_the_server_does_not_know_are_its_own_words() -> None:
    async with running(ServerSpec(model="demo:tiny", port=0, flags={"max_kv_size": "100"})) as engine:
        text = await phase(engine, "exited")
    assert text == "the server ended with exit code 2: unrecognized arguments: --max-kv-size 100"


async def test_killed_in_mid_answer_then_restarted() -> None:
    async with running() as engine:
        await phase(engine, "ready")
        key = send(engine, "Talk.", max_tokens=ENDLESS)
        await until(engine, lambda state: key in state.requests and bool(state.requests[key].answer))
        os.kill(engine.state.server.pid or 0, signal.SIGKILL)
        text = await phase(engine, "exited")
        assert "ended from outside (SIGKILL" in text
        await until(engine, lambda state: state.requests[key].outcome is not None)
        request = engine.state.requests[key]
        assert request.outcome in ("cut", "failed")
        assert request.error
        assert "\n" not in request.error
        refused = await ask(engine, "Anybody?")
        assert refused.outcome == "failed"
        assert "nothing answers" in (refused.error or "")
        engine.submit(RestartServer())
        await phase(engine, "ready")
        assert (await ask(engine, "And now?")).outcome == "done"


async def test_a_process_that_is_stopped_and_continued() -> None:
    async with running() as engine:
        await phase(engine, "ready")
        pid = engine.state.server.pid or 0
        key = send(engine, "Talk.", max_tokens=ENDLESS)
        await until(engine, lambda state: key in state.requests and bool(state.requests[key].answer))
        os.kill(pid, signal.SIGSTOP)
        assert "kill -CONT" in await phase(engine, "not_answering")
        request = engine.state.requests[key]
        assert request.outcome is None
        said = request.gaps.count
        os.kill(pid, signal.SIGCONT)
        await phase(engine, "ready")
        await until(engine, lambda _: request.gaps.count > said)
        os.kill(pid, signal.SIGSTOP)
        await phase(engine, "not_answering")
    assert not servers()


async def test_health_is_not_asked_while_the_observer_tells() -> None:
    async with running() as engine:
        await phase(engine, "ready")
        await asyncio.sleep(6)  # longer than any pause between two looks
        assert not [row.text for row in engine.state.log.rows if "/health" in row.text]


async def test_another_client_appears_at_once() -> None:
    async with running() as engine:
        await phase(engine, "ready")
        body = {"messages": [{"role": "user", "content": "From elsewhere"}], "max_tokens": ENDLESS, "stream": True}
        url = f"{engine.state.server.url}/v1/chat/completions"
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as client:
            async with client.stream("POST", url, json=body) as reply:
                await until(engine, lambda state: any(not request.ours for request in state.requests.values()))
                (foreign,) = [request for request in engine.state.requests.values() if not request.ours]
                assert foreign.outcome is None, "while it is answered"
                assert reply.status_code == 200
            await until(engine, lambda _: foreign.outcome == "cancelled")


# --- folders that cannot be used -------------------------------------------------------------------------------------


async def test_a_session_that_cannot_be_recorded_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MLXCACHE_STATE_DIR", str(tmp_path / "file"))
    async with running() as engine:
        await phase(engine, "ready")
        assert "the session is not recorded" in notices(engine)
        assert (await ask(engine, "Hello?")).outcome == "done"


@pytest.mark.parametrize("kind", ["link", "open to others", "a file"])
async def test_a_runtime_folder_that_is_not_ours(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runtime"
    if kind == "link":
        path.symlink_to(tmp_path)
    elif kind == "a file":
        path.write_text("")
    else:
        path.mkdir()
        path.chmod(0o777)
    monkeypatch.setenv("MLXCACHE_RUNTIME_DIR", str(path))
    async with running() as engine:
        text = await phase(engine, "exited")
        assert text.startswith(f"no server is started: {path}")
    async with running(AttachServer(url=f"http://127.0.0.1:{free_port()}")) as engine:
        await phase(engine, "unreachable")
        assert "an observer of this server is not looked for" in notices(engine)
    status, err, _ = await asyncio.to_thread(run_on, "--demo", "tiny")
    assert status == 3
    assert str(path) in err
    assert "Traceback" not in err
