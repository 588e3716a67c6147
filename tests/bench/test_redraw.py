"""Budget: making the views for a redraw costs no more with 10,000 requests in the state than with 100: ≤ 3 times."""

import time
from collections.abc import Callable
from statistics import median

from bench import traffic
from bench.conftest import Budget, Figure
from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.events import LogLine, LogRead
from mlxcache_tui.core.forecast import forecast
from mlxcache_tui.core.lens import PromptTexts
from mlxcache_tui.core.present import Presenter, cache_view, log_view, memory_view, status_view
from mlxcache_tui.core.reduce import apply
from mlxcache_tui.core.state import LOG_LINES, MEMORY_SAMPLES, SessionState

FEW, MANY = 100, 10_000
CHANGED = 3
"""Requests that changed since the redraw before."""
ROUNDS, REDRAWS = 15, 40


def state_of(requests: int) -> SessionState:
    """A session of so many requests, its log and its memory curve full."""
    state, clock = SessionState(), traffic.Clock(10**12)
    for event in traffic.opening(clock):
        apply(state, event)
    for number in range(1, requests + 1):
        for event in traffic.whole(clock, number):
            apply(state, event)
    for number in range(MEMORY_SAMPLES):
        apply(state, traffic.memory(clock, 10**9 + number))
    line = LogLine(text=traffic.PROGRESS.format(1, 2), kind="progress", level="INFO")
    apply(state, LogRead(at_ns=clock.tick(), origin="log", lines=(line,) * LOG_LINES))
    return state


def redraw_of(state: SessionState) -> Callable[[], None]:
    """All that is made of the state for one redraw, with the forecast for a draft."""
    presenter, texts = Presenter(), PromptTexts()
    changed = dict.fromkeys(list(state.requests)[-CHANGED:])
    draft = Draft(user="May I return it?", policy_text=traffic.POLICIES[0])

    def redraw() -> None:
        state.dirty.update(changed)
        presenter.rows(state)
        for view in (status_view, cache_view, memory_view, log_view):
            view(state)
        forecast(state, draft, texts)

    redraw()
    return redraw


def cost_s(redraw: Callable[[], None]) -> float:
    """Seconds of the processor for one redraw."""
    began = time.process_time()
    for _ in range(REDRAWS):
        redraw()
    return (time.process_time() - began) / REDRAWS


def test_a_redraw_does_not_grow_with_the_requests(budget: Budget) -> None:
    few, many = redraw_of(state_of(FEW)), redraw_of(state_of(MANY))
    pairs = [(cost_s(few), cost_s(many)) for _ in range(ROUNDS)]
    ratio = median(more / less for less, more in pairs)
    less, more = (median(column) * 1e3 for column in zip(*pairs, strict=True))
    note = f"{more:.2f} ms against {less:.2f} ms with {FEW}, {ROUNDS} pairs"
    budget.judge(Figure(f"views of a redraw, {MANY:,} requests against {FEW}", ratio, 3, "×", note=note))
