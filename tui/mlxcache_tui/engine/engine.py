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
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from mlxcache_tui.core.commands import Command
from mlxcache_tui.core.events import PROTOCOL, AnyEvent, Noticed, PolicyKnown, RequestComposed, SessionStarted, TextKept
from mlxcache_tui.core.reduce import Part, apply
from mlxcache_tui.engine.face import Face
from mlxcache_tui.engine.worker import Worker
from mlxcache_tui.store.policies import Policy
from mlxcache_tui.store.recorder import Recorder

DRAIN_S = 0.1
"""Seconds between two folds while somebody draws: at most ten a second, what a terminal over SSH can take."""


class Engine(Face):
    """One session. Create and use it on one asyncio loop."""

    def __init__(
        self, recorder: Recorder | None = None, policies: tuple[Policy, ...] = (), *, bounded: bool = True
    ) -> None:
        """`bounded`: the oldest requests of a long session are let go; without it all are kept, for a report."""
        super().__init__(policies, bounded=bounded)
        self._recorder = recorder
        self._inbox: deque[AnyEvent] = deque()
        self._untold = {policy.label: policy for policy in policies}
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

    def farewell(self) -> tuple[str, ...]:
        """Where the session was recorded, and how to find and stop a server that was kept."""
        lines = [f"recorded in {self.recording}"] if self.recording else []
        server = self.state.server
        if server.mode == "launched" and server.pid is not None and server.phase != "exited":
            lines.append(f"the server goes on at {server.url}: watch it with --url, stop it with kill {server.pid}")
        return tuple(lines)

    @property
    def recording(self) -> Path | None:
        """Where the session is recorded; None where it is not, or not to its end."""
        return self._recorder.path if self._recorder and not self._recorder.failed else None

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
            for each in (*self._policies_in(event), event):
                if self._recorder:
                    self._recorder.append(each)
                self._inbox.append(each)
            if self._wake_planned or self._consumer is None or self._consumer.is_closed():
                return
            self._wake_planned = True
        self._consumer.call_soon_threadsafe(self._wake)

    def _policies_in(self, event: AnyEvent) -> list[PolicyKnown]:
        """Policies that a request uses for the first time: a session's file carries no others."""
        if isinstance(event, PolicyKnown):  # a scenario's own: it stands for one of ours with the same name
            self._untold.pop(event.label, None)
        if not self._untold or not isinstance(event, TextKept | RequestComposed):
            return []
        if isinstance(event, TextKept):
            used = [policy for policy in self._untold.values() if policy.text and policy.text in event.text]
        else:
            used = [policy for label, policy in self._untold.items() if label == event.policy]
        for policy in used:
            del self._untold[policy.label]
        return [PolicyKnown(at_ns=event.at_ns, origin="program", label=each.label, text=each.text) for each in used]

    def warn(self, text: str) -> None:
        """Tell the person something in one line."""
        self.emit(Noticed(at_ns=time.monotonic_ns(), origin="program", level="warning", pane="server", text=text))

    def _wake(self) -> None:
        assert self._consumer is not None
        left = self._last_drain + DRAIN_S - self._consumer.time()
        # Only a screen has to be spared: a headless run would wait between its requests for nothing.
        if left > 0 and self.listeners:
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
        self.tell(frozenset(changed))
