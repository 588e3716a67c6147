"""The line at the top: which server, what it is doing, how much was reused."""

from textual.strip import Strip

from mlxcache_tui.core.views import StatusView
from mlxcache_tui.draw.spans import Line
from mlxcache_tui.draw.status_line import status_line
from mlxcache_tui.ui.widgets.line_view import LineView


class StatusBar(LineView, can_focus=False):
    """One line that fits any width."""

    DEFAULT_CSS = """
    StatusBar {
        height: 1;
        overflow: hidden;
        background: $panel;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._view: StatusView | None = None
        self._drawn: tuple[int, Line] = (0, ())

    def show(self, view: StatusView) -> None:
        """Draw the view; only the cells that changed are repainted."""
        if view == self._view:
            return
        self._view = view
        width, old = self._drawn
        if width and width == self.size.width:
            self.refresh_changes(0, old, self._draw(width))
        else:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The line."""
        width = self.size.width
        if y or self._view is None:
            return Strip.blank(width, self.rich_style)
        return self.strip(self._drawn[1] if self._drawn[0] == width else self._draw(width))

    def _draw(self, width: int) -> Line:
        assert self._view is not None
        line = status_line(self._view, width)
        self._drawn = (width, line)
        return line
