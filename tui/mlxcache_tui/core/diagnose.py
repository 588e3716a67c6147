"""Why a request reused what it reused: the reasons of the design, ruled out in their order, each with its evidence.

`> 0 cached tokens` is not a hit: unrelated prompts share the head of the chat template. What two prompts share (k),
what was reused (C) and the prompt's length (P) decide together, with the fate of the entries that held the shared part.
"""

from mlxcache_tui.core import alike
from mlxcache_tui.core.difference import (
    TEMPLATE_ARGUMENTS,
    Difference,
    common_tokens,
    difference_lines,
    first_difference,
    other_parameters,
    prompt_tokens,
)
from mlxcache_tui.core.infer import reason_of_loss
from mlxcache_tui.core.retention import SLACK, Fate, entry_text, what_became
from mlxcache_tui.core.state import EntryRecord, Lookup, Reason, RequestState, SessionState
from mlxcache_tui.core.units import human_duration, human_percent


def diagnose_observed(state: SessionState, request: RequestState, lookup: Lookup) -> Reason:
    """The reason from what the observer saw at the look-up."""
    cached, prompt = lookup.cached_tokens, lookup.tokens.count
    shared = lookup.tokens.shared
    found = is_more_than_head(state, request, cached)
    base = state.requests.get(lookup.tokens.base) if lookup.tokens.base is not None else None
    if cached >= prompt / 2 and found:
        return _hit(state, request, lookup, base)
    if 0 in (state.cache.max_count, state.cache.max_bytes) and not found:
        what = "cache size" if state.cache.max_count == 0 else "the cache's byte limit"
        return Reason("disabled", f"{what} is 0: nothing is stored")
    if base is None or not is_more_than_head(state, request, shared):
        return _nothing_like_it(state, request, lookup)
    is_lost = not found or cached < shared - SLACK
    difference = first_difference(state, request, base)
    in_front = difference is not None and (difference.message == 0 or difference.role == "system")
    if in_front and not (is_lost and shared >= prompt / 2):
        # Had all that is shared been found, it would be little. The very text may have been sent too: to a server
        # that is gone, or with other template arguments.
        before = _nothing_like_it(state, request, lookup)
        if before.kind in ("restarted", "model_changed"):
            return before
        return _diverged(state, request, lookup, base)
    if is_lost:
        return _lost(state, request, lookup, base, shared)
    if _template_cut(state, request, base, shared):
        return _other_arguments(request, base, shared)
    if difference is not None and alike.with_its_text(state, request) is not None:
        return _diverged(state, request, lookup, base)
    return _hit(state, request, lookup, base)


def is_more_than_head(state: SessionState, request: RequestState, tokens: int) -> bool:
    """Whether so many tokens from the start of a request's prompt are more than the template puts in front of any."""
    has_system = bool(request.messages) and request.messages[0][0] == "system"
    return state.server.is_more_than_head(tokens, has_system=has_system)


def _hit(state: SessionState, request: RequestState, lookup: Lookup, base: RequestState | None) -> Reason:
    record = state.cache.records.get(lookup.entry) if lookup.entry is not None else None
    maker = state.requests.get(record.key) if record and record.key is not None else base
    source = maker.number if maker else None
    whose = (
        "the warm-up" if source == 0 else (f"#{source}" if source is not None else "an entry made before we watched")
    )
    how = {"exact": "the stored entry itself", "extended": "a stored prefix", "trimmed": "a longer entry cut back"}
    left = lookup.tokens.count - lookup.cached_tokens
    lost = _lost_of_hit(state, request, lookup, base)
    share = human_percent(lookup.cached_tokens / max(1, lookup.tokens.count))
    evidence = [
        f"{lookup.cached_tokens} of {lookup.tokens.count} prompt tokens ({share}) came from {whose}, {left} read anew"
    ]
    if lookup.how in how:
        evidence.append(f"found as {how[lookup.how]}" + (f": {entry_text(record)}" if record else ""))
    evidence += _shortfall(state, request, lookup, record, lost)
    base = base or maker
    if base is not None:
        evidence += other_parameters(request, base)
        difference = first_difference(state, request, base)
        if difference is not None:
            where = f"message {difference.message} ({difference.role}), character {difference.char}"
            evidence.append(f"differs from #{base.number} at {where}")
            evidence += difference_lines(base.number, difference)
    detail = f"hit: {lookup.cached_tokens} tokens of {whose}"
    reason = Reason("hit", detail, tuple(evidence), from_request=source, shared_tokens=lookup.cached_tokens)
    if lost is not None and lost[0] > SLACK:
        more, fate = lost
        reason.detail += f" · {more} more lost: {fate.of_whom}"
        reason.evicted_by, reason.rule = fate.evicted_by, fate.rule
    return reason


def _lost_of_hit(
    state: SessionState, request: RequestState, lookup: Lookup, base: RequestState | None
) -> tuple[int, Fate] | None:
    """Tokens of a hit that another entry would have given as well, and why it was not there; None where it was."""
    shared = min(lookup.tokens.shared, lookup.tokens.count - 1)  # the last one is always read again
    more = shared - lookup.cached_tokens
    if base is None or more <= 0 or (base.lookup is not None and base.lookup.model != lookup.model):
        return None
    fate = what_became(state, request, base, shared)
    if fate.kind == "unknown" or (fate.kind in ("not_trimmable", "sequential") and more <= SLACK):
        return None  # a segment's edge
    return more, fate


def _shortfall(
    state: SessionState,
    request: RequestState,
    lookup: Lookup,
    record: EntryRecord | None,
    lost: tuple[int, Fate] | None,
) -> tuple[str, ...]:
    """Why a hit is not the whole of what could be expected: what was lost, and what is in the nature of the thing."""
    lines = []
    left = lookup.tokens.count - lookup.cached_tokens
    short = lookup.tokens.shared - lookup.cached_tokens
    maker = state.requests.get(record.key) if record and record.key is not None else None
    if left == 1:
        lines.append("the last token of a prompt is always read again")
    elif lost is not None:
        more, fate = lost
        begin = f"{more} more {'was' if more == 1 else 'were'} shared with #{fate.number}, yet read anew"
        lines.append(f"{begin}: {fate.text}")
    elif short > 0:
        what = "1 more shared token was" if short == 1 else f"{short} more shared tokens were"
        why = "the last token, or the edge of a segment" if short <= SLACK else "why is unknown"
        lines.append(f"{what} read again: {why}")
    if record is not None and maker is not None and lookup.how == "trimmed" and _continues(request, maker):
        unused = record.tokens - lookup.cached_tokens
        loaded = state.server.loaded
        why = "thinking template" if loaded and loaded.has_thinking else "chat template"
        if unused > 0:
            otherwise = f"the prompt writes #{maker.number}'s answer otherwise, {unused} stored tokens are of no use"
            lines.append(f"tail re-read: at most {left} tokens ({why}): {otherwise}")
    return tuple(lines)


def _continues(request: RequestState, earlier: RequestState) -> bool:
    """Whether a request goes on with an earlier one's conversation."""
    count = len(earlier.messages)
    following = request.messages[count : count + 1]
    return request.messages[:count] == earlier.messages and bool(following) and following[0][0] == "assistant"


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
        known = _shared_with(request, twin)
        if known is not None and is_more_than_head(state, request, known):
            return _lost(state, request, lookup, twin, known)  # so long ago that the server's side forgot it
        if twin.lookup is None and twin.outcome is not None:
            detail = f"#{twin.number} was {twin.outcome} before it was stored"
            return Reason(
                "cancelled", detail, ("the server never searched its cache for it",), from_request=twin.number
            )
    elif twin is not None and first_difference(state, request, twin) is not None:
        return _diverged(state, request, lookup, twin)
    head = f"; the {shared} tokens shared with others are the template's" if shared else ""
    return Reason("first", "first", (f"nothing like it was sent {_before(state)}{head}",), shared_tokens=shared)


def _before(state: SessionState) -> str:
    """How far back the session looks: of a long one the oldest requests are let go."""
    return f"in the last {len(state.requests)} requests" if state.let_go else "before"


def _other_model(base: RequestState, lookup: Lookup) -> Reason:
    theirs = base.lookup.model if base.lookup else None
    text = f"#{base.number} ran on {theirs}, this one on {lookup.model}; each has a cache of its own"
    return Reason("model_changed", f"other model than #{base.number}", (text,), from_request=base.number)


def _diverged(state: SessionState, request: RequestState, lookup: Lookup, base: RequestState) -> Reason:
    """It differs from `base`, or from the one that has more of its text, though behind other text."""
    like = alike.with_its_text(state, request)
    if like is not None and alike.in_common(state, request, like) > alike.in_common(state, request, base):
        base = like
    shared = lookup.tokens.shared if base.key == lookup.tokens.base else _shared_with(request, base)
    difference = first_difference(state, request, base)
    if difference is None:
        return _hit(state, request, lookup, base)
    where = f"message {difference.message} ({difference.role}), character {difference.char}"
    tokens = f"shares {shared} tokens with" if shared is not None else "differs from"
    then = f", then differs at token {shared}" if shared is not None else ""
    return Reason(
        "diverged",
        f"differs from #{base.number} at message {difference.message}, char {difference.char}",
        (
            f"{tokens} #{base.number}{then}: {where}",
            *difference_lines(base.number, difference),
            *(_policy_moved(state, request, difference) or _text_moved(state, request, base)),
            *_not_even_that(state, request, lookup, base, shared or 0),
            *other_parameters(request, base),
        ),
        from_request=base.number,
        shared_tokens=shared,
    )


def _shared_with(request: RequestState, other: RequestState) -> int | None:
    """Tokens from the start that two prompts have in common; None where they were not told."""
    ours, theirs = prompt_tokens(request), prompt_tokens(other)
    return common_tokens(ours, theirs) if ours is not None and theirs is not None else None


def _policy_moved(state: SessionState, request: RequestState, difference: Difference) -> tuple[str, ...]:
    """The case that costs most: the policy itself is unchanged, and something in front of it is not."""
    policy = state.policies.get(request.policy, "")
    at = state.message_text(request.messages[difference.message][1]).find(policy) if policy else -1
    if at <= 0 or difference.char >= at:
        return ()
    return (f"the policy {request.policy} stands behind it, unchanged, and is read again; put what changes behind it",)


def _text_moved(state: SessionState, request: RequestState, base: RequestState) -> tuple[str, ...]:
    """The same for text that is no known policy."""
    same, whole = alike.in_common(state, request, base)
    if request.like is None or 2 * same < whole:
        return ()
    text = f"{same} of its {whole} characters stood in #{base.number} too, with other text in front"
    return (f"{text}: they are read again; put what changes behind them",)


def _not_even_that(
    state: SessionState, request: RequestState, lookup: Lookup, base: RequestState, shared: int
) -> tuple[str, ...]:
    """Where not even the little that is shared was found: what became of it."""
    missing = shared - lookup.cached_tokens
    if missing <= SLACK or (base.lookup is not None and base.lookup.model != lookup.model):
        return ()
    fate = what_became(state, request, base, shared)
    return (f"{missing} of the shared tokens were not found either: {fate.text}",) if fate.kind != "unknown" else ()


def _lost(state: SessionState, request: RequestState, lookup: Lookup, base: RequestState, shared: int) -> Reason:
    """The prompt begins like an earlier one, yet that part was not found: what became of it."""
    if base.lookup is not None and base.lookup.model != lookup.model:
        return _other_model(base, lookup)
    fate = what_became(state, request, base, shared)
    return Reason(
        fate.kind,
        fate.detail,
        (f"shares {shared} of {lookup.tokens.count} tokens with #{fate.number}", fate.text),
        from_request=fate.number,
        shared_tokens=shared,
        evicted_by=fate.evicted_by,
        rule=fate.rule,
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
            lines = difference_lines(twin.number, difference)
            detail = f"differs from #{twin.number} at message {difference.message}, char {difference.char}"
            return Reason("diverged", detail, (*lines, *others), from_request=number, inferred=True)
    if twin.epoch != request.epoch:
        return Reason("restarted", f"restarted since #{number}", from_request=number, inferred=True)
    ended = twin.stamps.ended
    if ended is None or (request.stamps.admitted is not None and ended > request.stamps.admitted):
        detail, span = f"#{number} was still in flight", _span(request, twin)
        return Reason("in_flight", detail, span, from_request=number, inferred=True)
    text = f"begins like #{number}, yet {cached} tokens were reused: start the server through mlxcache-tui to see why"
    unknown = Reason("unknown", "unknown without the observer", (text,), from_request=number)
    return reason_of_loss(state, twin, request) or unknown


def _span(request: RequestState, twin: RequestState) -> tuple[str, ...]:
    """How two requests overlapped, as a client sees it."""
    began, admitted, ended = twin.stamps.sent, request.stamps.admitted, twin.stamps.ended
    if began is None or admitted is None:
        return ()
    over = f"ended {human_duration((ended - admitted) / 1e9)} after that" if ended is not None else "had not ended yet"
    text = f"#{twin.number} was sent {human_duration(max(0, admitted - began) / 1e9)} before this one was taken in, and"
    return (f"{text} {over}; send one first, then the others",)
