"""Text fields that never hold a control character: what is pasted is cleaned on its way in.

Their cursor does not blink: each blink sends the line anew, and a screen on which nothing changes sends nothing.
"""

from textual import events
from textual.widgets import Input, TextArea

from mlxcache_tui.core.text import clean, clean_block


class PlainArea(TextArea):
    """A text area without decoration; tab leaves it."""

    DEFAULT_CSS = """
    PlainArea {
        padding: 0;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
    }
    """

    def __init__(self, text: str = "", *, id: str | None = None, placeholder: str = "") -> None:  # noqa: A002
        super().__init__(text, id=id, compact=True, highlight_cursor_line=False, placeholder=placeholder)
        self.cursor_blink = False

    def on_resize(self) -> None:
        """Draw again: Textual wraps after it has drawn, and lets that stand where the height stays the same."""
        self.refresh()

    def on_paste(self, event: events.Paste) -> None:
        """Insert the cleaned text in place of the selection."""
        event.prevent_default()
        event.stop()
        self._insert_clean(event.text)

    def action_paste(self) -> None:
        """Paste what was copied inside the program."""
        self._insert_clean(self.app.clipboard)

    def _insert_clean(self, text: str) -> None:
        start, end = self.selection
        result = self.replace(clean_block(text), start, end, maintain_selection_offset=False)
        self.move_cursor(result.end_location)


class PlainInput(Input):
    """A one-line field without a border."""

    DEFAULT_CSS = """
    PlainInput { padding: 0; }
    """

    def __init__(
        self,
        value: str = "",
        *,
        id: str | None = None,  # noqa: A002 - Textual's own name
        placeholder: str = "",
        max_length: int = 0,
        digits: bool = False,
        replace: bool = False,
    ) -> None:
        """`digits` takes nothing else. What is typed first replaces what stands in it where it is of digits, or
        `replace`."""
        super().__init__(
            value,
            id=id,
            placeholder=placeholder,
            max_length=max_length,
            restrict=r"[0-9]*" if digits else None,
            compact=True,
            select_on_focus=digits or replace,
        )
        self.cursor_blink = False

    def on_paste(self, event: events.Paste) -> None:
        """Insert the first line of the cleaned text at the cursor."""
        event.prevent_default()
        event.stop()
        self._insert_clean(event.text)

    def action_paste(self) -> None:
        """Paste what was copied inside the program."""
        self._insert_clean(self.app.clipboard)

    def _insert_clean(self, text: str) -> None:
        lines = clean(text).splitlines()
        if lines:
            self.replace(lines[0], *sorted(self.selection))
