"""The recorded sessions, one a line, with a cursor, and the letter of the side that each was taken as."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from mlxcache_tui.core.compare_view import SessionRow
from mlxcache_tui.draw.session_lines import session_head, session_line
from mlxcache_tui.draw.spans import note_lines
from mlxcache_tui.ui.theme import CURSOR, CURSOR_BLURRED
from mlxcache_tui.ui.widgets.line_view import LineView

READING = "reading the sessions …"
EMPTY = "no session was recorded yet: name two results of run --json"


class SessionList(LineView):
    """Rows under a head that stands still. Sessions are added as they are read; the cursor stays where it is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move_cursor(-1)", "Up", show=False),
        Binding("down,j", "move_cursor(1)", "Down", show=False),
        Binding("pageup", "move_page(-1)", "Page up", show=False),
        Binding("pagedown", "move_page(1)", "Page down", show=False),
        Binding("home,g", "move_end(-1)", "First", show=False),
        Binding("end,G", "move_end(1)", "Last", show=False),
        Binding("enter", "take", "Take", show=False),
    ]
    DEFAULT_CSS = "SessionList { scrollbar-gutter: stable; }"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._rows: list[SessionRow] = []
        self._sides: dict[str, str] = {}
        self._at = 0
        self._note = READING

    @property
    def rows(self) -> tuple[SessionRow, ...]:
        """The sessions shown."""
        return tuple(self._rows)

    @property
    def chosen(self) -> SessionRow | None:
        """The session under the cursor."""
        return self._rows[self._at] if self._rows else None

    def add(self, row: SessionRow) -> None:
        """One more session, at the end."""
        self._rows.append(row)
        self._measure()
        self.refresh()

    def finish(self) -> None:
        """All of them are there."""
        self._note = EMPTY
        self.refresh()

    def mark(self, sides: dict[str, str]) -> None:
        """Which sessions (by `wanted`) are taken as A and B."""
        if sides != self._sides:
            self._sides = sides
            self.refresh()

    def on_resize(self) -> None:
        """The columns follow the width."""
        self._measure()
        self.refresh()

    def _measure(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows) + 1)

    # --- the cursor ---------------------------------------------------------------------------------------------------

    def action_move_cursor(self, step: int) -> None:
        """One row up or down."""
        self._go(self._at + step)

    def action_move_page(self, step: int) -> None:
        """A page up or down."""
        self._go(self._at + step * max(1, self.size.height - 2))

    def action_move_end(self, step: int) -> None:
        """The first or the last row."""
        self._go(0 if step < 0 else len(self._rows) - 1)

    def _go(self, index: int) -> None:
        self._at = max(0, min(index, len(self._rows) - 1))
        top, room = self.scroll_offset.y, max(1, self.size.height - 1)
        if not top <= self._at < top + room:
            self.scroll_to(y=self._at if self._at < top else self._at - room + 1, animate=False, force=True)
        self.refresh()

    def action_take(self) -> None:
        """Take the session under the cursor."""
        if self.chosen is not None:
            self.post_message(self.Taken(self.chosen))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on a row; a click where it is takes the session."""
        offset = event.get_content_offset(self)
        index = -1 if offset is None or offset.y < 1 else offset.y - 1 + self.scroll_offset.y
        if not 0 <= index < len(self._rows):
            return
        if index == self._at:
            self.action_take()
        else:
            self._go(index)

    # --- drawing ------------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """The head, or a session."""
        width = self.columns
        if not self._rows:
            return self.strip(note_lines(self._note, width, self.size.height)[y])
        if y == 0:
            return self.strip(session_head(width))
        index = y - 1 + self.scroll_offset.y
        if index >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        row = self._rows[index]
        at = index == self._at
        ground = "" if not at else CURSOR if self.has_focus else CURSOR_BLURRED
        return self.strip(session_line(row, self._sides.get(row.wanted, ""), width, cursor=at), ground)

    class Taken(Message):
        """A session was taken."""

        def __init__(self, row: SessionRow) -> None:
            super().__init__()
            self.row = row
