"""A server that replays a recorded reply byte by byte, as the real one sends it: raw TCP, HTTP/1.0, closed at the end.

A script is a list of steps: `bytes` are written and flushed, a `float` waits that many seconds, an `asyncio.Event`
waits until the test sets it, `RESET` breaks the connection hard.
"""

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

RESET: Final = "reset"
Step = bytes | float | asyncio.Event | Literal["reset"]
Script = Sequence[Step]


class Received(NamedTuple):
    """One request as it came: method, path, headers with lower-case names, body."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Stub:
    """What a running stub is asked for: its address and the requests that it got."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[Received] = []
        self.closed_by_client = asyncio.Event()


@contextlib.asynccontextmanager
async def serve(answer: Script | Callable[[Received], Script]) -> AsyncIterator[Stub]:
    """A stub that answers each request with the script, or with the script chosen for it."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            request = await _read_request(reader)
            if request is not None:
                stub.requests.append(request)
                await _replay(answer(request) if callable(answer) else answer, reader, writer, stub)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=128)
    stub = Stub(server.sockets[0].getsockname()[1])
    try:
        yield stub
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def head(status: str = "200 OK", content_type: str = "text/event-stream", **headers: str) -> bytes:
    """The status line and headers as mlx_lm's server writes them."""
    lines = [f"HTTP/1.0 {status}", "Server: BaseHTTP/0.6 Python/3.12.4", "Date: Sun, 29 Nov 2026 12:00:00 GMT"]
    lines += [f"Content-type: {content_type}"] if content_type else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def data(value: object) -> bytes:
    """One stream event."""
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


DONE = data(b"[DONE]")


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = raw.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = first.split(" ", 2)
    return Received(method, path, headers, body)


async def _replay(script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stub: Stub) -> None:
    for step in script:
        if isinstance(step, bytes):
            writer.write(step)
            await writer.drain()
        elif isinstance(step, asyncio.Event):
            if not await _wait_or_client_gone(step, reader):
                stub.closed_by_client.set()
                return
        elif isinstance(step, float):
            await asyncio.sleep(step)
        else:
            sock: socket.socket = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return


async def _wait_or_client_gone(event: asyncio.Event, reader: asyncio.StreamReader) -> bool:
    waits = asyncio.ensure_future(event.wait())
    gone = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait((waits, gone), return_when=asyncio.FIRST_COMPLETED)
        return waits.done()
    finally:
        for task in (waits, gone):
            task.cancel()
        await asyncio.gather(waits, gone, return_exceptions=True)
