"""The engine's thread: one asyncio loop on which the sources run and the commands are carried out."""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from mlxcache_tui.core import commands as cmd
from mlxcache_tui.core.body import composed_event
from mlxcache_tui.core.events import (
    AnyEvent,
    Noticed,
    Outcome,
    RequestComposed,
    RequestEnded,
    SourceFailed,
    TextArrived,
)
from mlxcache_tui.core.text import clean
from mlxcache_tui.engine.lifecycle import Lifecycle
from mlxcache_tui.sources.http import Sender

SWITCH_S = 0.0005
"""After so long a thread that draws gives way to this one, which stamps what arrives: Python waits for 5 ms."""
KEPT_KEYS = 1_000
"""Requests of ours whose text the observer may still tell: it is a moment behind, at most."""
TOLD_REQUESTS = 200
"""A text that none of so many requests had is told again: see `core.bounds`."""
Emit = Callable[[AnyEvent], None]
Clock = Callable[[], int]


class Worker:
    """Runs sources and commands on its thread; everything it learns goes out by `emit`."""

    def __init__(self, emit: Emit, clock: Clock, new_key: Callable[[], str]) -> None:
        self._out, self._clock = emit, clock
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="mlxcache-sources", daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._mine: dict[str, None] = {}
        """Keys of our last requests."""
        self._open: set[str] = set()
        """Keys of our requests whose end was not told yet."""
        self._told: dict[str, int] = {}
        """Texts that were told, by id, to the number of requests at their last use: the one used last is the last."""
        self._composed = 0
        """Requests that were told of, ours and others'."""
        self._sender: Sender | None = None
        self._lifecycle = Lifecycle(
            self._emit,
            clock,
            spawn=self._spawn,
            send=lambda draft: self._send(new_key(), draft),
            target=self._set_target,
        )

    def start(self) -> None:
        """Start the thread."""
        sys.setswitchinterval(SWITCH_S)
        self._thread.start()

    def stop(self) -> None:
        """End everything: open requests are cancelled, our server stops (unless it is to be kept). Blocks."""
        if self._thread.is_alive():
            try:
                asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
        self._loop.close()

    def submit(self, command: cmd.Command) -> None:
        """Carry out a command on the thread; returns at once."""
        self._loop.call_soon_threadsafe(self._handle, command)

    def _emit(self, event: AnyEvent) -> None:
        """Every event of the sources passes here, so that the lifecycle hears what concerns it."""
        if isinstance(event, RequestEnded) and event.origin == "client":
            self._open.discard(event.key)
        if isinstance(event, RequestComposed):
            self._composed += 1
        if isinstance(event, TextArrived) and event.origin == "observer" and event.key in self._mine:
            return  # our own sender reads this text itself; the observer tells it for other viewers
        self._out(event)
        self._lifecycle.heed(event)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())

    async def _shut_down(self) -> None:
        for task in list(self._sending.values()):
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)
        await self._lifecycle.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _handle(self, command: cmd.Command) -> None:
        match command:
            case cmd.SendRequest(key=key, draft=draft):
                self._send(key, draft)
            case cmd.CancelRequest(key=key):
                if task := self._sending.get(key):
                    task.cancel()
            case cmd.StartServer(spec=spec):
                self._spawn("server", self._lifecycle.start(spec))
            case cmd.RestartServer(flags=flags):
                self._spawn("server", self._lifecycle.restart(flags))
            case cmd.StopServer():
                self._spawn("server", self._lifecycle.stop())
            case cmd.AttachServer():
                self._spawn("server", self._lifecycle.attach(command))

    def _send(self, key: str, draft: cmd.Draft) -> asyncio.Task[None] | None:
        if self._lifecycle.watch_only:
            text = "this viewer only watches (--watch): it cannot send"
            self._emit(Noticed(at_ns=self._clock(), origin="program", level="warning", pane="composer", text=text))
            return None
        draft = self._lifecycle.model_for(draft)
        texts, composed = composed_event(key, draft, self._clock())
        for text_kept in texts:
            if not self._is_told(text_kept.text_id):
                self._emit(text_kept)
        self._emit(composed)
        self._mine[key] = None
        if len(self._mine) > KEPT_KEYS:
            del self._mine[next(iter(self._mine))]
        self._open.add(key)
        if self._sender is None:
            error = "no server yet: start one or attach to one"
            self._emit(RequestEnded(at_ns=self._clock(), origin="client", key=key, outcome="failed", error=error))
            return None
        task = self._spawn(f"request {key}", self._sender.send(key, draft))
        self._sending[key] = task
        task.add_done_callback(lambda done: self._sent(key, done))
        return task

    def _is_told(self, text_id: str) -> bool:
        """Whether the text need not be told: it was used lately, so that nobody has let it go."""
        used = self._told.pop(text_id, None)
        self._told[text_id] = self._composed
        while self._told and self._told[oldest := next(iter(self._told))] < self._composed - TOLD_REQUESTS:
            del self._told[oldest]
        return used is not None and used >= self._composed - TOLD_REQUESTS

    def _sent(self, key: str, task: asyncio.Task[None]) -> None:
        """No request is left open: one that was cancelled before its first step has told nothing itself."""
        self._sending.pop(key, None)
        if key in self._open:
            outcome: Outcome = "cancelled" if task.cancelled() else "failed"
            self._emit(RequestEnded(at_ns=self._clock(), origin="client", key=key, outcome=outcome))

    def _set_target(self, url: str | None) -> None:
        self._sender = Sender(url, self._emit, self._clock) if url else None

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a source; an error of its own becomes a line for the person, never a silent end."""
        task = self._loop.create_task(self._guard(name, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # one that was cancelled before its first step was never begun
        return task

    async def _guard(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the boundary: whatever a source throws is told, the rest goes on
            text = clean(f"{type(error).__name__}: {error}")
            self._emit(SourceFailed(at_ns=self._clock(), origin="program", source=name, error=text))
