"""The fold: `apply(state, event)` alone changes the state. Deterministic, so that a replay gives the same."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

from mlxcache_tui.core import bounds, infer, reduce_cache, reduce_requests, tally
from mlxcache_tui.core import events as ev
from mlxcache_tui.core.inferred import InferredCache
from mlxcache_tui.core.last_words import cause_of, explain
from mlxcache_tui.core.log_rows import append_lines, mark, own_line
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.core.text import short_model
from mlxcache_tui.core.views import MemoryMark, NoticeView

Part = Literal["server", "requests", "cache", "memory", "log", "notices"]

ENTRY_HOOKS = {"PromptTrie.add", "CacheOrder.push"}
"""What the observer must have hooked to know the entries; the other names in its `missing` concern requests."""
_NOTHING: frozenset[Part] = frozenset()
_SERVER: frozenset[Part] = frozenset({"server"})
_LOG: frozenset[Part] = frozenset({"log"})
_MEMORY: frozenset[Part] = frozenset({"memory"})
_LOG_AND_CACHE: frozenset[Part] = frozenset({"log", "cache"})
_ALL_BUT_REQUESTS: frozenset[Part] = frozenset({"server", "cache", "memory", "log"})
_ALL: frozenset[Part] = frozenset({"server", "requests", "cache", "memory", "log", "notices"})


def apply(state: SessionState, event: ev.AnyEvent) -> frozenset[Part]:
    """Fold one event into the state; returns the parts of the screen that it touches."""
    if event.at_ns > state.now_ns:
        state.now_ns = event.at_ns
    epoch = state.server.epoch
    parts = _FOLDS[type(event)](state, event)
    return parts if state.server.epoch == epoch else _ALL  # what all rows and entries say is another thing now


_Sample = ev.LogRead | ev.LogOwned | ev.MemorySampled | ev.MlxMemorySampled


def _apply_sample(state: SessionState, event: _Sample) -> frozenset[Part]:
    match event:
        case ev.LogRead(lines=lines, replace_last=replace_last):
            goes_on = state.log.read
            append_lines(state, lines, replace_last=replace_last)
            if state.server.mode == "attached" and not state.server.observed:
                before = state.cache.inferred.others.count
                _read_unobserved(state, event, goes_on=goes_on)
                return _LOG if state.cache.inferred.others.count == before else _LOG_AND_CACHE
            return _LOG
        case ev.LogOwned(key=key, text=text):
            own_line(state, key, text)
            return _LOG
        case ev.MemorySampled(bytes=now, peak=peak):
            if state.server.mode == "attached" and now is not None and event.pid != state.server.pid:
                _new_process(state, event.pid, event.at_ns)
            state.memory.samples.append(event)
            known = [figure for figure in (now, peak, state.memory.peak) if figure is not None]
            state.memory.peak = max(known) if known else None
            return _MEMORY
        case ev.MlxMemorySampled():
            state.memory.mlx = event
            state.memory.mlx_peak = max(event.peak, state.memory.mlx_peak or 0)
            return _MEMORY


def _read_unobserved(state: SessionState, event: ev.LogRead, *, goes_on: bool) -> None:
    """What the log tells of a server without the observer: others' requests; that it began anew, where no pid does."""
    inferred = state.cache.inferred
    known = goes_on and (inferred.model is not None or inferred.others.own > 0)
    if infer.logged(state, event.lines) and known and state.server.pid is None:
        _restarted(state, event.at_ns)
        infer.logged(state, event.lines)  # anew: what was sent since it began is of the new process


_Session = ev.SessionStarted | ev.PolicyKnown | ev.TextKept | ev.Noticed | ev.EventsLost | ev.SourceFailed


def _apply_session(state: SessionState, event: _Session) -> frozenset[Part]:
    match event:
        case ev.SessionStarted():
            state.program, state.started = event.program, event.started
            state.started_ns, state.wall_ns = event.at_ns, event.wall_ns
            return _SERVER
        case ev.PolicyKnown(label=label, text=text):
            state.policies[label] = text
            return _NOTHING
        case ev.TextKept(text_id=text_id, text=text):
            bounds.keep_text(state, text_id, text)
            return _NOTHING
        case ev.Noticed(level=level, pane=pane, text=text):
            return _notice(state, level, pane, text)
        case ev.EventsLost(count=count):
            _cut_foreign(state, reduce_requests.LOST)
            text = f"{count} events of the server were lost: this viewer was too slow; what they said is unknown"
            return _notice(state, "warning", "server", text)
        case ev.SourceFailed(source=source, error=error):
            return _notice(state, "error", "server", f"{source} stopped: {error}")


def _notice(state: SessionState, level: Literal["info", "warning", "error"], pane: str, text: str) -> frozenset[Part]:
    state.notice_count += 1
    state.notices.append(NoticeView(seq=state.notice_count, level=level, pane=pane, text=text))
    return frozenset({"notices"})


_Server = (
    ev.ServerTargeted
    | ev.ServerLaunched
    | ev.ServerPhaseChanged
    | ev.ModelFetchProgressed
    | ev.ServerIdentified
    | ev.ObserverConnected
    | ev.ObserverLost
    | ev.ModelLoadStarted
    | ev.ModelLoaded
    | ev.ModelLoadFailed
    | ev.WorkerDied
    | ev.ServerExited
)


def _apply_server(state: SessionState, event: _Server) -> frozenset[Part]:
    server = state.server
    match event:
        case ev.ServerTargeted():
            _target(state, event)
        case ev.ServerLaunched():
            _new_process(state, event.pid, event.at_ns)
            server.phase, server.text = "starting", ""
            server.port, server.command, server.flags, server.blas = event.port, event.command, event.flags, event.blas
            reduce_cache.take_limits(state, event.flags)
        case ev.ServerPhaseChanged(phase=phase, text=text):
            server.phase, server.text = phase, text
            if phase != "fetching":
                server.fetch_percent = None
            if phase == "unreachable":
                _cut_foreign(state, "the server is gone")
        case ev.ModelFetchProgressed():
            _fetching(state, event)
        case ev.ServerIdentified():
            _identify(state, event)
        case ev.ObserverConnected():
            _observer_connected(state, event)
        case ev.ObserverLost():
            server.observed = False
            state.cache.known = "counted" if state.cache.counted else "unknown"
        case ev.ModelLoadStarted(model=model):
            server.loading_since, server.loaded = event.at_ns, None
            server.phase, server.text = "loading", short_model(model) or ""
        case ev.ModelLoaded():
            server.loaded, server.loading_since = event, None
            server.text = ""
        case ev.ModelLoadFailed(model=model, error=error):
            server.loading_since = None
            server.text = f"{model} did not load: {explain(error)}"
        case ev.WorkerDied(error=error):
            server.phase, server.text = "worker_dead", f"the generation thread died: {error}; restart the server"
        case ev.ServerExited():
            _exited(state, event)
    return _ALL_BUT_REQUESTS


def _target(state: SessionState, event: ev.ServerTargeted) -> None:
    server = state.server
    if server.url != event.url:
        server.mlx_lm = server.mlx = server.platform = server.software = None
        if event.mode == "attached":
            server.pid, server.flags, server.command = None, {}, ()
            _empty(state)
            server.first_epoch = server.epoch
            state.cache.warm_before.clear()
    if event.mode == "attached":
        server.phase, server.text = "starting", ""  # until it answers, or does not
    server.url, server.mode, server.watch_only = event.url, event.mode, event.watch_only
    server.model = event.model
    server.log_path = event.log_path


def _fetching(state: SessionState, event: ev.ModelFetchProgressed) -> None:
    server = state.server
    server.fetch_percent = event.percent
    if server.phase not in ("starting", "loading", "fetching"):
        return
    if event.origin == "log" and event.percent == 100:
        server.phase, server.text, server.fetch_percent = "loading", "loading the model", None
    else:
        server.phase, server.text = "fetching", event.text


def _identify(state: SessionState, event: ev.ServerIdentified) -> None:
    server = state.server
    server.mlx_lm = event.mlx_lm or server.mlx_lm
    server.mlx = event.mlx or server.mlx
    server.platform = event.platform or server.platform
    server.model = event.model or server.model
    server.software = event.software or server.software
    if event.flags is not None and not server.observed:
        server.flags = event.flags
        reduce_cache.take_limits(state, event.flags)


def _observer_connected(state: SessionState, event: ev.ObserverConnected) -> None:
    server = state.server
    if server.pid != event.pid:
        _new_process(state, event.pid, event.started_ns or event.at_ns)
        server.phase, server.text = "starting", ""
    server.observed = True
    server.mlx_lm = event.mlx_lm or server.mlx_lm
    server.mlx = event.mlx or server.mlx
    # A server of ours says its flags before it has read them; somebody else's may be another than before.
    server.flags = {**event.flags, **server.flags} if server.mode == "launched" else event.flags
    server.log_path = event.log_path or server.log_path
    server.model = server.model or event.flags.get("model")
    if ENTRY_HOOKS.isdisjoint(event.missing):
        state.cache.known, state.cache.inferred = "observer", InferredCache(off=True)
    if event.missing:
        names, version = ", ".join(event.missing), event.mlx_lm or "of unknown version"
        _notice(state, "info", "server", f"unknown here, since mlx-lm {version} has nothing to watch it by: {names}")
    reduce_cache.take_limits(state, event.flags)


def _new_process(state: SessionState, pid: int, at_ns: int) -> None:
    """A server process that was not known; if there was another before, nothing of that may be believed."""
    server = state.server
    if server.pid is None and server.mode == "attached":
        server.pid = pid
        return
    known, server.pid = server.pid, pid
    if known is None:
        _empty(state)
    else:
        _restarted(state, at_ns)


def _restarted(state: SessionState, at_ns: int) -> None:
    state.memory.marks.append(MemoryMark(at_ns=at_ns, kind="restart"))
    mark(state, "↻ the server is another process now: its cache starts empty")
    _empty(state)


def _empty(state: SessionState) -> None:
    """Another server, or another process of the same: its cache is its own."""
    server = state.server
    server.epoch += 1
    state.dirty.update(dict.fromkeys(state.requests))  # their rows are of an earlier process now
    server.loaded, server.loading_since, server.exit_tail = None, None, ()
    server.observed = False
    _cut_foreign(state, "the server ended")
    tally.new_process(state)
    reduce_cache.remember_warm(state)
    state.cache.stored.clear()
    state.cache.evicted.clear()
    state.cache.swallowed.clear()
    state.cache.records.clear()
    state.cache.counted = state.cache.max_count = state.cache.max_bytes = None
    state.cache.inferred = InferredCache()
    if server.mode == "attached":
        # Its command line is read just before it is first sampled.
        reduce_cache.take_limits(state, server.flags)
    state.cache.known = "unknown"
    state.memory.mlx = None


def _exited(state: SessionState, event: ev.ServerExited) -> None:
    server = state.server
    if server.pid not in (None, event.pid):
        return
    server.phase, server.text = "exited", _how_it_ended(event)
    server.exit_tail, server.observed = event.tail, False
    reduce_cache.remember_warm(state)
    state.cache.stored.clear()
    state.cache.known = "unknown"
    _cut_foreign(state, "the server ended")


def _how_it_ended(event: ev.ServerExited) -> str:
    if event.asked:
        return "stopped"
    if event.signal in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"):
        memory = ", or by the system for want of memory" if event.signal == "SIGKILL" else ""
        return f"the server was ended from outside ({event.signal}{memory}): restart it"
    how = f"crashed with {event.signal}" if event.signal else f"ended with exit code {event.code}"
    cause = cause_of(event.tail)
    return f"the server {how}" + (f": {cause}" if cause else "")


def _cut_foreign(state: SessionState, why: str) -> None:
    """Nobody will tell how the open requests of other clients end."""
    for request in [request for request in state.open.values() if not request.ours]:
        request.outcome, request.error = "cut", why
        state.dirty[request.key] = None
        tally.ended(state, request)


_FOLDS: dict[type, Callable[[SessionState, Any], frozenset[Part]]] = {
    kind: fold_one
    for kinds, fold_one in (
        (reduce_requests.RequestEvent, reduce_requests.apply_request),
        (reduce_cache.CacheEvent, reduce_cache.apply_cache),
        (_Sample, _apply_sample),
        (_Session, _apply_session),
        (_Server, _apply_server),
    )
    for kind in get_args(kinds)
}
"""Looked up, not matched: a long recording is folded while somebody waits."""


def fold(events: Iterable[ev.AnyEvent]) -> SessionState:
    """The state after these events, from nothing (a replay, a test)."""
    state = SessionState()
    for event in events:
        apply(state, event)
    return state
