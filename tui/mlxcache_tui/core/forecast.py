"""What would happen if a draft were sent now: what the server would find, read anew and throw out, and what traps wait.

Tokens of what was sent before are known; of the rest they are estimated (`estimate`). Without the observer the entries
are those that are inferred, and it says so. All figures carry ≈.
"""

from dataclasses import dataclass

from mlxcache_tui.core import infer
from mlxcache_tui.core.cachemodel import next_victim, rule_of
from mlxcache_tui.core.codec import text_id_of
from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.difference import common_prefix
from mlxcache_tui.core.estimate import difference, estimate, weight
from mlxcache_tui.core.events import EntryType
from mlxcache_tui.core.inferred import InferredEntry
from mlxcache_tui.core.lens import PromptTexts
from mlxcache_tui.core.state import EntryRecord, RequestState, SessionState
from mlxcache_tui.core.units import human_bytes, human_duration
from mlxcache_tui.core.views import ForecastView

CANDIDATES = 4
"""Requests whose text is compared with the draft's: comparing long prompts at each key must not be felt."""
DEADLY = frozenset({"0.31.3", "0.32.0", "0.32.1", "0.32.2"})
"""Versions whose worker dies when a prompt equals a stored sequence that cannot be cut back."""
SHORTEST_S = 0.001
"""A shorter wait is all overhead, of which nothing is known before the first hit."""
_GONE = ("none", "exited", "unreachable")


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that the draft would reuse tokens of; `total`: tokens of the draft's prompt."""

    record: EntryRecord
    reused: int
    total: int
    equal: bool
    """The draft's prompt is the very one of the request that made the entry."""


def forecast(state: SessionState, draft: Draft, texts: PromptTexts) -> ForecastView:
    """What would be reused from which entry, read anew in what time; then what would be evicted, and the traps."""
    if not (draft.system or draft.user):
        return ForecastView(text="")
    stored = _stored(state)
    if (why := _why_unknown(state)) is not None:
        total = _whole(state, draft, texts)
        return ForecastView(
            text=f"unknown: {why}; ≈{total} tokens in all", more=tuple(_traps(state, draft, None, total))
        )
    matches = _matches(state, draft, texts, stored)
    best = max(matches, key=lambda match: (match.reused, match.record.inserted_ns), default=None)
    total = best.total if best else _whole(state, draft, texts)
    reused = best.reused if best else 0
    wait = _seconds(state, total - reused)
    took = f", ≈{human_duration(wait)}" if wait is not None else ""
    if best is None or not reused:
        known = "" if _is_seen(state) else " (inferred)"
        text = f"would read all ≈{total} tokens anew{took}{known}"
    else:
        source = _maker(best.record) + ("" if _is_seen(state) else ", inferred")
        text = f"would reuse ≈{reused} of ≈{total} ({source}), read ≈{total - reused}{took}"
    lines = [*_evictions(state, draft, best, stored), *_traps(state, draft, best, total)]
    return ForecastView(text=text, more=tuple(lines))


def _why_unknown(state: SessionState) -> str | None:
    """Why it is not known what is stored; None where it is, or can be inferred."""
    server, inferred = state.server, state.cache.inferred
    if _is_seen(state):
        return None
    if server.phase in _GONE:
        return "no server answers"
    if server.observed:
        return f"the entries of mlx-lm {server.mlx_lm} cannot be watched"
    if server.software not in (None, "mlx_lm"):
        return f"{server.software} does not say what it holds"
    if inferred.off:
        return "the observer is gone"
    if server.mode == "launched":
        return "the observer has told nothing yet"
    if server.mlx_lm is None:
        return "nothing was answered yet"
    return None if rule_of(server.mlx_lm) else f"the rule of the cache of mlx-lm {server.mlx_lm} is not known"


def _is_seen(state: SessionState) -> bool:
    return state.cache.known == "observer"


def _stored(state: SessionState) -> list[EntryRecord]:
    """What is stored, oldest first; without the observer as it is inferred, sizes unknown (0)."""
    if _is_seen(state):
        return list(state.cache.stored.values())
    inferred = state.cache.inferred
    if inferred.model is None:
        return []
    return [_inferred_record(state, inferred.entries[kept.entry]) for kept in inferred.model.stored]


def _inferred_record(state: SessionState, entry: InferredEntry) -> EntryRecord:
    tokens, maker = entry.tokens, state.requests.get(entry.key)
    if tokens is None and maker is not None:  # of the system message alone: nobody counted it
        tokens = estimate(state, "".join(state.message_text(i) for role, i in maker.messages if role == "system"))
    return EntryRecord(
        entry=entry.entry,
        type=entry.type,
        tokens=tokens or 0,
        bytes=0,
        inserted_ns=entry.inserted_ns,
        key=entry.key,
        model=None,
        trimmable=None,
        made_by=entry.made_by,
        policy=entry.policy,
    )


# --- what would be reused --------------------------------------------------------------------------------------------


def _matches(state: SessionState, draft: Draft, texts: PromptTexts, stored: list[EntryRecord]) -> list[Match]:
    found = []
    compared: dict[str, tuple[int, int, bool] | None] = {}
    roles = _roles(draft)
    first = (roles[0], text_id_of(draft.system or draft.user))
    records = [record for record in stored if record.key in state.requests]
    alike = [record for record in records if state.requests[record.key or ""].messages[:1] == (first,)]
    for record in reversed(alike or records):
        key = record.key or ""
        if key not in compared:
            if len(compared) == CANDIDATES:
                break
            compared[key] = _compare(state, state.requests[key], draft, roles, texts)
        shared = compared[key]
        if shared is not None:
            tokens, total, equal = shared
            reused = min(tokens, record.tokens, total - 1) if _trimmable(state, record) else record.tokens
            more = state.server.is_more_than_head(tokens, has_system=bool(draft.system))
            if more and 0 < reused <= min(tokens, total):
                found.append(Match(record, reused, total, equal))
    return found


def _compare(
    state: SessionState, request: RequestState, draft: Draft, roles: tuple[str, ...], texts: PromptTexts
) -> tuple[int, int, bool] | None:
    """Tokens that the draft shares with a request's prompt, tokens of the draft's, and whether they are equal."""
    if tuple(role for role, _ in request.messages) != roles:
        return None
    known = texts.of(state, request.key)
    theirs = [state.message_text(text_id) for _, text_id in request.messages]
    ours = [draft.system, draft.user] if len(roles) == 2 else [draft.user]
    whole = _in_template(known.text, theirs, ours) if known is not None else None
    if known is None or whole is None:
        return _by_characters(state, request, theirs, ours)
    if whole == known.text:
        return len(known.tokens), len(known.tokens), True
    characters = common_prefix(whole, known.text)
    shared = known.whole_tokens(characters)
    tail = _common_end(whole[characters:], known.text[characters:])
    rest = known.whole_tokens(len(known.text)) - known.whole_tokens(len(known.text) - tail)
    middle = estimate(state, whole[characters : len(whole) - tail])
    return shared, shared + middle + rest, False


def _in_template(prompt: str, theirs: list[str], ours: list[str]) -> str | None:
    """The prompt with the messages' texts exchanged; None where the template did not leave them as they were."""
    pieces, at = [], 0
    for old, new in zip(theirs, ours, strict=True):
        needle, text = (old, new) if old in prompt else (old.strip(), new.strip())
        start = prompt.find(needle, at)
        if start < 0 or not needle:
            return None
        pieces += [prompt[at:start], text]
        at = start + len(needle)
    return "".join([*pieces, prompt[at:]])


def _common_end(a: str, b: str) -> int:
    return common_prefix(a[::-1], b[::-1])


def _by_characters(
    state: SessionState, request: RequestState, theirs: list[str], ours: list[str]
) -> tuple[int, int, bool] | None:
    """Where only the number of tokens is known: divided by the characters of each script."""
    if not request.prompt_tokens or not "".join(theirs):
        return None
    if theirs == ours:
        return request.prompt_tokens, request.prompt_tokens, True
    same = []
    for old, new in zip(theirs, ours, strict=True):
        same.append(new[: common_prefix(old, new)])
        if old != new:
            break
    shared = int(request.prompt_tokens * weight(state, same) / weight(state, theirs))
    return shared, max(shared + 1, request.prompt_tokens + difference(state, ours, theirs)), False


def _whole(state: SessionState, draft: Draft, texts: PromptTexts) -> int:
    """Tokens of the draft's prompt: counted as far as it has the text of one that was sent, else estimated."""
    roles = _roles(draft)
    ours = [draft.system, draft.user] if len(roles) == 2 else [draft.user]
    same = state.beginnings.get((roles[0], text_id_of(ours[0])), [])
    alike = state.labelled.get(draft.policy, []) if draft.policy is not None else []
    for key in (*reversed(same[-CANDIDATES:]), *reversed(alike[-CANDIDATES:])):
        request = state.requests[key]
        compared = _compare(state, request, draft, roles, texts)
        if compared is not None:
            return compared[1]
        if request.prompt_tokens and request.messages:
            theirs = [state.message_text(text_id) for _, text_id in request.messages]
            return max(1, request.prompt_tokens + difference(state, ours, theirs))
    return sum(estimate(state, text) for text in ours)


def _roles(draft: Draft) -> tuple[str, ...]:
    return ("system", "user") if draft.system else ("user",)


def _trimmable(state: SessionState, record: EntryRecord) -> bool:
    loaded = state.server.loaded
    return record.trimmable is not False and not (loaded and loaded.trimmable is False)


def _seconds(state: SessionState, tokens: int) -> float | None:
    """Time to read this many tokens at this session's latest prefill speed, and no less than a hit took; else None."""
    speed, least = state.tally.prefill_tps, state.tally.least_wait_s or 0.0
    wait = max(tokens / speed, least) if speed else 0.0
    return wait if wait >= SHORTEST_S else None


def _maker(record: EntryRecord) -> str:
    if record.made_by is None:
        return "an entry made before we watched"
    return f"#{record.made_by}" if record.made_by else "the warm-up"


# --- what would go, and what waits -----------------------------------------------------------------------------------


def _evictions(state: SessionState, draft: Draft, best: Match | None, stored: list[EntryRecord]) -> list[str]:
    cache = state.cache
    model = None if _is_seen(state) else cache.inferred.model
    limit = model.max_count if model else cache.max_count
    gone = _by_count(state, draft, best, stored, limit)
    rule = f"count {limit}" + (" (inferred)" if model else "")
    if model and cache.inferred.others.count and infer.next_out(cache.inferred) is None:
        same = best is not None and best.equal and not infer.is_doubtful(cache.inferred, best.record.entry)
        full = not same and max(len(stored), cache.counted.count if cache.counted else 0) >= model.max_count
        return [f"✂ would evict the oldest entry, maybe another client's: {rule}"] if full else []
    if not gone and not model and cache.max_bytes is not None and sequential_cause(state, draft) is None:
        gone, rule = _by_bytes(state, best), f"bytes {human_bytes(cache.max_bytes)}"
    if not gone:
        return []
    first = gone[0]
    own = ", the one it reuses" if best and best.reused and first is best.record else ""
    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    who = f"{first.policy} ({_maker(first)}{own})"
    return [f"✂ would evict {who}, {first.tokens} tokens{more}: {rule}"]


def _by_count(
    state: SessionState, draft: Draft, best: Match | None, stored: list[EntryRecord], limit: int | None
) -> list[EntryRecord]:
    """The rule played with what the request would store: one entry; each segment, where entries cannot be cut back."""
    if not limit or (best is not None and best.equal):
        # The same prompt gives the same answer, whose entry takes the old one's place.
        return []
    order: list[tuple[int, EntryType]] = [(record.entry, record.type) for record in stored]
    kinds: list[EntryType] = ["assistant"]
    if state.server.loaded and state.server.loaded.trimmable is False and sequential_cause(state, draft) is None:
        kinds = (
            ["user", "assistant"] if draft.system == "" or (best and best.reused) else ["system", "user", "assistant"]
        )
    elif best is not None and best.reused == best.record.tokens:
        order.remove((best.record.entry, best.record.type))  # swallowed by what is stored
    gone = []
    for number, kind in enumerate(kinds, 1):
        order.append((-number, kind))
        if len(order) > limit:
            victim = next_victim(order)
            order = [pair for pair in order if pair[0] != victim]
            gone += [record for record in stored if record.entry == victim]
    return gone


def _by_bytes(state: SessionState, best: Match | None) -> list[EntryRecord]:
    """What goes when the request joins the batch: the limit counts the copy that it takes of what it reuses."""
    cache = state.cache
    copy = best.reused * best.record.bytes // max(1, best.record.tokens) if best else 0
    left = [(record.entry, record.type) for record in cache.stored.values()]
    stored, gone = cache.bytes, []
    while left and stored + copy > (cache.max_bytes or 0):
        victim = next_victim(left)
        left = [pair for pair in left if pair[0] != victim]
        record = cache.stored[victim or 0]
        stored -= record.bytes
        gone.append(record)
    return gone


def sequential_cause(state: SessionState, draft: Draft) -> str | None:
    """Why the request would be served one at a time, without checkpoints; None: it would not."""
    flags, loaded = state.server.flags, state.server.loaded
    if draft.extra.get("seed") is not None:
        return "seed"
    if flags.get("draft_model"):
        return "draft model"
    if flags.get("kv_bits"):
        return "kv-bits"
    return "this model" if loaded and loaded.batchable is False else None


def _traps(state: SessionState, draft: Draft, best: Match | None, total: int) -> list[str]:
    cache, traps = state.cache, []
    if best is not None and not _is_seen(state) and infer.is_doubtful(cache.inferred, best.record.entry):
        traps.append(f"! others may have pushed {_maker(best.record)} out since")
    sizes = [record.bytes / record.tokens for record in cache.stored.values() if record.tokens]
    if sizes and cache.max_bytes is not None and sizes[-1] * (total + draft.max_tokens) > cache.max_bytes:
        size = human_bytes(sizes[-1] * (total + draft.max_tokens))
        traps.append(f"! its entry alone, ≈{size}, is over the limit of {human_bytes(cache.max_bytes)}")
    if (cause := sequential_cause(state, draft)) is not None:
        limit = ", the byte limit does not apply" if cache.max_bytes is not None else ""
        traps.append(f"! sequential path ({cause}): no checkpoints{limit}")
    if best and best.equal and _deadly(state, best.total):
        traps.append(f"! equal to a stored sequence: kills the worker of mlx-lm {state.server.mlx_lm}")
    traps += _running(state, draft, best)
    if draft.before and draft.policy_text:
        traps.append("! text before the policy: a change in it re-reads all behind it")
    return traps


def _running(state: SessionState, draft: Draft, best: Match | None) -> list[str]:
    """What is still being computed is not in the cache: neither found there now, nor counted above."""
    running = [request for request in state.open.values() if request.number]
    first = text_id_of(draft.system or draft.user)
    alike = next((r for r in running if r.messages and r.messages[0][1] == first), None)
    if alike is not None and best is None:
        return [f"! #{alike.number} has not stored this text yet: wait, or read it twice"]
    if running:
        one = len(running) == 1
        which = f"#{running[0].number} still runs: what it" if one else f"{len(running)} requests still run: what they"
        return [f"! {which} will store is not counted"]
    return []


def _deadly(state: SessionState, tokens: int) -> bool:
    if state.server.mlx_lm not in DEADLY:
        return False
    return any(not _trimmable(state, record) and record.tokens == tokens for record in state.cache.stored.values())
