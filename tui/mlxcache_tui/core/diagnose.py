"""Why a request reused what it reused: the reasons of the design, ruled out in their order, each with its evidence.

`> 0 cached tokens` is not a hit: unrelated prompts share the head of the chat template. What two prompts share (k),
what was reused (C) and the prompt's length (P) decide together, with the fate of the entries that held the shared part.
"""

from dataclasses import dataclass

from mlxcache_tui.core.events import LookedUp
from mlxcache_tui.core.state import EntryRecord, Reason, RequestState, SessionState
from mlxcache_tui.core.views import ReasonKind

HEAD_UNKNOWN = 16
"""Tokens taken for the template's head where it was not measured."""
SLACK = 16
"""Tokens by which reuse may fall short of what is shared without being a miss: the last token, a segment's edge."""
CONTEXT = 40
"""Characters of text shown on each side of a first difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two requests' messages first differ: message index, its role, character, and the text from there on."""

    message: int
    role: str
    char: int
    ours: str
    theirs: str


def diagnose_observed(state: SessionState, request: RequestState, lookup: LookedUp) -> Reason:
    """The reason from what the observer saw at the look-up."""
    cached, prompt = lookup.cached_tokens, lookup.tokens.count
    shared = lookup.tokens.shared
    head = _head_tokens(state, request) + 2
    base = state.requests.get(lookup.tokens.base) if lookup.tokens.base is not None else None
    if cached >= prompt / 2 and cached > head:
        return _hit(state, request, lookup, base)
    if state.cache.max_count == 0 and cached <= head:
        return Reason("disabled", "cache size is 0: nothing is stored")
    if base is None or shared <= head:
        return _nothing_like_it(state, request, shared)
    if cached > head and cached >= shared - SLACK:
        difference = first_difference(state, request, base)
        if difference is not None and difference.role in ("system", "prompt"):
            return _diverged(base, shared, difference)
        return _hit(state, request, lookup, base)
    return _lost(state, lookup, base)


def _head_tokens(state: SessionState, request: RequestState) -> int:
    loaded = state.server.loaded
    has_system = bool(request.messages) and request.messages[0][0] == "system"
    measured = (loaded.head_tokens if has_system else loaded.head_tokens_no_system) if loaded else None
    return measured if measured is not None else HEAD_UNKNOWN


def _hit(state: SessionState, request: RequestState, lookup: LookedUp, base: RequestState | None) -> Reason:
    record = state.cache.records.get(lookup.entry) if lookup.entry is not None else None
    maker = state.requests.get(record.key) if record and record.key is not None else base
    source = maker.number if maker else None
    whose = (
        "the warm-up" if source == 0 else (f"#{source}" if source is not None else "an entry made before we watched")
    )
    how = {"exact": "the stored entry itself", "extended": "a stored prefix", "trimmed": "a longer entry cut back"}
    evidence = [f"{lookup.cached_tokens} of {lookup.tokens.count} prompt tokens came from {whose}"]
    if lookup.how in how:
        evidence.append(f"found as {how[lookup.how]}" + (f", {record.tokens} tokens, {record.type}" if record else ""))
    short = lookup.tokens.count - lookup.cached_tokens
    evidence.append(f"{short} tokens were read anew (the last token always is)")
    if maker and (difference := first_difference(state, request, maker)):
        evidence.extend(_difference_lines(maker.number, difference))
    detail = f"hit: {lookup.cached_tokens} tokens of {whose}"
    return Reason("hit", detail, tuple(evidence), from_request=source, shared_tokens=lookup.cached_tokens)


def _nothing_like_it(state: SessionState, request: RequestState, shared: int) -> Reason:
    twin = _earlier_twin(state, request)
    if twin is not None:
        if twin.epoch != request.epoch:
            text = f"#{twin.number} met the server before it was restarted; a restart empties the cache"
            return Reason("restarted", f"restarted since #{twin.number}", (text,), from_request=twin.number)
        difference = first_difference(state, request, twin)
        if difference is not None:
            return _diverged(twin, shared, difference)
    head = f"; the {shared} tokens shared with others are the template's" if shared else ""
    return Reason("first", "first", (f"nothing like it was sent before{head}",), shared_tokens=shared)


def _earlier_twin(state: SessionState, request: RequestState) -> RequestState | None:
    """The latest earlier request with the same first message, else one under the same policy label."""
    first = request.messages[0] if request.messages else None
    labelled = None
    for earlier in reversed(state.requests.values()):
        if earlier is request or earlier.purpose == "readiness" or not earlier.messages:
            continue
        if earlier.composed_ns > request.composed_ns:
            continue
        if earlier.messages[0] == first:
            return earlier
        if labelled is None and earlier.policy == request.policy and request.policy in state.policies:
            labelled = earlier
    return labelled


def _diverged(base: RequestState, shared: int, difference: Difference) -> Reason:
    where = f"message {difference.message} ({difference.role}), character {difference.char}"
    detail = f"differs from #{base.number} at message {difference.message}, char {difference.char}"
    return Reason(
        "diverged",
        detail,
        (
            f"shares {shared} tokens with #{base.number}, then differs at {where}",
            *_difference_lines(base.number, difference),
        ),
        from_request=base.number,
        shared_tokens=shared,
    )


def _difference_lines(number: int, difference: Difference) -> tuple[str, str]:
    return (f"here:  …{difference.ours}", f"#{number}:  …{difference.theirs}")


def _lost(state: SessionState, lookup: LookedUp, base: RequestState) -> Reason:
    """The prompt begins like an earlier one, yet that part was not found: what became of it."""

    def reason(kind: ReasonKind, detail: str, text: str) -> Reason:
        like = f"shares {lookup.tokens.shared} tokens with #{base.number}"
        return Reason(kind, detail, (like, text), from_request=base.number, shared_tokens=lookup.tokens.shared)

    if base.lookup is not None and base.lookup.model != lookup.model:
        text = f"#{base.number} ran on {base.lookup.model}, this one on {lookup.model}"
        return reason("model_changed", f"other model than #{base.number}", text)
    record = _last_fate(state, [state.cache.records[entry] for entry in base.entries if entry in state.cache.records])
    if record is None:
        return reason(*_never_stored(base))
    if record.gone == "evicted":
        return _evicted(state, record, base, lookup.tokens.shared)
    if lookup.path == "sequential":
        text = "served one at a time (seed, draft model, images or kv-bits): no checkpoint is stored or found there"
        return reason("sequential", "sequential path: no checkpoint", text)
    if record.trimmable is False or (state.server.loaded and state.server.loaded.trimmable is False):
        text = f"the entry of #{base.number} is stored, but its layers cannot be cut back to the shared part"
        return reason("not_trimmable", f"#{base.number}'s entry cannot be cut back", text)
    return reason("unknown", "unknown", "its entry is stored, yet it was not used")


def _last_fate(state: SessionState, records: list[EntryRecord]) -> EntryRecord | None:
    """The record that decides: one still stored, else the last to go; a swallowed one leads to its swallower."""
    fates = []
    for record in records:
        seen = record
        while seen.gone == "swallowed" and seen.swallowed_by in state.cache.records:
            seen = state.cache.records[seen.swallowed_by]
        fates.append(seen)
    stored = [record for record in fates if record.gone is None]
    if stored:
        return stored[-1]
    return max(fates, key=lambda record: record.gone_ns or 0, default=None)


def _never_stored(base: RequestState) -> tuple[ReasonKind, str, str]:
    if base.outcome in ("cancelled", "failed", "cut"):
        text = f"#{base.number} was {base.outcome} before its prompt was stored"
        return "cancelled", f"#{base.number} was {base.outcome} before it was stored", text
    if base.stamps.ended is None:
        text = f"#{base.number} was still being computed at the look-up; send one first, then the others"
        return "in_flight", f"#{base.number} was still in flight", text
    return "unknown", "unknown", f"nothing of #{base.number} is known to have been stored"


def _evicted(state: SessionState, record: EntryRecord, base: RequestState, shared: int) -> Reason:
    by = state.number_of(record.gone_by)
    who = f"#{by}" if by is not None else "an unknown request"
    text = (
        f"its entry ({record.tokens} tokens, {record.type}) was thrown out by {who}: {record.rule} limit {record.limit}"
    )
    return Reason(
        "evicted",
        f"evicted by {who} ({record.rule} {record.limit})",
        (f"shares {shared} tokens with #{base.number}", text),
        from_request=base.number,
        shared_tokens=shared,
        evicted_by=by,
        rule=record.rule,
    )


def diagnose_unobserved(state: SessionState, request: RequestState) -> Reason | None:
    """The reason from what a client alone can know; marked inferred. None for a request that failed."""
    if request.outcome not in ("done", "cut") or request.prompt_tokens is None:
        return None if request.outcome != "done" else Reason("not_reported", "no usage reported")
    if request.cached_tokens is None:
        return Reason("not_reported", "cached tokens not reported")
    cached, twin = request.cached_tokens, _earlier_twin(state, request)
    number = twin.number if twin else None
    if cached >= request.prompt_tokens / 2:
        whose = f" of #{number}" if twin and twin.messages[0] == request.messages[0] else ""
        return Reason("hit", f"hit: {cached} tokens{whose}", from_request=number, shared_tokens=cached, inferred=True)
    if twin is None:
        return Reason("first", "first", ("no request like it was sent from here",), inferred=True)
    if twin.messages[0] != request.messages[0]:
        difference = first_difference(state, request, twin)
        if difference:
            lines = _difference_lines(twin.number, difference)
            detail = f"differs from #{twin.number} at message {difference.message}, char {difference.char}"
            return Reason("diverged", detail, lines, from_request=number, inferred=True)
    if twin.epoch != request.epoch:
        return Reason("restarted", f"restarted since #{number}", from_request=number, inferred=True)
    ended = twin.stamps.ended
    if ended is None or (request.stamps.admitted is not None and ended > request.stamps.admitted):
        return Reason("in_flight", f"#{number} was still in flight", from_request=number, inferred=True)
    text = f"begins like #{number}, yet {cached} tokens were reused: start the server through mlxcache-tui to see why"
    return Reason("unknown", "unknown without the observer", (text,), from_request=number)


def first_difference(state: SessionState, request: RequestState, earlier: RequestState) -> Difference | None:
    """Where the messages of two requests first differ; None where one goes on exactly as the other ends."""
    for index, (mine, other) in enumerate(zip(request.messages, earlier.messages, strict=False)):
        if mine == other:
            continue
        ours, theirs = state.message_text(mine[1]), state.message_text(other[1])
        char = common_prefix(ours, theirs)
        start = max(0, char - CONTEXT // 2)
        return Difference(
            message=index,
            role=mine[0],
            char=char,
            ours=" ".join(ours[start : char + CONTEXT].split()),
            theirs=" ".join(theirs[start : char + CONTEXT].split()),
        )
    return None


def common_prefix(a: str, b: str) -> int:
    """How many characters two texts share from the start."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
