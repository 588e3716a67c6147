"""Sending over real sockets to a scripted server: events, stamps, headers, every way a connection can fail, cancel."""

import asyncio
import json
import socket
import time
from collections.abc import Callable, Coroutine
from typing import TypeVar

import httpx
import pytest

from mlxcache_tui.core.body import as_curl, build_body, meta_header
from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.events import (
    Event,
    FinishArrived,
    FirstTokenArrived,
    PrefillProgressed,
    RequestAdmitted,
    RequestEnded,
    RequestSent,
    TextArrived,
    UsageReported,
)
from mlxcache_tui.core.settings import API_KEY_VARIABLE
from mlxcache_tui.sources import http
from mlxcache_tui.sources.http import Sender, get
from support.stub_server import DONE, RESET, Script, data, head, serve

DEADLINE_S = 60.0
E = TypeVar("E", bound=Event)


def delta(text: str, finish: str | None = None) -> bytes:
    return data({"choices": [{"index": 0, "finish_reason": finish, "delta": {"content": text}}]})


USAGE = data({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}})
ANSWER: Script = [head(), b": keepalive 5/9\n\n", delta("Yes"), delta(", sir", "stop"), USAGE, DONE]
DRAFT = Draft(user="May I?", policy_text="No.", policy="returns")


class Heard:
    """The events of one sender, and a way to wait for one."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._came = asyncio.Event()

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self._came.set()

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def end(self) -> RequestEnded:
        """The only end, and the last event."""
        (end,) = self.all(RequestEnded)
        assert self.events[-1] is end
        return end

    def text(self) -> str:
        return "".join(event.text for event in self.all(TextArrived))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                self._came.clear()
                await self._came.wait()


async def send(url: str, draft: Draft = DRAFT) -> Heard:
    heard = Heard()
    async with asyncio.timeout(DEADLINE_S):
        await Sender(url, heard.emit, time.monotonic_ns).send("r1", draft)
    return heard


def started(sending: Coroutine[None, None, None]) -> "asyncio.Task[None]":
    return asyncio.get_running_loop().create_task(sending)


async def test_a_streamed_reply_becomes_these_events_in_order() -> None:
    async with serve(ANSWER) as stub:
        before = time.monotonic_ns()
        heard = await send(stub.url)
        after = time.monotonic_ns()
    kinds = [type(event) for event in heard.events if not isinstance(event, TextArrived)]
    assert kinds == [
        RequestSent,
        RequestAdmitted,
        PrefillProgressed,
        FirstTokenArrived,
        FinishArrived,
        UsageReported,
        RequestEnded,
    ]
    assert heard.text() == "Yes, sir"
    assert heard.end.outcome == "done"
    stamps = [event.at_ns for event in heard.events]
    assert stamps == sorted(stamps)
    assert before <= stamps[0]
    assert stamps[-1] <= after
    assert {event.origin for event in heard.events} == {"client"}
    assert {getattr(event, "key", None) for event in heard.events} == {"r1"}


async def test_connecting_is_kept_apart_from_sending() -> None:
    async with serve(ANSWER) as stub:
        before = time.monotonic_ns()
        heard = await send(stub.url)
    (sent,) = heard.all(RequestSent)
    assert sent.connect_ns is not None
    assert 0 < sent.connect_ns <= sent.at_ns - before


async def test_what_the_server_receives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY_VARIABLE, "s3cret")
    async with serve(ANSWER) as stub:
        await send(stub.url + "/v1")
    (request,) = stub.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.json == build_body(DRAFT)[1]
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-mlxcache-request"] == "r1"
    assert request.headers["x-mlxcache-meta"] == meta_header(DRAFT)
    assert request.headers["authorization"] == "Bearer s3cret"
    assert int(request.headers["content-length"]) == len(request.body)


async def test_the_key_is_in_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY_VARIABLE, "s3cret")
    for script in (ANSWER, [head("401 Unauthorized", "application/json"), b'{"error": "bad key"}']):
        async with serve(script) as stub:
            heard = await send(stub.url)
            assert stub.requests
        assert "s3cret" not in repr(heard.events)
    heard = await send("http://me:s3cret@127.0.0.1:1")
    assert "s3cret" not in repr(heard.events)


@pytest.mark.parametrize("key", ["a\nb", "schlüssel"])
async def test_a_key_that_no_header_can_carry_is_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY_VARIABLE, key)
    async with serve(ANSWER) as stub:
        heard = await send(stub.url)
        reply = await get(stub.url, "/health", DEADLINE_S)
    assert stub.requests == []
    assert heard.end.error == reply
    assert isinstance(reply, str)
    assert "plain ASCII" in reply
    assert key not in reply


async def test_the_key_goes_with_a_look_at_the_server_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY_VARIABLE, "s3cret")
    async with serve([head(content_type="application/json"), b"{}"]) as stub:
        await get(stub.url, "/v1/models", DEADLINE_S)
    assert stub.requests[0].headers["authorization"] == "Bearer s3cret"


async def test_no_proxy_and_no_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with serve(ANSWER) as stub:
        assert (await send(stub.url)).end.outcome == "done"


async def test_a_whole_reply_has_no_first_token() -> None:
    body = json.dumps({"choices": [{"finish_reason": "stop", "message": {"content": "Yes"}}]}).encode()
    script: Script = [head(content_type="application/json", Content_Length=str(len(body))), body[:9], 0.01, body[9:]]
    async with serve(script) as stub:
        heard = await send(stub.url, Draft(user="May I?", stream=False))
    assert [type(event) for event in heard.events] == [
        RequestSent,
        RequestAdmitted,
        TextArrived,
        FinishArrived,
        RequestEnded,
    ]
    assert heard.end.outcome == "done"


async def test_text_that_waits_is_given_out_while_the_stream_stands_still() -> None:
    go_on = asyncio.Event()
    heard = Heard()
    async with serve([head(), delta("a"), 0.005, delta("b"), go_on, delta("c", "stop"), DONE]) as stub:
        task = started(Sender(stub.url, heard.emit, time.monotonic_ns).send("r1", DRAFT))
        await heard.until(lambda: heard.text() == "ab")
        go_on.set()
        await task
    assert heard.text() == "abc"
    assert sum(len(event.gaps_ns) for event in heard.all(TextArrived)) == 2


FAILURES: dict[str, tuple[Script, str, int | None, str]] = {
    "closed before the answer": ([b""], "failed", None, "{url} closed the connection before the answer was complete"),
    "closed in mid-answer": ([head(), delta("a")], "cut", 200, "the stream ended without [DONE]"),
    "closed behind the headers": ([head()], "cut", 200, "the stream ended before anything came"),
    "shorter than announced": (
        [head(content_type="application/json", Content_Length="99"), b"{"],
        "cut",
        200,
        "{url} closed the connection before the answer was complete",
    ),
    "not HTTP": ([b"220 mail ready\r\n\r\n"], "failed", None, "what answers at {url} does not speak HTTP: "),
    "400 JSON": (
        [head("400 Bad Request", "application/json"), b'{"error": "max_tokens must be at least 1"}'],
        "failed",
        400,
        "HTTP 400: max_tokens must be at least 1",
    ),
    "404 plain": ([head("404 Not Found", "application/json"), b"Not Found"], "failed", 404, "HTTP 404: Not Found"),
    "503 empty": ([head("503 Service Unavailable", "")], "failed", 503, "HTTP 503 with an empty body"),
    "redirect": (
        [head("301 Moved", "", Location="http://127.0.0.1:1/v1")],
        "failed",
        301,
        "HTTP 301: the server redirects to http://127.0.0.1:1/v1; use that URL",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_failures_end_in_one_clear_line(name: str) -> None:
    script, outcome, status, line = FAILURES[name]
    async with serve(script) as stub:
        heard = await send(stub.url)
        line = line.format(url=stub.url)
    assert (heard.end.outcome, heard.end.status) == (outcome, status)
    assert heard.end.error is not None
    assert heard.end.error.startswith(line)
    assert "\n" not in heard.end.error
    assert len(stub.requests) == 1  # what the server took is never sent again


async def broken_off(before: bytes, heard_of: type[Event]) -> tuple[Heard, str]:
    """A connection that is reset once the sender has told of this: a reset throws away what was not read yet."""
    heard, read = Heard(), asyncio.Event()

    def emit(event: Event) -> None:
        heard.emit(event)
        if isinstance(event, heard_of):
            read.set()

    async with serve([before, read, RESET]) as stub, asyncio.timeout(DEADLINE_S):
        await Sender(stub.url, emit, time.monotonic_ns).send("r1", DRAFT)
    assert len(stub.requests) == 1
    return heard, stub.url


async def test_a_reset_in_mid_answer_cuts_it() -> None:
    heard, url = await broken_off(head() + delta("a"), TextArrived)
    assert (heard.end.outcome, heard.end.status) == ("cut", 200)
    assert (heard.end.error or "").startswith(f"the connection to {url} broke: ")
    assert heard.text() == "a"


async def test_a_refusal_that_is_cut_hard_is_known_by_its_status() -> None:
    refusal = head("404 Not Found", "application/json") + b'{"error": "no such model"}'
    heard, _ = await broken_off(refusal, RequestAdmitted)
    assert (heard.end.outcome, heard.end.status) == ("failed", 404)
    assert heard.end.error == "HTTP 404: no such model"


async def test_nothing_answers() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        heard = await send(url)
    assert heard.end.error == f"nothing answers at {url}: start the server or choose another URL"
    assert heard.end.outcome == "failed"
    assert len(heard.events) == 1


@pytest.mark.parametrize(
    "url", ["http://", "http://[::1", "ftp://x", "http://a b", "http://x:99999", "http://a..b", ""]
)
async def test_an_address_that_is_none(url: str) -> None:
    heard = await send(url)
    assert heard.end.outcome == "failed"
    assert heard.end.error


async def test_https_where_there_is_none() -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        heard = await send(url)
    assert heard.end.error is not None
    assert heard.end.error.startswith(f"no secure connection to {url}: ")
    assert "wrong version number" in heard.end.error


async def test_a_draft_that_is_no_json() -> None:
    for value in (float("nan"), {1, 2}):
        heard = await send("http://127.0.0.1:1", Draft(user="u", extra={"top_p": value}))
        assert heard.end.error is not None
        assert heard.end.error.startswith("the request cannot be written as JSON: ")


async def test_a_server_that_does_not_take_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CONNECT_SECONDS", 0.2)
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())  # fills the backlog
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        heard = await send(url)
    assert heard.end.error == f"{url} did not take the connection in time: is the host up and the port right?"


class Flaky(httpx.AsyncBaseTransport):
    """Fails the first times as told, then passes on to the network."""

    def __init__(self, failures: list[Exception], while_sending: bool) -> None:
        self._failures = failures
        self._while_sending = while_sending
        self._network = httpx.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not self._failures:
            return await self._network.handle_async_request(request)
        if self._while_sending:
            await request.extensions["trace"]("http11.send_request_headers.started", {})
        raise self._failures.pop(0)

    async def aclose(self) -> None:
        await self._network.aclose()


def reset_on_connect() -> httpx.ConnectError:
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = ExceptionGroup(
        "all", [OSError("no number"), ConnectionResetError(104, "Connection reset by peer")]
    )
    return error


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Exception], bool], None]:
    def use(failures: list[Exception], while_sending: bool) -> None:
        monkeypatch.setattr(
            http,
            "_client",
            lambda _tls, timeout: httpx.AsyncClient(transport=Flaky(failures, while_sending), timeout=timeout),
        )
        monkeypatch.setattr(http, "RETRY_DELAYS_S", (0.0, 0.0, 0.0))

    return use


Use = Callable[[list[Exception], bool], None]


@pytest.mark.parametrize("while_sending", [False, True])
async def test_a_connection_reset_before_anything_was_sent_is_tried_again(flaky: Use, while_sending: bool) -> None:
    flaky([reset_on_connect(), httpx.ReadError("")] if while_sending else [reset_on_connect()] * 2, while_sending)
    async with serve(ANSWER) as stub:
        heard = await send(stub.url)
        assert len(stub.requests) == 1
    assert (heard.end.outcome, heard.end.error) == ("done", None)
    assert len(heard.all(RequestSent)) == 1


async def test_a_burst_beyond_the_backlog_comes_through_when_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured on mlx_lm 0.32.2: of 40 at once, 20 were reset after their bytes had left, never seen by the server."""
    monkeypatch.setattr(http, "RETRY_DELAYS_S", (0.0,))
    answers: list[Script] = [[RESET], ANSWER]
    async with serve(lambda _: answers.pop(0)) as stub:
        heard = await send(stub.url)
    assert (heard.end.outcome, heard.end.error) == ("done", None)
    first, second = heard.all(RequestSent)
    assert first.at_ns < second.at_ns < heard.all(RequestAdmitted)[0].at_ns


async def test_tries_end_and_are_told(flaky: Use) -> None:
    flaky([reset_on_connect()] * 4, False)
    heard = await send("http://127.0.0.1:1")
    assert heard.end.error == "no connection to http://127.0.0.1:1: connection reset by peer (after 4 tries)"


async def test_other_failures_to_connect_are_not_tried_again(flaky: Use) -> None:
    flaky([httpx.ConnectError("[SSL] no"), reset_on_connect()], False)
    heard = await send("http://127.0.0.1:1")
    assert heard.end.error == "no connection to http://127.0.0.1:1: [SSL] no"


async def test_cancel_in_mid_answer_closes_the_connection() -> None:
    heard = Heard()
    async with serve([head(), delta("a"), asyncio.Event()]) as stub:
        task = started(Sender(stub.url, heard.emit, time.monotonic_ns).send("r1", DRAFT))
        await heard.until(lambda: heard.text() == "a")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (heard.end.outcome, heard.end.status, heard.end.error) == ("cancelled", 200, None)
        async with asyncio.timeout(DEADLINE_S):
            await stub.closed_by_client.wait()


async def test_cancel_before_the_headers_closes_the_connection() -> None:
    heard = Heard()
    async with serve([asyncio.Event()]) as stub:
        task = started(Sender(stub.url, heard.emit, time.monotonic_ns).send("r1", DRAFT))
        await heard.until(lambda: bool(heard.all(RequestSent)))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (heard.end.outcome, heard.end.status) == ("cancelled", None)
        async with asyncio.timeout(DEADLINE_S):
            await stub.closed_by_client.wait()


async def test_cancel_before_anything() -> None:
    heard = Heard()
    task = started(Sender("http://127.0.0.1:1", heard.emit, time.monotonic_ns).send("r1", DRAFT))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [type(event) for event in heard.events] in ([], [RequestEnded])


async def test_forty_at_once() -> None:
    heard = Heard()
    async with serve(ANSWER) as stub, asyncio.timeout(DEADLINE_S):
        sender = Sender(stub.url, heard.emit, time.monotonic_ns)
        await asyncio.gather(*(sender.send(f"r{number}", DRAFT) for number in range(40)))
    assert [end.outcome for end in heard.all(RequestEnded)] == ["done"] * 40
    assert len({end.key for end in heard.all(RequestEnded)}) == 40


async def test_a_curl_command_asks_for_the_same() -> None:
    path, body = build_body(Draft(user='it\'s "!!" $(x) `y` \\n \n@🙂'))
    async with serve(ANSWER) as stub:
        try:
            shell = await asyncio.create_subprocess_shell(
                as_curl(stub.url, path, body), stdout=asyncio.subprocess.PIPE, env={"PATH": "/usr/bin:/bin"}
            )
        except FileNotFoundError:
            pytest.skip("no shell here")
        output, _ = await shell.communicate()
        if shell.returncode == 127:
            pytest.skip("no curl here")
    assert stub.requests[0].json == body
    assert output.endswith(DONE)
