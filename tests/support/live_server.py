"""A real mlx_lm.server behind the observer on a free port, plain HTTP to it, and a viewer of its socket."""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import pytest

from mlxcache_tui.core.codec import decode_event
from mlxcache_tui.core.events import (
    AnyEvent,
    CacheSnapshot,
    EntryEvicted,
    EntryInserted,
    EntryState,
    EntrySwallowed,
    Event,
    LookedUp,
    ModelLoaded,
    RequestEnded,
    TokenRun,
)
from mlxcache_tui.models.fetch import Kind
from mlxcache_tui.sources import ports

SERVER_PYTHON = os.environ.get("MLXCACHE_SERVER_PYTHON") or sys.executable
"""The interpreter whose mlx_lm is tested; `tests/matrix.py` sets it to other installations."""
OBSERVE = Path(__file__).parents[2] / "tui" / "mlxcache_tui" / "observer" / "observe.py"
PATIENCE_S = 120.0
E = TypeVar("E", bound=Event)


def server_version() -> tuple[int, ...]:
    """The version of the mlx_lm that is tested."""
    code = "import importlib.metadata; print(importlib.metadata.version('mlx_lm'))"
    told = subprocess.run([SERVER_PYTHON, "-c", code], check=True, capture_output=True, text=True).stdout
    return tuple(int(part) for part in told.strip().split(".")[:3])


VERSION = server_version()


def since(*version: int) -> pytest.MarkDecorator:
    """A test of what the server does only from this version on."""
    return pytest.mark.skipif(version > VERSION, reason=f"mlx-lm does so since {'.'.join(map(str, version))}")


class Start(Protocol):
    """Starts an observed server with flags of one's own."""

    def __call__(self, kind: Kind = "tiny", *, leash: int | None = None, **flags: object) -> "Server": ...


class Viewer:
    """Connected to an observer's socket; a thread decodes every line that comes. Close it (it is a context manager)."""

    def __init__(self, path: Path, *, reading: bool = True) -> None:
        self.events: list[AnyEvent] = []
        self.raw: list[bytes] = []
        self.bad: list[str] = []
        self.ended = False
        self.since = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._socket.connect(str(path))
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > deadline:
                    self._socket.close()
                    raise
                time.sleep(0.02)
        if reading:
            self.start()

    def __enter__(self) -> "Viewer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):  # the server closed it first
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is not None:
            self._thread.join(PATIENCE_S)
        self._socket.close()

    def _read(self) -> None:
        rest = b""
        try:
            while data := self._socket.recv(1 << 16):
                *lines, rest = (rest + data).split(b"\n")
                with self._changed:
                    for line in lines:
                        self._take(line)
                    self._changed.notify_all()
        except ConnectionResetError:
            pass  # the server was killed
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def _take(self, line: bytes) -> None:
        self.raw.append(line)
        try:
            self.events.append(decode_event(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self.bad.append(f"{error}: {line[:300]!r}")

    def until(self, condition: Callable[[list[AnyEvent]], bool], what: str, limit_s: float = PATIENCE_S) -> None:
        """Wait until the events so far satisfy a condition; fails with what was awaited."""
        with self._changed:
            held = self._changed.wait_for(lambda: self.ended or condition(self.events), limit_s)
            assert held, f"no {what} within {limit_s} s; last: {self.events[-5:]}"
            assert condition(self.events), f"the socket was closed before {what}; last: {self.events[-5:]}"
            assert not self.bad, self.bad

    def all(self, kind: type[E], key: str | None = None, *, fresh: bool = False) -> list[E]:
        """The events of a kind (of a request) so far; `fresh`: only those after the greeting."""
        with self._changed:
            return self._among(self.events, kind, key, fresh)

    def _among(self, events: list[AnyEvent], kind: type[E], key: str | None, fresh: bool) -> list[E]:
        found = (event for event in events[self.since if fresh else 0 :] if isinstance(event, kind))
        return [event for event in found if key in (None, getattr(event, "key", None))]

    def wait(
        self, kind: type[E], key: str | None = None, *, count: int = 1, fresh: bool = False, limit_s: float = PATIENCE_S
    ) -> E:
        """The `count`-th event of a kind (of a request), as soon as it is there."""
        what = f"{kind.__name__} {count} of {key}"
        self.until(lambda events: len(self._among(events, kind, key, fresh)) >= count, what, limit_s)
        return self.all(kind, key, fresh=fresh)[count - 1]

    def final(self, key: str) -> EntryInserted:
        """The entry of a request's whole conversation, as soon as it is stored: the last that happens for it."""

        def of_it(events: list[AnyEvent]) -> list[EntryInserted]:
            return [e for e in self._among(events, EntryInserted, key, False) if e.type == "assistant"]

        self.until(lambda events: bool(of_it(events)), f"the final entry of {key}")
        self.wait(RequestEnded, key)
        return of_it(self.events)[-1]

    def greeted(self) -> "Viewer":
        """Wait for the snapshot that ends the greeting."""
        self.wait(CacheSnapshot)
        self.since = next(n for n, event in enumerate(self.events, 1) if isinstance(event, CacheSnapshot))
        return self


@dataclass
class Reply:
    """What a client got: status, the whole body, and the parts of a streamed one."""

    status: int
    body: bytes
    chunks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value

    @property
    def usage(self) -> dict[str, Any]:
        value: dict[str, Any] = (self.chunks[-1] if self.chunks else self.json)["usage"]
        return value

    @property
    def cached(self) -> int:
        return int(self.usage["prompt_tokens_details"]["cached_tokens"])

    def text(self, name: str = "content") -> str:
        """The answer (or the `reasoning`) put together."""
        if not self.chunks:
            return str(self.json["choices"][0]["message"].get(name) or "")
        return "".join(choice["delta"].get(name, "") for chunk in self.chunks for choice in chunk["choices"])


@dataclass
class Server:
    """A running server: where it answers, where it is observed, where its output goes."""

    process: subprocess.Popen[bytes]
    port: int
    socket: Path
    log: Path
    model: Path

    def open(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def post(self, body: object, *, key: str | None = None, meta: object = None, path: str | None = None) -> Reply:
        """Send a body (bytes as they are, else as JSON) and read the whole reply. `key` is sent as our header."""
        headers = {"Content-Type": "application/json", "User-Agent": "live-test/1"}
        if key is not None:
            headers["X-Mlxcache-Request"] = key
        if meta is not None:
            headers["X-Mlxcache-Meta"] = json.dumps(meta)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = self.open()
        try:
            connection.request("POST", path or "/v1/chat/completions", data, headers)
            response = connection.getresponse()
            text = response.read()
            response.close()
        finally:
            connection.close()
        lines = [line[6:] for line in text.split(b"\n") if line.startswith(b"data: {")]
        return Reply(response.status, text, [json.loads(line) for line in lines])

    def ask(
        self, user: str, system: str | None = None, *, key: str | None = None, meta: object = None, **more: Any
    ) -> Reply:
        """One chat completion, streamed with usage unless told otherwise."""
        messages = [{"role": "system", "content": system}] if system is not None else []
        body: dict[str, Any] = {"messages": [*messages, {"role": "user", "content": user}], "max_tokens": 4}
        body |= {"stream": True, "stream_options": {"include_usage": True}} | more
        return self.post(body, key=key, meta=meta)

    def log_text(self) -> str:
        return self.log.read_text("utf-8", "replace")


def rules(name: str, count: int = 30) -> str:
    """A policy's text, different from its first word on."""
    return f"{name} " + " ".join(f"rule {n} of {name}: return it within {n} days." for n in range(count))


def free_port() -> int:
    """A port of the loopback that nobody has now, and that no connection is given before it is used."""
    return ports.free_port("127.0.0.1")


@contextmanager
def launched(
    model: Path, folder: Path, *, leash: int | None = None, script: Path = OBSERVE, **flags: object
) -> Iterator[Server]:
    """Start a server behind the observer, without waiting for it; killed at the end.

    Args:
        model: what it serves.
        folder: a private folder with a short path (the socket is in it).
        leash: the reading end of the pipe that keeps the server alive, if it is to be held by one.
        script: what starts the server: the observer, or a test's own script around it.
        flags: of mlx_lm.server, with underscores.
    """
    port, log, path = free_port(), folder / "log", folder / "s"
    command = [SERVER_PYTHON, str(script), "--socket", str(path), "--log-path", str(log)]
    command += ["--", "--model", str(model), "--port", str(port)]
    if leash is not None:
        command.insert(2, "--leash")
    for name, value in flags.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    env = os.environ | {"HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1"}
    stdin = subprocess.DEVNULL if leash is None else leash
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=stdin, stdout=output, stderr=output, env=env)
    try:
        yield Server(process, port, path, log, model)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextmanager
def observed_server(
    model: Path, folder: Path, *, leash: int | None = None, script: Path = OBSERVE, **flags: object
) -> Iterator[Server]:
    """The same, once its model is loaded and it has answered a first request with the key `readiness`."""
    with launched(model, folder, leash=leash, script=script, **flags) as server:
        try:
            _await_answer(server)
        except (AssertionError, OSError) as error:
            raise AssertionError(f"{error}\nthe server's output:\n{server.log_text()[-3000:]}") from error
        yield server


def _await_port(server: Server) -> None:
    """Until 0.31.2 the port opens only after the model was loaded."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _await_answer(server: Server) -> None:
    with Viewer(server.socket) as viewer:
        viewer.wait(ModelLoaded)
        _await_port(server)
        reply = server.ask("Ready?", max_tokens=1, key="readiness", meta={"purpose": "readiness", "warmup": True})
        assert reply.status == 200, reply.body
        viewer.final("readiness")


def stored_after(events: Iterable[AnyEvent]) -> dict[int, EntryState]:
    """What is stored after these events, folded by hand: the rule that a viewer goes by."""
    stored: dict[int, EntryState] = {}
    for event in events:
        match event:
            case EntryInserted():
                if event.replaced is not None:
                    del stored[event.replaced]
                stored[event.entry] = EntryState(
                    entry=event.entry,
                    type=event.type,
                    tokens=event.tokens.count,
                    bytes=event.bytes,
                    inserted_ns=event.at_ns,
                    key=event.key,
                    model=event.model,
                    trimmable=event.trimmable,
                )
            case EntrySwallowed() | EntryEvicted():
                del stored[event.entry]
            case CacheSnapshot():
                stored = {entry.entry: entry for entry in event.entries}
    return stored


def fresh_entries(server: Server) -> dict[int, EntryState]:
    """What a viewer that connects now is told to be stored."""
    with Viewer(server.socket) as viewer:
        viewer.greeted()
        return {entry.entry: entry for entry in viewer.all(CacheSnapshot)[-1].entries}


def await_same_stored(server: Server, viewer: Viewer) -> dict[int, EntryState]:
    """Wait until a viewer's events lead to what one that connects now is told to be stored; returns that."""
    fresh = fresh_entries(server)
    viewer.until(lambda events: stored_after(events) == fresh, f"agreement on {fresh}")
    return fresh


def expand(events: Iterable[AnyEvent]) -> tuple[dict[str, tuple[int, ...]], dict[int, tuple[int, ...]]]:
    """The prompts by request and the entries by number, all tokens of each, from the runs that were told."""
    prompts: dict[str, tuple[int, ...]] = {}
    entries: dict[int, tuple[int, ...]] = {}

    def whole(run: TokenRun) -> tuple[int, ...]:
        start = prompts[run.base][: run.shared] if run.base is not None else ()
        assert len(start) == run.shared
        assert len(start) + len(run.new) == run.count
        return start + run.new

    for event in events:
        if isinstance(event, LookedUp):
            prompts[event.key] = whole(event.tokens)
        elif isinstance(event, EntryInserted):
            entries[event.entry] = whole(event.tokens)
    return prompts, entries
