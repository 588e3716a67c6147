"""What the cache did for each policy, and what was warm before the server was restarted."""

from collections import defaultdict
from typing import Any

from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.figures import PolicyTally
from mlxcache_tui.core.state import EntryRecord, RequestState, SessionState
from mlxcache_tui.core.views import PolicyRow


def policy_rows(state: SessionState) -> tuple[PolicyRow, ...]:
    """A row for each policy that was sent or is stored, those with most bytes first."""
    tallies = {name: tally for name, tally in state.tally.policies.items() if tally.requests}
    stored: dict[str, list[EntryRecord]] = defaultdict(list)
    for record in state.cache.stored.values():
        stored[record.policy].append(record)
    cold = {state.requests[key].policy for key in to_warm(state)}
    rows = [_row(state, name, stored[name], warm_before=name in cold) for name in {**stored, **tallies}]
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.policy)))


def _row(state: SessionState, policy: str, records: list[EntryRecord], *, warm_before: bool) -> PolicyRow:
    tally = state.tally.policies.get(policy) or PolicyTally()
    size = sum(record.bytes for record in records)
    return PolicyRow(
        policy=policy,
        requests=tally.requests,
        reuse_last=tally.last_ratio,
        reuse_session=tally.ratio,
        last_hit_ns=tally.last_hit_ns,
        evicted=tally.evicted,
        entries=len(records),
        bytes=size,
        share=size / state.cache.bytes if state.cache.bytes else None,
        warm_before=warm_before,
    )


def stored_by(state: SessionState) -> list[str]:
    """Keys of the requests that made what is stored, as the observer told it, or else as it is inferred."""
    seen = [record.key for record in state.cache.stored.values() if record.key is not None]
    inferred = state.cache.inferred
    guessed = inferred.model.stored if inferred.model is not None else []
    return seen or [inferred.entries[kept.entry].key for kept in guessed]


def to_warm(state: SessionState) -> tuple[str, ...]:
    """Keys of requests whose system message was stored when the server ended and is not stored now.

    None where it would be of no use: nothing can be sent from here, or this server stores nothing.
    """
    cache = state.cache
    if state.replayed or state.server.watch_only or 0 in (cache.max_count, cache.max_bytes):
        return ()
    makers = (state.requests.get(key) for key in stored_by(state))
    now = {maker.messages[0][1] for maker in makers if maker and maker.messages}
    return tuple(key for text_id, key in cache.warm_before.items() if text_id not in now and key in state.requests)


def warming_drafts(state: SessionState) -> tuple[Draft, ...]:
    """Requests of one output token that read again what was warm before."""
    return tuple(_warming(state, state.requests[key]) for key in to_warm(state))


def _warming(state: SessionState, request: RequestState) -> Draft:
    texts = [(role, state.message_text(text_id)) for role, text_id in request.messages]
    arguments: dict[str, Any] = {
        name: request.params[name] for name in ("chat_template_kwargs", "tools") if name in request.params
    }
    user = next((text for role, text in reversed(texts) if role == "user"), "")
    return Draft(
        user=user or "Hello.",
        policy=request.policy,
        policy_text=texts[0][1],
        max_tokens=1,
        extra=arguments,
        purpose="warm",
        warmup=True,
    )
