"""A recorded session as the result of a run, so that one set of reports, and one comparison, serves both."""

from collections.abc import Iterable

import msgspec

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.reduce import apply
from mlxcache_tui.core.results import MemoryResult, MlxMemory, RunResult, StepResult
from mlxcache_tui.core.scenario import Step
from mlxcache_tui.core.state import RequestState, SessionState
from mlxcache_tui.engine import measure

NO_DIGEST = "none: a recorded session"


def run_of_session(events: Iterable[ev.AnyEvent], name: str) -> tuple[RunResult, SessionState]:
    """The session's requests as steps (those of one scenario step, else those of one policy, together), and its state.

    Flags are those in force when the first request that counts was composed, as in a run.
    """
    state = SessionState()
    began: measure.Began | None = None
    start: int | None = None
    launched = observed = False
    for event in events:
        if began is None and isinstance(event, ev.RequestComposed) and event.purpose != "readiness":
            began = measure.began(state)
        if start is None and isinstance(event, ev.MemorySampled):
            start = event.bytes
        launched = launched or isinstance(event, ev.ServerLaunched)
        observed = observed or isinstance(event, ev.ObserverConnected)
        apply(state, event)
    server = measure.server_result(state, began or measure.began(state), {}, ours=launched)
    run = RunResult(
        scenario=name,
        title=f"Session {name}",
        about="",
        digest=NO_DIGEST,
        started=state.started,
        combination={},
        # When a server has ended it is no longer observed; the session was.
        server=msgspec.structs.replace(server, observed="observer") if observed else server,
        steps=_steps(state, seen=observed),
        evictions=tuple(map(measure.eviction_result, state.cache.evictions)),
        memory=_memory(state, start),
        expectations=(),
    )
    return run, state


def _steps(state: SessionState, *, seen: bool) -> tuple[StepResult, ...]:
    groups: dict[str, list[RequestState]] = {}
    for request in state.requests.values():
        if request.purpose != "readiness":
            groups.setdefault(request.step or request.policy, []).append(request)
    return tuple(_step(state, name, requests, seen=seen) for name, requests in groups.items())


def _step(state: SessionState, name: str, requests: list[RequestState], *, seen: bool) -> StepResult:
    step = Step(id=name, name=name, line=0, users=("",))
    numbers = {request.number for request in requests}
    return StepResult(
        id=name,
        name=name,
        requests=tuple(measure.request_result(state, request, step) for request in requests),
        concurrency=1,
        warmup=all(request.warmup for request in requests),
        evictions=sum(gone.caused_by in numbers for gone in state.cache.evictions) if seen else None,
        peak_bytes=None,
        load_s=None,
        restarted=False,
        flags={},
    )


def _memory(state: SessionState, start: int | None) -> MemoryResult:
    samples, mlx = state.memory.samples, state.memory.mlx
    return MemoryResult(
        source=samples[-1].source if samples else None,
        start_bytes=start,
        peak_bytes=state.memory.peak,
        end_bytes=samples[-1].bytes if samples else None,
        mlx=None
        if mlx is None
        else MlxMemory(active_bytes=mlx.active, peak_bytes=state.memory.mlx_peak or mlx.peak, pool_bytes=mlx.pool),
    )
