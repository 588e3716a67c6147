"""The cache by policy as lines of spans: reuse, last hit, evictions suffered, share of the bytes."""

from functools import lru_cache

from mlxcache_tui.core.units import UNKNOWN, human_bytes
from mlxcache_tui.core.views import CacheView, PolicyRow
from mlxcache_tui.draw.cache_lines import coarse_age, top_lines
from mlxcache_tui.draw.columns import Column, Layout, head_line, lay_out, place
from mlxcache_tui.draw.signs import EVICTED, RESTARTED
from mlxcache_tui.draw.spans import Line, Look, Span, fit_line, note_lines


@lru_cache(maxsize=16)
def policy_layout(width: int) -> Layout:
    """The columns in `width` cells."""
    columns = (
        Column("policy", "by policy", 9, 0, most=26),
        Column("requests", "sent", 4, 6, "right"),
        Column("last", "last", 5, 1, "right"),
        Column("session", "session", 7, 2, "right"),
        Column("hit", "hit", 4, 4, "right"),
        Column("evicted", EVICTED, 3, 5, "right"),
        Column("entries", "entries", 7, 7, "right"),
        Column("bytes", "bytes", 7, 8, "right"),
        Column("share", "share", 5, 3, "right"),
        Column("mark", "", 6, 9),
    )
    return lay_out(columns, width)


def policy_lines(view: CacheView, now_ns: int, width: int, height: int) -> tuple[list[Line], list[Line]]:
    """Lines that stand still at the top, and a line for each policy; each `width` cells."""
    top = top_lines(view, width)
    if not view.policies:
        return top, note_lines("nothing was sent yet", width, max(1, height - len(top)))
    layout = policy_layout(width)
    top.append(fit_line(head_line(layout), width))
    rows = [place([_cell(row, column.name, now_ns) for column in layout.columns], layout) for row in view.policies]
    return top, [fit_line(line, width) for line in rows]


def _cell(row: PolicyRow, name: str, now_ns: int) -> Line:
    hit = coarse_age(now_ns - row.last_hit_ns) if row.last_hit_ns is not None else "–"
    cells: dict[str, Span] = {
        "policy": Span(row.policy),
        "requests": Span(str(row.requests)),
        "last": Span(_percent(row.reuse_last), _look(row.reuse_last)),
        "session": Span(_percent(row.reuse_session), _look(row.reuse_session)),
        "hit": Span(hit, "dim"),
        "evicted": Span(str(row.evicted), "bad" if row.evicted else "dim"),
        "entries": Span(str(row.entries)),
        "bytes": Span(human_bytes(row.bytes)),
        "share": Span(_percent(row.share)),
        "mark": Span(f"{RESTARTED} cold" if row.warm_before else "", "warn"),
    }
    return (cells[name],)


def _percent(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{100 * ratio:.0f} %"


def _look(ratio: float | None) -> Look:
    return "dim" if ratio is None else "good" if ratio >= 0.5 else "plain"
