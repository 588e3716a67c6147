"""What a server without the observer probably holds: our own requests, put through the rule of its version.

Everything here is inferred (≈). What is taken for granted: that every layer can be cut back (plain KV), that nobody
else sends requests, and the default limit where the flags are not known. Where that is wrong shows in three places:
the counters that the server prints to its log (`counted` keeps both numbers), access lines of requests that are not
ours (`logged`: from then on older entries and the next victim are in doubt), and a request that reuses less than an
entry holds (`missing`: that entry is gone).
"""

import json
import re

from mlxcache_tui.core import tally
from mlxcache_tui.core.cachemodel import CacheModel, Change, Rule, rule_of
from mlxcache_tui.core.estimate import weight
from mlxcache_tui.core.events import CacheCounted, LogLine
from mlxcache_tui.core.inferred import InferredCache, InferredEntry, Missed
from mlxcache_tui.core.log_rows import mark
from mlxcache_tui.core.state import EvictionRecord, Reason, RequestState, SessionState
from mlxcache_tui.core.views import MemoryMark

DEFAULT_COUNT = 10
"""Of `--prompt-cache-size`, and the fixed size before that flag."""
KEPT_COUNTS = 100
"""The server prints its counters for each request: where no log is read they never come."""
KEPT_ENTRIES = 1_000
"""Entries of which it is remembered what became of them."""
MISSED_TOKENS = 32
"""By how much reuse must fall short of half of what an entry holds: estimates are not exact."""
_COMPLETION = re.compile(r'"POST \S*/completions\S* HTTP/[\d.]+" 200 ')
_STARTS = re.compile(r" - Starting httpd at ")
_TEMPLATE_PARAMS = ("model", "chat_template_kwargs", "tools", "adapters", "draft_model")


def sent(state: SessionState, request: RequestState) -> None:
    """A request of ours goes out: the server prints its counters before it looks this one up."""
    state.cache.inferred.others.own += 1
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
    others = state.cache.inferred.others
    refused = request.outcome == "failed" if request.status is None else request.status != 200
    if refused and request.stamps.sent is not None and request.epoch == state.server.epoch:
        others.own = max(0, others.own - 1)  # no line of the log stands for it
    model = _model(state)
    if model is None:
        return
    _drop_missing(state, request, model)
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


def logged(state: SessionState, lines: tuple[LogLine, ...]) -> bool:
    """Lines of the log: completions that are not ours, by their number; whether a server process began in them."""
    others, began = state.cache.inferred.others, False
    for line in lines:
        if line.kind == "access":
            others.posts += _COMPLETION.search(line.text) is not None
        elif line.kind == "record" and _STARTS.search(line.text):
            others.posts, began = 0, True
    if others.posts - others.own > others.count:
        model = state.cache.inferred.model
        if not others.count:
            others.since = max((request.number for request in state.requests.values() if request.ours), default=0)
        others.count = others.posts - others.own
        others.mark = model.inserted if model else 0
    return began


def is_doubtful(inferred: InferredCache, entry: int) -> bool:
    """Whether requests of others may have pushed an entry out."""
    return inferred.others.count > 0 and entry <= inferred.others.mark


def next_out(inferred: InferredCache) -> int | None:
    """The entry that goes next; None where nothing is stored, or where it may be one that others stored."""
    model = inferred.model
    if model is None:
        return None
    ours = len(model.stored) >= model.max_count and not any(is_doubtful(inferred, kept.entry) for kept in model.stored)
    return model.victim() if ours or not inferred.others.count else None


def missing(state: SessionState, request: RequestState) -> tuple[list[InferredEntry], int]:
    """Entries that the rule says were stored when a request was sent, yet it did not reuse them; and what they hold.

    The number is about how many of its tokens the server would have found.
    """
    model, cached, sent_ns = state.cache.inferred.model, request.cached_tokens, request.stamps.sent
    if model is None or cached is None or sent_ns is None or not request.prompt_tokens or _keeps_segments(state):
        return [], 0
    found, most = [], 0
    for kept in model.stored:
        entry = state.cache.inferred.entries[kept.entry]
        maker = state.requests.get(entry.key)
        if maker is None or maker is request or entry.inserted_ns > sent_ns:
            continue
        expected = _expected(state, request, maker)
        if expected >= 2 * cached + MISSED_TOKENS:
            found.append(entry)
            most = max(most, expected)
    return found, most


def _keeps_segments(state: SessionState) -> bool:
    """Whether entries of this model cannot be cut back: the server keeps those of segments beside the whole ones."""
    counted = state.cache.counted
    return counted is not None and any(counted.by_type.get(kind) for kind in ("user", "system"))


def _expected(state: SessionState, request: RequestState, maker: RequestState) -> int:
    """About how many tokens of a request's prompt are whole messages that another one has in front, too."""
    if _head(request) != _head(maker):
        return 0
    same = 0
    for ours, theirs in zip(request.messages, maker.messages, strict=False):
        if ours != theirs:
            break
        same += 1
    texts = [state.message_text(text_id) for _, text_id in request.messages]
    whole = weight(state, texts)
    return int((request.prompt_tokens or 0) * weight(state, texts[:same]) / whole) if whole else 0


def _drop_missing(state: SessionState, request: RequestState, model: CacheModel) -> None:
    """Take out what was found to be gone, and say so."""
    inferred = state.cache.inferred
    gone, expected = missing(state, request)
    inferred.missed = None
    for entry in gone:
        model.stored = [kept for kept in model.stored if kept.entry != entry.entry]
        entry.gone, entry.gone_ns, entry.missed_by = "evicted", state.now_ns, request.number
        inferred.evicted.append(entry)
    if gone:
        last, cached = gone[-1], request.cached_tokens or 0
        inferred.missed = Missed(request.number, cached, expected, last.policy, last.made_by)
        mark(state, f"✂ {missed_text(inferred.missed, others=inferred.others.count)}", request.number)


def missed_text(missed: Missed, *, others: int) -> str:
    """What was found to be gone, in a line."""
    why = "others pushed it out" if others else "somebody else, or a limit, pushed it out"
    reused = f"#{missed.number} reused {missed.cached} of its ≈{missed.expected} tokens"
    return f"≈ {missed.policy} (#{missed.made_by}) is gone: {reused}; {why}"


def reason_of_loss(state: SessionState, earlier: RequestState, request: RequestState) -> Reason | None:
    """The reason `evicted`, if every entry that carried what `earlier` and others sent under its first message was.

    None if some of it was stored when `request` was sent, or if it is not known that any ever was.
    """
    gone, expected = missing(state, request)
    others = state.cache.inferred.others
    if gone and others.count:
        since = f" since #{others.since}" if others.since else ""
        text = f"≈{expected} tokens were stored for #{gone[-1].made_by}; the log tells of {requests_text(others.count)}"
        detail = "evicted by other clients"
        return Reason("evicted", detail, (f"{text} of others{since}",), earlier.number, inferred=True)
    lost = _lost_entry(state, earlier, request)
    model = state.cache.inferred.model
    if lost is None or model is None:
        return None
    if lost.missed_by is not None:
        text = f"the entry of #{lost.made_by} was gone when #{lost.missed_by} was sent"
        return Reason("evicted", f"evicted before #{lost.missed_by}", (text,), earlier.number, inferred=True)
    by, limit = state.number_of(lost.gone_by), model.max_count
    text = f"by this version's rule #{by} pushed the entry of #{lost.made_by} out: count limit {limit}"
    detail = f"evicted by #{by} (count {limit})"
    return Reason("evicted", detail, (text,), earlier.number, evicted_by=by, rule="count", inferred=True)


def requests_text(count: int) -> str:
    """`1 request`, `3 requests`."""
    return f"{count} request{'s' * (count != 1)}"


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
