"""Area graphs of braille characters: two samples and four levels in each cell."""

import math
from collections.abc import Sequence

_BLANK = 0x2800
_LEFT = (0x00, 0x40, 0x44, 0x46, 0x47)
_RIGHT = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
"""Dots of a cell's left and right column, filled from below: none to four."""


def group_size(count: int, capacity: int, first: int = 0) -> int:
    """How many samples share one column, so that `count` of them, beginning with number `first`, fit into `capacity`.

    Groups begin at multiples of their size. A sample keeps its neighbours that way while older ones are dropped, and
    columns that are drawn already do not change.
    """
    size = 1
    while count and (first + count - 1) // size - first // size >= capacity:
        size += 1
    return size


def downsample(values: Sequence[int | None], capacity: int, first: int = 0) -> list[int | None]:
    """At most `capacity` values: the largest of each group of samples; None where a group has no known value."""
    size = group_size(len(values), capacity, first)
    if size == 1:
        return list(values)
    groups: list[int | None] = []
    begin = 0
    while begin < len(values):
        end = min(len(values), begin + size - (first + begin) % size)
        known = [value for value in values[begin:end] if value is not None]
        groups.append(max(known) if known else None)
        begin = end
    return groups


def area(values: Sequence[int | None], width: int, height: int, low: float, high: float) -> list[str]:
    """Rows of a filled graph, the top one first: `height` strings of `width` braille cells.

    The first `2 × width` values are drawn from the left. `low` is the bottom edge and `high` the top edge of the graph;
    a known value shows at least one dot, an unknown one (None) none.
    """
    levels = [_level(value, height * 4, low, high) for value in values[: 2 * width]]
    levels += [0] * (2 * width - len(levels))
    rows = []
    for row in range(height):
        floor = (height - 1 - row) * 4
        rows.append(
            "".join(
                _cell(_LEFT[_dots(levels[x], floor)] | _RIGHT[_dots(levels[x + 1], floor)])
                for x in range(0, 2 * width, 2)
            )
        )
    return rows


def _cell(dots: int) -> str:
    # A cell without dots is a space: some fonts draw the empty braille character as rings.
    return chr(_BLANK | dots) if dots else " "


def _level(value: int | None, dots: int, low: float, high: float) -> int:
    if value is None:
        return 0
    share = (value - low) / (high - low) if high > low else 1.0
    return min(max(round(share * dots), 1), dots)


def _dots(level: int, floor: int) -> int:
    return min(max(level - floor, 0), 4)


def scale(low: int, high: int) -> tuple[int, int]:
    """Round edges for a graph of values from `low` to `high`.

    The bottom is 0, unless the values move by less than a quarter of their height: then it is cut off below them, since
    the change is what matters, and the label of the bottom edge says so.
    """
    high = max(high, 1)
    base = low if high - low < high / 4 else 0
    step = _nice(max(high - base, high / 50) / 3)
    bottom = math.floor(base / step) * step if base else 0
    return bottom, max(math.ceil(high / step) * step, bottom + step)


def _nice(step: float) -> int:
    """The next of 1, 2 or 5 times a power of ten."""
    if step <= 1:
        return 1
    power: int = 10 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step)
