"""The replay's line below the panes: where in the recording the screen stands. A click on the time line goes there."""

from textual import events
from textual.message import Message
from textual.strip import Strip

from mlxcache_tui.core.playback import PlaybackView
from mlxcache_tui.draw.replay_line import bar_cells, damage_line, replay_line
from mlxcache_tui.draw.spans import Line, line_width
from mlxcache_tui.ui.widgets.line_view import LineView


class ReplayBar(LineView, can_focus=False):
    """One line; a second one where the file is damaged, which says where."""

    DEFAULT_CSS = """
    ReplayBar {
        height: 1;
        overflow: hidden;
        background: $panel;
        &.-damaged { height: 2; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._view: PlaybackView | None = None
        self._line: Line = ()

    def show(self, view: PlaybackView) -> None:
        """Draw the view; only the cells that changed are repainted."""
        old, self._view = self._view, view
        if view == old:
            return
        self.set_class(view.damage is not None, "-damaged")
        width = self.size.width
        if not self._line or line_width(self._line) != width or old is None or old.damage != view.damage:
            self._line = ()
            self.refresh()
        else:
            before = self._line
            self._line = replay_line(view, width)
            self.refresh_changes(0, before, self._line)

    def render_line(self, y: int) -> Strip:
        """The line, or the damage below it."""
        width = self.size.width
        if self._view is None or y > 1 or (y == 1 and self._view.damage is None):
            return Strip.blank(width, self.rich_style)
        if y == 1:
            return self.strip(damage_line(self._view.damage or "", width))
        if not self._line or line_width(self._line) != width:
            self._line = replay_line(self._view, width)
        return self.strip(self._line)

    def on_click(self, event: events.Click) -> None:
        """A click on the time line."""
        cells = bar_cells(self._view, self.size.width) if self._view is not None else None
        if cells is not None and event.y == 0 and cells[0] <= event.x < cells[0] + cells[1]:
            self.post_message(self.Sought((event.x - cells[0]) / max(1, cells[1] - 1)))

    class Sought(Message):
        """A place on the time line was pointed at: 0 is the start, 1 the end."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share
