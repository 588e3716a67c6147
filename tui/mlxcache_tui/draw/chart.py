"""A sweep as plots over its limits: reuse, TTFT, peak memory. The only module that knows plotext.

plotext takes a third of a second to import and draws into one figure of its own: it is imported when a plot is first
wanted, and drawn by one caller at a time.
"""

import importlib
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from mlxcache_tui.core import stats
from mlxcache_tui.core.sweep import SweepPoint
from mlxcache_tui.core.text import cell_width
from mlxcache_tui.core.units import human_bytes, human_duration, human_percent
from mlxcache_tui.draw.bars import bar

HEIGHT = 9
"""Lines of one plot: title, frame, five of canvas, labels."""
FRAME = 9
"""Cells beside the canvas: the labels of the upright axis, and the frame."""
NARROWEST = 36
BARS, DOT, LINE = "hd", "•", "braille"
"""plotext's names for half blocks, and for lines of braille dots; a character stands for itself."""


def load_plotext() -> None:
    """Import it now, on whatever thread this is called: the first plot would wait for it."""
    with suppress(ImportError, OSError):
        importlib.import_module("plotext")


class _Panel(NamedTuple):
    """One plot. `values` has one for each limit; `dots` the single measurements behind it, where they are shown."""

    title: str
    labels: tuple[str, ...]
    values: tuple[float | None, ...]
    show: Callable[[float | None], str]
    top: float
    dots: tuple[tuple[float, ...], ...] = ()


@lru_cache(maxsize=4)
def sweep_plots(points: tuple[SweepPoint, ...], width: int) -> tuple[str, ...]:
    """Lines of plain text, at most `width` cells; none without points, or where there is no room."""
    if not points or width < NARROWEST:
        return ()
    panels = _panels(points)
    columns = max(1, min(len(panels), width // max(NARROWEST, _needed(points))))
    lines: list[str] = []
    for start in range(0, len(panels), columns):
        row = panels[start : start + columns]
        lines += _beside([_drawn(panel, width // columns) for panel in row], width // columns)
    return tuple(lines)


def _needed(points: Sequence[SweepPoint]) -> int:
    """Cells in which the limits stand side by side below a plot."""
    return FRAME + sum(cell_width(point.label) + 2 for point in points)


def _panels(points: Sequence[SweepPoint]) -> list[_Panel]:
    """The plots for which anything is known."""
    labels = tuple(point.label for point in points)
    ttfts = tuple(point.ttfts for point in points)
    medians = tuple(stats.median(values) for values in ttfts)
    peaks = tuple(point.peak_bytes for point in points)
    panels = [
        _Panel("reuse of prompt tokens", labels, tuple(point.reuse for point in points), human_percent, 1.0),
        _Panel(f"TTFT: each request {DOT}, median line", labels, medians, human_duration, _top(ttfts), ttfts),
        _Panel("peak memory of the server", labels, peaks, human_bytes, _top([peaks])),
    ]
    return [panel for panel in panels if any(value is not None for value in panel.values)]


def _top(values: Sequence[Sequence[float | None]]) -> float:
    """The next round number above all of them, half of which is round as well."""
    highest = max((value for group in values for value in group if value is not None), default=0.0)
    if highest <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(highest))
    return next(factor * power for factor in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if factor * power >= highest * 0.999)


def _beside(blocks: Sequence[Sequence[str]], width: int) -> list[str]:
    height = max(map(len, blocks))
    rows = [[*block, *[""] * (height - len(block))] for block in blocks]
    return [
        "".join(line + " " * (width - cell_width(line)) for line in row).rstrip() for row in zip(*rows, strict=True)
    ]


def _drawn(panel: _Panel, width: int) -> list[str]:
    try:
        import plotext
    except (ImportError, OSError):  # it comes with a compiled kernel, which not every machine can load
        return _as_text(panel, width)
    plotext.terminal.limit(False, False)  # a report is as wide as it is wide, whatever terminal it is made in
    return _plotted(plotext.figure, panel, width)


def _plotted(figure: Any, panel: _Panel, width: int) -> list[str]:
    places = range(1, len(panel.labels) + 1)
    known = [(place, value) for place, value in zip(places, panel.values, strict=True) if value is not None]
    at, heights = [place for place, _ in known], [value for _, value in known]
    figure.clear()
    figure.plot_size(width - 2, HEIGHT)
    figure.title(panel.title)
    if panel.dots:
        figure.draw(figure.signal(at, heights, marker=LINE).lines())
        pairs = [(place, value) for place, values in zip(places, panel.dots, strict=True) for value in values]
        figure.draw(figure.signal([place for place, _ in pairs], [value for _, value in pairs], marker=DOT))
    else:
        figure.draw(figure.bar(at, heights, width=0.5, marker=BARS))
    ticks = [0.0, panel.top / 2, panel.top]
    # From edge to edge, so that nothing measured has no bar.
    figure.ruler("y").lim(0, panel.top).alignment(lim="edge").ticks(ticks, [panel.show(tick) for tick in ticks])
    figure.ruler("x").lim(0.5, len(panel.labels) + 0.5).ticks(list(places), list(panel.labels))
    lines = [line.rstrip() for line in figure.build().string(colorless=True).splitlines()]
    figure.clear()
    return [line for line in lines if line]


def _as_text(panel: _Panel, width: int) -> list[str]:
    """Bars that lie, a line each, where plotext cannot be loaded."""
    wide = max(map(cell_width, panel.labels))
    shown = [panel.show(value) for value in panel.values]
    figures = max(map(cell_width, shown))
    lines = [panel.title.partition(":")[0]]
    for label, value, text in zip(panel.labels, panel.values, shown, strict=True):
        filled, _ = bar(value / panel.top if value else 0.0, width - wide - figures - 6)
        lines.append(f"{label}{' ' * (wide - cell_width(label))}  {text:>{figures}}  {filled}".rstrip())
    return lines
