"""Which earlier request one is like: by its first message, else by its policy. Found without a walk through all."""

from typing import Any

from mlxcache_tui.core.state import RequestState, SessionState


def add(state: SessionState, request: RequestState) -> None:
    """A request is new. The one that belongs to getting ready is like nothing."""
    if request.purpose == "readiness" or not request.messages:
        return
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
    """The latest earlier request with the same first message, else one under the same known policy."""
    same = state.beginnings.get(request.messages[0], []) if request.messages else []
    return _latest(state, request, same) or _latest(state, request, state.labelled.get(request.policy, []))


def _latest(state: SessionState, request: RequestState, keys: list[str]) -> RequestState | None:
    for key in reversed(keys):
        known = state.requests[key]
        is_here = known.epoch >= state.server.first_epoch
        if is_here and known is not request and known.composed_ns <= request.composed_ns:
            return known
    return None
