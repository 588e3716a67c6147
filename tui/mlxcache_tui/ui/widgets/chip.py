"""A word that can be pressed: enter, space or a click."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message
from textual.widgets import Static


class Chip(Static, can_focus=True):
    """One option of a row of options, shown with its present value."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,space", "press", "Press", show=False)]
    DEFAULT_CSS = """
    Chip {
        width: auto;
        height: 1;
        margin-right: 2;
        color: $text-accent;
        &:hover { text-style: underline; }
        &:focus { text-style: reverse; }
        &:disabled { color: $text-disabled; }
    }
    """

    def __init__(self, text: str, *, id: str | None = None, tooltip: str | None = None) -> None:  # noqa: A002
        super().__init__(text, id=id, markup=False)
        self.tooltip = tooltip

    def on_click(self, event: Click) -> None:
        """A click presses it."""
        event.stop()
        self.action_press()

    def action_press(self) -> None:
        """Tell that it was pressed."""
        self.post_message(self.Pressed(self))

    class Pressed(Message):
        """The chip was pressed; `chip.id` tells which."""

        def __init__(self, chip: "Chip") -> None:
            super().__init__()
            self.chip = chip

        @property
        def control(self) -> "Chip":
            """The chip, so that handlers can select by id."""
            return self.chip
