"""The phases of one request as bars on a common scale of seconds."""

from mlxcache_tui.core.units import human_duration
from mlxcache_tui.core.views import Phase

EIGHTHS = " ▏▎▍▌▋▊▉"
NAME_CELLS = 10
TIME_CELLS = 10
LEAST_BAR = 8


def draw_timeline(phases: tuple[Phase, ...], width: int) -> list[str]:
    """One line for each phase (name, bar, seconds), then the scale; all lines are at most `width` cells.

    Bars begin in the cell where their phase begins, end exact to an eighth of a cell, and are never empty, so that a
    phase of a millisecond can still be seen. Without phases one line says so.
    """
    if not phases:
        return ["nothing was sent yet"]
    begin = min(phase.start_s for phase in phases)
    end = max(phase.end_s for phase in phases)
    bar_cells = max(width - NAME_CELLS - TIME_CELLS, LEAST_BAR)
    span = end - begin or 1.0
    lines = []
    for phase in phases:
        bar = _bar((phase.start_s - begin) / span * bar_cells, (phase.end_s - begin) / span * bar_cells, bar_cells)
        seconds = human_duration(phase.end_s - phase.start_s)
        lines.append(f"{phase.name:<{NAME_CELLS}}{bar:<{bar_cells}}{seconds:>{TIME_CELLS}}"[:width])
    total = human_duration(end - begin)
    # The bars start where the connection was opened; t0, from which the times count, comes after it.
    scale = "0" + "─" * (bar_cells - 2) + "┤"
    lines.append(f"{'':<{NAME_CELLS}}{scale}{total:>{TIME_CELLS}}"[:width])
    return lines


def _bar(start: float, end: float, cells: int) -> str:
    first = min(int(start), cells - 1)
    eighths = max(round((min(end, cells) - first) * 8), 1)
    full, part = divmod(eighths, 8)
    return " " * first + "█" * full + (EIGHTHS[part] if part else "")
