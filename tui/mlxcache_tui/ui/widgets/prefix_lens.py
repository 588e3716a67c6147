"""The prefix lens: a prompt as the server saw it, beside (where it is narrow: below) the one it is compared with."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from mlxcache_tui.core.views import LensView
from mlxcache_tui.draw.lens_lines import LensRows, head_lines, lens_rows, other_name, row_line
from mlxcache_tui.draw.spans import Line, Span, fit_line
from mlxcache_tui.ui.widgets.line_view import LineView

BESIDE = 90
"""Cells from which on the two prompts stand side by side."""
ABOVE = 4
"""Lines shown above the first difference when it is jumped to."""


class PrefixLens(LineView):
    """Draws a `LensView`. Both prompts scroll as one; the heads stand still."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "difference", "difference", tooltip="Go to the first difference."),
        Binding("left_square_bracket", "choose(-1)", "compare", key_display="[ ]", tooltip="Compare with another one."),
        Binding("right_square_bracket", "choose(1)", "compare", show=False, key_display="[ ]"),
    ]
    DEFAULT_CSS = """
    PrefixLens { height: 1fr; padding: 0 1; scrollbar-gutter: stable; }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._view: LensView | None = None
        self._rows = LensRows([], [], None, None)
        self._top: list[Line] = []
        self._beside = False
        self._drawn_for = 0
        self._jump = False

    @property
    def text(self) -> str:
        """Heads and this prompt's lines as they are wrapped now."""
        lines = ["".join(span.text for span in line).rstrip() for line in self._top]
        return "\n".join([*lines, *(row.text for row in self._rows.ours)])

    def show(self, view: LensView) -> None:
        """Draw a view; another request (or another beside it) is opened where they part."""
        if view == self._view:
            return
        old, self._view = self._view, view
        self._draw()
        if old is None or (old.key, old.other_key, old.exact) != (view.key, view.other_key, view.exact):
            # While it is hidden it has no size, and nowhere to scroll to.
            self._jump = True
            self.call_after_refresh(self._open_at_difference)

    def on_resize(self) -> None:
        """Wrap for the new width."""
        if self._view is not None and self.columns != self._drawn_for:
            self._draw()
        else:
            self._measure()
        self.call_after_refresh(self._open_at_difference)

    def _open_at_difference(self) -> None:
        if self._jump and self._drawn_for and self.size:
            self._jump = False
            self.action_difference()

    def _draw(self) -> None:
        view, width = self._view, self.columns
        if view is None or width <= 0:
            return
        self._drawn_for = width
        compared = view.other_key is not None
        self._beside = compared and width >= BESIDE
        self._rows = lens_rows(view, (width - 1) // 2 if self._beside else width)
        self._top = head_lines(view, width)
        if self._beside:
            left, right = f"#{view.number}, as it was sent now", other_name(view)
            half = (width - 1) // 2
            heads = (*fit_line((Span(left, "head"),), half), Span(" "), Span(right, "head"))
            self._top.append(fit_line(heads, width))
        self._measure()
        self.refresh()

    def _measure(self) -> None:
        lines = max(len(self._rows.ours), len(self._rows.theirs))
        self.virtual_size = Size(self.size.width, lines + self.size.height - self._body_height())

    def _body_height(self) -> int:
        """Lines of text that are seen of each prompt."""
        room = max(1, self.size.height - len(self._top))
        return max(1, (room - 2) // 2) if self._stacked else room

    @property
    def _stacked(self) -> bool:
        return self._view is not None and self._view.other_key is not None and not self._beside

    def render_line(self, y: int) -> Strip:
        """A line of the heads, or one of both prompts."""
        width = self.columns
        if self._view is None:
            return Strip.blank(width, self.rich_style)
        if y < len(self._top):
            return self.strip(self._top[y])
        index = y - len(self._top)
        offset = self.scroll_offset.y
        if not self._stacked:
            return self.strip(self._row(index + offset, width))
        body = self._body_height()
        if index in (0, body + 1):
            name = other_name(self._view) if index == 0 else f"#{self._view.number}, as it was sent now"
            return self.strip(fit_line((Span(name, "head"),), width))
        above = index <= body
        rows = self._rows.theirs if above else self._rows.ours
        number = (index - 1 if above else index - body - 2) + offset
        inside = number < len(rows) and (above or index - body - 2 < body)
        return self.strip(row_line(rows[number] if inside else None, width))

    def _row(self, number: int, width: int) -> Line:
        ours, theirs = self._rows.ours, self._rows.theirs
        left = ours[number] if number < len(ours) else None
        if not self._beside:
            return row_line(left, width)
        half = (width - 1) // 2
        right = theirs[number] if number < len(theirs) else None
        return (*row_line(left, half), Span(" "), *fit_line(row_line(right, half), width - half - 1))

    # --- actions -----------------------------------------------------------------------------------------------------

    def action_difference(self) -> None:
        """Scroll to the first difference; where there is none, to the end of what was reused."""
        rows = self._rows
        at = rows.difference if rows.difference is not None else rows.reuse_end
        self.scroll_to(y=max(0, (at or 0) - ABOVE), animate=False, force=True)

    def action_choose(self, by: int) -> None:
        """Ask for the next request to compare with, round and round."""
        view = self._view
        if view is None or not view.others:
            return
        at = view.others.index(view.other_key) if view.other_key in view.others else -by
        self.post_message(self.Chosen(view.others[(at + by) % len(view.others)]))

    class Chosen(Message):
        """Another request to compare with is wanted."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key
