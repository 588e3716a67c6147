"""Watching a server that somebody else started: the stock mlx_lm.server, an observed one, and other kinds."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from mlxcache_tui.core.commands import AttachServer, Draft, ServerSpec
from mlxcache_tui.core.forecast import forecast
from mlxcache_tui.core.lens import PromptTexts
from mlxcache_tui.core.present import cache_view, request_row, status_view
from mlxcache_tui.engine.lifecycle import LOOK_S, POLL_S
from mlxcache_tui.models.fetch import Kind
from mlxcache_tui.store.paths import runtime_dir
from support.engines import PATIENCE_S, TINY, ask, no_server_left, notices, phase, running, send, until
from support.live_server import SERVER_PYTHON, free_port
from support.stub_server import DONE, Received, Script, data, head, serve

pytestmark = pytest.mark.mlx

POLICY = " ".join(f"Rule {number}: accessories may be returned within {number} days." for number in range(1, 31))


class Stock:
    """A server started by hand, as its own documentation says, with its output in a file."""

    def __init__(self, model: Path, folder: Path) -> None:
        self.port, self.log = free_port(), folder / "server.log"
        self._command = [SERVER_PYTHON, "-m", "mlx_lm", "server", "--model", str(model), "--port", str(self.port)]
        self._env = os.environ | {"HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1"}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *flags: str) -> int:
        """Start it (again); returns its pid."""
        self.stop()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._command, *flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env
            )
        return self.process.pid

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def asked_for_health(self) -> int:
        return self.log.read_text("utf-8", "replace").count('"GET /health')


@pytest.fixture
def stock(own_folders: None, tiny_model: Callable[[Kind], Path], tmp_path: Path) -> Iterator[Stock]:
    """Not started yet."""
    server = Stock(tiny_model("tiny"), tmp_path)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    """What a failing test leaves behind is ended."""
    with no_server_left():
        yield


async def test_a_stock_server_gives_rows_and_times_and_claims_no_more(stock: Stock) -> None:
    stock.start()
    async with running(AttachServer(url=stock.url)) as engine:
        await phase(engine, "ready")
        first = await ask(engine, "May I?", POLICY)
        # Enough of them for a rate, however fast the machine is.
        again = await ask(engine, "May I, please?", POLICY, max_tokens=200)
        state = engine.state
        row = request_row(state, again)
        assert (row.reason, row.cached_source, row.inferred) == ("hit", "usage", True)
        assert row.cached_ratio is not None
        assert row.cached_ratio > 0.5
        assert row.ttft_s is not None
        assert row.decode_tps is not None
        assert request_row(state, first).reason == "first"
        status = status_view(state)
        assert (status.observed, status.ours, status.evictions, status.load_s) == ("client", False, None, None)
        assert status.mlx_lm is not None
        await until(engine, lambda now: now.server.text == "")
        assert cache_view(state).known == "inferred"
        assert (state.cache.max_count, state.cache.max_bytes) == (None, None)
        await until(engine, lambda now: bool(now.memory.samples))
        assert state.server.model is not None
        assert state.server.model.endswith("tiny")
        assert not state.log.read
        assert notices(engine) == ""
    assert stock.process is not None
    assert stock.process.poll() is None


async def test_with_its_log_the_lines_and_the_counters_are_there(stock: Stock) -> None:
    stock.start()
    async with running(AttachServer(url=stock.url, log_path=str(stock.log))) as engine:
        await phase(engine, "ready")
        await ask(engine, "May I?", POLICY)
        await ask(engine, "May I, please?", POLICY)
        await until(engine, lambda state: state.cache.counted is not None and state.cache.counted.count > 0)
        assert status_view(engine.state).observed == "log"
        view = cache_view(engine.state)
        assert (view.known, len(view.entries), view.bytes) == ("inferred", 2, None)
        assert view.counted_text.startswith("log, before the last request: 1 sequences")
        assert engine.state.cache.inferred.disagreement is None
        texts = [row.text for row in engine.state.log.rows]
        assert any("Starting httpd" in text for text in texts)
        assert any('"POST /v1/chat/completions' in text for text in texts)


async def test_without_the_observer_an_eviction_is_inferred_by_the_rule(stock: Stock) -> None:
    stock.start("--prompt-cache-size", "2")
    async with running(AttachServer(url=stock.url, log_path=str(stock.log))) as engine:
        await phase(engine, "ready")
        await until(engine, lambda state: state.cache.max_count == 2 and bool(state.memory.samples))
        for name in ("A", "B", "C", "A"):
            last = await ask(engine, "May I?", f"{name}: {POLICY}")
        assert last.reason is not None
        assert (last.reason.kind, last.reason.evicted_by, last.reason.inferred) == ("evicted", 3, True)
        evictions = [(gone.made_by, gone.caused_by, gone.inferred) for gone in engine.state.cache.evictions]
        assert evictions == [(1, 3, True), (2, 4, True)]
        near = await ask(engine, "May I, please?", f"A: {POLICY}")
        assert near.reason is not None
        assert near.reason.kind == "hit"
        await until(engine, lambda state: state.cache.counted is not None and state.cache.counted.count == 2)
        assert engine.state.cache.inferred.disagreement is None


async def test_where_the_log_counts_otherwise_the_pane_says_so(stock: Stock) -> None:
    stock.start()
    other = httpx.AsyncClient(timeout=60)
    async with running(AttachServer(url=stock.url, log_path=str(stock.log))) as engine, other:
        await phase(engine, "ready")
        await ask(engine, "May I?", POLICY)
        for user in ("Who are you?", "And you?"):
            body = {"messages": [{"role": "user", "content": user}], "max_tokens": 1}
            await other.post(f"{stock.url}/v1/chat/completions", json=body)
        await ask(engine, "May I, please?", POLICY)
        await until(engine, lambda state: state.cache.inferred.disagreement == (1, 3))
        assert cache_view(engine.state).note.startswith("≈ 1 inferred before the last request, but the log counted 3")


async def test_others_fill_the_cache_of_a_stock_server(stock: Stock) -> None:
    """Two of ours, three of somebody else's into two places, then ours again: its entry cannot be there any more."""
    stock.start("--prompt-cache-size", "2")
    others = [" ".join(f"{name} {number}" for number in range(30)) for name in ("alpha", "beta", "gamma")]
    async with running(AttachServer(url=stock.url, log_path=str(stock.log))) as engine:
        await phase(engine, "ready")
        await ask(engine, "May I?", POLICY)
        await ask(engine, "May I?", POLICY[::-1])
        draft = Draft(user="May I, please?", policy_text=POLICY[::-1])
        await until(engine, lambda now: now.cache.max_count == 2)
        assert "(#2, inferred)" in forecast(engine.state, draft, PromptTexts()).text
        assert [row.next_victim for row in cache_view(engine.state).entries] == [True, False]
        async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
            for text in others:
                body = {"messages": [{"role": "user", "content": text}], "max_tokens": 2}
                assert (await client.post(f"{stock.url}/v1/chat/completions", json=body)).status_code == 200
        await until(engine, lambda now: now.cache.inferred.others.count == 3)
        view = cache_view(engine.state)
        assert "others use the server: 3 requests since #2" in view.note
        assert [(row.doubtful, row.next_victim) for row in view.entries] == [(True, False)] * 2
        assert "! others may have pushed #2 out since" in forecast(engine.state, draft, PromptTexts()).more
        again = await ask(engine, "May I, please?", POLICY[::-1])
        row = request_row(engine.state, again)
        assert (row.reason, row.why, row.inferred) == ("evicted", "evicted by other clients", True)
        assert "(#2) is gone: #3 reused" in cache_view(engine.state).note
        pid = stock.process.pid if stock.process else None
        assert pid != stock.start("--prompt-cache-size", "2")
        await until(engine, lambda now: bool(now.cache.warm_before))
        assert all(request_row(engine.state, request).earlier for request in engine.state.requests.values())
        await until(engine, lambda now: any(one.text.startswith("w: warm again") for one in cache_view(now).warnings))


async def test_a_server_that_comes_later_goes_and_comes_back(stock: Stock) -> None:
    async with running(AttachServer(url=stock.url)) as engine:
        assert "nothing answers" in await phase(engine, "unreachable")
        first = stock.start()
        await phase(engine, "ready")
        await until(engine, lambda state: state.server.pid == first)
        epoch = engine.state.server.epoch
        assert (await ask(engine, "May I?", POLICY)).outcome == "done"
        stock.stop()
        await phase(engine, "unreachable")
        second = stock.start()
        await phase(engine, "ready")
        await until(engine, lambda state: state.server.pid == second)
        assert engine.state.server.epoch == epoch + 1
        assert [mark.kind for mark in engine.state.memory.marks] == ["restart"]
        after = await ask(engine, "May I?", POLICY)
        assert after.reason is not None
        assert after.reason.kind in ("restarted", "first")


async def test_a_stock_server_is_asked_for_its_health_rarely(stock: Stock) -> None:
    stock.start()
    async with running(AttachServer(url=stock.url)) as engine:
        await phase(engine, "ready")
        before, began = stock.asked_for_health(), time.monotonic()
        await asyncio.sleep(6)
        asked = stock.asked_for_health() - before
        assert asked <= (time.monotonic() - began) / (LOOK_S - POLL_S) + 1


async def test_a_stock_server_that_stops_answering(stock: Stock) -> None:
    pid = stock.start()
    async with running(AttachServer(url=stock.url)) as engine:
        await phase(engine, "ready")
        await until(engine, lambda state: state.server.pid == pid)
        os.kill(pid, signal.SIGSTOP)
        assert f"kill -CONT {pid}" in await phase(engine, "not_answering")
        os.kill(pid, signal.SIGCONT)
        await phase(engine, "ready")
        assert (await ask(engine, "And now?")).outcome == "done"


async def test_a_model_that_does_not_load_is_told(stock: Stock, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text('{"model_type": "llama"}')
    server = Stock(broken, tmp_path)
    server.start()
    try:
        async with running(AttachServer(url=server.url)) as engine:
            assert "503" in await phase(engine, "worker_dead")
            refused = await ask(engine, "Hello?")
            assert refused.outcome == "failed"
            assert "generation thread died" in (refused.error or "")
    finally:
        server.stop()


@pytest.mark.parametrize("form", ["http://127.0.0.1:{}/v1", "localhost:{}", "http://localhost:{}/", "127.0.0.1:{}/v1/"])
async def test_an_address_in_any_form(form: str) -> None:
    async with serve(llama) as stub, running(AttachServer(url=form.format(stub.url.rpartition(":")[2]))) as engine:
        await phase(engine, "ready")
        assert (await ask(engine, "Hello?")).outcome == "done"


@pytest.mark.parametrize("text", ["http://", "http://host:port", "ftp://host", "http://a b", "http://[::1", ""])
async def test_a_bad_address_is_one_line(text: str) -> None:
    async with running(AttachServer(url=text)) as engine:
        line = await phase(engine, "unreachable")
        assert "is not an address: it should look like http://127.0.0.1:8080" in line
        assert notices(engine) == ""


async def test_a_watcher_cannot_send(stock: Stock) -> None:
    stock.start()
    async with running(AttachServer(url=stock.url, watch_only=True)) as engine:
        await phase(engine, "ready")
        send(engine, "Hello?")
        await until(engine, lambda _: "only watches (--watch): it cannot send" in notices(engine))
        assert not engine.state.requests
    assert '"POST' not in stock.log.read_text()


# --- other kinds of servers ------------------------------------------------------------------------------------------


def llama(request: Received) -> Script:
    """As llama.cpp answers, with its cached tokens."""
    if request.path == "/health":
        return [head(content_type="application/json", Server="llama.cpp"), b'{"status":"ok"}']
    if request.path == "/v1/models":
        listed = b'{"object":"list","data":[{"id":"gemma.gguf","owned_by":"llamacpp"}]}'
        return [head(content_type="application/json"), listed]
    usage = {"prompt_tokens": 20, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 12}}
    return [
        head(),
        data({"model": "gemma.gguf", "choices": [{"index": 0, "delta": {"content": "Yes"}, "finish_reason": None}]}),
        data({"model": "gemma.gguf", "choices": [{"index": 0, "delta": {"content": "."}, "finish_reason": None}]}),
        data({"model": "gemma.gguf", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        data({"model": "gemma.gguf", "choices": [], "usage": usage}),
        DONE,
    ]


async def test_another_kind_of_server_gives_rows_and_times() -> None:
    async with serve(llama) as stub, running(AttachServer(url=stub.url)) as engine:
        await phase(engine, "ready")
        request = await ask(engine, "May I?", POLICY)
        assert (request.outcome, request.finish_reason) == ("done", "stop")
        assert (request.prompt_tokens, request.cached_tokens, request.cached_source) == (20, 12, "usage")
        assert request_row(engine.state, request).ttft_s is not None
        assert engine.state.server.software == "llama.cpp"
        assert engine.state.server.model == "gemma.gguf"
        assert engine.state.server.mlx_lm is None
        (sent,) = [received for received in stub.requests if received.method == "POST"]
        assert sent.json["model"] == "gemma.gguf"
        assert cache_view(engine.state).known == "unknown"


async def test_its_model_is_believed_though_its_process_was_seen_first() -> None:
    pid_known = asyncio.Event()

    def answer(request: Received) -> Script:
        return [pid_known, *llama(request)] if request.path == "/v1/models" else llama(request)

    async with serve(answer) as stub, running(AttachServer(url=stub.url)) as engine:
        await until(engine, lambda state: state.server.pid is not None)
        pid_known.set()
        await until(engine, lambda state: state.server.model == "gemma.gguf")


async def test_something_that_holds_the_port_and_says_nothing() -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, running(AttachServer(url=f"http://127.0.0.1:{port}")) as engine:
        assert f"holds port {port} but does not answer" in await phase(engine, "not_answering")


# --- an observed server of somebody else -----------------------------------------------------------------------------


@contextmanager
def owner(session: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that starts a server, tells its port, asks one question, and ends when its input closes."""
    code = (
        "import asyncio, sys\n"
        "sys.path[:0] = ['tests']\n"
        "from support.engines import *\n"
        "async def main():\n"
        "    async with running() as engine:\n"
        "        await phase(engine, 'ready')\n"
        f"        await ask(engine, 'May I?', {POLICY!r})\n"
        "        print(engine.state.server.port, flush=True)\n"
        "        await asyncio.to_thread(sys.stdin.read)\n"
        "asyncio.run(main())\n"
    )
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


async def test_a_second_viewer_has_the_history_follows_and_sees_the_end(tmp_path: Path) -> None:
    with owner(tmp_path / "session.jsonl") as first:
        assert first.stdout is not None
        assert first.stdin is not None
        port = int(await asyncio.to_thread(first.stdout.readline))
        async with running(AttachServer(url=f"http://127.0.0.1:{port}")) as engine:
            await until(engine, lambda state: state.server.observed and state.server.phase == "ready")
            state = engine.state
            await until(engine, lambda now: now.next_number > 1 and bool(now.cache.stored))
            (theirs,) = [request for request in state.requests.values() if request.number]
            await until(engine, lambda _: theirs.outcome is not None)
            assert (theirs.ours, theirs.outcome) == (False, "done")
            again = await ask(engine, "May I, please?", POLICY)
            await until(engine, lambda _: again.reason is not None and not again.reason.inferred)
            assert again.reason is not None
            assert (again.reason.kind, again.reason.from_request) == ("hit", theirs.number)
            await until(engine, lambda now: bool(now.memory.samples) and now.log.read and now.memory.mlx is not None)
            assert (state.cache.max_count, state.server.epoch) == (10, 1)
            assert state.server.loaded is not None
            talk = send(engine, "Talk.", max_tokens=100_000)
            await until(engine, lambda now: talk in now.requests and bool(now.requests[talk].answer))
            first.stdin.close()
            await phase(engine, "unreachable")
            await until(engine, lambda now: now.requests[talk].outcome is not None)
            assert state.requests[talk].error
            await until(engine, lambda now: not now.server.observed)
        await asyncio.to_thread(first.wait, PATIENCE_S)


async def test_the_next_server_on_the_port_is_another_one() -> None:
    port = free_port()
    spec = ServerSpec(model="demo:tiny", port=port)
    async with running(AttachServer(url=f"http://127.0.0.1:{port}")) as watcher:
        await phase(watcher, "unreachable")
        for epoch in (1, 2):
            async with running(spec) as engine:
                await phase(engine, "ready")
                await ask(engine, "May I?", POLICY)
                await until(watcher, lambda state: state.server.observed and state.server.phase == "ready")
                await until(watcher, lambda state: bool(state.cache.stored))
                assert watcher.state.server.pid == engine.state.server.pid
                assert watcher.state.server.epoch == epoch
            await phase(watcher, "unreachable")
        assert [mark.kind for mark in watcher.state.memory.marks] == ["restart"]


async def test_the_log_of_an_observed_server_is_followed_without_being_named() -> None:
    async with running(TINY) as engine:
        await phase(engine, "ready")
        async with running(AttachServer(url=engine.state.server.url or "")) as watcher:
            await until(watcher, lambda state: state.log.read)
            assert watcher.state.server.log_path == str(runtime_dir() / f"{engine.state.server.port}.log")


async def test_coming_back_to_a_server_counts_nothing_twice() -> None:
    spec = ServerSpec(model="demo:tiny", port=0, flags={"prompt_cache_size": 1})
    async with running(spec) as engine:
        await phase(engine, "ready")
        url = engine.state.server.url or ""
        async with running(AttachServer(url=url)) as watcher:
            await until(watcher, lambda state: state.server.observed and state.server.phase == "ready")
            for policy in ("one " * 30, "two " * 30):
                await ask(watcher, "May I?", policy)
            await until(watcher, lambda state: len(state.cache.evictions) == 2 and len(state.cache.stored) == 1)
            async with serve(llama) as stub:
                watcher.submit(AttachServer(url=stub.url))
                await until(watcher, lambda state: state.server.software == "llama.cpp")
            watcher.submit(AttachServer(url=url))
            await until(watcher, lambda state: state.server.url == url and len(state.cache.stored) == 1)
            after = await ask(watcher, "May I?", "three " * 30)
            await until(watcher, lambda state: len(state.cache.evictions) >= 3)
            assert len(watcher.state.cache.evictions) == 3
            assert len(set(after.entries)) == len(after.entries)
