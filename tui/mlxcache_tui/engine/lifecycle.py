"""The server that is watched: started, made ready, watched, restarted, stopped; or attached to and let alone."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.address import Address, parse_address
from mlxcache_tui.core.body import shown_url
from mlxcache_tui.core.commands import AttachServer, Draft, ServerSpec
from mlxcache_tui.core.flags import cache_limits
from mlxcache_tui.core.last_words import cause_of
from mlxcache_tui.core.text import clean
from mlxcache_tui.engine.launch import Launched, LaunchError, launch, resolve_model
from mlxcache_tui.engine.vitals import ASK_S, Vitals
from mlxcache_tui.sources import memory, ports
from mlxcache_tui.sources.child import Child, command_of, exit_of, is_held, model_of
from mlxcache_tui.sources.health import probe
from mlxcache_tui.sources.logtail import tail
from mlxcache_tui.sources.observer_link import Heard, follow
from mlxcache_tui.store.paths import PathsError, loose_path, socket_path

Emit = Callable[[ev.AnyEvent], None]
Spawn = Callable[[str, Coroutine[Any, Any, None]], "asyncio.Task[None]"]
Send = Callable[[Draft], "asyncio.Task[None] | None"]

POLL_S, END_POLL_S, EXIT_POLL_S = 0.1, 0.05, 0.25
"""The last: between two looks at whether our server has ended by itself, all its life long, so that each costs."""
STOP_PATIENCE_S = 2.0
"""Seconds that a server gets to end by itself; it saves nothing, and SIGTERM ends it at once."""
LOOK_S = 2.0
LOOK_READY_S = 5.0
"""Seconds between two looks at /health, each a line in the server's log; rarer once all is well."""
OTHERS_SOCKET_S = 0.5
WARM_UP = Draft(user="Hi", max_tokens=1, stream=True, purpose="readiness", warmup=True)
"""The first request of a process compiles kernels (seconds): it belongs to getting ready, not to the first question."""


class Lifecycle:
    """One server at a time. Lives on the engine's thread; `heed` shows it every event on its way out.

    Commands are carried out one after the other; a newer one makes an older one give up what takes long.
    """

    def __init__(
        self, emit: Emit, clock: Callable[[], int], *, spawn: Spawn, send: Send, target: Callable[[str | None], None]
    ) -> None:
        self._emit, self._clock, self._spawn, self._send, self._target = emit, clock, spawn, send, target
        self._vitals = Vitals(emit, clock)
        self._tasks: list[asyncio.Task[None]] = []
        self._turn = asyncio.Lock()
        self._newest = 0
        self._give_up = threading.Event()
        self._ours: Launched | None = None
        self._spec: ServerSpec | None = None
        self._log_path: str | None = None
        self._models: tuple[str, ...] | None = None
        self._look_now = asyncio.Event()
        self._heard = Heard()
        self.watch_only = False

    # --- commands ---

    async def start(self, spec: ServerSpec) -> None:
        """Start a server of ours; one that we started before is stopped first."""
        async with self._command() as is_newest:
            await self._leave()
            await self._start(spec, is_newest)

    async def restart(self, flags: dict[str, Any]) -> None:
        """Stop our server and start it again on its port with some flags changed (None takes one away)."""
        async with self._command() as is_newest:
            spec = self._spec
            if spec is None:
                self._warn("this server was not started here: it is not restarted")
                return
            merged = {name: value for name, value in {**spec.flags, **flags}.items() if value is not None}
            await self._leave()
            await self._start(msgspec.structs.replace(spec, flags=merged), is_newest)

    async def stop(self) -> None:
        """Stop our server. One that was not started here is let alone, and goes on being watched."""
        async with self._command():
            if self._spec is None:
                self._warn("this server was not started here: it is not stopped")
            else:
                await self._leave()

    async def attach(self, command: AttachServer) -> None:
        """Watch a server that runs already."""
        async with self._command():
            await self._leave()
            self._spec, self.watch_only = None, command.watch_only
            self._vitals.begin(ours=False)
            try:
                address = parse_address(command.url)
            except ValueError as error:
                self._vitals.say("unreachable", str(error))
                return
            self._attach(address, command)

    async def close(self) -> None:
        """The program ends: so does our server, unless it is to be kept."""
        async with self._command():
            await self._leave(keep=self._spec is not None and self._spec.keep)

    def heed(self, event: ev.AnyEvent) -> None:
        """Look at an event that was just told: a model loaded, a request answered, the worker dead."""
        self._vitals.heed(event)
        match event:
            case ev.ObserverConnected(log_path=path):
                if path and self._log_path is None:
                    self._follow_log(path)
                if not self._vitals.ours:
                    # A server that was started without a model loads none: only its answer shows that it is ready.
                    self._look_now.set()
            case ev.ObserverLost():
                self._look_now.set()

    def model_for(self, draft: Draft) -> Draft:
        """`default_model` is mlx_lm's own word: another kind of server gets the first model that it lists."""
        if draft.model != "default_model" or not self._models:
            return draft
        return msgspec.structs.replace(draft, model=self._models[0])

    @asynccontextmanager
    async def _command(self) -> AsyncIterator[Callable[[], bool]]:
        """The turn of one command, with what tells whether it is still the newest."""
        self._newest += 1
        mine = self._newest
        self._give_up.set()
        async with self._turn:
            self._give_up = threading.Event()
            if mine != self._newest:
                self._give_up.set()
            yield lambda: mine == self._newest

    # --- ours ---

    async def _start(self, spec: ServerSpec, is_newest: Callable[[], bool]) -> None:
        self._spec, self.watch_only = spec, False
        self._vitals.begin(ours=True)
        self._vitals.say("starting", f"starting {spec.model}")
        try:
            model = await resolve_model(spec, self._emit, self._clock, self._give_up)
            if not is_newest():
                return
            launched = await launch(spec, model)
        except LaunchError as error:
            if is_newest():
                self._vitals.say("exited", str(error))
            return
        except Exception as error:
            # Told as a mistake of ours by whoever runs this; nobody shall wait for a server that does not come.
            if is_newest():
                self._vitals.say("exited", clean(f"the server cannot be started: {error}"))
            raise
        self._ours = launched
        # The same port again at a restart: clients elsewhere know it.
        self._spec = msgspec.structs.replace(spec, port=launched.port)
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
        self._follow_observer(launched.socket, POLL_S)
        self._watch("server", self._watch_exit(launched))
        self._watch("readiness", self._get_ready(launched))

    async def _get_ready(self, launched: Launched) -> None:
        """Wait until the port is open, warm up with one token, then watch."""
        vitals, child = self._vitals, launched.child
        # A bare connection leaves no line in the log, unlike a question for /health.
        while not await ports.accepts(launched.host, launched.port) or (vitals.observed and vitals.loading):
            if child.poll() is not None:
                return
            await asyncio.sleep(POLL_S)
        if vitals.phase == "starting":
            vitals.say("loading", f"loading {launched.model}")
        warm_up = self._send(WARM_UP)
        while warm_up is not None and not warm_up.done() and not vitals.dead:  # noqa: ASYNC110 - three things end it
            await asyncio.sleep(POLL_S)
        if warm_up is not None:
            warm_up.cancel()
        if not vitals.ready and not vitals.dead and child.poll() is None:
            await self._say_not_ready(launched)
        await self._watch_health(launched.url, launched.port, launched.child)

    async def _say_not_ready(self, launched: Launched) -> None:
        """The warm-up was not answered: the model did not load, or it cannot chat."""
        health = await probe(launched.url, models=False)
        failure = self._vitals.failure or "no answer came"
        if health.worker_dead:
            why = cause_of(launched.child.last_lines(200)) or failure
            self._vitals.unavailable(f"{launched.model} did not load: {why}")
        elif health.reachable:
            self._vitals.ready = True
            self._vitals.say("ready", f"the warm-up failed: {failure}")
        else:
            self._vitals.ready = True
            self._vitals.unreachable(f"the server runs but does not answer: {failure}", running=True)

    async def _watch_exit(self, launched: Launched) -> None:
        while (status := launched.child.poll()) is None:  # noqa: ASYNC110 - a process has no event to wait for
            await asyncio.sleep(EXIT_POLL_S)
        self._say_exited(launched.child, status)
        launched.socket.unlink(missing_ok=True)

    def _say_exited(self, child: Child, status: int) -> None:
        if self._vitals.phase == "exited":
            return
        child.release()
        code, signal_name = exit_of(status)
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

    async def _end(self, child: Child) -> None:
        child.terminate()
        for _ in range(int(STOP_PATIENCE_S / END_POLL_S)):
            if child.poll() is not None:
                break
            await asyncio.sleep(END_POLL_S)
        while child.poll() is None:
            child.kill()
            await asyncio.sleep(END_POLL_S)
        self._say_exited(child, child.poll() or 0)

    async def _leave(self, *, keep: bool = False) -> None:
        """Stop watching, and the server if it is ours and not to be kept."""
        launched, self._ours = self._ours, None
        if launched is not None and not keep:
            await self._end(launched.child)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._target(None)
        self._log_path = self._models = None
        if launched is None:
            return
        if keep:
            launched.child.let_go()
        else:
            launched.socket.unlink(missing_ok=True)
            if launched.child.stopping:
                # What a server printed before it failed by itself is kept; else the session file has it.
                launched.log_path.unlink(missing_ok=True)

    # --- somebody else's ---

    def _attach(self, address: Address, command: AttachServer) -> None:
        log_path = command.log_path and str(loose_path(command.log_path))
        self._emit(
            ev.ServerTargeted(
                at_ns=self._clock(),
                origin="program",
                url=shown_url(address.url),  # a name and password in it stay with the sender
                mode="attached",
                log_path=log_path,
                watch_only=command.watch_only,
            )
        )
        self._target(address.url)
        if log_path:
            self._follow_log(log_path)
        if address.local:
            self._watch("memory", self._sample_other(address.port))
            try:
                path = socket_path(address.port)
            except PathsError as error:
                self._warn(f"an observer of this server is not looked for: {error}")
            else:
                self._follow_observer(path, OTHERS_SOCKET_S)
        self._look_now.set()
        self._watch("health", self._watch_health(address.url, address.port if address.local else None, None))

    async def _sample_other(self, port: int) -> None:
        """Sample the process that holds the port, and the next one when it is gone."""
        while True:
            holder = await asyncio.to_thread(ports.holder, port)
            pid = (holder.pid if holder else None) or (self._vitals.pid if self._vitals.observed else None)
            if pid is not None:
                self._vitals.process_is(pid)
                if words := command_of(pid):
                    limits = cache_limits(words)
                    told = ev.ServerIdentified(
                        at_ns=self._clock(), origin="process", model=model_of(words), flags=limits
                    )
                    self._emit(told)
                await memory.sample(pid, self._emit, self._clock)
                self._look_now.set()
            await asyncio.sleep(LOOK_S / 2)

    def _follow_observer(self, path: Path, retry_s: float) -> None:
        self._watch("observer", follow(path, self._emit, self._clock, retry_s=retry_s, heard=self._heard))

    def _follow_log(self, path: str) -> None:
        self._log_path = path
        self._watch("log", tail(Path(path), self._emit, self._clock, from_start=True))

    # --- health ---

    async def _watch_health(self, url: str, port: int | None, child: Child | None) -> None:
        """Look at the server again and again. `port`: on this machine, so that its process can be looked at too."""
        asked_ns = 0
        while child is None or child.poll() is None:
            vitals = self._vitals
            pid = child.pid if child is not None else vitals.pid
            if port is not None and pid is not None and is_held(pid):
                vitals.held(pid)
            else:
                vitals.check_silence()
                pause_s = LOOK_READY_S if vitals.phase == "ready" else LOOK_S
                due = self._clock() - asked_ns >= (pause_s - POLL_S) * 1e9
                if self._look_now.is_set() or (due and self._is_worth_asking()):
                    self._look_now.clear()
                    await self._look(url, port)
                    asked_ns = self._clock()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S / 2):
                    await self._look_now.wait()

    def _is_worth_asking(self) -> bool:
        """The observer tells what there is; only when it has fallen silent, or never spoke, /health is asked."""
        vitals = self._vitals
        return not vitals.observed or vitals.phase == "not_answering" or vitals.silent_s() > ASK_S

    async def _look(self, url: str, port: int | None) -> None:
        vitals = self._vitals
        # Models once for a server, and of mlx_lm only where its process cannot be looked at.
        health = await probe(url, models=self._models is None and not vitals.ours, spare_mlx_lm=port is not None)
        if self._models is None and health.reachable and not vitals.ours:
            self._identify(health.software, health.models or ())
        if health.worker_dead:
            vitals.unavailable(
                "the server says that it is unavailable (503): its generation thread is dead; restart it"
            )
        elif health.reachable:
            vitals.answered()
        elif vitals.ours:
            if self._ours is not None and self._ours.child.poll() is None:  # neither being stopped nor ended
                vitals.unreachable("the server runs but does not answer", running=True)
        else:
            holder = await asyncio.to_thread(ports.holder, port) if port is not None else None
            held = f"{holder.who} holds port {port} but does not answer" if holder else ""
            self._models = self._models if holder else None
            vitals.unreachable(held or health.error or f"nothing answers at {url}", running=holder is not None)

    def _identify(self, software: str | None, models: tuple[str, ...]) -> None:
        mlx_lm = software in ("mlx_lm", None)
        self._models = () if mlx_lm else models
        # mlx_lm lists what lies in the Hugging Face cache: only a list of one can be the model that it serves.
        model = models[0] if len(models) == 1 or (models and not mlx_lm) else None
        # … and the command line of its process says it better.
        known = None if mlx_lm and self._vitals.pid is not None else model
        self._emit(ev.ServerIdentified(at_ns=self._clock(), origin="http", software=software, model=known))

    # --- small things ---

    def _watch(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(self._spawn(name, work))

    def _warn(self, text: str) -> None:
        self._emit(ev.Noticed(at_ns=self._clock(), origin="program", level="warning", pane="server", text=text))
