"""The base of the forms: a frame, rows of a name and a field, a line for a mistake below each."""

from typing import ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from mlxcache_tui.ui.bindings import FORM_KEYS
from mlxcache_tui.ui.screens.once import Once

ResultT = TypeVar("ResultT")


class FormScreen(Once, ModalScreen[ResultT]):
    """Arrows go through the fields as tab does. The frame has the class `form`, what scrolls in it `form-fields`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *FORM_KEYS,
        Binding("down", "app.focus_next", "next field", show=False),
        Binding("up", "app.focus_previous", "field before", show=False),
    ]
    DEFAULT_CSS = """
    FormScreen {
        align: center middle;
        & > .form {
            width: 100%;
            height: auto;
            max-height: 100%;
            border: round $accent;
            border-title-color: $text-accent;
            border-subtitle-color: $text-muted;
            background: $surface;
            padding: 0 1;
        }
        & .form-fields { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
        & .row { height: 1; }
        & .section { margin-top: 1; text-style: bold; color: $text-accent; }
        & .error { display: none; padding-left: 2; color: $text-error; text-style: bold; }
        & .error.-shown { display: block; }
        & PlainInput { background: $boost; }
        & Button { margin-right: 2; }
    }
    """
