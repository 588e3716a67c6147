"""The server's log: following or held, searched, filtered, tracebacks folded, the selected request's lines marked."""

from typing import ClassVar, Literal, Self

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from mlxcache_tui.core.views import LogView
from mlxcache_tui.draw.log_buffer import LogFilter
from mlxcache_tui.ui.widgets.fields import PlainInput
from mlxcache_tui.ui.widgets.log_lines import LogLines

_FILTERS: dict[LogFilter, str] = {"all": "all", "warnings": "warnings and errors", "quiet": "no progress, no access"}


class LogPane(Vertical):
    """The lines, and the search field below them while it is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "open_search", "Search", show=False, tooltip="Search the log."),
        Binding("n", "seek_match(1)", "Next match", show=False, tooltip="The next match."),
        Binding("N", "seek_match(-1)", "Previous match", show=False, tooltip="The match before."),
        Binding("f", "cycle_filter", "Filter", show=False, tooltip="All lines, or only some kinds."),
        Binding("escape", "close_search", "End search", show=False, tooltip="End the search."),
    ]
    DEFAULT_CSS = """
    LogPane {
        & > LogLines { height: 1fr; }
        & > PlainInput { display: none; height: 1; }
        &.-searching > PlainInput { display: block; }
    }
    """
    BORDER_TITLE = "Server log"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.lines = LogLines()
        self._field = PlainInput(placeholder="search the log: enter next, esc ends")
        self._words = ""

    def compose(self) -> ComposeResult:
        """Lines above, search field below."""
        yield self.lines
        yield self._field

    def on_mount(self) -> None:
        """Say at once what is shown."""
        self._say()

    def show(self, view: LogView) -> None:
        """Draw the view; returns at once if it brings nothing new."""
        self.lines.show(view)
        self._say()

    def highlight(self, request_number: int | None) -> None:
        """Mark the lines that belong to a request."""
        self.lines.highlight(request_number)

    def on_log_lines_moved(self) -> None:
        """The reader moved to or away from the end."""
        self._say()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Mark matches while they are typed."""
        event.stop()
        self.lines.search(event.value)
        self._say()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the nearest match above and leave the field; n and N go on from there."""
        event.stop()
        self.lines.seek(-1, inclusive=True)
        self.lines.focus()
        self._say()

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the lines: the pane itself takes no keys."""
        self.screen.set_focus(self.lines, scroll_visible)
        return self

    def start_search(self) -> None:
        """Open the search field; what is typed from now on is for it."""
        self.add_class("-searching")
        self.screen.set_focus(self._field)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape ends a search; without one it is not ours."""
        if action == "close_search":
            return self.has_class("-searching")
        return super().check_action(action, parameters)

    def action_open_search(self) -> None:
        """Open the search field."""
        self.start_search()

    def action_close_search(self) -> None:
        """Close the search field and take the marks away."""
        self.remove_class("-searching")
        self._field.value = ""
        self.lines.search("")
        self.lines.focus()
        self._say()

    def action_seek_match(self, step: Literal[1, -1]) -> None:
        """Go to the next or previous match."""
        self.lines.seek(step)
        self._say()

    def action_cycle_filter(self) -> None:
        """Show all lines, warnings and errors, or all but progress and access."""
        names = list(_FILTERS)
        self.lines.filter(names[(names.index(self.lines.wanted) + 1) % len(names)])
        self._say()

    def _say(self) -> None:
        """Where the reader is, in the border; set only when it changes, since that repaints the pane."""
        if self._field.value:
            words = [self._matches()]
        elif self.lines.following:
            words = ["following"]
        else:
            words = ["held, end follows", *([f"{_roughly(self.lines.new)} new"] if self.lines.new else [])]
        if not self._field.value or self.lines.wanted != "all":
            words.append(_FILTERS[self.lines.wanted])
        text = " · ".join(words)
        if text != self._words:
            self._words = text
            # Plain content: a text would be read as markup.
            self.border_subtitle = Content(text)

    def _matches(self) -> str:
        lines = self.lines
        if not lines.matches:
            return "no match, esc ends"
        if not lines.place:
            return f"{lines.matches} match" + ("es" if lines.matches > 1 else "") + ", enter goes there, esc ends"
        return f"{lines.place} of {lines.matches}, n N next, esc ends"


def _roughly(count: int) -> str:
    """A count in steps of 1, 2, 5, so that a busy log does not repaint the border all the time."""
    if count < 10:
        return str(count)
    power = int(10 ** (len(str(count)) - 1))
    return f"{max(step for step in (1, 2, 5) if step * power <= count) * power}+"
