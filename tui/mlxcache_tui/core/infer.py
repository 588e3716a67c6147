"""What a server without the observer probably holds: our own requests, put through the rule of its version.

Everything here is inferred (≈). What is taken for granted: that every layer can be cut back (plain KV), that nobody
else sends requests, and the default limit where the flags are not known. The counters that the server prints to its
log show where that is wrong: `counted` keeps both numbers.
"""

import json

from mlxcache_tui.core import tally
from mlxcache_tui.core.cachemodel import CacheModel, Change, Rule, rule_of
from mlxcache_tui.core.events import CacheCounted
from mlxcache_tui.core.log_rows import mark
from mlxcache_tui.core.state import EvictionRecord, InferredCache, InferredEntry, Reason, RequestState, SessionState
from mlxcache_tui.core.views import MemoryMark

DEFAULT_COUNT = 10
"""Of `--prompt-cache-size`, and the fixed size before that flag."""
KEPT_COUNTS = 100
"""The server prints its counters for each request: where no log is read they never come."""
KEPT_ENTRIES = 1_000
"""Entries of which it is remembered what became of them."""
_TEMPLATE_PARAMS = ("model", "chat_template_kwargs", "tools", "adapters", "draft_model")


def sent(state: SessionState, request: RequestState) -> None:
    """A request of ours goes out: the server prints its counters before it looks this one up."""
    model = _model(state)
    if model is not None:
        counts = state.cache.inferred.counts
        counts.append(len(model.stored))
        del counts[:-KEPT_COUNTS]
        _note(state, request, model.take(_prompt(state, request)))


def prompt_read(state: SessionState, request: RequestState, *, reasons: bool) -> None:
    """The first token is there: the checkpoints of the prompt were stored (not on the sequential path)."""
    model = _model(state)
    if model is None or not _is_batched(request) or not request.messages or request.messages[-1][0] != "user":
        return
    prompt = _prompt(state, request)
    if model.rule == "two queues":
        _note(state, request, model.insert("user", prompt))
    elif model.rule == "three queues":
        system = _system(request)
        # A checkpoint that was found is not made again.
        if system and not any(kept.sequence[: len(system)] == system for kept in model.stored):
            _note(state, request, model.insert("system", system))
        if reasons:
            _note(state, request, model.insert("user", prompt))


def ended(state: SessionState, request: RequestState) -> None:
    """A request of ours is over: its whole conversation is stored, if this version does so for this outcome."""
    model = _model(state)
    if model is None:
        return
    cut_short = request.outcome in ("cancelled", "cut") and request.stamps.first_token is not None
    if request.outcome == "done" or (cut_short and _keeps_what_was_cut(model.rule, request)):
        answer = request.reasoning + request.answer + request.tools
        _note(state, request, model.insert("assistant", _prompt(state, request) + answer))


def counted(state: SessionState, event: CacheCounted) -> None:
    """The server's own counters: the state before one of the requests sent since the last time.

    The log may be read some requests late: of those that it tells of in order the later ones are still to come.
    """
    inferred = state.cache.inferred
    if inferred.model is None:
        return
    now, counts = len(inferred.model.stored), inferred.counts
    before = counts[-1] if counts else now
    inferred.disagreement = None if event.count in (now, *counts) else (before, event.count)
    del counts[: counts.index(event.count) if event.count in counts else -1]


def reason_of_loss(state: SessionState, earlier: RequestState, request: RequestState) -> Reason | None:
    """The reason `evicted`, if every entry that carried what `earlier` and others sent under its first message was.

    None if some of it was stored when `request` was sent, or if it is not known that any ever was.
    """
    lost = _lost_entry(state, earlier, request)
    model = state.cache.inferred.model
    if lost is None or model is None:
        return None
    by, limit = state.number_of(lost.gone_by), model.max_count
    text = f"by this version's rule #{by} pushed the entry of #{lost.made_by} out: count limit {limit}"
    detail = f"evicted by #{by} (count {limit})"
    return Reason("evicted", detail, (text,), earlier.number, evicted_by=by, rule="count", inferred=True)


def _lost_entry(state: SessionState, earlier: RequestState, request: RequestState) -> InferredEntry | None:
    first, gone = earlier.messages[:1], None
    for entry in state.cache.inferred.entries.values():
        maker = state.requests.get(entry.key)
        if maker is None or maker is request or maker.messages[:1] != first:
            continue
        if entry.gone is None or entry.gone_by == request.key:
            return None
        if entry.gone == "evicted":
            gone = entry
    return gone


def _model(state: SessionState) -> CacheModel | None:
    """The model of this server process; None where the entries are known or may still be, or the rule is not."""
    cache, server = state.cache, state.server
    if cache.inferred.off or server.software not in (None, "mlx_lm"):
        return None
    if server.mode != "attached" and not server.observed:
        return None  # a server of ours before its observer has said what it knows
    rule = rule_of(server.mlx_lm)
    if rule is None:
        return None
    if cache.inferred.model is None:
        limit = cache.max_count if cache.max_count is not None and rule != "one queue" else DEFAULT_COUNT
        cache.inferred.model = CacheModel(rule, limit)
    return cache.inferred.model


def _is_batched(request: RequestState) -> bool:
    return request.params.get("seed") is None


def _keeps_what_was_cut(rule: Rule, request: RequestState) -> bool:
    """The sequential path stores what it has when a client leaves; so does the batched one of 0.31.0 and 0.31.1."""
    return rule == "two queues" or not _is_batched(request)


def _head(request: RequestState) -> str:
    """What else than the messages decides what the prompt begins with."""
    params = {name: request.params[name] for name in _TEMPLATE_PARAMS if request.params.get(name) is not None}
    return f"{json.dumps(params, sort_keys=True, default=str)}\n"


def _prompt(state: SessionState, request: RequestState) -> str:
    """A text that begins like another's where the prompts' tokens do; an answer goes on behind it letter by letter."""
    if request.messages and request.messages[0][0] == "prompt":
        return _head(request) + state.message_text(request.messages[0][1])
    parts = [
        f"<assistant>{state.message_text(text_id)}" if role == "assistant" else f"<{role} {text_id}>"
        for role, text_id in request.messages
    ]
    return _head(request) + "".join(parts) + "<assistant>"


def _system(request: RequestState) -> str:
    """The start of the prompt that is the system messages; empty if there is none."""
    parts = []
    for role, text_id in request.messages:
        if role != "system":
            break
        parts.append(f"<{role} {text_id}>")
    return _head(request) + "".join(parts) if parts else ""


def _note(state: SessionState, request: RequestState, changes: list[Change]) -> None:
    """Keep what became of which entry, and tell an eviction as one that was seen is told."""
    inferred = state.cache.inferred
    for change in changes:
        kept = change.kept
        if change.what == "inserted":
            tokens = None if kept.type == "system" else request.prompt_tokens
            if tokens is not None and kept.type == "assistant":
                tokens += request.output_tokens or 0
            inferred.entries[kept.entry] = InferredEntry(
                entry=kept.entry,
                type=kept.type,
                tokens=tokens,
                key=request.key,
                made_by=request.number,
                policy=request.policy,
                inserted_ns=state.now_ns,
            )
            _bound(inferred)
            continue
        entry = inferred.entries[kept.entry]
        if change.what == "swallowed":
            entry.gone = "swallowed"
        elif change.what == "evicted":
            entry.gone = "evicted"
            _tell_eviction(state, request, entry)
        else:
            # Stored anew under another number, or taken out to be stored longer.
            del inferred.entries[kept.entry]
        entry.gone_by, entry.gone_ns = request.key, state.now_ns


def _bound(inferred: InferredCache) -> None:
    if len(inferred.entries) > KEPT_ENTRIES:
        oldest = next((number for number, entry in inferred.entries.items() if entry.gone is not None), None)
        if oldest is not None:
            del inferred.entries[oldest]


def _tell_eviction(state: SessionState, request: RequestState, entry: InferredEntry) -> None:
    inferred = state.cache.inferred
    limit = inferred.model.max_count if inferred.model else DEFAULT_COUNT
    eviction = EvictionRecord(
        type=entry.type,
        policy=entry.policy,
        tokens=entry.tokens,
        bytes=None,
        made_by=entry.made_by,
        caused_by=request.number,
        rule="count",
        limit=limit,
        at_ns=state.now_ns,
        inferred=True,
    )
    tally.evicted(state, eviction)
    inferred.evicted.append(entry)
    request.evicted += (eviction,)
    state.dirty[request.key] = None
    state.memory.marks.append(MemoryMark(at_ns=state.now_ns, kind="eviction"))
    mark(state, f"✂ ≈ evicted {eviction.policy}, by #{request.number}: count limit {limit} (inferred)", request.number)
