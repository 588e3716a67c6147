"""Folding what the observer says of the prompt cache: look-ups, entries, evictions, limits."""

from array import array
from sys import intern
from typing import Any, Literal

from mlxcache_tui.core import bounds, infer, retention, tally
from mlxcache_tui.core import events as ev
from mlxcache_tui.core.by_policy import stored_by
from mlxcache_tui.core.diagnose import diagnose_observed, is_more_than_head
from mlxcache_tui.core.log_rows import mark
from mlxcache_tui.core.state import (
    USERS_SHOWN,
    EntryRecord,
    EvictionRecord,
    Lookup,
    PromptRun,
    RequestState,
    SessionState,
)
from mlxcache_tui.core.units import human_bytes
from mlxcache_tui.core.views import MemoryMark

Part = Literal["requests", "cache", "memory", "log"]
CacheEvent = (
    ev.LookedUp
    | ev.TokensNamed
    | ev.EntryInserted
    | ev.EntrySwallowed
    | ev.EntryEvicted
    | ev.CacheSnapshot
    | ev.CacheCounted
)
_CACHE: frozenset[Part] = frozenset({"cache"})
_FOUND: frozenset[Part] = frozenset({"requests", "cache"})
_EVICTED: frozenset[Part] = frozenset({"requests", "cache", "memory", "log"})


def apply_cache(state: SessionState, event: CacheEvent) -> frozenset[Part]:
    """Fold one cache event; returns the parts of the screen that it touches."""
    match event:
        case ev.LookedUp():
            _looked_up(state, event)
            return _FOUND
        case ev.TokensNamed(pairs=pairs, model=model):
            known = state.vocabularies.setdefault(model, {})
            known.update((token, bytes.fromhex(text)) for token, text in pairs if is_hex(text))
        case ev.EntryInserted():
            _inserted(state, event)
        case ev.EntrySwallowed(entry=entry, by=by, key=key):
            record = _leave(state, entry, "swallowed", event.at_ns, key)
            if record:
                record.swallowed_by = by
        case ev.EntryEvicted():
            _evicted(state, event)
            return _EVICTED
        case ev.CacheSnapshot():
            _snapshot(state, event)
        case ev.CacheCounted():
            state.cache.counted = event
            infer.counted(state, event)
            if state.cache.known == "unknown":
                state.cache.known = "counted"
    return _CACHE


def is_hex(text: str) -> bool:
    """Whether the text is bytes in hex: a session file may say anything."""
    return len(text) % 2 == 0 and all(digit in "0123456789abcdef" for digit in text)


def take_limits(state: SessionState, flags: dict[str, Any]) -> None:
    """The limits in force, from the server's own arguments."""
    count, size = flags.get("prompt_cache_size"), flags.get("prompt_cache_bytes")
    state.cache.max_count = count if isinstance(count, int) else state.cache.max_count
    state.cache.max_bytes = size if isinstance(size, int) else None


def remember_warm(state: SessionState) -> None:
    """Before the entries of a server that ended are forgotten: which system messages were stored there."""
    makers = [state.requests.get(key) for key in stored_by(state)]
    warm = {maker.messages[0][1]: maker.key for maker in makers if maker and maker.number and _has_system(maker)}
    if warm:
        state.cache.warm_before = warm


def _has_system(request: RequestState) -> bool:
    return bool(request.messages) and request.messages[0][0] == "system"


def _looked_up(state: SessionState, event: ev.LookedUp) -> None:
    request = state.requests.get(event.key)
    if request is None:
        return
    before = request.size
    request.lookup = Lookup(
        at_ns=event.at_ns,
        tokens=_prompt_run(state, event.tokens),
        cached_tokens=event.cached_tokens,
        how=event.how,
        entry=event.entry,
        path=event.path,
        model=intern(event.model) if event.model is not None else None,
    )
    state.size += request.size - before
    request.prompt_tokens = event.tokens.count
    request.cached_tokens, request.cached_source = event.cached_tokens, "observer"
    record = state.cache.records.get(event.entry) if event.entry is not None else None
    if record is not None and is_more_than_head(state, request, event.cached_tokens):
        record.used_by = (*record.used_by, request.number)[-USERS_SHOWN:]
    request.reason = diagnose_observed(state, request, request.lookup)
    state.dirty[event.key] = None
    tally.told(state, request)


def _prompt_run(state: SessionState, run: ev.TokenRun) -> PromptRun:
    base = state.requests.get(run.base) if run.base is not None else None
    start = base.lookup.tokens if base is not None and base.lookup is not None else None
    while start is not None and start.start is not None and run.shared <= start.shared:
        start = start.start  # all of it comes from there: nothing of those between is needed
    return PromptRun(run.count, base.key if base else run.base, run.shared, start, _packed(run.new))


def _packed(tokens: tuple[int, ...]) -> "array[int]":
    """Four bytes a token. A prompt with images has ids that take eight; a file may say anything: then none."""
    for size in ("i", "q"):
        try:
            return array(size, tokens)
        except OverflowError:
            continue
    return array("i")


def _inserted(state: SessionState, event: ev.EntryInserted) -> None:
    cache = state.cache
    if event.replaced is not None and (older := cache.stored.pop(event.replaced, None)) is not None:
        # The same sequence goes on under another number: what becomes of that one became of this one.
        older.gone, older.gone_ns, older.gone_by, older.swallowed_by = "swallowed", event.at_ns, event.key, event.entry
    record = _record(state, event, event.tokens.count, event.at_ns)
    cache.stored[event.entry] = cache.records[event.entry] = record
    if state.bounded:
        bounds.trim_records(cache)
    if record.key is not None and (request := state.requests.get(record.key)):
        request.entries += (event.entry,)
        retention.came_late(state, request, event.at_ns, "stored")


def _record(state: SessionState, told: ev.EntryInserted | ev.EntryState, tokens: int, inserted_ns: int) -> EntryRecord:
    maker = state.requests.get(told.key) if told.key is not None else None
    return EntryRecord(
        entry=told.entry,
        type=told.type,
        tokens=tokens,
        bytes=told.bytes,
        inserted_ns=inserted_ns,
        key=maker.key if maker else told.key,
        model=intern(told.model) if told.model is not None else None,
        trimmable=told.trimmable,
        made_by=maker.number if maker else None,
        policy=maker.policy if maker else "?",
    )


def _leave(
    state: SessionState, entry: int, how: Literal["evicted", "swallowed"], at_ns: int, key: str | None
) -> EntryRecord | None:
    record = state.cache.stored.pop(entry, None)
    if record is None:
        return None
    goer = state.requests.get(key) if key is not None else None
    record.gone, record.gone_ns, record.gone_by = how, at_ns, goer.key if goer else key
    (state.cache.evicted if how == "evicted" else state.cache.swallowed).append(record)
    return record


def _evicted(state: SessionState, event: ev.EntryEvicted) -> None:
    record = _leave(state, event.entry, "evicted", event.at_ns, event.key)
    if record is None:
        return
    record.rule, record.limit = event.rule, event.limit
    causer = state.requests.get(event.key) if event.key is not None else None
    eviction = EvictionRecord(
        type=record.type,
        policy=record.policy,
        tokens=record.tokens,
        bytes=record.bytes,
        made_by=record.made_by,
        caused_by=state.number_of(event.key),
        rule=event.rule,
        limit=event.limit,
        at_ns=event.at_ns,
    )
    tally.evicted(state, eviction)
    if causer:
        causer.evicted += (eviction,)
        state.dirty[causer.key] = None
    state.memory.marks.append(MemoryMark(at_ns=event.at_ns, kind="eviction"))
    by = f"by #{eviction.caused_by}: " if eviction.caused_by is not None else ""
    limit = f"count limit {event.limit}" if event.rule == "count" else f"byte limit {human_bytes(event.limit)}"
    text = f"✂ evicted {eviction.policy}, {record.tokens} tokens, {human_bytes(record.bytes)}, {by}{limit}"
    mark(state, text, eviction.caused_by)


def _snapshot(state: SessionState, event: ev.CacheSnapshot) -> None:
    """The whole truth at one moment: it replaces what was folded (equal to it when no event was missed)."""
    cache = state.cache
    cache.max_count, cache.max_bytes = event.max_count, event.max_bytes
    before = cache.stored
    cache.stored = {}
    for entry in event.entries:
        record = before.get(entry.entry) or _record(state, entry, entry.tokens, entry.inserted_ns)
        cache.stored[entry.entry] = cache.records[entry.entry] = record
    cache.known = "observer"
