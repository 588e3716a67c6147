"""Running figures of all requests: kept up to date as each is told of, so that no redraw has to walk through them."""

from typing import Any

from mlxcache_tui.core import metrics
from mlxcache_tui.core.bounds import trim_evictions
from mlxcache_tui.core.figures import NoSooner, PolicyTally, ProcessTally
from mlxcache_tui.core.state import EvictionRecord, RequestState, SessionState

KEPT_NAMES = 100
"""Policies, and beginnings of prompts, that have figures: another client may begin each of its prompts otherwise."""
MIN_TTFT_S = 0.1
"""A shorter one says nothing: it is all overhead."""
NOT_FASTER = 0.8


def composed(state: SessionState, request: RequestState) -> None:
    """A request is new."""
    state.open[request.key] = request
    if request.number and state.tally.process.first is None:
        state.tally.process.first = request.number
        request.first_of_process = True
    if request.counts:
        tally = state.tally.policies.pop(request.policy, None) or PolicyTally()
        state.tally.policies[request.policy] = tally  # the one used last is the last to be let go
        _bound_policies(state)
        for each in (tally, state.tally.all):
            each.requests += 1


def told(state: SessionState, request: RequestState) -> None:
    """Its counts or its reason may be others than before: they are told late, and twice."""
    if not request.counts:
        return
    before, now = request.counted or (0, 0), _reported(request)
    request.counted = now
    cached, prompt = now or (0, 0)
    is_hit = request.reason is not None and request.reason.kind == "hit"
    hit_ns = request.lookup.at_ns if request.lookup else request.stamps.ended
    for tally in (state.tally.all, state.tally.policies.get(request.policy)):
        if tally is None:
            continue
        tally.cached_tokens += cached - before[0]
        tally.prompt_tokens += prompt - before[1]
        if now is not None and request.number >= tally.last:
            tally.last, tally.last_ratio = request.number, cached / prompt
        if is_hit and hit_ns is not None:
            tally.last_hit_ns = max(tally.last_hit_ns or hit_ns, hit_ns)


def _reported(request: RequestState) -> tuple[int, int] | None:
    """Cached and prompt tokens, once both are told and it is over."""
    if request.outcome is None or request.cached_tokens is None or not request.prompt_tokens:
        return None
    return request.cached_tokens, request.prompt_tokens


def reopened(state: SessionState, request: RequestState) -> None:
    """It was taken to be over, and goes on."""
    state.open[request.key] = request
    told(state, request)


def ended(state: SessionState, request: RequestState) -> None:
    """It is over; this may be told twice."""
    told(state, request)
    if state.open.pop(request.key, None) is None:
        return
    process, stamps = state.tally.process, request.stamps
    if request.outcome == "done":
        _speed(state, request)
    if request.counts and request.epoch == state.server.epoch:
        if stamps.ended is not None:
            process.ends.append(stamps.ended)
        if request.outcome == "done" and request.messages:
            _done(state, request)
    if stamps.sent is not None:
        process.spans.append((stamps.sent, stamps.ended))


def _speed(state: SessionState, request: RequestState) -> None:
    """What a request tells of the time to the first token."""
    tally, read = state.tally, metrics.uncached_tokens(request)
    tally.prefill_tps = metrics.prefill_tps(request) or tally.prefill_tps
    if request.counts and read is not None and read < metrics.MIN_PREFILL_TOKENS:
        tally.least_wait_s = metrics.ttft_s(request) or tally.least_wait_s


def _done(state: SessionState, request: RequestState) -> None:
    process = state.tally.process
    process.no_sooner = _no_sooner(state, request)
    ttft, ratio = metrics.ttft_s(request), metrics.cached_ratio(request)
    # The very first one is slow for reasons of its own (kernels are compiled).
    if process.done and ttft is not None and (ratio is None or ratio < 0.5):
        process.cold.setdefault(request.messages[0], (request.number, ttft))
        _bound(process.cold)
    process.done += 1


def _no_sooner(state: SessionState, request: RequestState) -> NoSooner | None:
    """A request that was not a miss, yet its first token came as late as that of one that had to read the same text."""
    if request.reason is None or request.reason.kind not in ("hit", "not_reported", "unknown"):
        return None
    first, ours = request.messages[0], metrics.ttft_s(request)
    than, theirs = state.tally.process.cold.get(first, (0, 0.0))
    if first[0] != "system" or ours is None or theirs < MIN_TTFT_S or ours < NOT_FASTER * theirs:
        return None
    return None if _overlapped(state, request) else NoSooner(request.number, ours, than, theirs)


def _overlapped(state: SessionState, request: RequestState) -> bool:
    """Whether another request was in work while this one waited for its first token."""
    sent, first = request.stamps.sent, request.stamps.first_token
    if sent is None or first is None:
        return True
    others = [*state.tally.process.spans, *((other.stamps.sent, None) for other in state.open.values())]
    return any(began is not None and began < first and (end is None or end > sent) for began, end in others)


def evicted(state: SessionState, eviction: EvictionRecord) -> None:
    """An entry went."""
    tally = state.tally
    state.cache.evictions.append(eviction)
    if state.bounded:
        trim_evictions(state.cache)
    tally.evictions += 1
    tally.evictions_seen += not eviction.inferred
    if eviction.rule == "count":
        tally.by_count += 1
        tally.first_by_count_ns = tally.first_by_count_ns or eviction.at_ns
    tally.policies.setdefault(eviction.policy, PolicyTally()).evicted += 1
    _bound_policies(state)


def _bound_policies(state: SessionState) -> None:
    """Those that are stored, or known by name, keep their figures: they are shown, and must not begin again at 0."""
    policies = state.tally.policies
    if len(policies) > KEPT_NAMES:
        shown = {record.policy for record in state.cache.stored.values()} | state.policies.keys()
        if (oldest := next((name for name in policies if name not in shown), None)) is not None:
            del policies[oldest]


def _bound(names: dict[Any, Any]) -> None:
    if len(names) > KEPT_NAMES:
        del names[next(iter(names))]


def new_process(state: SessionState) -> None:
    """The server is another process: what was remembered of the last one says nothing of it."""
    state.tally.process = ProcessTally()
