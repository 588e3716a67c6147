"""The replay's line: state, speed, time of day, a time line with its marks, and where among events and requests."""

from datetime import UTC, datetime

from mlxcache_tui.core.playback import PlaybackView
from mlxcache_tui.draw.signs import EVICTED, RESTARTED
from mlxcache_tui.draw.spans import Line, Look, Span, fit_line, line_width

LEAST_BAR = 12
_STATES: dict[str, Span] = {
    "playing": Span("▶", "good"),
    "paused": Span("‖ paused", "strong"),
    "following": Span("● following", "good"),
    "reading": Span("◌ reading", "info"),
}
_MARKS: dict[str, Span] = {"eviction": Span(EVICTED, "bad"), "restart": Span(RESTARTED, "warn")}


def replay_line(view: PlaybackView, width: int) -> Line:
    """The line in exactly `width` cells. Parts are left out from the right of the bar as the width goes."""
    if view.note:
        return fit_line((Span(" "), _STATES[view.state], Span("  "), Span(view.note)), width)
    left, bar = _left(view), bar_cells(view, width)
    if bar is None:
        return fit_line(left, width)
    start, size = bar
    rest = _right(view, width - start - size)
    return fit_line((*left, *_bar(view, size), *rest), width)


def bar_cells(view: PlaybackView, width: int) -> tuple[int, int] | None:
    """First cell and length of the time line, for the mouse; None where it has no room, or a note is there."""
    if view.note:
        return None
    start = line_width(_left(view))
    size = width - start - line_width(_right(view, width))
    if size < LEAST_BAR:
        size = width - start
    return (start, size) if size >= LEAST_BAR else None


def damage_line(damage: str, width: int) -> Line:
    """What of the file could not be shown, and where that is."""
    return fit_line((Span("✗ ", "bad"), Span(damage)), width)


def _left(view: PlaybackView) -> Line:
    speed = "as fast as it goes" if view.speed is None else f"{view.speed:g}×"
    state = _STATES[view.state]
    parts = (
        [Span(" "), state, Span(f" {speed}  ")]
        if view.state in ("playing", "paused")
        else [Span(" "), state, Span("  ")]
    )
    if view.wall_ns is not None:
        moment = datetime.fromtimestamp((view.wall_ns + view.at_ns - view.start_ns) / 1e9, UTC).astimezone()
        parts.append(Span(f"{moment:%H:%M:%S}  ", "strong"))
    return (*parts, Span(f"{_clock(view.at_ns - view.start_ns)} ", "info"))


def _right(view: PlaybackView, room: int) -> Line:
    total = Span(f" {_clock(view.end_ns - view.start_ns)}", "dim")
    place = Span(f"  #{view.request} of {view.requests}  event {view.position} of {view.count} ")
    return next((line for line in ((total, place), (total,)) if line_width(line) <= room), ())


def _bar(view: PlaybackView, size: int) -> Line:
    span = max(1, view.end_ns - view.start_ns)

    def cell(at_ns: int) -> int:
        return min(size - 1, max(0, (at_ns - view.start_ns) * (size - 1) // span))

    here = cell(view.at_ns)
    cells: list[Span] = [Span("━", "bar") if index < here else Span("─", "rest") for index in range(size)]
    for index, kind in {cell(at_ns): kind for at_ns, kind in view.marks}.items():
        cells[index] = _MARKS[kind]
    look: Look = "accent"
    cells[here] = Span("●", look)
    return tuple(_joined(cells))


def _joined(cells: list[Span]) -> list[Span]:
    """Neighbours of one look as one span."""
    joined: list[Span] = []
    for cell in cells:
        if joined and joined[-1].look == cell.look:
            joined[-1] = Span(joined[-1].text + cell.text, cell.look)
        else:
            joined.append(cell)
    return joined


def _clock(nanoseconds: int) -> str:
    """`1:05`, `2:03:04`: minutes and seconds, with hours where there are some."""
    seconds = max(0, nanoseconds) // 10**9
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
