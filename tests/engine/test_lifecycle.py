"""The lifecycle through the engine, on servers made of a few lines (for the real one see tests/live)."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mlxcache_tui.core.commands import AttachServer, RestartServer, ServerSpec, StartServer, StopServer
from mlxcache_tui.engine import launch as launching
from mlxcache_tui.engine import lifecycle, vitals
from mlxcache_tui.models.fetch import DemoModelCancelledError
from mlxcache_tui.sources import ports
from support.engines import PATIENCE_S, ask, notices, phase, running, send, until
from support.stub_server import DONE, Received, Script, Stub, data, head, serve

HEALTHY = [head(content_type="application/json"), b'{"status":"ok"}']
ANSWER = [
    head(),
    data({"choices": [{"index": 0, "delta": {"content": "Yes"}, "finish_reason": "stop"}]}),
    data({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}),
    DONE,
]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks come quickly, and silence is judged after a second."""
    monkeypatch.setattr(lifecycle, "LOOK_S", 0.2)
    monkeypatch.setattr(lifecycle, "LOOK_READY_S", 0.3)
    monkeypatch.setattr(vitals, "SILENCE_S", 0.8)


@contextlib.asynccontextmanager
async def hanging(release: asyncio.Event) -> AsyncIterator[Stub]:
    """/health is well; a completion says nothing until it is released, as with a dead generation thread."""

    def answer(request: Received) -> Script:
        return HEALTHY if request.path == "/health" else [release, *ANSWER]

    async with serve(answer) as stub:
        yield stub


async def test_a_dead_thread_behind_a_healthy_port_is_noticed() -> None:
    release = asyncio.Event()
    async with hanging(release) as stub, running(AttachServer(url=stub.url)) as engine:
        await phase(engine, "ready")
        key = send(engine, "Hello?")
        assert "no word on 1 open requests" in await phase(engine, "not_answering")
        assert engine.state.requests[key].outcome is None
        release.set()
        await phase(engine, "ready")
        await until(engine, lambda state: state.requests[key].outcome == "done")


async def test_a_start_that_breaks_in_an_unforeseen_way_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise OverflowError("port must be 0-65535.")

    monkeypatch.setattr(lifecycle, "launch", broken)
    async with running(ServerSpec(model="m", port=0)) as engine:
        assert await phase(engine, "exited") == "the server cannot be started: port must be 0-65535."
        await until(engine, lambda state: any("OverflowError" in one.text for one in state.notices))


async def test_a_server_that_says_503_and_then_is_another() -> None:
    status = ["503 Service Unavailable", "unavailable"]

    def answer(request: Received) -> Script:
        if request.path != "/health":
            return ANSWER
        return [head(status[0], "application/json"), b'{"status":"%s"}' % status[1].encode()]

    async with serve(answer) as stub, running(AttachServer(url=stub.url)) as engine:
        assert "503" in await phase(engine, "worker_dead")
        status[:] = ["200 OK", "ok"]
        await phase(engine, "ready")
        assert (await ask(engine, "Hello?")).outcome == "done"


@pytest.mark.parametrize(("software", "times"), [("llama.cpp", 1), ("BaseHTTP/0.6 Python/3.12.4", 0)])
async def test_models_are_asked_once_and_of_mlx_lm_here_not_at_all(software: str, times: int) -> None:
    """mlx_lm's process tells its model; its answer may be a traceback in its log."""
    healthy = [head(content_type="application/json", Server=software), b'{"status":"ok"}']
    async with serve(lambda _: healthy) as stub, running(AttachServer(url=stub.url)) as engine:
        await phase(engine, "ready")
        async with asyncio.timeout(PATIENCE_S):
            while len(stub.requests) < 6:  # noqa: ASYNC110 - the stub tells nobody
                await asyncio.sleep(0.05)
        assert [request.path for request in stub.requests].count("/v1/models") == times


async def test_a_password_in_the_address_goes_to_the_server_alone() -> None:
    async with serve(ANSWER) as stub:
        url = stub.url.replace("://", "://me:s3cret@")
        async with running(AttachServer(url=url)) as engine:
            await phase(engine, "ready")
            request = await ask(engine, "Hello?")
            assert request.outcome == "done"
            assert engine.state.server.url == stub.url
            assert "s3cret" not in repr(engine.state)
    posts = [received for received in stub.requests if received.method == "POST"]
    assert posts[0].headers["authorization"].startswith("Basic ")


async def test_what_is_not_ours_is_neither_stopped_nor_restarted() -> None:
    async with serve(lambda _: HEALTHY) as stub, running(AttachServer(url=stub.url)) as engine:
        await phase(engine, "ready")
        engine.submit(StopServer())
        engine.submit(RestartServer())
        await until(engine, lambda _: "not restarted" in notices(engine))
        assert "not stopped" in notices(engine)
        await phase(engine, "ready")


async def test_attaching_elsewhere_leaves_the_first_alone() -> None:
    async with (
        serve(lambda _: HEALTHY) as one,
        serve(lambda request: HEALTHY if request.path == "/health" else ANSWER) as two,
        running(AttachServer(url=one.url)) as engine,
    ):
        await phase(engine, "ready")
        engine.submit(AttachServer(url=two.url))
        await until(engine, lambda state: state.server.url == two.url and state.server.phase == "ready")
        assert (await ask(engine, "Hello?")).outcome == "done"
        assert not [request for request in one.requests if request.method == "POST"]


async def test_the_end_does_not_wait_for_a_model_that_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()
    given_up: list[bool] = []

    def ensure(*_: object, cancel: threading.Event, **__: object) -> Path:
        begun.set()
        given_up.append(cancel.wait(PATIENCE_S))
        raise DemoModelCancelledError("stopped")

    monkeypatch.setattr(launching, "ensure_demo_model", ensure)
    async with running(ServerSpec(model="demo:smollm2", port=0)) as engine:
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
    assert given_up == [True]
    assert engine.state.server.phase == "starting"


async def test_a_newer_start_takes_the_place_of_one_that_fetches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun = threading.Event()

    def ensure(*_: object, cancel: threading.Event, **__: object) -> Path:
        begun.set()
        assert cancel.wait(PATIENCE_S)
        raise DemoModelCancelledError("stopped")

    monkeypatch.setattr(launching, "ensure_demo_model", ensure)
    async with running(ServerSpec(model="demo:smollm2", port=0)) as engine:
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
        engine.submit(StartServer(spec=ServerSpec(model=str(tmp_path / "none"), port=0)))
        assert "no model folder" in await phase(engine, "exited")


async def test_a_process_that_is_not_known_holds_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    port = ports.free_port("127.0.0.1")
    monkeypatch.setattr(ports, "holder", lambda _: ports.Holder(None, "another process"))
    async with running() as engine:
        engine.submit(AttachServer(url=f"http://127.0.0.1:{port}"))
        said = await phase(engine, "not_answering")
        assert said == f"another process holds port {port} but does not answer"
