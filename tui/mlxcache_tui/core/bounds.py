"""What is let go, so that a session of weeks stays small: the oldest requests, and what only they refer to.

All of it is in the session file still, if there is one, and the running figures (`tally`) go on counting it. A state
that is not `bounded` keeps everything: a report tells of all requests.
"""

from mlxcache_tui.core import alike
from mlxcache_tui.core.state import CacheState, RequestState, SessionState

KEPT_REQUESTS = 10_000
KEPT_SIZE = 24_000_000
"""Characters of texts and answers, and bytes of tokens: beyond them older requests go though there are fewer."""
LEAST_REQUESTS = 300
"""Kept however large they are: who tells of a request takes for known what was told for the last 200."""
UNUSED_TEXTS = 1_000
"""Texts of which no request was told (events were lost), or not yet: a server's greeting tells all texts first."""
KEPT_RECORDS = 2_000
"""Entries that are not stored any more: why a look-up finds nothing lies in what the last few requests stored."""
KEPT_EVICTIONS = 20_000
AT_ONCE = 100
"""How many are let go in one go, where finding them takes a walk through all."""


def keep_text(state: SessionState, text_id: str, text: str) -> None:
    """A text is told, before the request that has it."""
    state.size += len(text) - len(state.texts.get(text_id, ""))
    state.texts[text_id] = text
    if text_id not in state.text_uses:
        state.unused_texts[text_id] = None
        count = len(state.unused_texts)
        if state.bounded and count > UNUSED_TEXTS and (state.size > KEPT_SIZE or count > 2 * KEPT_REQUESTS):
            _drop_text(state, next(iter(state.unused_texts)))


def take_in(state: SessionState, request: RequestState) -> None:
    """A request is new: its texts are in use, and the oldest make room for it."""
    for text_id in _text_ids(request):
        state.text_uses[text_id] = state.text_uses.get(text_id, 0) + 1
        state.unused_texts.pop(text_id, None)
    while state.bounded and len(state.requests) > LEAST_REQUESTS:
        if len(state.requests) <= KEPT_REQUESTS and state.size <= KEPT_SIZE:
            break
        oldest = next((request for key, request in state.requests.items() if key not in state.open), None)
        if oldest is None:
            break  # all are in work, and somebody waits for how each of them ends
        _let_go(state, oldest)


def _let_go(state: SessionState, request: RequestState) -> None:
    del state.requests[request.key]
    state.dirty.pop(request.key, None)
    alike.drop(state, request)
    state.let_go += 1
    state.size -= request.size
    for text_id in _text_ids(request):
        state.text_uses[text_id] -= 1
        if not state.text_uses[text_id]:
            _drop_text(state, text_id)


def _text_ids(request: RequestState) -> dict[str, None]:
    return dict.fromkeys(text_id for _, text_id in request.messages)


def _drop_text(state: SessionState, text_id: str) -> None:
    state.text_uses.pop(text_id, None)
    state.unused_texts.pop(text_id, None)
    state.size -= len(state.texts.pop(text_id, ""))


def trim_records(cache: CacheState) -> None:
    """Let the oldest entries go that are not stored any more."""
    if len(cache.records) - len(cache.stored) >= KEPT_RECORDS + AT_ONCE:
        gone = [entry for entry in cache.records if entry not in cache.stored]
        for entry in gone[:-KEPT_RECORDS]:
            del cache.records[entry]


def trim_evictions(cache: CacheState) -> None:
    """Let the oldest evictions go; they are counted."""
    if len(cache.evictions) >= KEPT_EVICTIONS + AT_ONCE:
        del cache.evictions[:-KEPT_EVICTIONS]
