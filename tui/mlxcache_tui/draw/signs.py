"""Signs and looks of states, reasons and verdicts. Colour never stands alone: each has a sign, and a word beside it."""

from typing import NamedTuple

from mlxcache_tui.core.compare import Verdict
from mlxcache_tui.core.events import ServerPhase
from mlxcache_tui.core.views import ReasonKind, RequestPhase
from mlxcache_tui.draw.spans import Look


class Sign(NamedTuple):
    """A character of one cell, a word, and the look of both."""

    sign: str
    word: str
    look: Look


REQUEST_SIGNS: dict[RequestPhase, Sign] = {
    "queued": Sign("◌", "queued", "dim"),
    "prefill": Sign("▷", "prefill", "info"),
    "thinking": Sign("◇", "thinking", "accent"),
    "answering": Sign("◆", "answering", "info"),
    "done": Sign("✓", "done", "plain"),
    "cut": Sign("╱", "cut", "warn"),
    "failed": Sign("✗", "failed", "bad"),
    "cancelled": Sign("⊘", "cancelled", "dim"),
}

REASON_SIGNS: dict[ReasonKind, Sign] = {
    "pending": Sign(" ", "", "plain"),
    "hit": Sign("●", "hit", "good"),
    "first": Sign("○", "first", "plain"),
    "diverged": Sign("≠", "diverged", "warn"),
    "in_flight": Sign("∥", "in flight", "warn"),
    "restarted": Sign("↻", "restarted", "warn"),
    "model_changed": Sign("⇄", "model changed", "warn"),
    "evicted": Sign("✂", "evicted", "bad"),
    "cancelled": Sign("⊘", "cancelled", "warn"),
    "sequential": Sign("→", "sequential", "warn"),
    "not_trimmable": Sign("⊠", "not trimmable", "warn"),
    "disabled": Sign("∅", "disabled", "warn"),
    "not_reported": Sign("—", "not reported", "dim"),
    "unknown": Sign("?", "unknown", "dim"),
}

SERVER_SIGNS: dict[ServerPhase, Sign] = {
    "none": Sign("○", "no server", "dim"),
    "starting": Sign("◔", "starting", "info"),
    "fetching": Sign("↓", "fetching", "info"),
    "loading": Sign("◑", "loading", "info"),
    "ready": Sign("●", "ready", "good"),
    "not_answering": Sign("!", "not answering", "warn"),
    "worker_dead": Sign("✗", "worker dead", "bad"),
    "exited": Sign("■", "exited", "bad"),
    "unreachable": Sign("✗", "unreachable", "bad"),
}
VERDICT_SIGNS: dict[Verdict, Sign] = {
    "better": Sign("▲", "better", "good"),
    "worse": Sign("▼", "worse", "bad"),
    "same": Sign("=", "same", "plain"),
    "inconclusive": Sign("?", "inconclusive", "dim"),
}
EVICTED = REASON_SIGNS["evicted"].sign
SWALLOWED = "⊂"
RESTARTED = REASON_SIGNS["restarted"].sign
FOREIGN = "›"
"""In front of the policy of a request that another client sent."""
INFERRED = "≈"
BUSY = "◉"
MARK_SIGNS = (
    Sign("▸", "chosen", "strong"),
    Sign(FOREIGN, "of others", "accent"),
    Sign(RESTARTED, "earlier", "dim"),
    Sign(INFERRED, "inferred", "plain"),
    Sign(BUSY, "at work", "info"),
    Sign(EVICTED, "evicted", "bad"),
    Sign(SWALLOWED, "swallowed", "dim"),
)
"""Marks on rows of the table, on entries of the cache and in the status line."""
