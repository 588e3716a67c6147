"""A comparison, full screen: sides, differences, verdict and tables; then each step with its answers side by side."""

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip

from mlxcache_tui.core.compare_view import CompareView
from mlxcache_tui.draw.compare_lines import Row, overview_rows, side_lines, step_rows
from mlxcache_tui.draw.spans import Line
from mlxcache_tui.ui.bindings import compare_bindings
from mlxcache_tui.ui.screens.once import Once
from mlxcache_tui.ui.widgets.key_footer import KeyFooter
from mlxcache_tui.ui.widgets.line_view import LineView


class CompareBody(LineView):
    """Draws a `CompareView`: the sides stand still, the rest scrolls. `step` None is the overview."""

    DEFAULT_CSS = "CompareBody { height: 1fr; padding: 0 1; scrollbar-gutter: stable; }"

    def __init__(self, view: CompareView) -> None:
        super().__init__()
        self._view = view
        self.step: int | None = None
        self._top: list[Line] = []
        self._rows: list[Row] = []

    @property
    def text(self) -> str:
        """All lines as they are drawn now."""
        lines = [*self._top, *(row.line for row in self._rows)]
        return "\n".join("".join(span.text for span in line).rstrip() for line in lines)

    def show(self, view: CompareView) -> None:
        """Draw another view; the step stays if there is one."""
        self._view = view
        if self.step is not None and self.step >= len(view.steps):
            self.step = None
        self._draw()

    def go(self, step: int | None) -> None:
        """Open a step, or the overview."""
        last = len(self._view.steps) - 1
        self.step = None if step is None or step < 0 or last < 0 else min(step, last)
        self._draw()
        self.scroll_home(animate=False, force=True)

    def on_resize(self) -> None:
        """Draw for the new width."""
        self._draw()

    def _draw(self) -> None:
        width = self.columns
        if width <= 0:
            return
        self._top = side_lines(self._view, width, self.size.height)
        self._rows = overview_rows(self._view, width) if self.step is None else step_rows(self._view, self.step, width)
        self.virtual_size = Size(self.size.width, len(self._top) + len(self._rows))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """A line of the sides, or one of what scrolls."""
        if y < len(self._top):
            return self.strip(self._top[y])
        index = y - len(self._top) + self.scroll_offset.y
        return (
            self.strip(self._rows[index].line)
            if index < len(self._rows)
            else Strip.blank(self.columns, self.rich_style)
        )

    def on_click(self, event: events.Click) -> None:
        """A click on a step opens it."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y < len(self._top):
            return
        index = offset.y - len(self._top) + self.scroll_offset.y
        if index < len(self._rows) and self._rows[index].step is not None:
            self.go(self._rows[index].step)


class CompareScreen(Once, ModalScreen[None]):
    """Shows a `CompareView`. ← → go through the steps, esc goes back: to the overview, then to where one came from."""

    BINDINGS: ClassVar[list[BindingType]] = compare_bindings()
    DEFAULT_CSS = """
    CompareScreen {
        & > #comparison {
            height: 1fr;
            border: round $accent;
            border-title-color: $text-accent;
            background: $surface;
        }
    }
    """

    def __init__(self, view: CompareView) -> None:
        super().__init__()
        self._view = view

    def compose(self) -> ComposeResult:
        """One scrolling text and its keys."""
        with Vertical(id="comparison") as box:
            box.border_title = "Compare: is B worse than A?"
            yield CompareBody(self._view)
        yield KeyFooter(first=("comparison('back')", "app.help"))

    @property
    def body(self) -> CompareBody:
        """What is drawn."""
        return self.query_one(CompareBody)

    @property
    def unmeant(self) -> tuple[str, ...]:
        """The differences that stand in the way of what is shown."""
        return self._view.unmeant

    def on_mount(self) -> None:
        """The text has the focus so that the arrow keys scroll."""
        self.body.focus()

    def show(self, view: CompareView) -> None:
        """Draw another comparison of the two."""
        self._view = view
        self.query_one("#comparison").border_subtitle = ""
        self.body.show(view)
        self.refresh_bindings()

    def action_comparison(self, wish: str) -> None:
        """Do what a key asks."""
        at = self.body.step
        match wish:
            case "next":
                self.body.go(0 if at is None else at + 1)
            case "previous":
                self.body.go(None if at is None else at - 1)
            case "back" if at is not None:
                self.body.go(None)
            case "back":
                self.dismiss(None)
            case "save":
                self.post_message(self.SaveWanted())
            case "swap" | "meant":
                self.query_one("#comparison").border_subtitle = "comparing …"
                self.post_message(self.Wished(self, meant=wish == "meant"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing is to be meant where nothing stands in the way; no steps are gone through where there are none."""
        if (action, parameters) == ("comparison", ("meant",)):
            return bool(self._view.unmeant)
        if action == "comparison" and parameters[0] in ("next", "previous"):
            return bool(self._view.steps)
        return super().check_action(action, parameters)

    class Wished(Message):
        """Another comparison is wanted: with the sides changed over, or with all that differs taken as meant."""

        def __init__(self, screen: "CompareScreen", *, meant: bool) -> None:
            super().__init__()
            self.screen = screen
            self.meant = meant

    class SaveWanted(Message):
        """The comparison is to be saved."""
