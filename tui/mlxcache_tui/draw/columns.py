"""Tables in a given width: which columns stand, how wide each is, and cells put in place."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from mlxcache_tui.draw.spans import Line, Look, Span, fit_line, line_width


class Column(NamedTuple):
    """A column of a table.

    `width` is the least it needs, `most` what it may grow to (0: it does not grow). The columns with the highest `drop`
    go first where there is no room, and grow last.
    """

    name: str
    head: str
    width: int
    drop: int
    align: Literal["left", "right"] = "left"
    most: int = 0


class Layout(NamedTuple):
    """Columns that stand, left to right, with their widths, and the blanks between them."""

    columns: tuple[Column, ...]
    gap: int

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that stand."""
        return tuple(column.name for column in self.columns)


def lay_out(columns: Sequence[Column], width: int, gap: int = 1) -> Layout:
    """Choose columns for `width` cells: drop those that do not fit, then let the growing ones share what is left.

    Spare cells go to the growing columns in the order of their `drop`, each up to its `most`; the last column takes
    what remains.
    """
    kept = list(columns)
    while len(kept) > 1 and _needed(kept, gap) > width:
        kept.remove(max(kept, key=lambda column: column.drop))
    spare = width - _needed(kept, gap)
    widths = {column.name: column.width for column in kept}
    for column in sorted(kept, key=lambda column: column.drop):
        extra = max(0, min(column.most - column.width, spare))
        widths[column.name] += extra
        spare -= extra
    widths[kept[-1].name] = max(1, widths[kept[-1].name] + spare)
    return Layout(tuple(column._replace(width=widths[column.name]) for column in kept), gap)


def _needed(columns: Sequence[Column], gap: int) -> int:
    return sum(column.width for column in columns) + gap * (len(columns) - 1)


def head_line(layout: Layout) -> Line:
    """The names of the columns over their cells."""
    return place([(Span(column.head, "head"),) for column in layout.columns], layout)


def place(cells: Sequence[Line], layout: Layout) -> Line:
    """One line of cells, each cut or padded to its column."""
    line: list[Span] = []
    for index, (cell, column) in enumerate(zip(cells, layout.columns, strict=True)):
        if index:
            line.append(Span(" " * layout.gap))
        spare = column.width - line_width(cell)
        if column.align == "right" and spare > 0:
            line.append(Span(" " * spare))
            line.extend(cell)
        else:
            line.extend(fit_line(cell, column.width))
    return tuple(span for span in line if span.text)


def recolour(line: Line, look: Look) -> Line:
    """The same line in one look."""
    return tuple(Span(span.text, look) for span in line)
