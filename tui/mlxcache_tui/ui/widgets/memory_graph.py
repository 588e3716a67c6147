"""The memory of the server process over time, with what happened to it."""

from bisect import bisect_left

from textual.strip import Strip

from mlxcache_tui.core.views import MemoryView
from mlxcache_tui.draw.memory_lines import memory_lines
from mlxcache_tui.draw.spans import Line
from mlxcache_tui.ui.widgets.line_view import LineView


class MemoryGraph(LineView):
    """A graph with its figures. It grows to the right; when it is full, more samples share a column."""

    DEFAULT_CSS = """
    MemoryGraph { overflow: hidden; }
    """
    BORDER_TITLE = "Memory"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._view: MemoryView | None = None
        self._dropped = 0
        """Samples that were shown once and are no longer kept."""
        self._lines: list[Line] = []

    def show(self, view: MemoryView, now_ns: int) -> None:  # noqa: ARG002 - the axis counts from the last sample
        """Draw the view; only the cells that changed are repainted."""
        if view == self._view:
            return
        self._dropped = _dropped(self._view, view, self._dropped)
        self._view = view
        old = self._lines
        self._draw()
        if len(old) != len(self._lines):
            self.refresh()
            return
        for y, (before, after) in enumerate(zip(old, self._lines, strict=True)):
            self.refresh_changes(y, before, after)

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._draw()
        self.refresh()

    def _draw(self) -> None:
        if self._view is not None:
            self._lines = memory_lines(self._view, self.size.width, self.size.height, self._dropped)

    def render_line(self, y: int) -> Strip:
        """A line of the pane."""
        return self.strip(self._lines[y]) if y < len(self._lines) else Strip.blank(self.size.width, self.rich_style)


def _dropped(old: MemoryView | None, new: MemoryView, before: int) -> int:
    """How many samples came before the first one of `new`, given how many came before the first of `old`."""
    if old is None or not old.points or not new.points:
        return 0
    gone = bisect_left(old.points, new.points[0].at_ns, key=lambda point: point.at_ns)
    return before + gone if gone < len(old.points) else 0
