"""Lines as spans: a text and the name of its look. The screen turns looks into colours, a report leaves them out."""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from mlxcache_tui.core.text import cell_width, fit, wrap_cells

Look = Literal[
    "plain", "dim", "strong", "good", "warn", "bad", "info", "accent", "head", "gone", "mark", "bar", "rest", "match"
]

_SINGLE = re.compile(r"[\x20-\x7e\u2500-\u259f\u2800-\u28ff]*\Z")
"""Texts in which each character is a cell of its own, so that they can be compared cell by cell."""


class Span(NamedTuple):
    """A clean text of one look."""

    text: str
    look: Look = "plain"


Line = tuple[Span, ...]


def plain(line: Iterable[Span]) -> str:
    """The text alone."""
    return "".join(span.text for span in line)


def line_width(line: Iterable[Span]) -> int:
    """Cells that the line takes."""
    return sum(cell_width(span.text) for span in line)


def fit_line(line: Line, width: int) -> Line:
    """The line in exactly `width` cells: padded with blanks, or cut with an ellipsis."""
    size = line_width(line)
    if size <= width:
        return (*line, Span(" " * (width - size))) if size < width else line
    kept: list[Span] = []
    left = width
    for span in line:
        size = cell_width(span.text)
        if size >= left:
            # One cell more than there is makes `fit` set the ellipsis, also where this span ends exactly at the edge.
            kept.append(Span(fit(span.text + " ", left) if size == left else fit(span.text, left), span.look))
            break
        kept.append(span)
        left -= size
    return tuple(kept)


def note_lines(text: str, width: int, height: int) -> list[Line]:
    """`height` lines of `width` cells with a note in their middle, broken into lines if it is long."""
    words = [line.strip() for line in wrap_cells(text, max(1, width - 2))][:height]
    above = (height - len(words)) // 2
    rows = [""] * above + [" " * ((width - cell_width(line)) // 2) + line for line in words]
    rows += [""] * (height - len(rows))
    return [fit_line((Span(row, "dim"),), width) for row in rows]


def drop_cells(line: Line, cells: int) -> Line:
    """The line without its first `cells` cells; half of a wide character becomes a blank."""
    kept: list[Span] = []
    for span in line:
        if cells <= 0:
            kept.append(span)
            continue
        size = cell_width(span.text)
        if size > cells:
            kept.append(Span(_drop(span.text, cells), span.look))
        cells -= size
    return tuple(kept)


def _drop(text: str, cells: int) -> str:
    if text.isascii():
        return text[cells:]
    head = fit(text, cells, ellipsis="")
    if text.startswith(head):
        return text[len(head) :]
    # A wide character lies across the edge: `fit` put a blank in place of its first half.
    return " " + text[len(fit(text, cells + 1, ellipsis="")) :]


def common_edges(old: Line, new: Line) -> tuple[int, int]:
    """Cells that two lines of one width share at their start and at their end; the part between needs drawing."""
    if old == new:
        size = line_width(new)
        return size, 0
    return _common_start(old, new), _common_end(old, new)


def _common_start(old: Line, new: Line) -> int:
    cells = 0
    for before, after in zip(old, new, strict=False):
        if before != after:
            if before.look == after.look and _SINGLE.match(before.text) and _SINGLE.match(after.text):
                cells += _common_prefix(before.text, after.text)
            break
        cells += cell_width(after.text)
    return cells


def _common_end(old: Line, new: Line) -> int:
    cells = 0
    for before, after in zip(reversed(old), reversed(new), strict=False):
        if before != after:
            if before.look == after.look and _SINGLE.match(before.text) and _SINGLE.match(after.text):
                cells += _common_prefix(before.text[::-1], after.text[::-1])
            break
        cells += cell_width(after.text)
    return cells


def _common_prefix(one: str, other: str) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
