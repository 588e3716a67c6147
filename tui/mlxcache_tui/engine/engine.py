"""The engine: sources on a thread of its own, one stream of events, one fold on the consumer's loop.

The thread's loop sends requests and reads sockets, so that no drawing delays a stamp. `emit` may be called from any
thread: it records the event and puts it into the inbox. The consumer's loop (Textual's, or `asyncio.run` headless)
drains the inbox at most every 100 ms, folds, and tells the listeners which parts changed.
"""

import asyncio
import contextlib
import itertools
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import version
from typing import Any

from mlxcache_tui.core.body import as_curl
from mlxcache_tui.core.commands import Command
from mlxcache_tui.core.events import PROTOCOL, AnyEvent, Noticed, PolicyKnown, SessionStarted
from mlxcache_tui.core.flags import ServerHelp
from mlxcache_tui.core.present_detail import detail_view, request_markdown
from mlxcache_tui.core.reduce import Part, apply
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.core.views import DetailView
from mlxcache_tui.engine.worker import Worker
from mlxcache_tui.sources.child import server_python
from mlxcache_tui.sources.server_help import read_server_help
from mlxcache_tui.store.files import save_text
from mlxcache_tui.store.paths import PathsError
from mlxcache_tui.store.policies import Policy
from mlxcache_tui.store.recorder import Recorder

DRAIN_S = 0.1
"""Seconds between two folds while somebody draws: at most ten a second, what a terminal over SSH can take."""

Listener = Callable[[frozenset[Part]], None]


class Engine:
    """One session. Create and use it on one asyncio loop."""

    def __init__(self, recorder: Recorder | None = None, policies: tuple[Policy, ...] = ()) -> None:
        self.state = SessionState()
        self.policies = policies
        self._recorder = recorder
        self._inbox: deque[AnyEvent] = deque()
        self._listeners: list[Listener] = []
        self._waiters: set[asyncio.Event] = set()
        self._session = secrets.token_hex(3)
        self._numbers = itertools.count(1)
        self._emit_lock = threading.RLock()
        # Reentrant: a recorder that fails says so by an event.
        self._wake_planned = False
        self._last_drain = 0.0
        self._consumer: asyncio.AbstractEventLoop | None = None
        self._worker = Worker(self.emit, time.monotonic_ns, self.new_key)

    async def __aenter__(self) -> "Engine":
        self._consumer = asyncio.get_running_loop()
        now = datetime.now().astimezone()
        self.emit(
            SessionStarted(
                at_ns=time.monotonic_ns(),
                origin="program",
                protocol=PROTOCOL,
                program=version("mlxcache-tui"),
                started=now.isoformat(timespec="seconds"),
                wall_ns=int(now.timestamp() * 1e9),
                mode="none",
            )
        )
        for policy in self.policies:
            self.emit(PolicyKnown(at_ns=time.monotonic_ns(), origin="program", label=policy.label, text=policy.text))
        self._worker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        stopping = asyncio.ensure_future(asyncio.to_thread(self._worker.stop))
        while not stopping.done():
            # A second ctrl+c or signal changes nothing: the server is being stopped, which takes 2 s at most.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(stopping)
        self._drain()
        if self._recorder:
            self._recorder.close()

    def submit(self, command: Command) -> None:
        """Ask for something; what comes of it arrives as events."""
        self._worker.submit(command)

    def new_key(self) -> str:
        """A key for a request, unique among all viewers of a server."""
        return f"{self._session}.{next(self._numbers)}"

    def emit(self, event: AnyEvent) -> None:
        """Take in a fact, from any thread."""
        with self._emit_lock:
            # One order for the file and the fold, whichever threads tell at once: a replay gives the same state.
            if self._recorder:
                self._recorder.append(event)
            self._inbox.append(event)
            if self._wake_planned or self._consumer is None or self._consumer.is_closed():
                return
            self._wake_planned = True
        self._consumer.call_soon_threadsafe(self._wake)

    def warn(self, text: str) -> None:
        """Tell the person something in one line."""
        self.emit(Noticed(at_ns=time.monotonic_ns(), origin="program", level="warning", pane="server", text=text))

    def detail(self, key: str) -> DetailView | None:
        """Everything about one request, with the command that sends it again."""
        request = self.state.requests.get(key)
        if request is None:
            return None
        texts = [(role, self.state.message_text(text_id)) for role, text_id in request.messages]
        if request.path.endswith("chat/completions"):
            body: dict[str, Any] = {"messages": [{"role": role, "content": text} for role, text in texts]}
        else:
            body = {"prompt": texts[0][1] if texts else ""}
        curl = as_curl(self.state.server.url or "http://127.0.0.1:8080", request.path, {**body, **request.params})
        return detail_view(self.state, key, curl)

    def save_detail(self, view: DetailView) -> tuple[bool, str]:
        """Write a request to a private file; returns whether it worked, and the line that says so."""
        try:
            path = save_text(f"request-{view.row.number}.md", request_markdown(view))
        except PathsError as error:
            return False, f"not saved: {error}"
        except OSError as error:
            return False, f"not saved: {error.strerror or error}"
        return True, f"saved to {path}"

    async def server_help(self, python: str | None) -> ServerHelp:
        """The flags that the installed `mlx_lm.server` has."""
        return await read_server_help(server_python(python))

    def listen(self, listener: Listener) -> None:
        """Call this after each fold with the parts that changed."""
        self._listeners.append(listener)

    async def until(self, done: Callable[[SessionState], bool], timeout_s: float | None = None) -> bool:
        """Wait until `done(state)` holds; False if the time ran out first."""
        folded = asyncio.Event()
        self._waiters.add(folded)
        try:
            async with asyncio.timeout(timeout_s):
                while not done(self.state):
                    await folded.wait()
                    folded.clear()
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(folded)
        return True

    def _wake(self) -> None:
        assert self._consumer is not None
        left = self._last_drain + DRAIN_S - self._consumer.time()
        # Only a screen has to be spared: a headless run would wait between its requests for nothing.
        if left > 0 and self._listeners:
            self._consumer.call_later(left, self._drain)
        else:
            self._drain()

    def _drain(self) -> None:
        with self._emit_lock:
            self._wake_planned = False
        if self._consumer is not None:
            self._last_drain = self._consumer.time()
        changed: set[Part] = set()
        while self._inbox:
            changed |= apply(self.state, self._inbox.popleft())
        for waiter in self._waiters:
            waiter.set()
        for listener in self._listeners:
            listener(frozenset(changed))
