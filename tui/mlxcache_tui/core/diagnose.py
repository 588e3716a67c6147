"""Why a request reused what it reused: the reasons of the design, ruled out in their order, each with its evidence.

`> 0 cached tokens` is not a hit: unrelated prompts share the head of the chat template. What two prompts share (k),
what was reused (C) and the prompt's length (P) decide together, with the fate of the entries that held the shared part.
"""

from dataclasses import dataclass

from mlxcache_tui.core import alike
from mlxcache_tui.core.infer import reason_of_loss
from mlxcache_tui.core.state import EntryRecord, Lookup, Reason, RequestState, SessionState
from mlxcache_tui.core.units import human_bytes, human_duration
from mlxcache_tui.core.views import ReasonKind

HEAD_UNKNOWN = 16
"""Tokens taken for the template's head where it was not measured."""
SLACK = 16
"""Tokens by which reuse may fall short of what is shared without being a miss: the last token, a segment's edge."""
HERE = "▸"
"""Stands where two texts begin to differ."""
CONTEXT = 40
"""Characters of text shown on each side of a first difference."""
TEMPLATE_ARGUMENTS = ("chat_template_kwargs", "tools", "add_generation_prompt")
"""Parameters that change what the chat template makes of the same messages."""
SHOWN_PARAMETERS = ("model", "seed", *TEMPLATE_ARGUMENTS)
"""Parameters that may explain a difference, so that the evidence names them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two requests' messages first differ: message index, its role, character, and both texts around it."""

    message: int
    role: str
    char: int
    ours: str
    theirs: str


def diagnose_observed(state: SessionState, request: RequestState, lookup: Lookup) -> Reason:
    """The reason from what the observer saw at the look-up."""
    cached, prompt = lookup.cached_tokens, lookup.tokens.count
    shared = lookup.tokens.shared
    head = _head_tokens(state, request) + 2
    base = state.requests.get(lookup.tokens.base) if lookup.tokens.base is not None else None
    if cached >= prompt / 2 and cached > head:
        return _hit(state, request, lookup, base)
    if 0 in (state.cache.max_count, state.cache.max_bytes) and cached <= head:
        what = "cache size" if state.cache.max_count == 0 else "the cache's byte limit"
        return Reason("disabled", f"{what} is 0: nothing is stored")
    if base is None or shared <= head:
        return _nothing_like_it(state, request, lookup)
    if cached <= head or cached < shared - SLACK:
        return _lost(state, lookup, base)
    difference = first_difference(state, request, base)
    if difference is not None and difference.role in ("system", "prompt"):
        # The very text may have been sent too: to a server that is gone, or with other template arguments.
        before = _nothing_like_it(state, request, lookup)
        if before.kind in ("restarted", "model_changed"):
            return before
        return _diverged(state, request, base, shared, difference)
    if _template_cut(state, request, base, shared):
        return _other_arguments(request, base, shared)
    return _hit(state, request, lookup, base)


def _head_tokens(state: SessionState, request: RequestState) -> int:
    loaded = state.server.loaded
    has_system = bool(request.messages) and request.messages[0][0] == "system"
    measured = (loaded.head_tokens if has_system else loaded.head_tokens_no_system) if loaded else None
    return measured if measured is not None else HEAD_UNKNOWN


def _hit(state: SessionState, request: RequestState, lookup: Lookup, base: RequestState | None) -> Reason:
    record = state.cache.records.get(lookup.entry) if lookup.entry is not None else None
    maker = state.requests.get(record.key) if record and record.key is not None else base
    source = maker.number if maker else None
    whose = (
        "the warm-up" if source == 0 else (f"#{source}" if source is not None else "an entry made before we watched")
    )
    how = {"exact": "the stored entry itself", "extended": "a stored prefix", "trimmed": "a longer entry cut back"}
    left = lookup.tokens.count - lookup.cached_tokens
    share = round(100 * lookup.cached_tokens / max(1, lookup.tokens.count))
    evidence = [
        f"{lookup.cached_tokens} of {lookup.tokens.count} prompt tokens ({share} %) came from {whose}, {left} read anew"
    ]
    if lookup.how in how:
        evidence.append(f"found as {how[lookup.how]}" + (f": {_entry(record)}" if record else ""))
    evidence += _shortfall(state, request, lookup, record)
    base = base or maker
    if base is not None:
        evidence += other_parameters(request, base)
        difference = first_difference(state, request, base)
        if difference is not None:
            where = f"message {difference.message} ({difference.role}), character {difference.char}"
            evidence.append(f"differs from #{base.number} at {where}")
            evidence += _difference_lines(base.number, difference)
    detail = f"hit: {lookup.cached_tokens} tokens of {whose}"
    return Reason("hit", detail, tuple(evidence), from_request=source, shared_tokens=lookup.cached_tokens)


def _entry(record: EntryRecord) -> str:
    return f"{record.tokens} tokens, {record.type}, {human_bytes(record.bytes)}"


def _shortfall(
    state: SessionState, request: RequestState, lookup: Lookup, record: EntryRecord | None
) -> tuple[str, ...]:
    """Why a hit is not the whole of what could be expected. Not a miss: it is in the nature of the thing."""
    lines = []
    left = lookup.tokens.count - lookup.cached_tokens
    short = lookup.tokens.shared - lookup.cached_tokens
    maker = state.requests.get(record.key) if record and record.key is not None else None
    if left == 1:
        lines.append("the last token of a prompt is always read again")
    elif 0 < short <= SLACK:
        what = "1 more shared token was" if short == 1 else f"{short} more shared tokens were"
        lines.append(f"{what} read again: the last token, or the edge of a segment")
    if record is not None and maker is not None and lookup.how == "trimmed" and _continues(request, maker):
        tail = record.tokens - lookup.cached_tokens
        loaded = state.server.loaded
        why = "thinking template" if loaded and loaded.has_thinking else "chat template"
        if tail > 0:
            lines.append(f"tail re-read: {tail} tokens ({why}): the prompt writes #{maker.number}'s answer otherwise")
    return tuple(lines)


def _continues(request: RequestState, earlier: RequestState) -> bool:
    """Whether a request goes on with an earlier one's conversation."""
    count = len(earlier.messages)
    following = request.messages[count : count + 1]
    return request.messages[:count] == earlier.messages and bool(following) and following[0][0] == "assistant"


def other_parameters(request: RequestState, base: RequestState) -> tuple[str, ...]:
    """What two requests were sent with that differs, a line each."""
    pairs = ((name, request.params.get(name), base.params.get(name)) for name in SHOWN_PARAMETERS)
    return tuple(
        f"{name}: {_shown(ours)} here, {_shown(theirs)} in #{base.number}"
        for name, ours, theirs in pairs
        if ours != theirs
    )


def _shown(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= CONTEXT else text[: CONTEXT - 1] + "…"


def _other_arguments(request: RequestState, base: RequestState, shared: int) -> Reason:
    evidence = (f"the same text as #{base.number} in front, yet only {shared} tokens of the prompt are shared:",)
    return Reason(
        "model_changed",
        f"other template arguments than #{base.number}",
        (*evidence, *other_parameters(request, base)),
        from_request=base.number,
        shared_tokens=shared,
    )


def _template_cut(state: SessionState, request: RequestState, base: RequestState, shared: int) -> bool:
    """Whether other template arguments end what is shared before the end of the first message, which is the same."""
    if all(request.params.get(name) == base.params.get(name) for name in TEMPLATE_ARGUMENTS):
        return False
    if not request.prompt_tokens or request.messages[:1] != base.messages[:1]:
        return False
    sizes = [len(state.message_text(text_id)) for _, text_id in request.messages]
    return shared < request.prompt_tokens * sizes[0] / max(1, sum(sizes)) / 2


def _nothing_like_it(state: SessionState, request: RequestState, lookup: Lookup) -> Reason:
    """The server has no prompt with more than the template in common: is there a request that should have been one?"""
    shared = lookup.tokens.shared
    twin = alike.earlier(state, request)
    if twin is not None and twin.messages[0] == request.messages[0]:
        if twin.epoch != request.epoch:
            text = f"#{twin.number} met the server before it was restarted; a restart empties the cache"
            return Reason("restarted", f"restarted since #{twin.number}", (text,), from_request=twin.number)
        if twin.lookup is not None and twin.lookup.model != lookup.model:
            return _other_model(twin, lookup)
        if _template_cut(state, request, twin, shared):
            return _other_arguments(request, twin, shared)
        if twin.lookup is None and twin.outcome is not None:
            detail = f"#{twin.number} was {twin.outcome} before it was stored"
            return Reason(
                "cancelled", detail, ("the server never searched its cache for it",), from_request=twin.number
            )
    elif twin is not None and (difference := first_difference(state, request, twin)) is not None:
        return _diverged(state, request, twin, shared, difference)
    head = f"; the {shared} tokens shared with others are the template's" if shared else ""
    return Reason("first", "first", (f"nothing like it was sent {_before(state)}{head}",), shared_tokens=shared)


def _before(state: SessionState) -> str:
    """How far back the session looks: of a long one the oldest requests are let go."""
    return f"in the last {len(state.requests)} requests" if state.let_go else "before"


def _other_model(base: RequestState, lookup: Lookup) -> Reason:
    theirs = base.lookup.model if base.lookup else None
    text = f"#{base.number} ran on {theirs}, this one on {lookup.model}; each has a cache of its own"
    return Reason("model_changed", f"other model than #{base.number}", (text,), from_request=base.number)


def _diverged(
    state: SessionState, request: RequestState, base: RequestState, shared: int, difference: Difference
) -> Reason:
    where = f"message {difference.message} ({difference.role}), character {difference.char}"
    detail = f"differs from #{base.number} at message {difference.message}, char {difference.char}"
    return Reason(
        "diverged",
        detail,
        (
            f"shares {shared} tokens with #{base.number}, then differs at token {shared}: {where}",
            *_difference_lines(base.number, difference),
            *_policy_moved(state, request, difference),
            *other_parameters(request, base),
        ),
        from_request=base.number,
        shared_tokens=shared,
    )


def _policy_moved(state: SessionState, request: RequestState, difference: Difference) -> tuple[str, ...]:
    """The case that costs most: the policy itself is unchanged, and something in front of it is not."""
    policy = state.policies.get(request.policy, "")
    at = state.message_text(request.messages[difference.message][1]).find(policy) if policy else -1
    if at <= 0 or difference.char >= at:
        return ()
    return (f"the policy {request.policy} stands behind it, unchanged, and is read again; put what changes behind it",)


def _difference_lines(number: int, difference: Difference) -> tuple[str, str]:
    there = f"#{number}:"
    width = max(len("here:"), len(there)) + 1
    return (f"{'here:':<{width}}{difference.ours}", f"{there:<{width}}{difference.theirs}")


def _lost(state: SessionState, lookup: Lookup, base: RequestState) -> Reason:
    """The prompt begins like an earlier one, yet that part was not found: what became of it."""
    if base.lookup is not None and base.lookup.model != lookup.model:
        return _other_model(base, lookup)
    base = _one_that_was_stored(state, base)
    like = f"shares {lookup.tokens.shared} of {lookup.tokens.count} tokens with #{base.number}"

    def reason(kind: ReasonKind, detail: str, text: str) -> Reason:
        return Reason(kind, detail, (like, text), from_request=base.number, shared_tokens=lookup.tokens.shared)

    record = _last_fate(state, base)
    if record is None:
        return reason(*_never_stored(base, lookup))
    if record.gone == "evicted":
        return _evicted(state, record, base, lookup, like)
    sequential = next((r for r in (lookup, base.lookup) if r is not None and r.path == "sequential"), None)
    if sequential is not None and not _can_be_cut(state, record):
        whose = "this one" if sequential is lookup else f"#{base.number}"
        text = f"{whose} was served one at a time (seed, draft model, images or kv-bits): no checkpoints are kept there"
        return reason("sequential", "sequential path: no checkpoint", text)
    if not _can_be_cut(state, record):
        text = f"its entry ({_entry(record)}) is stored, but its layers cannot be cut back to the shared part"
        return reason("not_trimmable", f"#{base.number}'s entry cannot be cut back", text)
    return reason("unknown", "unknown", f"its entry ({_entry(record)}) is stored, yet it was not used")


def _can_be_cut(state: SessionState, record: EntryRecord) -> bool:
    loaded = state.server.loaded
    return record.trimmable is not False and not (loaded is not None and loaded.trimmable is False)


def _one_that_was_stored(state: SessionState, base: RequestState) -> RequestState:
    """Of requests with the same text in front the latest is told; if that was cut short, the one before it decides."""
    seen = base
    while seen.outcome in ("cancelled", "failed", "cut") and not seen.entries and seen.lookup is not None:
        run = seen.lookup.tokens
        earlier = state.requests.get(run.base) if run.base is not None else None
        if earlier is None or run.shared < (base.lookup.tokens.count if base.lookup else 0) - SLACK:
            break
        seen = earlier
    return seen if seen.entries else base


def _last_fate(state: SessionState, base: RequestState) -> EntryRecord | None:
    """The entry that decides: one still stored, else the last to go; a swallowed one leads to its swallower."""
    records = [state.cache.records[entry] for entry in base.entries if entry in state.cache.records]
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


def _never_stored(base: RequestState, lookup: Lookup) -> tuple[ReasonKind, str, str]:
    if base.outcome in ("cancelled", "failed", "cut"):
        text = f"#{base.number} was {base.outcome} before its prompt was stored"
        return "cancelled", f"#{base.number} was {base.outcome} before it was stored", text
    if base.stamps.ended is None or base.stamps.ended > lookup.at_ns:
        text = f"#{base.number} was still being computed at the look-up; send one first, then the others"
        return "in_flight", f"#{base.number} was still in flight", text
    return "unknown", "unknown", f"nothing of #{base.number} is known to have been stored"


def _evicted(state: SessionState, record: EntryRecord, base: RequestState, lookup: Lookup, like: str) -> Reason:
    by = state.number_of(record.gone_by)
    who = f"#{by}" if by is not None else "an unknown request"
    limit = human_bytes(record.limit) if record.rule == "bytes" else record.limit
    ago = f", {human_duration((lookup.at_ns - record.gone_ns) / 1e9)} before" if record.gone_ns is not None else ""
    queue = f"the oldest {record.type} entry goes first, used or not"
    text = f"its entry ({_entry(record)}) was thrown out by {who}{ago}: {record.rule} limit {limit}; {queue}"
    return Reason(
        "evicted",
        f"evicted by {who} ({record.rule} {limit})",
        (like, text),
        from_request=base.number,
        shared_tokens=lookup.tokens.shared,
        evicted_by=by,
        rule=record.rule,
    )


def diagnose_unobserved(state: SessionState, request: RequestState) -> Reason | None:
    """The reason from what a client alone can know; marked inferred. None for a request that failed."""
    if request.outcome not in ("done", "cut") or request.prompt_tokens is None:
        return None if request.outcome != "done" else Reason("not_reported", "no usage reported")
    if request.cached_tokens is None:
        return Reason("not_reported", "cached tokens not reported")
    cached, twin = request.cached_tokens, alike.earlier(state, request)
    number = twin.number if twin else None
    if cached >= request.prompt_tokens / 2:
        whose = f" of #{number}" if twin and twin.messages[0] == request.messages[0] else ""
        return Reason("hit", f"hit: {cached} tokens{whose}", from_request=number, shared_tokens=cached, inferred=True)
    if twin is None:
        return Reason("first", "first", (f"no request like it was sent from here {_before(state)}",), inferred=True)
    if (others := other_parameters(request, twin)) and request.params.get("model") != twin.params.get("model"):
        return Reason("model_changed", f"other model than #{number}", others, from_request=number, inferred=True)
    if twin.messages[0] != request.messages[0]:
        difference = first_difference(state, request, twin)
        if difference:
            lines = _difference_lines(twin.number, difference)
            detail = f"differs from #{twin.number} at message {difference.message}, char {difference.char}"
            return Reason("diverged", detail, (*lines, *others), from_request=number, inferred=True)
    if twin.epoch != request.epoch:
        return Reason("restarted", f"restarted since #{number}", from_request=number, inferred=True)
    ended = twin.stamps.ended
    if ended is None or (request.stamps.admitted is not None and ended > request.stamps.admitted):
        return Reason("in_flight", f"#{number} was still in flight", from_request=number, inferred=True)
    text = f"begins like #{number}, yet {cached} tokens were reused: start the server through mlxcache-tui to see why"
    unknown = Reason("unknown", "unknown without the observer", (text,), from_request=number)
    return reason_of_loss(state, twin, request) or unknown


def first_difference(state: SessionState, request: RequestState, earlier: RequestState) -> Difference | None:
    """Where the messages of two requests first differ; None where one goes on exactly as the other ends."""
    for index, (mine, other) in enumerate(zip(request.messages, earlier.messages, strict=False)):
        if mine == other:
            continue
        ours, theirs = state.message_text(mine[1]), state.message_text(other[1])
        char = common_prefix(ours, theirs)
        return Difference(
            message=index,
            role=mine[0],
            char=char,
            ours=_around(ours, char),
            theirs=_around(theirs, char),
        )
    return None


def _around(text: str, char: int) -> str:
    """A piece of one line, with a sign where it begins to differ."""
    start, end = max(0, char - CONTEXT // 2), char + CONTEXT
    before, after = (" ".join(part.split()) for part in (f"{text[start:char]}|", f"|{text[char:end]}"))
    return f"{'…' * (start > 0)}{before[:-1]}{HERE}{after[1:] or 'the end'}{'…' * (end < len(text))}"


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
