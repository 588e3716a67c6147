"""The list of recorded sessions as lines of spans, one a session."""

from functools import lru_cache

from mlxcache_tui.core.compare_view import SessionRow
from mlxcache_tui.core.units import UNKNOWN, human_bytes, human_count, human_percent
from mlxcache_tui.draw.columns import Column, Layout, head_line, lay_out, place
from mlxcache_tui.draw.spans import Line, Span

CURSOR = "▸"
_COLUMNS = (
    Column("side", "", 2, 0),
    Column("when", "when", 19, 1),
    Column("model", "model", 9, 2, most=30),
    Column("limit", "limit", 5, 4, "right", most=12),
    Column("requests", "reqs", 5, 5, "right"),
    Column("reuse", "reuse", 5, 6, "right"),
    Column("evictions", "evict", 5, 7, "right"),
    Column("size", "size", 7, 9, "right"),
    Column("server", "server", 15, 8, most=28),
    Column("note", "", 9, 3),
)


@lru_cache(maxsize=16)
def session_layout(width: int) -> Layout:
    """The columns in `width` cells."""
    return lay_out(_COLUMNS, width)


def session_head(width: int) -> Line:
    """The names of the columns."""
    return head_line(session_layout(width))


def session_line(row: SessionRow, side: str, width: int, *, cursor: bool = False) -> Line:
    """One session in exactly `width` cells; `side` is A or B where it was taken as that."""
    layout = session_layout(width)
    cells = _cells(row, f"{CURSOR if cursor else ' '}{side}")
    return place([(cells[column.name],) for column in layout.columns], layout)


def _cells(row: SessionRow, side: str) -> dict[str, Span]:
    return {
        "side": Span(side, "strong"),
        "when": Span(row.when or UNKNOWN),
        "model": Span(row.model or UNKNOWN),
        "limit": Span(", ".join(map(str, row.limits)) or UNKNOWN),
        "requests": Span(str(row.requests), "plain" if row.requests else "dim"),
        "reuse": Span(human_percent(row.reuse)),
        "evictions": Span(human_count(row.evictions)),
        "size": Span(human_bytes(row.bytes), "dim"),
        "server": Span(row.server.split("://", 1)[-1] if row.server else UNKNOWN, "dim"),
        "note": Span("this one" if row.here else "recording" if row.recording else "", "info"),
    }
