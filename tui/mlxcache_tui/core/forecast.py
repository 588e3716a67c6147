"""What would happen if a draft were sent now: how much of it the server would find in its cache."""

from mlxcache_tui.core import metrics
from mlxcache_tui.core.codec import text_id_of
from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.state import RequestState, SessionState
from mlxcache_tui.core.units import human_duration
from mlxcache_tui.core.views import ForecastView

CHARACTERS_PER_TOKEN = 4.0
"""For text of which nothing was sent yet; replaced by what this session measured."""


def forecast(state: SessionState, draft: Draft) -> ForecastView:
    """One line with ≈ figures, from the latest request with the same system message whose entry is still stored."""
    system = draft.system
    if not state.server.observed or not system:
        return ForecastView(text="")
    first = ("system", text_id_of(system))
    ratio = _characters_per_token(state, first)
    tokens = round((len(system) + len(draft.user)) / ratio)
    source = _stored_source(state, first)
    reused = min(tokens, round(len(system) / ratio)) if source else 0
    wait = _seconds(state, tokens - reused)
    took = f", ≈{human_duration(wait)}" if wait is not None else ""
    if source is None:
        return ForecastView(text=f"would read all ≈{tokens} tokens anew{took}")
    return ForecastView(text=f"would reuse ≈{reused} of ≈{tokens} (#{source.number}), read ≈{tokens - reused}{took}")


def _stored_source(state: SessionState, first: tuple[str, str]) -> RequestState | None:
    for record in reversed(state.cache.stored.values()):
        maker = state.requests.get(record.key) if record.key else None
        if maker and maker.messages and maker.messages[0] == first:
            return maker
    return None


def _characters_per_token(state: SessionState, first: tuple[str, str]) -> float:
    """Of the latest request with the same first message; else of the latest at all (languages differ much)."""
    latest = None
    for request in reversed(state.requests.values()):
        if not request.counts or not request.prompt_tokens or not request.messages:
            continue
        characters = sum(len(state.message_text(text_id)) for _, text_id in request.messages)
        ratio = characters / request.prompt_tokens
        if ratio and request.messages[0] == first:
            return ratio
        latest = latest or ratio
    return latest or CHARACTERS_PER_TOKEN


def _seconds(state: SessionState, tokens: int) -> float | None:
    """Time to read this many tokens at the latest measured prefill speed of this session."""
    for request in reversed(state.requests.values()):
        speed = metrics.prefill_tps(request) if request.outcome == "done" else None
        if speed:
            return tokens / speed
    return None
