"""The status bar as one line of spans."""

from typing import NamedTuple

from mlxcache_tui.core.text import cell_width
from mlxcache_tui.core.units import human_percent
from mlxcache_tui.core.views import StatusView
from mlxcache_tui.draw.signs import BUSY, SERVER_SIGNS
from mlxcache_tui.draw.spans import Line, Span, fit_line, line_width

_GAP = "  "
_MOST_TEXT = 40
"""Cells for which other parts make way; a longer text takes what is left."""
_PROGRAM = "mlxcache-tui"


class _Part(NamedTuple):
    """A piece of the line; the ones with the highest `drop` go first."""

    drop: int
    spans: Line


def status_line(view: StatusView, width: int) -> Line:
    """The line in exactly `width` cells: what matters least is left out first, the phase stays to the last."""
    left, right, text = _left(view), _right(view), _text(view)
    # Why the server does not answer matters more than anything but the fact that it does not.
    wanted = min(cell_width(text), _MOST_TEXT) + len(_GAP) if text else 0
    while len(left) + len(right) > 1 and _needed(left, right) + wanted > width:
        worst = max((*left, *right), key=lambda part: part.drop)
        (left if worst in left else right).remove(worst)
    line, end = _joined(left), _joined(right)
    room = width - line_width(line) - line_width(end) - len(_GAP) * (2 if end else 1)
    if text and room > 0:
        text = _clause(text, room)
        line = (*line, Span(_GAP), *fit_line((Span(text),), min(room, cell_width(text))))
    blank = max(0, width - line_width(line) - line_width(end))
    return fit_line((*line, Span(" " * blank), *end), width)


def _clause(text: str, room: int) -> str:
    """Of a text that is too long what stands before its last colon that fits, unless little would be left."""
    if cell_width(text) <= room:
        return text
    ends = [at for at in range(len(text)) if text[at : at + 2] == ": " and room // 2 < cell_width(text[:at]) <= room]
    return text[: ends[-1]] if ends else text


def _needed(left: list[_Part], right: list[_Part]) -> int:
    parts = [line_width(part.spans) for part in (*left, *right)]
    return sum(parts) + len(_GAP) * (len(parts) - 1) + 2


def _joined(parts: list[_Part]) -> Line:
    line: list[Span] = []
    for part in parts:
        if line:
            line.append(Span(_GAP))
        line.extend(part.spans)
    return (Span(" "), *line) if line else ()


def _left(view: StatusView) -> list[_Part]:
    parts = [_Part(9, (Span(_PROGRAM, "strong"),))]
    if view.model:
        parts.append(_Part(2, (Span(view.model),)))
    if view.address:
        parts.append(_Part(6, (Span(view.address, "dim"),)))
    if view.mlx_lm:
        parts.append(_Part(7, (Span(f"mlx-lm {view.mlx_lm}", "dim"),)))
    if view.watch_only:
        parts.append(_Part(3, (Span("watching only", "accent"),)))
    elif view.phase == "ready" and view.observed in ("log", "client"):
        parts.append(_Part(8, (Span("not observed", "dim"),)))
    # Last, since what is said of it comes behind it.
    parts.append(_Part(0, _phase(view)))
    return parts


def _phase(view: StatusView) -> Line:
    sign = SERVER_SIGNS[view.phase]
    if view.phase == "ready" and view.busy:
        return (Span(f"{BUSY} busy {view.busy}", "info"),)
    word = sign.word if view.ours or view.phase != "starting" else "connecting"  # what runs already does not start
    words = f"{sign.sign} {word}"
    if view.phase == "fetching" and view.fetch_percent is not None:
        words += f" {view.fetch_percent:.0f} %"
    return (Span(words, sign.look),)


def _text(view: StatusView) -> str:
    """What is said beside the phase; nothing once all is well."""
    if view.phase == "ready":
        return ""
    return view.text if view.text != SERVER_SIGNS[view.phase].word else ""


def _right(view: StatusView) -> list[_Part]:
    parts = []
    if view.reuse_last is not None:
        words = (Span("reuse ", "dim"), Span(human_percent(view.reuse_last)), Span(" last", "dim"))
        parts.append(_Part(1, words))
    if view.reuse_session is not None:
        parts.append(_Part(5, (Span(human_percent(view.reuse_session)), Span(" session", "dim"))))
    if view.evictions is not None:
        word = "eviction" if view.evictions == 1 else "evictions"
        parts.append(_Part(4, (Span(str(view.evictions)), Span(f" {word}", "dim"))))
    return [
        part._replace(spans=(Span("· ", "dim"), *part.spans)) if index else part for index, part in enumerate(parts)
    ]
