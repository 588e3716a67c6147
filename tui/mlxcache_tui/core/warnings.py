"""What a person should be warned of, each one line with its figure. Pure: the faces show each once and let it go.

A warning keeps its name as long as its cause lasts, so that one that was seen does not come back with another figure.
"""

from bisect import bisect_right
from itertools import pairwise
from statistics import median

from mlxcache_tui.core.by_policy import to_warm
from mlxcache_tui.core.figures import TREND_REQUESTS
from mlxcache_tui.core.state import EntryRecord, SessionState
from mlxcache_tui.core.units import human_bytes, human_duration
from mlxcache_tui.core.views import WarningView

TREND_SHARE = 0.05
LIMIT_EVICTIONS = 3
RISE_SHARE, RISE_BYTES = 0.10, 32 << 20
"""How far memory must have risen at the count limit: a tenth, and not by some caches of the interpreter alone."""


def warnings(state: SessionState) -> tuple[WarningView, ...]:
    """All that holds now, the gravest first. Of another kind of server's cache and flags nothing is known."""
    if state.server.software not in (None, "mlx_lm"):
        return tuple(filter(None, [_not_faster(state)]))
    found = (
        _cold_again(state),
        _peak(state),
        _entry_over_limit(state),
        _bytes_over_limit(state),
        _rising_at_the_limit(state),
        _trend(state),
        _one_policy(state),
        _not_faster(state),
        _three_places(state),
    )
    return tuple(warning for warning in found if warning is not None)


def _cold_again(state: SessionState) -> WarningView | None:
    names = list(dict.fromkeys(state.requests[key].policy for key in to_warm(state)))
    if not names or state.server.phase != "ready":
        return None
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return WarningView(name=f"cold-{state.server.epoch}", text=f"w: warm again after the restart: {shown}")


def _peak(state: SessionState) -> WarningView | None:
    """A hit copies the entry: for a moment there are two of it."""
    largest = _largest(state)
    last = state.memory.samples[-1] if state.memory.samples else None
    if largest is None or last is None or last.bytes is None:
        return None
    size = human_bytes(largest.bytes)
    if last.limit is not None and last.bytes + largest.bytes > last.limit:
        name = "the wired limit" if last.source == "footprint" else "the memory limit"
        text = f"a hit copies its entry: {human_bytes(last.bytes)} + {size} is over {name}, {human_bytes(last.limit)}"
        return WarningView(name="peak", text=text)
    if last.system_available is not None and largest.bytes > last.system_available:
        text = f"a hit copies its entry: {size} more, and {human_bytes(last.system_available)} of memory are free"
        return WarningView(name="peak", text=text)
    return None


def _entry_over_limit(state: SessionState) -> WarningView | None:
    largest, limit = _largest(state), state.cache.max_bytes
    if largest is None or not limit or largest.bytes <= limit:
        return None
    who, size = largest.policy, human_bytes(largest.bytes)
    text = f"one entry of {who}, {size}, is larger than the byte limit of {human_bytes(limit)}"
    return WarningView(name="entry-over-limit", text=text)


def _bytes_over_limit(state: SessionState) -> WarningView | None:
    cache, limit = state.cache, state.cache.max_bytes
    if not limit or cache.bytes <= limit or not cache.stored:
        return None
    newest = list(cache.stored.values())[-1]
    maker = state.requests.get(newest.key) if newest.key is not None else None
    over = f"{human_bytes(cache.bytes)} stored over the byte limit of {human_bytes(limit)}"
    if maker is not None and maker.lookup is not None and maker.lookup.path == "sequential":
        return WarningView(name="limit-sequential", text=f"{over}: it is not applied on the sequential path")
    return WarningView(name="limit-batched", text=f"{over}: it is applied when the next request joins")


def _rising_at_the_limit(state: SessionState) -> WarningView | None:
    cache = state.cache
    tally = state.tally
    if cache.max_count is None or len(cache.stored) < cache.max_count or tally.by_count < LIMIT_EVICTIONS:
        return None
    then, now = _memory_at(state, tally.first_by_count_ns or 0), _memory_at(state, state.now_ns)
    if then is None or now is None or now - then < max(RISE_BYTES, then * RISE_SHARE):
        return None
    text = f"{cache.max_count} of {cache.max_count} entries, yet memory rose by {human_bytes(now - then)} since then"
    return WarningView(name="rising-at-limit", text=f"{text}: entries differ in size")


def _trend(state: SessionState) -> WarningView | None:
    """MB a request: memory after each of the last requests, where no byte limit would end it."""
    if state.cache.max_bytes is not None:
        return None
    after = [size for stamp in state.tally.process.ends if (size := _memory_at(state, stamp)) is not None]
    if len(after) < TREND_REQUESTS:
        return None
    steps = [later - earlier for earlier, later in pairwise(after)]
    risen = after[-1] - after[0]
    if risen < after[0] * TREND_SHARE or sum(step > 0 for step in steps) < 0.75 * len(steps) or median(steps) <= 0:
        return None
    is_told = state.cache.known == "observer" or state.server.mode == "launched"
    limit = "no byte limit is set" if is_told else "no byte limit is known"
    text = f"memory grows by {human_bytes(risen / len(steps))} a request; {limit}"
    return WarningView(name="trend", text=f"{text} (--prompt-cache-bytes)")


def _one_policy(state: SessionState) -> WarningView | None:
    cache = state.cache
    if cache.max_count is None or not 2 <= cache.max_count <= len(cache.stored):
        return None
    holders = {record.policy for record in cache.stored.values()}
    others = {name for name, tally in state.tally.policies.items() if tally.requests} - holders
    if len(holders) != 1 or not others:
        return None
    text = f"{holders.pop()} holds all {len(cache.stored)} places: each question on it is an entry of its own"
    return WarningView(name="one-policy", text=text)


def _not_faster(state: SessionState) -> WarningView | None:
    """The last request began like an earlier one, and its first token came no sooner, though it was not a miss."""
    found = state.tally.process.no_sooner
    if found is None:
        return None
    text = f"#{found.number}: TTFT {human_duration(found.ttft_s)} after {human_duration(found.than_s)} (#{found.than})"
    return WarningView(name="not-faster", text=f"{text}, though the text in front is equal")


def _three_places(state: SessionState) -> WarningView | None:
    loaded, count = state.server.loaded, state.cache.max_count
    if loaded is None or loaded.trimmable is not False or not count or loaded.batchable is False:
        return None
    text = f"a cold request takes 3 of the {count} places: this model's entries cannot be cut back"
    return WarningView(name="three-places", text=text)


def _largest(state: SessionState) -> EntryRecord | None:
    return max(state.cache.stored.values(), key=lambda record: record.bytes, default=None)


def _memory_at(state: SessionState, at_ns: int) -> int | None:
    """The last sample up to that moment, bytes."""
    samples = state.memory.samples
    index = bisect_right(samples, at_ns, key=lambda sample: sample.at_ns) - 1
    return samples[index].bytes if index >= 0 else None
