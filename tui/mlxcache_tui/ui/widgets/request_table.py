"""The request table: one row for each request, live from the moment it is sent."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.timer import Timer

from mlxcache_tui.core.views import RequestRow
from mlxcache_tui.draw.columns import Layout, head_line
from mlxcache_tui.draw.request_lines import digits_of, request_layout, request_line
from mlxcache_tui.draw.signs import RESTARTED
from mlxcache_tui.draw.spans import Line, Span, fit_line, note_lines
from mlxcache_tui.ui.theme import CURSOR, CURSOR_BLURRED
from mlxcache_tui.ui.widgets.line_view import LineView

_EMPTY = "no request yet: write one below and press ^s"
_EMPTY_WATCHING = "watching only: requests of others appear here"
_REST_S = 1 / 3
_HERE = Span("▸", "strong")
_ELSEWHERE = Span(" ")
_EARLIER = Span(RESTARTED, "dim")


class RequestTable(LineView):
    """Rows under a head that stands still. The cursor stays on the last row until it is moved away from it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move_cursor(-1)", "Up", show=False, tooltip="The row above."),
        Binding("down,j", "move_cursor(1)", "Down", show=False, tooltip="The row below."),
        Binding("pageup", "move_page(-1)", "Page up", show=False, tooltip="A page up."),
        Binding("pagedown", "move_page(1)", "Page down", show=False, tooltip="A page down."),
        Binding("home,g", "move_end(-1)", "First", show=False, tooltip="The first row."),
        Binding("end,G", "move_end(1)", "Last", show=False, tooltip="The last row; new ones are followed."),
        Binding("enter", "open_request", "detail", key_display="enter", tooltip="Open the row's detail."),
    ]
    BORDER_TITLE = "Requests"

    cursor_key: reactive[str | None] = reactive(None, repaint=False)
    """Key of the request under the cursor."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._rows: tuple[RequestRow, ...] = ()
        self._resting: Timer | None = None
        self._waiting: tuple[RequestRow, ...] | None = None
        self._at = -1
        """Index of the row under the cursor, -1 while there is none."""
        self._note = _EMPTY
        self._wanted: str | None = None
        """Key of a request that gets the cursor once its row is there."""

    @property
    def idle_actions(self) -> frozenset[str]:
        """Without a row there is none to open."""
        return frozenset() if self._rows else frozenset({"open_request"})

    @property
    def rows(self) -> tuple[RequestRow, ...]:
        """The rows shown."""
        return self._rows

    def show(self, rows: tuple[RequestRow, ...], older: int = 0) -> None:
        """Draw the rows; of rows that changed only the cells that did are repainted. `older`: let go before them.

        Figures that run (tokens so far, their rate) are drawn three times a second at the most; what else changes (a
        new row, a phase) is drawn at once.
        """
        self._older = older
        note = f"{older} older ones are kept no more" if older else ""
        if note != self.border_subtitle:
            self.border_subtitle = note
        if self._resting is not None and not _urgent(self._rows, rows):
            self._waiting = rows
            return
        self._waiting = None
        if rows == self._rows:
            return
        old, self._rows = self._rows, rows
        if bool(old) != bool(rows):
            self.refresh_bindings()
        if self._resting is None and len(rows) == len(old):
            self._resting = self.set_timer(_REST_S, self._go_on)
        following = self._at == len(old) - 1
        self._sync_size()
        if gone := _gone(old, rows):
            self._move_up(gone)
        if not old or digits_of(old) != digits_of(rows) or not rows or rows[0].key != old[0].key:
            self.refresh()
        else:
            self._refresh_rows(old)
        self._place_cursor(following=following)

    def follow(self, key: str) -> None:
        """Put the cursor on the row of this request, which was just sent, once it is there."""
        self._wanted = key

    def say_when_empty(self, note: str) -> None:
        """What an empty table says."""
        if note != self._note:
            self._note = note
            self.refresh()

    def set_watch_only(self, watching: bool) -> None:
        """Whether nothing can be sent from here: what an empty table says."""
        self.say_when_empty(_EMPTY_WATCHING if watching else _EMPTY)

    def _go_on(self) -> None:
        self._resting = None
        if self._waiting is not None:
            self.show(self._waiting, self._older)

    # --- the cursor ---------------------------------------------------------------------------------------------------

    def _place_cursor(self, *, following: bool) -> None:
        if self._wanted is not None and (wanted := self._index_of(self._wanted)) >= 0:
            self._wanted = None
            self._set_cursor(wanted)
        elif following or self.cursor_key is None:
            self._set_cursor(len(self._rows) - 1)
        elif not (0 <= self._at < len(self._rows)) or self._rows[self._at].key != self.cursor_key:
            self._at = self._index_of(self.cursor_key)

    def _move_up(self, gone: int) -> None:
        """Rows at the top went: what is looked at stays where it is, and a cursor on one of them goes to the first."""
        self.scroll_to(y=max(0, self.scroll_offset.y - gone), animate=False, force=True)
        self._at -= gone
        if self._at < 0:
            self._set_cursor(0)

    def _index_of(self, key: str | None) -> int:
        return next((index for index, row in enumerate(self._rows) if row.key == key), -1)

    def _set_cursor(self, index: int) -> None:
        index = max(0, min(index, len(self._rows) - 1))
        self.cursor_key = self._rows[index].key if self._rows else None

    def watch_cursor_key(self, key: str | None) -> None:
        """Draw the cursor where it is now, scroll there and tell."""
        before = self._at
        near = before + 1 if 0 <= before + 1 < len(self._rows) else before
        candidates = (len(self._rows) - 1, near, max(0, before - 1))
        # Nearly always the last row or a neighbour: the long way round is for a key that is set from outside.
        self._at = next((i for i in candidates if 0 <= i < len(self._rows) and self._rows[i].key == key), -1)
        if self._at < 0:
            self._at = self._index_of(key)
        for index in {before, self._at}:
            if index >= 0:
                self._refresh_row(index)
        if self._at >= 0 and key is not None:
            self._scroll_to_cursor()
            self.post_message(self.RequestSelected(key))

    def _scroll_to_cursor(self) -> None:
        top, page = self.scroll_offset.y, self._page
        if self._at < top:
            self.scroll_to(y=self._at, animate=False, force=True)
        elif self._at >= top + page:
            self.scroll_to(y=self._at - page + 1, animate=False, force=True)

    def _sync_size(self) -> None:
        """Tell the scroll bar how many rows there are. As long as all fit, nothing changes, so nothing is repainted."""
        self.virtual_size = Size(self.size.width, max(len(self._rows) + 1, self.size.height))

    @property
    def _page(self) -> int:
        return max(1, self.size.height - 1)

    def on_resize(self) -> None:
        """Keep the cursor in sight, and the last row at the bottom while it is under the cursor."""
        self._sync_size()
        if self._at >= 0:
            self._scroll_to_cursor()

    def on_focus(self) -> None:
        """Show the cursor as the one that the keys move."""
        self._refresh_row(self._at)

    def on_blur(self) -> None:
        """Show the cursor as one at rest."""
        self._refresh_row(self._at)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the row; a double click opens it."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y < 1:
            return
        index = self.scroll_offset.y + offset.y - 1
        if index < len(self._rows):
            self._set_cursor(index)
            if event.chain == 2:
                self.action_open_request()

    def action_move_cursor(self, step: int) -> None:
        """Move by rows."""
        if self._rows:
            self._set_cursor(self._at + step)

    def action_move_page(self, step: int) -> None:
        """Move by pages."""
        if self._rows:
            self._set_cursor(self._at + step * self._page)

    def action_move_end(self, step: int) -> None:
        """Move to the first or the last row."""
        self._set_cursor(len(self._rows) - 1 if step > 0 else 0)

    def action_open_request(self) -> None:
        """Ask for the detail of the row."""
        if self.cursor_key is not None:
            self.post_message(self.RequestOpened(self.cursor_key))

    # --- drawing ------------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """The head, a row, or nothing."""
        width = self.columns
        if y == 0:
            return self.strip(fit_line((_ELSEWHERE, *head_line(self._layout)), width))
        index = self.scroll_offset.y + y - 1
        if index < len(self._rows):
            ground = "" if index != self._at else CURSOR if self.has_focus else CURSOR_BLURRED
            return self.strip(self._line(self._rows[index], here=index == self._at), ground)
        if not self._rows:
            return self.strip(note_lines(self._note, width, self.size.height - 1)[y - 1])
        return Strip.blank(width, self.rich_style)

    @property
    def _layout(self) -> Layout:
        return request_layout(max(1, self.columns - 1), digits_of(self._rows))

    def _line(self, row: RequestRow, *, here: bool) -> Line:
        mark = _HERE if here else _EARLIER if row.earlier else _ELSEWHERE
        return fit_line((mark, *request_line(row, self._layout)), self.columns)

    def _refresh_row(self, index: int) -> None:
        y = index - self.scroll_offset.y + 1
        if index >= 0 and 1 <= y < self.size.height:
            self.refresh_line(index + 1)

    def _refresh_rows(self, old: tuple[RequestRow, ...]) -> None:
        """Repaint what changed of the rows in sight."""
        top = self.scroll_offset.y
        for index in range(top, top + self._page):
            before = old[index] if index < len(old) else None
            after = self._rows[index] if index < len(self._rows) else None
            if before is after or before == after:
                continue
            if before is None or after is None:
                self._refresh_row(index)
            else:
                here = index == self._at
                old_line, new_line = self._line(before, here=here), self._line(after, here=here)
                self.refresh_changes(index - top + 1, old_line, new_line)

    class RequestSelected(Message):
        """The cursor moved to a request."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class RequestOpened(Message):
        """A request's detail is asked for."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key


def _urgent(old: tuple[RequestRow, ...], new: tuple[RequestRow, ...]) -> bool:
    """Whether more changed than figures that run."""
    if len(old) != len(new) or (new and old[-1].key != new[-1].key):
        return True
    return any(a is not b and (a.phase != b.phase or a.why != b.why) for a, b in zip(old, new, strict=True))


def _gone(old: tuple[RequestRow, ...], new: tuple[RequestRow, ...]) -> int:
    """How many of the oldest rows were let go; 0 where all are others."""
    if not old or not new or old[0].key == new[0].key:
        return 0
    return next((index for index, row in enumerate(old) if row.key == new[0].key), 0)
