"""The lines of the log pane: a window on a bounded buffer that follows the end or is held where the reader is."""

from bisect import bisect_right
from typing import ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from mlxcache_tui.core.views import LogView
from mlxcache_tui.draw.log_buffer import LogBuffer, LogFilter
from mlxcache_tui.draw.log_lines import GUTTER, log_line, text_width
from mlxcache_tui.draw.spans import note_lines
from mlxcache_tui.ui.widgets.line_view import LineView

_SIDE_STEP = 8
_REST_S = 1 / 3
_NO_LINE = "no line passes the filter"


class LogLines(LineView):
    """Draws the lines in sight. `following`: at the end, and staying there; else `new` counts what came since."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move_line(-1)", "Up", show=False),
        Binding("down,j", "move_line(1)", "Down", show=False),
        Binding("pageup", "move_page(-1)", "Page up", show=False),
        Binding("pagedown", "move_page(1)", "Page down", show=False),
        Binding("home,g", "move_first", "First line", show=False),
        Binding("end,G", "follow_end", "Follow", show=False),
        Binding("left", "move_sideways(-1)", "Left", show=False),
        Binding("right", "move_sideways(1)", "Right", show=False),
        Binding("enter", "toggle_fold", "Unfold", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.following = True
        self.new = 0
        self._buffer = LogBuffer()
        self._view: LogView | None = None
        self._resting: Timer | None = None
        self._waiting: LogView | None = None
        self._at = -1
        self._in_sight = True
        """Whether the reader left the cursor's line in sight; a layout may scroll it away on its way to a size."""
        self._height = 0
        """What the window was last placed for: until it is again, scrolling is the layout's, not the reader's."""
        self._left = 0
        self._needle = ""
        self.place, self.matches = 0, 0
        """Which match the reader was last taken to (0: none yet), and how many there were then."""
        self._highlighted: int | None = None

    @property
    def wanted(self) -> LogFilter:
        """The filter in force."""
        return self._buffer.wanted

    def show(self, view: LogView) -> None:
        """Take in the view: the work is that of the lines that are new and in sight.

        After lines that went by unread (more at once than are in sight) the next ones wait for a third of a second.
        """
        if self._resting is not None:
            self._waiting = view
            return
        old = self._view
        self._view = view
        if old is not None and (view.rows is old.rows or view.rows == old.rows):
            if view.source != old.source and not view.rows:
                self.refresh()
            return
        change = self._buffer.update(view.rows, hold=not self.following)
        if change.added > self.size.height > 0 and old is not None:
            self._resting = self.set_timer(_REST_S, self._go_on)
        if self.following:
            self._follow(first=change.first, moved=bool(change.dropped) or not old)
            return
        if change.dropped:
            self._at = max(0, self._at - change.dropped)
            self._sync_size()
            self.scroll_to(y=max(0, self.scroll_offset.y - change.dropped), animate=False, force=True)
            self.refresh()
        elif self.scroll_offset.y >= self.max_scroll_y:
            self._sync_size()  # else the wheel could not go on from here
        self.new += change.added
        self._refresh_from(change.first)

    def _go_on(self) -> None:
        self._resting = None
        view, self._waiting = self._waiting, None
        if view is not None:
            self.show(view)
            self.post_message(self.Moved())

    def _follow(self, *, first: int, moved: bool) -> None:
        """Show the end: the lines from `first` on are new, all are if they `moved`."""
        self._at = len(self._buffer.lines) - 1
        top = self.scroll_offset.y
        self._sync_size()
        self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)
        if moved or self.scroll_offset.y != top:
            self.refresh()
        else:
            # The line that had the cursor's sign before changes too.
            self._refresh_from(first - 1)

    def highlight(self, request: int | None) -> None:
        """Mark the lines of one request."""
        if request != self._highlighted:
            self._highlighted = request
            self.refresh()

    def search(self, needle: str) -> None:
        """Mark a text wherever it stands; empty: none."""
        if needle.casefold() != self._needle:
            self._needle = needle.casefold()
            self.place, self.matches = 0, len(self._buffer.places(needle)) if needle else 0
            self.refresh()

    def seek(self, step: Literal[1, -1], *, inclusive: bool = False) -> bool:
        """Go to the next line that holds the text searched for, unfolding a traceback that does; False if none does."""
        if not self._needle:
            return False
        start = self._at if inclusive else self._at + step
        found = self._buffer.find(self._needle, start, step)
        if found is None:
            return False
        if self._buffer.toggle_if_folded(found):
            self._all_new()
            found = self._buffer.find(self._needle, found, 1) or found
        places = self._buffer.places(self._needle)
        self.place, self.matches = bisect_right(places, self._buffer.lines[found].seq), len(places)
        self._go(found, follow=False)
        return True

    def filter(self, wanted: LogFilter) -> None:
        """Show other lines; the line of the cursor stays if it still passes."""
        line = self._buffer.lines[self._at] if 0 <= self._at < len(self._buffer.lines) else None
        self._buffer.filter(wanted)
        self._all_new()
        count = len(self._buffer.lines)
        if self.following or line is None:
            self._go(count - 1, follow=True)
        else:
            seq = line.seq
            self._go(
                next((i for i, other in enumerate(self._buffer.lines) if other.seq >= seq), count - 1), follow=False
            )

    # --- moving -------------------------------------------------------------------------------------------------------

    def _sync_size(self) -> None:
        """Tell the scroll bar how many lines there are.

        This repaints everything, so it is left out while nothing moves: as long as all lines fit, and while held.
        """
        self.virtual_size = Size(self.size.width, max(len(self._buffer.lines), self.size.height))

    def _all_new(self) -> None:
        self._sync_size()
        self.refresh()

    def _go(self, index: int, *, follow: bool | None = None) -> None:
        """Put the cursor on a line and bring it into sight. `follow` None: follow if it is the last line."""
        self._sync_size()
        last = len(self._buffer.lines) - 1
        index = max(0, min(index, last))
        before, self._at = self._at, index
        top, page = self.scroll_offset.y, max(1, self.size.height)
        if index < top:
            self.scroll_to(y=index, animate=False, immediate=True, force=True)
        elif index >= top + page:
            self.scroll_to(y=index - page + 1, animate=False, immediate=True, force=True)
        for line in (before, index):
            if line >= 0:
                self.refresh_line(line)
        self._in_sight = True
        self._set_following(index == last if follow is None else follow)

    def _set_following(self, following: bool) -> None:
        if following:
            self.new = 0
        self.following = following
        self.post_message(self.Moved())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow while the end is in sight, hold when the reader scrolls away from it."""
        super().watch_scroll_y(old_value, new_value)
        if self.size.height != self._height:
            return
        self._sync_size()
        self._in_sight = 0 <= self._at - round(new_value) < self.size.height
        at_end = round(new_value) >= self.max_scroll_y
        if at_end != self.following and round(old_value) != round(new_value):
            if at_end:
                self._at = len(self._buffer.lines) - 1
            self._set_following(at_end)

    def on_resize(self) -> None:
        """Keep the end in sight while following, else the line of the cursor if it was."""
        self._all_new()
        self._height = self.size.height
        if self.following:
            self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)
        elif self._in_sight:
            self._go(self._at, follow=False)

    def on_focus(self) -> None:
        """Show the line that enter acts on."""
        self.refresh()

    def on_blur(self) -> None:
        """Take its sign away."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Go to the line; a traceback folds or unfolds."""
        offset = event.get_content_offset(self)
        if offset is not None and (index := self.scroll_offset.y + offset.y) < len(self._buffer.lines):
            self._go(index)
            self.action_toggle_fold()

    def action_move_line(self, step: int) -> None:
        """Move by lines, from the line in sight that is nearest to where the cursor was."""
        top = self.scroll_offset.y
        seen = max(top, min(self._at, top + max(1, self.size.height) - 1))
        self._go(seen + step)

    def action_move_page(self, step: int) -> None:
        """Move by pages."""
        self._go(self._at + step * max(1, self.size.height - 1))

    def action_move_first(self) -> None:
        """Go to the oldest line that is kept."""
        self._go(0)

    def action_follow_end(self) -> None:
        """Go to the newest line and stay with what comes."""
        self._go(len(self._buffer.lines) - 1, follow=True)

    def action_move_sideways(self, step: int) -> None:
        """Show what was cut on the right, as far as the lines in sight go."""
        top = self.scroll_offset.y
        seen = self._buffer.lines[top : top + self.size.height]
        most = max((text_width(line) for line in seen), default=0) - (self.columns - GUTTER)
        left = max(0, min(self._left + step * _SIDE_STEP, most + 1 if most > 0 else 0))
        if left != self._left:
            self._left = left
            self.refresh()

    def action_toggle_fold(self) -> None:
        """Fold or unfold the traceback at the cursor."""
        head = self._buffer.toggle(self._at)
        if head is not None:
            self._all_new()
            self._go(head)

    # --- drawing ------------------------------------------------------------------------------------------------------

    def _refresh_from(self, index: int) -> None:
        """Repaint the lines in sight from a line on."""
        top = self.scroll_offset.y
        first = max(index, top)
        if first < top + self.size.height:
            self.refresh_lines(first, top + self.size.height - first)

    def render_line(self, y: int) -> Strip:
        """A line of the log, or the note of an empty one."""
        width = self.columns
        index = self.scroll_offset.y + y
        if index < len(self._buffer.lines):
            line = log_line(
                self._buffer.lines[index],
                width,
                left=self._left,
                needle=self._needle,
                highlighted=self._highlighted,
                here=index == self._at and self.has_focus,
            )
            return self.strip(line)
        if not self._buffer.lines and self._view is not None:
            note = _NO_LINE if self._view.rows else self._view.source
            return self.strip(note_lines(note, width, self.size.height)[y])
        return Strip.blank(width, self.rich_style)

    class Moved(Message):
        """The window follows the end or is held now."""
