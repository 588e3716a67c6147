"""The server that is watched: started, made ready, watched, restarted, stopped; or attached to and let alone."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.commands import AttachServer, Draft, ServerSpec
from mlxcache_tui.engine.launch import LaunchError, launch, resolve_model
from mlxcache_tui.sources import memory, ports
from mlxcache_tui.sources.child import STOP_PATIENCE_S, Child, exit_of
from mlxcache_tui.sources.health import probe
from mlxcache_tui.sources.logtail import tail
from mlxcache_tui.sources.observer_link import follow
from mlxcache_tui.store.paths import socket_path

Emit = Callable[[ev.AnyEvent], None]
Spawn = Callable[[str, Coroutine[Any, Any, None]], "asyncio.Task[None]"]
Send = Callable[[Draft], "asyncio.Task[None] | None"]

HEALTH_S = 2.0
POLL_S = 0.1
WARM_UP = Draft(user="Hi", max_tokens=1, stream=True, purpose="readiness", warmup=True)
"""The first request of a process compiles kernels (seconds): it belongs to getting ready, not to the first question."""


class Lifecycle:
    """One server at a time. Lives on the engine's thread; `heed` shows it every event on its way out."""

    def __init__(
        self, emit: Emit, clock: Callable[[], int], *, spawn: Spawn, send: Send, target: Callable[[str | None], None]
    ) -> None:
        self._emit, self._clock, self._spawn, self._send, self._target = emit, clock, spawn, send, target
        self._tasks: list[asyncio.Task[None]] = []
        self._child: Child | None = None
        self._spec: ServerSpec | None = None
        self._pid: int | None = None
        self._log_path: str | None = None
        self._phase: ev.ServerPhase = "none"
        self._ready = asyncio.Event()
        self._loaded = asyncio.Event()
        self._dead = self._observed = False
        self.watch_only = False

    # --- commands ---

    async def start(self, spec: ServerSpec) -> None:
        """Start a server of ours; one that we started before is stopped first."""
        await self.stop()
        self._spec, self.watch_only = spec, False
        self._set_phase("starting", f"starting {spec.model}")
        try:
            model = await resolve_model(spec, self._emit, self._clock)
            launched = await launch(spec, model)
        except LaunchError as error:
            self._set_phase("exited", str(error))
            return
        self._child, self._pid = launched.child, launched.child.pid
        self._log_path = str(launched.log_path)
        now = self._clock()
        self._emit(
            ev.ServerTargeted(
                at_ns=now,
                origin="program",
                url=launched.url,
                mode="launched",
                model=spec.model,
                log_path=self._log_path,
            )
        )
        self._emit(
            ev.ServerLaunched(
                at_ns=now,
                origin="process",
                pid=launched.child.pid,
                port=launched.port,
                command=launched.command,
                flags=launched.flags,
                blas=launched.blas,
            )
        )
        self._target(launched.url)
        self._watch("log", tail(launched.log_path, self._emit, self._clock, from_start=True))
        self._watch("memory", memory.sample(launched.child.pid, self._emit, self._clock))
        self._watch("observer", self._follow_own(launched.socket, launched.child))
        self._watch("server", self._watch_exit(launched.child))
        self._watch("readiness", self._get_ready(launched.url, launched.child))

    async def restart(self, flags: dict[str, Any]) -> None:
        """Stop our server and start it again with some flags changed (None takes one away)."""
        if self._spec is None:
            self._warn("this server was not started here: it is not restarted")
            return
        merged = {name: value for name, value in {**self._spec.flags, **flags}.items() if value is not None}
        await self.start(
            ServerSpec(
                model=self._spec.model,
                host=self._spec.host,
                port=self._spec.port,
                flags=merged,
                python=self._spec.python,
                keep=self._spec.keep,
            )
        )

    async def attach(self, command: AttachServer) -> None:
        """Watch a server that runs already."""
        await self.stop()
        self._spec, self.watch_only = None, command.watch_only
        url = command.url.rstrip("/").removesuffix("/v1")
        url = url if "://" in url else f"http://{url}"
        self._emit(
            ev.ServerTargeted(
                at_ns=self._clock(),
                origin="program",
                url=url,
                mode="attached",
                log_path=command.log_path,
                watch_only=command.watch_only,
            )
        )
        self._target(url)
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        local = parts.hostname in ("127.0.0.1", "localhost", "::1")
        if command.log_path:
            self._follow_log(command.log_path)
        if local:
            self._watch("observer", self._follow_other(socket_path(port)))
            self._watch("memory", self._sample_other(port))
        await self._look(url, models=True)
        self._watch("health", self._watch_health(url))

    async def stop(self) -> None:
        """Stop watching, and the server if it is ours and not to be kept."""
        child, self._child = self._child, None
        if child is not None and not (self._spec and self._spec.keep):
            await self._end(child)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._target(None)
        self._ready.clear()
        self._loaded.clear()
        self._dead = self._observed = False
        self._pid = self._log_path = None

    async def close(self) -> None:
        """The program ends."""
        await self.stop()

    # --- what the events tell ---

    def heed(self, event: ev.AnyEvent) -> None:
        """Look at an event on its way out: a model loaded, a request answered, the worker dead."""
        match event:
            case ev.ObserverConnected(pid=pid, log_path=log_path):
                self._pid, self._observed = pid, True
                if log_path and self._log_path is None:
                    self._follow_log(log_path)
            case ev.ObserverLost():
                self._observed = False
            case ev.ModelLoadStarted():
                self._phase = "loading"
            case ev.ModelLoaded():
                self._loaded.set()
                if self._child is None or self._ready.is_set():
                    self._set_ready("")
            case ev.ModelLoadFailed():
                self._dead = True
            case ev.WorkerDied():
                self._dead, self._phase = True, "worker_dead"
            case ev.RequestEnded(outcome="done") if event.origin == "client":
                self._dead = False
                if self._phase != "ready" or not self._ready.is_set():
                    self._set_ready("")

    # --- ours ---

    async def _get_ready(self, url: str, child: Child) -> None:
        """Wait until the model is loaded and the port answers, then send the one-token warm-up."""
        while child.poll() is None and not self._dead:
            health = await probe(url, models=False)
            if health.worker_dead:
                break
            if health.reachable and (self._loaded.is_set() or not socket_path(urlsplit(url).port or 0).exists()):
                break
            await asyncio.sleep(POLL_S)
        if child.poll() is None and not self._dead:
            task = self._send(WARM_UP)
            if task is not None:
                await asyncio.wait([task])
        if child.poll() is None and not self._ready.is_set():
            lines = [line for line in child.last_lines(40) if "Error" in line or "error" in line]
            self._set_phase("worker_dead", lines[-1] if lines else "the model did not load: see the log")
        await self._watch_health(url)

    async def _follow_own(self, path: Path, child: Child) -> None:
        await follow(path, self._emit, self._clock, wait=lambda: child.poll() is None)

    async def _watch_exit(self, child: Child) -> None:
        while (status := child.poll()) is None:  # noqa: ASYNC110 - a process has no event to wait for
            await asyncio.sleep(POLL_S)
        self._say_exited(child, status)

    async def _end(self, child: Child) -> None:
        child.terminate()
        waited = 0.0
        while child.poll() is None:
            await asyncio.sleep(POLL_S)
            waited += POLL_S
            if waited > STOP_PATIENCE_S:
                child.kill()
        child.release()
        self._say_exited(child, child.poll() or 0)

    def _say_exited(self, child: Child, status: int) -> None:
        if self._phase == "exited":
            return
        code, signal_name = exit_of(status)
        self._phase = "exited"
        self._emit(
            ev.ServerExited(
                at_ns=self._clock(),
                origin="process",
                pid=child.pid,
                code=code,
                signal=signal_name,
                tail=child.last_lines(),
                asked=child.stopping,
            )
        )

    # --- somebody else's ---

    async def _follow_other(self, path: Path) -> None:
        while True:
            await follow(path, self._emit, self._clock, wait=lambda: True)

    async def _sample_other(self, port: int) -> None:
        """Sample the process that holds the port, and the next one when it is gone."""
        while True:
            holder = await asyncio.to_thread(ports.holder, port)
            pid = self._pid or (holder.pid if holder else None)
            if pid is not None:
                await memory.sample(pid, self._emit, self._clock)
                self._pid = None
            await asyncio.sleep(HEALTH_S)

    def _follow_log(self, path: str) -> None:
        self._log_path = path
        self._watch("log", tail(Path(path), self._emit, self._clock, from_start=True))

    # --- health ---

    async def _watch_health(self, url: str) -> None:
        """Ask again and again; not while the observer tells: each question is a line in the server's log."""
        while True:
            await asyncio.sleep(HEALTH_S)
            if not self._observed:
                await self._look(url)

    async def _look(self, url: str, *, models: bool = False) -> None:
        health = await probe(url, models=models)
        if health.software or health.model:
            self._identify(health.software, health.model)
        if health.worker_dead:
            if self._phase != "worker_dead":
                self._set_phase("worker_dead", "the server says it is unavailable (503): the generation thread is dead")
        elif health.reachable:
            if self._phase in ("none", "unreachable", "not_answering") and not self._dead:
                proven = self._ready.is_set() or self._loaded.is_set()
                self._set_phase("ready", "" if proven else "answers; no completion seen yet")
        elif self._child is None:
            if self._phase != "unreachable":
                self._set_phase("unreachable", f"nothing answers at {url}")
        elif self._phase == "ready":
            self._set_phase("not_answering", "the server runs but does not answer")

    def _identify(self, software: str | None, model: str | None) -> None:
        if self._child is None:
            self._emit(
                ev.ServerIdentified(
                    at_ns=self._clock(), origin="http", software=software, model=None if self._pid else model
                )
            )

    # --- small things ---

    def _watch(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(self._spawn(name, work))

    def _set_ready(self, text: str) -> None:
        self._ready.set()
        self._set_phase("ready", text)

    def _set_phase(self, phase: ev.ServerPhase, text: str) -> None:
        self._phase = phase
        self._emit(ev.ServerPhaseChanged(at_ns=self._clock(), origin="process", phase=phase, text=text))

    def _warn(self, text: str) -> None:
        self._emit(ev.Noticed(at_ns=self._clock(), origin="program", level="warning", pane="server", text=text))
