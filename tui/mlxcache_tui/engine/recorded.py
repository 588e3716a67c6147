"""What was recorded, for looking back: a session as the result of a run, the list of sessions, two sides to compare.

One set of reports, and one comparison, serves sessions and runs.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.compare_view import SessionRow, Side, unfinished
from mlxcache_tui.core.reduce import apply
from mlxcache_tui.core.results import LaterServer, MemoryResult, MlxMemory, RunResult, StepResult
from mlxcache_tui.core.run_file import Run, parse_runs, run_of
from mlxcache_tui.core.scenario import Step
from mlxcache_tui.core.state import RequestState, SessionState
from mlxcache_tui.core.text import clean
from mlxcache_tui.engine import measure
from mlxcache_tui.store.paths import PathsError, named_path, sessions_dir
from mlxcache_tui.store.replay import SessionReader
from mlxcache_tui.store.sessions import SessionInfo, session_file, session_glance, started_text

NO_DIGEST = "none: a recorded session"
_SESSION_HEAD = b'{"t":'
_LINES = 1000
"""Lines of a session that are held as events at a time."""
_MOST_BYTES = 256_000_000
"""No run's JSON is longer: a bigger file is another kind of file, named by mistake."""


def run_of_session(events: Iterable[ev.AnyEvent], name: str) -> tuple[RunResult, SessionState]:
    """The session's requests as steps (those of one scenario step, else those of one policy, together), and its state.

    Flags are those in force when the first request that counts was composed, as in a run. Requests that met different
    server processes are never one step: each process begins with an empty cache, and maybe with other limits.
    The scenario is that of all requests, else the session is named by its file.
    """
    state = SessionState(bounded=False)
    began: dict[int, measure.Began] = {}
    start: int | None = None
    launched = observed = False
    scenarios: dict[str, tuple[str, str] | None] = {}
    for event in events:
        if isinstance(event, ev.RequestComposed) and event.purpose != "readiness":
            began.setdefault(state.server.epoch, measure.began(state))
            # The server tells of the same request again, and knows no scenario.
            scenarios[event.key] = scenarios.get(event.key) or event.scenario
        if start is None and isinstance(event, ev.MemorySampled):
            start = event.bytes
        launched = launched or isinstance(event, ev.ServerLaunched)
        observed = observed or isinstance(event, ev.ObserverConnected)
        apply(state, event)
    first = next(iter(began.values()), None) or measure.began(state)
    server = measure.server_result(state, first, {}, ours=launched)
    later = _later(state, began)
    if later:
        server = msgspec.structs.replace(server, model=first.model, later=later)
    scenario, digest = _only(scenarios.values()) or (name, NO_DIGEST)
    run = RunResult(
        scenario=scenario,
        title=f"Session {name}",
        about="",
        digest=digest,
        started=state.started,
        combination={},
        # When a server has ended it is no longer observed; the session was.
        server=msgspec.structs.replace(server, observed="observer") if observed else server,
        steps=_steps(state, list(began), seen=observed),
        evictions=tuple(map(measure.eviction_result, state.cache.evictions)),
        memory=_memory(state, start),
        expectations=(),
    )
    return run, state


def _only(scenarios: Iterable[tuple[str, str] | None]) -> tuple[str, str] | None:
    distinct = set(scenarios)
    return distinct.pop() if len(distinct) == 1 else None


def _later(state: SessionState, began: Mapping[int, measure.Began]) -> tuple[LaterServer, ...]:
    """The server processes behind the first one that met a request."""
    numbers: dict[int, int] = {}
    for request in state.requests.values():
        if request.purpose != "readiness":
            numbers.setdefault(request.epoch, request.number)
    return tuple(
        LaterServer(since=numbers[epoch], model=begin.model, flags=begin.flags, load_s=begin.load_s)
        for epoch, begin in list(began.items())[1:]
    )


def _steps(state: SessionState, epochs: Sequence[int], *, seen: bool) -> tuple[StepResult, ...]:
    """The steps in order; those on a later server process say so in their names."""
    groups: dict[str, list[RequestState]] = {}
    for request in state.requests.values():
        if request.purpose != "readiness":
            server = epochs.index(request.epoch)
            name = request.step or request.policy
            groups.setdefault(f"{name} (server {server + 1})" if server else name, []).append(request)
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


# --- the list of sessions --------------------------------------------------------------------------------------------


async def recorded_sessions(here: Path | None) -> AsyncIterator[SessionRow]:
    """Each session at a glance: that of file `here` first, then those of the state folder, newest first."""
    try:
        found = sorted((await asyncio.to_thread(sessions_dir)).glob("*.jsonl"), reverse=True)
    except PathsError:
        found = []  # told already, when the session began
    for path in ([here] if here is not None else []) + [path for path in found if path != here]:
        info = await asyncio.to_thread(session_glance, path)
        if info is not None:
            yield _session_row(info, here=path == here, inside=path in found)


def _session_row(info: SessionInfo, *, here: bool, inside: bool) -> SessionRow:
    return SessionRow(
        wanted=info.name if inside else info.path,
        when=started_text(info.started, seconds=True),
        server=info.server,
        model=info.model,
        limits=info.prompt_cache_sizes,
        requests=info.requests,
        reuse=info.reuse,
        evictions=info.evictions,
        bytes=info.bytes,
        recording=info.recording,
        here=here,
    )


# --- two sides to compare --------------------------------------------------------------------------------------------


def read_sides(a: str, b: str) -> tuple[Side, Side]:
    """Two sides that are not the same; see `read_side`. Reads files: not for the screen's loop.

    Raises:
        ValueError: one cannot be read, or both are one file; the text is one line that says which.
    """
    files = [[_path(name) for name in _names(side)] for side in (a, b)]
    for path in (path for side in files for path in side):
        if path.exists() and not path.is_file():
            raise ValueError(f"{clean(str(path))}: is not a file")
    if any(_is_same(one, other) for one in files[0] for other in files[1]):
        raise ValueError("A and B are the same file: choose another one for one of them")
    return read_side(a), read_side(b)


def read_side(wanted: str) -> Side:
    """A session, a run's JSON, or several of them with commas between: by path, or by the name of a session.

    Raises:
        ValueError: one cannot be read, or is neither; the text is one line and names the file.
    """
    runs: list[Run] = []
    notes: list[str] = []
    for name in _names(wanted):
        path = _path(name)
        try:
            found, damage = _runs(path)
        except OSError as error:
            raise _unreadable(name, error) from error
        except ValueError as error:
            raise ValueError(f"{clean(name)}: {error}") from error
        runs += found
        if damage:
            notes.append(f"{clean(name)}: {damage}; what could be read is compared")
    if incomplete := unfinished(runs):
        notes.append(f"{clean(wanted)}: {incomplete}")
    return Side(
        name=clean(wanted), runs=tuple(runs), when=started_text(runs[0].started, seconds=True), note="; ".join(notes)
    )


def _names(wanted: str) -> list[str]:
    try:
        whole = named_path(wanted).exists()
    except OSError:
        whole = False  # several may be too long for the name of one
    return [wanted] if whole else wanted.split(",")


def _path(name: str) -> Path:
    try:
        return session_file(name)
    except PathsError as error:
        raise ValueError(str(error)) from error
    except OSError as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: OSError) -> ValueError:
    return ValueError(f"{clean(name)}: cannot be read: {(error.strerror or str(error)).lower()}")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _runs(path: Path) -> tuple[tuple[Run, ...], str | None]:
    """What is in a file, and what of a session could not be read."""
    with path.open("rb") as file:
        head = file.read(len(_SESSION_HEAD))
        if not head:
            raise ValueError("the file is empty")
        if head != _SESSION_HEAD:
            if head.lstrip()[:1] not in (b"{", b""):
                raise ValueError("neither a session nor a result of run --json")
            return parse_runs(head + file.read(_MOST_BYTES)), None
    reader = SessionReader(path)
    result, state = run_of_session(_events(reader), path.stem)
    damage = reader.damage()
    if not state.now_ns:
        raise ValueError(f"no session: {damage or 'no event in it is known to this version'}")
    return (run_of(result),), damage


def _events(reader: SessionReader) -> Iterator[ev.AnyEvent]:
    reader.look()
    while reader.left:
        yield from reader.read(_LINES)
