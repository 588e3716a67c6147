"""Sends requests and reads replies, stamped as bytes arrive. The only file that knows httpx."""

import asyncio
import errno
import functools
import json
import os
import random
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx

from mlxcache_tui.core.body import build_body, endpoint, meta_header, shown_url
from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.events import AnyEvent
from mlxcache_tui.core.exchange import Exchange
from mlxcache_tui.core.reply import Identity, one_line
from mlxcache_tui.core.settings import API_KEY_VARIABLE

CONNECT_SECONDS = 5.0
RETRY_DELAYS_S = (0.1, 0.3, 0.9)
"""Waits before a connection that the server never took is tried again; each is spread by half to thin a burst out."""

Emit = Callable[[AnyEvent], None]
Clock = Callable[[], int]

_FAILURES = (httpx.HTTPError, httpx.InvalidURL, OSError)
_RESETS = (errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE)


class Sender:
    """Sends drafts to one server; `emit` gets the events (origin `client`), `clock` gives monotonic nanoseconds.

    Each request has a connection of its own, as the server closes it after the reply. There is no limit on the time
    between bytes: a long prefill is silent on some servers.
    """

    def __init__(self, base_url: str, emit: Emit, clock: Clock) -> None:
        self._url = base_url
        self._emit = emit
        self._clock = clock
        self._timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)
        self._tls = _tls_for(base_url)
        self._known: set[Identity] = set()

    async def send(self, key: str, draft: Draft) -> None:
        """Run one request to its end; every way it can end is a `RequestEnded`.

        The caller has emitted `composed_event`. Cancelling the task closes the connection.
        """
        exchange = Exchange(key, streamed=draft.stream, known=self._known)
        try:
            path, body = build_body(draft)
            content = json.dumps(body, allow_nan=False).encode()
            secret = authorization()
        except BadKeyError as error:
            self._tell(exchange.broke(str(error), self._clock()))
            return
        except (TypeError, ValueError) as error:
            self._tell(exchange.broke(f"the request cannot be written as JSON: {one_line(str(error))}", self._clock()))
            return
        headers = {
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "X-Mlxcache-Request": key,
            "X-Mlxcache-Meta": meta_header(draft),
            **secret,
        }
        try:
            await self._attempts(exchange, path, headers, content)
        except asyncio.CancelledError:
            self._tell(exchange.cancelled(self._clock()))
            raise

    async def _attempts(self, exchange: Exchange, path: str, headers: dict[str, str], content: bytes) -> None:
        """Try until an attempt comes through, or fails in a way that must not be repeated."""
        for number, delay in enumerate((*RETRY_DELAYS_S, None), start=1):
            connection = _Connection(exchange, self._clock, self._tell)
            try:
                await self._once(connection, exchange, path, headers, content)
                return
            except _FAILURES as error:
                if delay is None or exchange.answered or not connection.never_taken(error):
                    line = failure_line(error, self._url)
                    tries = f" (after {number} tries)" if number > 1 else ""
                    self._tell(exchange.broke(line + tries, self._clock()))
                    return
            await asyncio.sleep(delay * random.uniform(0.5, 1.5))

    async def _once(
        self, connection: "_Connection", exchange: Exchange, path: str, headers: dict[str, str], content: bytes
    ) -> None:
        url = endpoint(self._url, path)
        async with (
            _client(self._tls, self._timeout) as client,
            client.stream(
                "POST", url, content=content, headers=headers, extensions={"trace": connection.trace}
            ) as response,
        ):
            now = self._clock()
            kind, location = response.headers.get("content-type", ""), response.headers.get("location", "")
            self._tell(exchange.admitted(response.status_code, kind, location, now))
            await self._read(exchange, response)

    async def _read(self, exchange: Exchange, response: httpx.Response) -> None:
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None

        def flush() -> None:
            nonlocal timer
            timer = None
            self._tell(exchange.flush(self._clock()))

        try:
            async for chunk in response.aiter_bytes():
                now = self._clock()
                self._tell(exchange.received(chunk, now))
                if exchange.ended:
                    return
                due = exchange.flush_at_ns
                if due is not None and timer is None:
                    timer = loop.call_later((due - now) / 1e9, flush)
            self._tell(exchange.closed(self._clock()))
        finally:
            if timer is not None:
                timer.cancel()

    def _tell(self, events: list[AnyEvent]) -> None:
        for event in events:
            self._emit(event)


class _Connection:
    """Follows one attempt through httpcore's own account of its steps: when it connected and when it began to send."""

    def __init__(self, exchange: Exchange, clock: Clock, tell: Callable[[list[AnyEvent]], None]) -> None:
        self._exchange = exchange
        self._clock = clock
        self._tell = tell
        self._began_ns: int | None = None
        self._connect_ns: int | None = None
        self._sending_ns: int | None = None
        self._sent = False

    async def trace(self, name: str, _info: dict[str, Any]) -> None:
        """Called by httpcore before and after each step."""
        now = self._clock()
        match name:
            case "connection.connect_tcp.started":
                self._began_ns = now
            case "connection.connect_tcp.complete" | "connection.start_tls.complete":
                self._connect_ns = now - (now if self._began_ns is None else self._began_ns)
            case "http11.send_request_headers.started":
                self._sending_ns = now
            case "http11.send_request_headers.complete":
                self._sent = True
                self._tell(self._exchange.sent(now if self._sending_ns is None else self._sending_ns, self._connect_ns))

    def never_taken(self, error: Exception) -> bool:
        """Whether the server cannot have read the request, given that no byte of an answer came.

        Its backlog holds 5 connections. In a burst the system makes more, which look open here until the first bytes
        are answered by a reset. A server that had read the request and failed would close without one.
        """
        began_only = self._sending_ns is not None and not self._sent
        return began_only or any(cause.errno in _RESETS for cause in _os_errors(error))


class Reply(NamedTuple):
    """A short reply to a GET: status, headers in lower case, the first bytes of the body."""

    status: int
    headers: dict[str, str]
    body: bytes


async def get(base_url: str, path: str, timeout_s: float, max_bytes: int = 1 << 20) -> Reply | str:
    """The reply to one GET within `timeout_s` (all of it), or one line that says why there is none. Never raises."""
    try:
        headers = {"Accept-Encoding": "identity", **authorization()}
        async with (
            asyncio.timeout(timeout_s),
            _client(_tls_for(base_url), httpx.Timeout(timeout_s)) as client,
            client.stream("GET", endpoint(base_url, path), headers=headers) as response,
        ):
            body = b""
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) >= max_bytes:
                    break
            return Reply(response.status_code, dict(response.headers), body[:max_bytes])
    except BadKeyError as error:
        return str(error)
    except TimeoutError:
        return f"no answer from {shown_url(base_url)} within {timeout_s:g} s"
    except _FAILURES as error:
        return failure_line(error, base_url)


def failure_line(error: Exception, url: str) -> str:
    """What went wrong with a connection, and what to do, in one line without a secret."""
    shown = shown_url(url)
    causes = list(_os_errors(error))
    if any(cause.errno == errno.ECONNREFUSED for cause in causes):
        return f"nothing answers at {shown}: start the server or choose another URL"
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return f"the host name in {shown} is not known: check the URL"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return f"no secure connection to {shown}: {one_line(str(error))}"
    match error:
        case httpx.ConnectTimeout():
            line = f"{shown} did not take the connection in time: is the host up and the port right?"
        case httpx.TimeoutException():
            line = f"{shown} fell silent: nothing came for the time allowed"
        case httpx.InvalidURL() | httpx.UnsupportedProtocol():
            line = f"{shown} is not a usable URL: it should look like http://127.0.0.1:8080"
        case httpx.ConnectError():
            line = f"no connection to {shown}: {_reason(error, causes)}"
        case httpx.RemoteProtocolError() if "disconnected" in str(error) or "closed connection" in str(error):
            line = f"{shown} closed the connection before the answer was complete: look at the server's log"
        case httpx.RemoteProtocolError():
            line = f"what answers at {shown} does not speak HTTP: {one_line(str(error), 120)}"
        case _:
            line = f"the connection to {shown} broke: {_reason(error, causes)}"
    return line


def _reason(error: Exception, causes: list[OSError]) -> str:
    known = [cause.strerror for cause in causes if cause.errno is not None and cause.strerror]
    return one_line((known[-1].lower() if known else str(error)) or type(error).__name__)


def _os_errors(error: BaseException | None) -> Iterator[OSError]:
    """The operating system's errors behind an error, outermost first."""
    while error is not None:
        if isinstance(error, OSError):
            yield error
        if isinstance(error, BaseExceptionGroup):
            for member in error.exceptions:
                yield from _os_errors(member)
        error = error.__cause__ or error.__context__


class BadKeyError(ValueError):
    """The key has characters that a header cannot carry; one line that does not show it."""


def authorization() -> dict[str, str]:
    """The header that carries the person's key, if there is one; it goes nowhere else.

    Raises:
        BadKeyError: see there.
    """
    key = os.environ.get(API_KEY_VARIABLE, "").strip()
    if not key:
        return {}
    if not (key.isascii() and key.isprintable()):
        raise BadKeyError(f"{API_KEY_VARIABLE} has characters that cannot be sent: it must be plain ASCII on one line")
    return {"Authorization": f"Bearer {key}"}


def _tls_for(url: str) -> ssl.SSLContext:
    return _tls(secure=url.startswith("https:"))


@functools.cache
def _tls(*, secure: bool) -> ssl.SSLContext:
    # Reading the certificates takes tens of milliseconds, in which nothing is stamped: once, and only where needed. A
    # plain address needs none, and an empty store trusts none.
    return httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _client(tls: ssl.SSLContext, timeout: httpx.Timeout) -> httpx.AsyncClient:
    """A client for one request: no proxy, no settings from the environment, no redirects."""
    return httpx.AsyncClient(verify=tls, timeout=timeout, trust_env=False, follow_redirects=False)
