"""One question, yes or no."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static


class ConfirmScreen(ModalScreen[bool]):
    """Asks; dismisses with True for yes and False for no. Enter presses the focused button, which is `no` at first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape", "answer(False)", "no"),
        Binding("left,right", "app.focus_next", "other", show=False),
    ]
    DEFAULT_CSS = """
    ConfirmScreen {
        align: center middle;
        & > #confirm {
            width: auto;
            min-width: 30;
            max-width: 90%;
            height: auto;
            max-height: 100%;
            padding: 0 2;
            border: round $warning;
            border-title-color: $text-warning;
            background: $surface;
        }
        & #question { width: auto; max-width: 72; margin-bottom: 1; }
        & Horizontal { width: auto; height: 1; }
        & Button { margin-right: 2; }
    }
    """

    def __init__(self, question: str, *, yes: str = "yes", no: str = "no") -> None:
        super().__init__()
        self._question = question
        self._yes = yes
        self._no = no

    def compose(self) -> ComposeResult:
        """The question and two buttons."""
        with Vertical(id="confirm") as box:
            box.border_title = "Please confirm"
            yield Static(self._question, id="question", markup=False)
            with Horizontal():
                yield Button(f"{self._yes} (y)", id="yes", compact=True)
                yield Button(f"{self._no} (n)", id="no", compact=True)

    def on_mount(self) -> None:
        """The harmless answer has the focus."""
        self.query_one("#no").focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.action_answer(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)
