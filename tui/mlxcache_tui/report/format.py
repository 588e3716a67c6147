"""Numbers and tables as text, for reports. Unknown is `—`."""

import re
from collections.abc import Callable, Iterable, Sequence

from mlxcache_tui.core.results import RequestResult
from mlxcache_tui.core.stats import Spread
from mlxcache_tui.core.text import cell_width, fit, wrap_cells
from mlxcache_tui.core.units import UNKNOWN
from mlxcache_tui.core.units import seconds as seconds
from mlxcache_tui.core.units import whole as whole
from mlxcache_tui.draw.signs import INFERRED

_MARKS = re.compile(r"[\\`*\[\]#|<>]|(?<![^\W_])_|_(?![^\W_])")
_PIPE = re.compile(r"(?<!\\)((?:\\\\)*)\|")
"""A bar that ends a cell: `harmless` may have been there before."""
_GAP = 2
"""Blanks between two columns."""


def with_spread(spread: Spread | None, show: Callable[[float | None], str], n: int | None = None) -> str:
    """The median with its range: `48 ms (44 ms to 52 ms)`; with its own n where that is not the `n` told beside it."""
    if spread is None:
        return UNKNOWN
    low, high = show(spread.low), show(spread.high)
    notes = [f"{low} to {high}"] if low != high else []
    notes += [f"n {spread.n}"] if spread.n not in (1, n) else []
    return show(spread.median) + (f" ({', '.join(notes)})" if notes else "")


def cached(request: RequestResult) -> str:
    """Its cached tokens; ≈ where they were worked out and not reported."""
    mark = INFERRED if request.cached_source == "derived" and request.cached_tokens is not None else ""
    return mark + whole(request.cached_tokens)


def counted(requests: int, failed: int) -> str:
    """How many requests, and how many of them failed: `4 (1 failed)`."""
    return f"{requests} ({failed} failed)" if failed else str(requests)


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table in columns; the first column to the left, the others to the right, the last one to the left."""
    widths = [max(cell_width(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            pad = " " * (width - cell_width(cell))
            cells.append(cell + pad if column in (0, len(row) - 1) else pad + cell)
        return (" " * _GAP).join(cells).rstrip()

    return [line(row) for row in (head, *rows)]


def fitted_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None,
    least: Sequence[str],
    shortest: int | None = None,
) -> list[str]:
    """Lines of a table that is at most `width` cells wide if that can be; None: as wide as it is.

    Args:
        head: names of the columns.
        rows: their cells.
        width: cells of a line.
        least: columns that are left out where there is no room, the first of them first.
        shortest: cells to which the first column may be cut before any is left out (None: it is never cut).
    """
    if width is None:
        return text_table(head, rows)
    sizes = [max(cell_width(row[column]) for row in (head, *rows)) for column in range(len(head))]
    name = min(sizes[0], shortest or sizes[0])
    kept = list(range(len(head)))

    def others() -> int:
        return sum(_GAP + sizes[column] for column in kept[1:])

    for column in map(head.index, least):
        if name + others() > width:
            kept.remove(column)
    room = min(sizes[0], max(name, width - others()))
    cut = [[fit(row[0], room), *(row[column] for column in kept[1:])] for row in (head, *rows)]
    return text_table(cut[0], cut[1:])


def folded(lines: Iterable[str], width: int | None, indent: int = 2) -> list[str]:
    """The lines in `width` cells (None: as they are); what is folded goes on `indent` cells to the right."""
    if width is None:
        return list(lines)
    found = []
    for line in lines:
        first, *rest = wrap_cells(line, width)
        found.append(first)
        if rest:
            behind = line[len(first) :].lstrip()
            found += [" " * indent + part for part in wrap_cells(behind, max(1, width - indent))]
    return found


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; what would end a cell is escaped."""
    return [
        _markdown_row(head),
        "| " + " | ".join("---" for _ in head) + " |",
        *(_markdown_row(row) for row in rows),
    ]


def _markdown_row(row: Sequence[str]) -> str:
    return "| " + " | ".join(_PIPE.sub(r"\1\\|", one_line(cell)) for cell in row) + " |"


def one_line(text: str) -> str:
    """All white space as single blanks."""
    return " ".join(text.split())


def harmless(text: str) -> str:
    """The text with the marks that Markdown or HTML would act on made harmless; `_` inside a name is none."""
    return _MARKS.sub(r"\\\g<0>", text)
