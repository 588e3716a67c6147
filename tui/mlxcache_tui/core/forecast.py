"""What would happen if a draft were sent now: what the server would find, read anew and throw out, and what traps wait.

A text that was sent before has tokens that are known; new text is estimated by this session's characters per token,
those of plain letters and those of other scripts apart. All figures carry ≈.
"""

from dataclasses import dataclass

from mlxcache_tui.core.cachemodel import next_victim
from mlxcache_tui.core.codec import text_id_of
from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.diagnose import common_prefix
from mlxcache_tui.core.events import EntryType
from mlxcache_tui.core.lens import PromptTexts
from mlxcache_tui.core.state import EntryRecord, RequestState, SessionState
from mlxcache_tui.core.units import human_bytes, human_duration
from mlxcache_tui.core.views import ForecastView

CHARACTERS_PER_TOKEN = 4.0
"""For plain letters of which nothing was sent yet; replaced by what this session measured."""
OTHER_CHARACTERS_PER_TOKEN = 1.0
"""The same for other scripts."""
CANDIDATES = 4
"""Requests whose text is compared with the draft's: comparing long prompts at each key must not be felt."""
DEADLY = frozenset({"0.31.3", "0.32.0", "0.32.1", "0.32.2"})
"""Versions whose worker dies when a prompt equals a stored sequence that cannot be cut back."""


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
    if state.cache.known != "observer" or not (draft.system or draft.user):
        return ForecastView(text="")
    best = max(_matches(state, draft, texts), key=lambda match: (match.reused, match.record.inserted_ns), default=None)
    total = best.total if best else _estimate(state, draft.system + draft.user, texts)
    reused = best.reused if best else 0
    wait = _seconds(state, total - reused)
    took = f", ≈{human_duration(wait)}" if wait is not None else ""
    if best is None or not reused:
        text = f"would read all ≈{total} tokens anew{took}"
    else:
        text = f"would reuse ≈{reused} of ≈{total} ({_maker(best.record)}), read ≈{total - reused}{took}"
    lines = [*_evictions(state, draft, best), *_traps(state, draft, best, total)]
    return ForecastView(text=text, more=tuple(lines))


# --- what would be reused --------------------------------------------------------------------------------------------


def _matches(state: SessionState, draft: Draft, texts: PromptTexts) -> list[Match]:
    found = []
    compared: dict[str, tuple[int, int, bool] | None] = {}
    roles = _roles(draft)
    first = (roles[0], text_id_of(draft.system or draft.user))
    records = [record for record in state.cache.stored.values() if record.key in state.requests]
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
            if 0 < reused <= min(tokens, total) and tokens > _head(state) + 2:
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
        return _by_characters(request, theirs, ours)
    if whole == known.text:
        return len(known.tokens), len(known.tokens), True
    characters = common_prefix(whole, known.text)
    shared = known.whole_tokens(characters)
    tail = _common_end(whole[characters:], known.text[characters:])
    rest = known.whole_tokens(len(known.text)) - known.whole_tokens(len(known.text) - tail)
    middle = _estimate(state, whole[characters : len(whole) - tail], texts)
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


def _by_characters(request: RequestState, theirs: list[str], ours: list[str]) -> tuple[int, int, bool] | None:
    """Where only the number of tokens is known: the request's own characters per token."""
    if not request.prompt_tokens or not "".join(theirs):
        return None
    ratio = len("".join(theirs)) / request.prompt_tokens
    same = 0
    for old, new in zip(theirs, ours, strict=True):
        same += common_prefix(old, new)
        if old != new:
            break
    if theirs == ours:
        return request.prompt_tokens, request.prompt_tokens, True
    return round(same / ratio), max(1, round(len("".join(ours)) / ratio)), False


def _roles(draft: Draft) -> tuple[str, ...]:
    return ("system", "user") if draft.system else ("user",)


def _trimmable(state: SessionState, record: EntryRecord) -> bool:
    loaded = state.server.loaded
    return record.trimmable is not False and not (loaded and loaded.trimmable is False)


def _head(state: SessionState) -> int:
    loaded = state.server.loaded
    return (loaded.head_tokens or 0) if loaded else 0


def _estimate(state: SessionState, text: str, texts: PromptTexts) -> int:
    """Tokens of a text that was not sent before."""
    for request in reversed(state.requests.values()):
        if request.lookup is not None and request.counts:
            texts.of(state, request.key)
            break
    plain, other = texts.characters_per_token()
    foreign = sum(not character.isascii() for character in text) if not text.isascii() else 0
    tokens = (len(text) - foreign) / (plain or _session_ratio(state) or CHARACTERS_PER_TOKEN)
    return round(tokens + foreign / (other or OTHER_CHARACTERS_PER_TOKEN))


def _session_ratio(state: SessionState) -> float | None:
    for request in reversed(state.requests.values()):
        if request.counts and request.prompt_tokens and request.messages:
            return sum(len(state.message_text(text_id)) for _, text_id in request.messages) / request.prompt_tokens
    return None


def _seconds(state: SessionState, tokens: int) -> float | None:
    """Time to read this many tokens at the latest measured prefill speed of this session."""
    speed = state.tally.prefill_tps
    return tokens / speed if speed else None


def _maker(record: EntryRecord) -> str:
    if record.made_by is None:
        return "an entry made before we watched"
    return f"#{record.made_by}" if record.made_by else "the warm-up"


# --- what would go, and what waits -----------------------------------------------------------------------------------


def _evictions(state: SessionState, draft: Draft, best: Match | None) -> list[str]:
    cache = state.cache
    gone = _by_count(state, draft, best)
    rule = f"count {cache.max_count}"
    if not gone and cache.max_bytes is not None and sequential_cause(state, draft) is None:
        gone, rule = _by_bytes(state, best), f"bytes {human_bytes(cache.max_bytes)}"
    if not gone:
        return []
    first = gone[0]
    own = ", the one it reuses" if best and best.reused and first is best.record else ""
    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    who = f"{first.policy} ({_maker(first)}{own})"
    return [f"✂ would evict {who}, {first.tokens} tokens{more}: {rule}"]


def _by_count(state: SessionState, draft: Draft, best: Match | None) -> list[EntryRecord]:
    """The rule played with what the request would store: one entry; each segment, where entries cannot be cut back."""
    cache = state.cache
    if not cache.max_count or (best is not None and best.equal):
        # The same prompt gives the same answer, whose entry takes the old one's place.
        return []
    order: list[tuple[int, EntryType]] = [(record.entry, record.type) for record in cache.stored.values()]
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
        if len(order) > cache.max_count:
            victim = next_victim(order)
            order = [pair for pair in order if pair[0] != victim]
            if victim is not None and victim in cache.stored:
                gone.append(cache.stored[victim])
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
