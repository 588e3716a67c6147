"""The request table as lines of spans."""

from collections.abc import Sequence
from functools import lru_cache

from mlxcache_tui.core.text import cell_width
from mlxcache_tui.core.units import UNKNOWN, human_count, human_duration, human_percent, human_rate
from mlxcache_tui.core.views import RequestRow
from mlxcache_tui.draw.columns import Column, Layout, lay_out, place, recolour
from mlxcache_tui.draw.reason_words import fitting_reason
from mlxcache_tui.draw.signs import FOREIGN, INFERRED, REASON_SIGNS, REQUEST_SIGNS
from mlxcache_tui.draw.spans import Line, Look, Span, line_width

_STATE_SIGN, _STATE_WORD, _STATE_LONG = 5, 13, 18
"""Cells of the state column: with the sign alone (`why` has the word then), with the word, with the time left too."""
_WIDE = 134
_MIDDLE = 110
_WHY, _WHY_NARROW = 40, 34
"""Cells that most reasons need, so that for them rates and waits give way: two reasons, or one."""


@lru_cache(maxsize=32)
def request_layout(width: int, digits: int = 3) -> Layout:
    """The columns that stand in `width` cells; `digits` of the largest number of a request."""
    number = max(3, digits)
    narrow = width < _MIDDLE
    state = _STATE_SIGN if narrow else _STATE_WORD if width < _WIDE else _STATE_LONG
    # Besides number and state 39 cells are for what stands on a narrow screen, 58 for all but `wait` and `prefill`.
    why = max(18, min(_WHY_NARROW if narrow else _WHY, width - (39 if narrow else 58) - number - state))
    columns = (
        Column("number", "#", number, 0, "right"),
        Column("policy", "policy", 10, 4, most=24 if width >= _WIDE else 14),
        Column("state", "state", state, 1),
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
    told = any(column.name == "state" and column.width >= _STATE_WORD for column in layout.columns)
    cells = [_cell(row, column, told=told) for column in layout.columns]
    line = place(cells, layout)
    return recolour(line, "dim") if row.warmup or row.earlier else line


def _cell(row: RequestRow, column: Column, *, told: bool) -> Line:
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
            return _why(row, column.width, told=told)
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
    percent = ""
    if row.phase == "prefill" and row.prefill_total:
        percent = f" {100 * (row.prefill_done or 0) // row.prefill_total}%"
    if width < _STATE_WORD:
        return (Span(sign.sign + percent, sign.look),)
    short = f"{sign.sign} {sign.word}{percent}"
    wordings = [short]
    if percent and row.eta_s is not None:
        wordings = [f"{short} {clock(row.eta_s)}", f"{sign.sign}{percent} {clock(row.eta_s)}", short]
    elif row.phase == "done" and row.finish_reason not in (None, "stop"):
        wordings = [f"{short} {row.finish_reason}", short]
    return (Span(next((text for text in wordings if cell_width(text) <= width), short), sign.look),)


def _why(row: RequestRow, width: int, *, told: bool) -> Line:
    """The reason; in front of it the word of the state where the state's column has not `told` it."""
    if row.phase == "failed":
        return (Span(row.why, "bad"),)
    state = REQUEST_SIGNS[row.phase]
    word: Line = (Span(state.word, state.look),) if not told and row.phase != "done" else ()
    if row.reason == "pending":
        return (*word, Span(" " if word and row.why else ""), Span(row.why))
    sign = REASON_SIGNS[row.reason]
    mark = f"{sign.sign}{INFERRED} " if row.inferred else f"{sign.sign} "
    text = row.why or sign.word
    room = width - cell_width(mark)
    if word:
        in_front = line_width(word) + 1
        text = fitting_reason(text, room - in_front)
        # What happens shows in the sign as well: the reason comes before the word.
        word = (*word, Span(" ")) if cell_width(text) <= room - in_front else ()
    text = fitting_reason(text, room)
    return *word, Span(mark, sign.look), Span(text, "dim" if sign.look == "dim" else "plain")


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
