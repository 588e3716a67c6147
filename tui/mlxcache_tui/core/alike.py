"""Which earlier request one is like: by its first message, else by most of its text wherever that stands, else by its
policy. Found without a walk through all."""

from typing import Any

from mlxcache_tui.core.state import RequestState, SessionState

QUESTION = 1_000
"""Characters of a last message that may be taken for a question: that it was asked before says nothing of the rest."""
ONE_PIECE = 200
"""Characters from which a single piece is more than a sentence that many texts have."""


def add(state: SessionState, request: RequestState) -> None:
    """A request is new. The one that belongs to getting ready is like nothing."""
    if request.purpose == "readiness" or not request.messages:
        return
    request.like = _by_content(state, request)
    state.beginnings.setdefault(request.messages[0], []).append(request.key)
    if request.policy in state.policies:
        state.labelled.setdefault(request.policy, []).append(request.key)


def drop(state: SessionState, request: RequestState) -> None:
    """A request is let go: the oldest, or one that stands just behind those in work."""
    if request.messages:
        _drop(state.beginnings, request.messages[0], request.key)
    _drop(state.labelled, request.policy, request.key)


def _drop(lists: dict[Any, list[str]], name: Any, key: str) -> None:
    keys = lists.get(name, [])
    if key in keys:
        keys.remove(key)
        if not keys:
            del lists[name]


def earlier(state: SessionState, request: RequestState) -> RequestState | None:
    """The latest earlier request with the same first message, else the one with most of its text, else one under the
    same known policy."""
    if not request.messages:
        return None
    return (
        _latest(state, request, state.beginnings.get(request.messages[0], []))
        or with_its_text(state, request)
        or _latest(state, request, state.labelled.get(request.policy, []))
    )


def _latest(state: SessionState, request: RequestState, keys: list[str]) -> RequestState | None:
    for key in reversed(keys):
        known = state.requests[key]
        is_here = known.epoch >= state.server.first_epoch
        if is_here and known is not request and known.composed_ns <= request.composed_ns:
            return known
    return None


def with_its_text(state: SessionState, request: RequestState) -> RequestState | None:
    """The earlier request that had at least half of this one's text, if it is still known."""
    like = state.requests.get(request.like) if request.like is not None else None
    return like if like is not None and like.epoch >= state.server.first_epoch else None


def in_common(state: SessionState, request: RequestState, other: RequestState) -> tuple[int, int]:
    """How many characters of a request's text stand in another one's as well, of how many; see `pieces`."""
    ours = _text_ids(state, request)
    _, size = state.pieces.shared(ours, _text_ids(state, other))
    return size, sum(len(state.message_text(text_id)) for text_id in ours)


def _text_ids(state: SessionState, request: RequestState) -> list[str]:
    """The messages that decide what a request is like: all but the question, unless that carries a document."""
    *texts, last = (text_id for _, text_id in request.messages)
    return [*texts, last] if not texts or len(state.message_text(last)) > QUESTION else texts


def _by_content(state: SessionState, request: RequestState) -> str | None:
    texts = _text_ids(state, request)
    keys = [key for name in texts for key in state.pieces.add(name, state.message_text(name), request.key)]
    best, most = None, 0
    for key in dict.fromkeys(keys):
        other = state.requests.get(key)
        if other is None or other is request:
            continue
        pieces, size = state.pieces.shared(texts, _text_ids(state, other))
        if size > most and (pieces > 1 or size >= ONE_PIECE):
            best, most = key, size
    if best is None:
        return None
    return best if 2 * most >= sum(len(state.message_text(text_id)) for text_id in texts) else None
