"""The request table as lines of spans."""

from collections.abc import Sequence
from functools import lru_cache

from mlxcache_tui.core.text import cell_width
from mlxcache_tui.core.units import UNKNOWN, human_count, human_duration, human_percent, human_rate
from mlxcache_tui.core.views import RequestRow
from mlxcache_tui.draw.columns import Column, Layout, lay_out, place, recolour
from mlxcache_tui.draw.signs import FOREIGN, INFERRED, REASON_SIGNS, REQUEST_SIGNS
from mlxcache_tui.draw.spans import Line, Look, Span

_STATE_LONG = 18
"""Cells of the state column from which on it has room for the time left and the finish reason."""
_WIDE = 134
_MIDDLE = 110
_WHY = 34
"""Cells that most reasons need: for these, rates and waits give way."""


@lru_cache(maxsize=32)
def request_layout(width: int, digits: int = 3) -> Layout:
    """The columns that stand in `width` cells; `digits` of the largest number of a request."""
    number = max(3, digits)
    state = _STATE_LONG if width >= _MIDDLE else 13
    # Where all but `wait` and `prefill` stand, 58 cells are for them and the blanks between.
    why = max(18, min(_WHY, width - 58 - number - state))
    columns = (
        Column("number", "#", number, 0, "right"),
        Column("policy", "policy", 10, 4, most=24 if width >= _WIDE else 14),
        Column("state", "state", state, 1, most=_STATE_LONG),
        Column("prompt", "prompt", 6, 7, "right"),
        Column("cached", "cached", 6, 10, "right"),
        Column("percent", "%", 5, 2, "right"),
        Column("wait", "wait", 6, 11, "right"),
        Column("ttft", "TTFT", 6, 5, "right"),
        Column("prefill", "prefill", 7, 12, "right"),
        Column("out", "out", 4, 9, "right"),
        Column("tps", "tok/s", 5, 6, "right"),
        Column("total", "total", 6, 8, "right"),
        Column("why", "why", why, 3),
    )
    return lay_out(columns, width, gap=2 if width >= _WIDE else 1)


def request_line(row: RequestRow, layout: Layout) -> Line:
    """One request in the columns of the layout."""
    cells = [_cell(row, column) for column in layout.columns]
    line = place(cells, layout)
    return recolour(line, "dim") if row.warmup or row.earlier else line


def _cell(row: RequestRow, column: Column) -> Line:
    match column.name:
        case "number":
            return (Span("–" if row.number == 0 else str(row.number)),)  # 0: it belongs to getting ready
        case "policy":
            return (Span(row.policy),) if row.ours else (Span(f"{FOREIGN} ", "accent"), Span(row.policy))
        case "state":
            return _state(row, column.width)
        case "percent":
            return (Span(_percent(row), _percent_look(row)),)
        case "why":
            return _why(row, column.width)
        case name:
            return _figure(row, name)


def _figure(row: RequestRow, name: str) -> Line:
    text = {
        "prompt": lambda: human_count(row.prompt_tokens),
        "cached": lambda: human_count(row.cached_tokens),
        "wait": lambda: short_duration(row.wait_s),
        "ttft": lambda: short_duration(row.ttft_s),
        "prefill": lambda: f"{human_rate(row.prefill_tps)}/s" if row.prefill_tps is not None else UNKNOWN,
        "out": lambda: human_count(row.output_tokens),
        "tps": lambda: human_rate(row.decode_tps),
        "total": lambda: short_duration(row.e2e_s),
    }[name]()
    return (Span(text, "dim" if text == UNKNOWN else _live(row, name)),)


def _live(row: RequestRow, name: str) -> Look:
    return "info" if row.phase in ("thinking", "answering") and name in ("out", "tps") else "plain"


def _percent(row: RequestRow) -> str:
    text = human_percent(row.cached_ratio).replace(" ", "")
    return INFERRED + text if row.cached_source == "derived" and row.cached_ratio is not None else text


def _percent_look(row: RequestRow) -> Look:
    if row.cached_ratio is None:
        return "dim"
    return "good" if row.reason == "hit" else "plain"


def _state(row: RequestRow, width: int) -> Line:
    sign = REQUEST_SIGNS[row.phase]
    short = f"{sign.sign} {sign.word}"
    more = ""
    if row.phase == "prefill" and row.prefill_total:
        short += f" {100 * (row.prefill_done or 0) // row.prefill_total}%"
        more = f" {clock(row.eta_s)}" if row.eta_s is not None else ""
    elif row.phase == "done" and row.finish_reason not in (None, "stop"):
        more = f" {row.finish_reason}"
    text = short + more
    return (Span(text if cell_width(text) <= width else short, sign.look),)


def _why(row: RequestRow, width: int) -> Line:
    if row.phase == "failed":
        return (Span(row.why, "bad"),)
    sign = REASON_SIGNS[row.reason]
    if row.reason == "pending":
        return (Span(row.why),)
    mark = f"{sign.sign}{INFERRED} " if row.inferred else f"{sign.sign} "
    text = row.why or sign.word
    if cell_width(mark + text) > width:
        # The sign says the same as the word: `● 112 tokens of #1`.
        text = text.removeprefix(f"{sign.word}: ")
    return Span(mark, sign.look), Span(text, "dim" if sign.look == "dim" else "plain")


def short_duration(seconds: float | None) -> str:
    """As `human_duration`, but never more than six cells: `3:20`, `1h02m`."""
    return human_duration(seconds) if seconds is None or seconds < 59.5 else clock(seconds)


def clock(seconds: float) -> str:
    """Minutes and seconds as `0:03`, hours as `1h02m`."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02}" if whole < 3600 else f"{whole // 3600}h{whole % 3600 // 60:02}m"


def digits_of(rows: Sequence[RequestRow]) -> int:
    """Digits of the last, so largest, number."""
    return len(str(rows[-1].number)) if rows else 1
