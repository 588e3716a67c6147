"""Runs a scenario's steps on an engine: sends, waits, measures, judges. The screen and `run` are two faces of it."""

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any

from mlxcache_tui.core.commands import (
    CancelRequest,
    Draft,
    RestartServer,
    SendRequest,
    ServerSpec,
    StartServer,
)
from mlxcache_tui.core.events import PolicyKnown
from mlxcache_tui.core.expect import Measure, Metric, Verdict, judge
from mlxcache_tui.core.results import EvictionResult, RequestResult, RunResult, StepResult
from mlxcache_tui.core.scenario import Scenario, Sent, Step, draft_of
from mlxcache_tui.core.scenario_plan import model_notes, unmet_need
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.core.summary import metric_values
from mlxcache_tui.engine import measure
from mlxcache_tui.engine.port import EnginePort
from mlxcache_tui.engine.progress import Progress, RequestFinished, ServerFound, ServerWaited, StepFinished, StepStarted

DEAD_PHASES = ("exited", "unreachable", "worker_dead")
SETTLE_S = 3.0
"""How long the observer's last word on a request (what it stored, what that threw out) is waited for."""
SETTLE_AGAIN_S = 0.1
"""The same once it did not come."""
LOST_S = 5.0
"""How long after a broken connection it may take until it shows that the server is gone (health is asked every 2 s)."""
CANCEL_S = 3.0
"""How long a stopped run waits for its open requests to be closed."""


class ServerLostError(Exception):
    """The server is not there: it did not start, is not reachable, or died. `lines` are its last words."""

    def __init__(self, text: str, lines: tuple[str, ...]) -> None:
        super().__init__(text)
        self.lines = lines


class Runner:
    """One run of a scenario under one set of limits.

    Args:
        engine: an engine that runs on this loop.
        scenario: what to do.
        spec: how to start the server for this run, on an empty cache; None uses the server that is watched already.
        combination: the flags that the sweep sets for this run.
        clock: wall time, for labels and `{{today}}`.
        listener: told of progress, in order.
    """

    def __init__(
        self,
        engine: EnginePort,
        scenario: Scenario,
        *,
        spec: ServerSpec | None,
        combination: Mapping[str, Any] | None = None,
        clock: Callable[[], datetime],
        listener: Callable[[Progress], None],
    ) -> None:
        self.engine = engine
        self.scenario = scenario
        self.combination = dict(combination or {})
        self._spec = spec
        self._clock = clock
        self._tell = listener
        self._started = clock()
        self._memory = measure.MemoryWatch()
        self._began: measure.Began | None = None
        self._evictions: tuple[EvictionResult, ...] = ()
        """Of what ran before the present work."""
        self._evictions_before: int | None = None
        self._sent_count = 0
        self._settle_s = SETTLE_S
        self._sent: dict[str, dict[str, Draft]] = {}
        self._results: dict[str, RequestResult] = {}
        """By key: the session lets its oldest requests go."""
        self._steps: dict[str, StepResult] = {}
        self._verdicts: dict[str, tuple[Verdict, ...]] = {}
        self._unjudged = ""
        self._open: list[str] = []
        self._going = asyncio.Event()
        self._going.set()

    # --- the whole run ---

    async def run(self) -> RunResult:
        """Start the server if it is ours to start, run all steps, and return what was measured.

        A cancelled run (a person pressed ctrl+c) and one whose server died return what was measured until then.
        """
        return await self._kept(self._all_steps())

    async def again(self, step: Step) -> RunResult:
        """Run one step once more after `run`, on the server as it is now; every step's expectations are judged anew."""
        return await self._kept(self._one_step(step))

    async def _all_steps(self) -> None:
        await self.prepare()
        for step in self.scenario.steps:
            await self.run_step(step)

    async def _one_step(self, step: Step) -> None:
        # What happened while nothing ran is not of the run.
        self._evictions_before = self.engine.state.tally.evictions
        self._memory.skip(self.engine.state)
        await self.run_step(step)
        # A later step may be measured against this one.
        for other in self.scenario.steps:
            if other.id in self._verdicts:
                self._verdicts[other.id] = self._judge(other)

    async def _kept(self, work: Coroutine[Any, Any, None]) -> RunResult:
        """Do it, and return what was measured, also when it is cancelled or the server dies."""
        lost: ServerLostError | None = None
        try:
            await work
        except ServerLostError as error:
            lost = error
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        self._evictions, self._evictions_before = self._evictions_so_far(), None
        interrupted = lost is None and len(self._verdicts) < len(self.scenario.steps)
        return self.result(lost=lost, interrupted=interrupted)

    def _evictions_so_far(self) -> tuple[EvictionResult, ...]:
        before = self._evictions_before
        now = measure.evictions_since(self.engine.state, before) if before is not None else ()
        return (*self._evictions, *now)

    async def prepare(self) -> None:
        """Get the server ready and note where the run begins.

        Raises:
            ServerLostError: it did not get ready.
        """
        await self._going.wait()
        state = self.engine.state
        for policy in self.scenario.policies.values():
            known = PolicyKnown(at_ns=state.now_ns, origin="program", label=policy.label, text=policy.text)
            self.engine.emit(known)
        if self._spec is None:
            await self._ready(after_epoch=state.server.epoch - 1)
            self._tell(ServerFound(text=measure.found_text(state)))
        else:
            epoch = state.server.epoch
            self.engine.submit(StartServer(spec=self._spec))
            await self._ready(after_epoch=epoch)
        loaded = state.server.loaded
        self._unjudged = unmet_need(self.scenario, trimmable=loaded.trimmable if loaded else None)
        for note in (*model_notes(self.scenario, state.server.model), self._unjudged):
            if note:
                self._tell(ServerFound(text=note))
        self._began = measure.began(state)
        self._evictions_before = state.tally.evictions
        self._memory.begin(state)

    def pause(self) -> None:
        """Send nothing more until `resume`; what is in flight goes on."""
        self._going.clear()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._going.set()

    @property
    def verdicts(self) -> dict[str, tuple[Verdict, ...]]:
        """What came of the expectations, by the id of each step that was finished."""
        return dict(self._verdicts)

    def result(self, *, lost: ServerLostError | None = None, interrupted: bool = False) -> RunResult:
        """What was measured so far."""
        state = self.engine.state
        wanted = {name: value for name, value in self.scenario.server.items() if name not in self.combination}
        return RunResult(
            scenario=self.scenario.name,
            title=self.scenario.title,
            about=self.scenario.about,
            notes=self.scenario.notes,
            digest=self.scenario.digest,
            started=self._started.isoformat(timespec="seconds"),
            combination=self.combination,
            planned=len(self.scenario.combinations()),
            unjudged=self._unjudged,
            server=measure.server_result(
                state, self._began or measure.began(state), wanted, ours=self._spec is not None
            ),
            steps=tuple(self._steps.values()),
            evictions=self._evictions_so_far(),
            memory=self._memory.result(state),
            expectations=tuple(verdict for step in self.scenario.steps for verdict in self._verdicts.get(step.id, ())),
            interrupted=interrupted,
            reached=self._began is not None,
            lost=str(lost) if lost else None,
            lost_lines=lost.lines if lost else (),
        )

    # --- one step ---

    async def run_step(self, step: Step) -> StepResult:
        """Run one step (again, if it ran before): wait, restart, send, measure, judge.

        Raises:
            ServerLostError: the server went away; what was measured of the step until then is kept.
        """
        await self._unpaused()
        self._tell(StepStarted(step=step))
        if await self.engine.until(_dead, step.wait_s):
            raise _lost(self.engine.state)
        state = self.engine.state
        if step.restart is not None:
            epoch = state.server.epoch
            self.engine.submit(RestartServer(flags=step.restart))
            await self._ready(after_epoch=epoch)
        evictions = state.tally.evictions
        self._memory.step_peak(state)
        self._sent[step.id] = {}
        self._verdicts.pop(step.id, None)
        try:
            await self._send_all(step)
        except (ServerLostError, asyncio.CancelledError):
            await self._cancel_open()
            raise
        finally:
            result = self._measure_step(step, evictions)
            self._steps[step.id] = result
        self._verdicts[step.id] = verdicts = self._judge(step)
        self._tell(StepFinished(result=result, verdicts=verdicts))
        return result

    def _judge(self, step: Step) -> tuple[Verdict, ...]:
        if self._unjudged:
            return ()
        return tuple(judge(expectation, step.name, self._values_for(step)) for expectation in step.expect)

    async def _send_all(self, step: Step) -> None:
        """Send the step's requests, at most `concurrency` in flight at a time, and wait for all to end."""
        waiting = deque(enumerate(step.users * step.repeat))
        while waiting or self._open:
            while (room := bool(waiting) and len(self._open) < step.concurrency) and not self._is_held():
                await self._unpaused()
                index, user = waiting.popleft()
                self._send(draft_of(self.scenario, step, user, self._variables, self._earlier(step, index)), step)
            await self.engine.until(
                lambda state: (
                    _dead(state) or any(_ended(state, key) for key in self._open) or (room and not self._is_held())
                )
            )
            for key in [key for key in self._open if _ended(self.engine.state, key)]:
                await self._settle(key)
                self._open.remove(key)
                request = self.engine.state.requests[key]
                self._results[key] = measure.request_result(self.engine.state, request, step)
                self._tell(RequestFinished(result=self._results[key]))
                if measure.broken_off(request):
                    await self.engine.until(_dead, LOST_S)
            if _dead(self.engine.state):
                raise _lost(self.engine.state)

    def _is_held(self) -> bool:
        """Whether nothing may be sent, while requests in flight are still to be heeded."""
        return bool(self._open) and not self._going.is_set()

    def _send(self, draft: Draft, step: Step) -> None:
        key = self.engine.new_key()
        self._sent[step.id][key] = draft
        self._open.append(key)
        self.engine.submit(SendRequest(key=key, draft=draft))

    def _variables(self) -> dict[str, str]:
        self._sent_count += 1
        return {"n": str(self._sent_count), "today": self._clock().date().isoformat(), "uuid": str(uuid.uuid4())}

    def _earlier(self, step: Step, index: int) -> Sent | None:
        """The request that the step's `index`-th one continues, with the answer that it got."""
        if step.continues is None:
            return None
        sent = list(self._sent[step.continues].items())
        key, draft = sent[index] if len(sent) > 1 else sent[0]
        return Sent(draft=draft, answer=self._results[key].text if key in self._results else "")

    def _measure_step(self, step: Step, evictions_before: int) -> StepResult:
        state = self.engine.state
        now = {
            key: measure.request_result(state, state.requests[key], step)
            for key in self._sent[step.id]
            if key in state.requests
        }
        self._results |= now
        seen = measure.evictions_known(state)
        return StepResult(
            id=step.id,
            name=step.name,
            requests=measure.step_requests(self._results, list(self._sent[step.id]), len(step.users)),
            concurrency=step.concurrency,
            warmup=step.warmup,
            evictions=state.tally.evictions - evictions_before if seen else None,
            peak_bytes=self._memory.step_peak(state),
            load_s=state.server.loaded.seconds if step.restart is not None and state.server.loaded else None,
            restarted=step.restart is not None,
            flags=step.restart or {},
        )

    def _values_for(self, step: Step) -> Measure:
        def values(metric: Metric) -> list[float | str | None]:
            result = self._steps.get(metric.step or step.id)
            return metric_values(result, metric.name) if result is not None else []

        return values

    # --- waiting ---

    async def _ready(self, *, after_epoch: int) -> None:
        """Wait until a server process newer than `after_epoch` is ready, telling what it does meanwhile.

        Raises:
            ServerLostError: it did not get there.
        """
        before, notices = self.engine.state.server.text, self.engine.state.notice_count

        def ready(state: SessionState) -> bool:
            return state.server.epoch > after_epoch and state.server.phase == "ready"

        def failed(state: SessionState) -> bool:
            # The old process's end is part of a restart; a start that fails before there is a process says why.
            newer = state.server.epoch > after_epoch or state.server.text not in (before, "stopped")
            return (newer and _dead(state)) or measure.broken_start(state, notices) is not None

        told: list[str] = []
        while not ready(self.engine.state):
            if failed(self.engine.state):
                raise _lost(self.engine.state, measure.broken_start(self.engine.state, notices))
            shown = measure.server_text(self.engine.state)
            # Not the last words of the old process, nor a word that was said already, or with more behind it.
            old = any(line.startswith(shown) for line in told)
            # A server that we are about to start is not waited for yet.
            awaited = self._spec is None or self.engine.state.server.phase != "none"
            if self.engine.state.server.phase not in ("ready", *DEAD_PHASES) and awaited and not old:
                told.append(shown)
                self._tell(ServerWaited(text=shown))
            await self.engine.until(
                lambda state: ready(state) or failed(state) or measure.server_text(state) != shown  # noqa: B023
            )

    async def _unpaused(self) -> None:
        """Wait while the run is paused.

        Raises:
            ServerLostError: the server died meanwhile.
        """
        if self._going.is_set():
            return
        going = asyncio.ensure_future(self._going.wait())
        dead = asyncio.ensure_future(self.engine.until(_dead))
        try:
            await asyncio.wait([going, dead], return_when=asyncio.FIRST_COMPLETED)
        finally:
            going.cancel()
            dead.cancel()
        if not self._going.is_set():
            raise _lost(self.engine.state)

    async def _settle(self, key: str) -> None:
        """Wait for the observer's last word on a request that ended for us: what it stored and what that threw out."""
        if not await self.engine.until(lambda state: measure.settled(state, key), self._settle_s):
            # It will not tell of the next ones either: do not hold the run up for each.
            self._settle_s = SETTLE_AGAIN_S

    async def _cancel_open(self) -> None:
        """Close what is in flight and wait until that is known."""
        for key in self._open:
            if not _ended(self.engine.state, key):
                self.engine.submit(CancelRequest(key=key))
        await self.engine.until(lambda state: all(_ended(state, key) for key in self._open), CANCEL_S)
        self._open.clear()


def _dead(state: SessionState) -> bool:
    return state.server.phase in DEAD_PHASES


def _ended(state: SessionState, key: str) -> bool:
    request = state.requests.get(key)
    return request is not None and request.outcome is not None


def _lost(state: SessionState, why: str | None = None) -> ServerLostError:
    return ServerLostError(why or state.server.text or state.server.phase.replace("_", " "), measure.last_lines(state))
