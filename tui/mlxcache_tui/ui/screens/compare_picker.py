"""Picking the two sides of a comparison: recorded sessions from the list, or any file by its path."""

from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from mlxcache_tui.core.compare_view import SessionRow
from mlxcache_tui.core.text import clean
from mlxcache_tui.ui.bindings import FORM_KEYS
from mlxcache_tui.ui.screens.once import Once
from mlxcache_tui.ui.widgets.chip import Chip
from mlxcache_tui.ui.widgets.fields import PlainInput
from mlxcache_tui.ui.widgets.session_list import SessionList

SideName = Literal["a", "b"]
HINT = "a session above, or the path of a session or of a result of run --json"


class ComparePicker(Once, ModalScreen[None]):
    """Asks for the comparison of two sides, and stays open until there is one, or a person closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *FORM_KEYS,
        Binding("escape", "close", "close"),
        Binding("ctrl+s,f5", "compare", "compare"),  # after what was typed in front of it, so without priority
        Binding("a", "take('a')", "as A", tooltip="As A: the session under the cursor is what is judged against."),
        Binding("b", "take('b')", "as B", tooltip="As B: the session under the cursor is what is judged."),
    ]
    DEFAULT_CSS = """
    ComparePicker {
        align: center middle;
        & > #compare-picker {
            width: 100%;
            max-width: 130;
            height: 100%;
            max-height: 40;
            border: round $accent;
            border-title-color: $text-accent;
            border-subtitle-color: $text-muted;
            background: $surface;
            padding: 0 1;
        }
        & SessionList { height: 1fr; }
        & .row { height: 1; }
        & .name { width: 3; color: $text-accent; text-style: bold; }
        & PlainInput { width: 1fr; background: $boost; }
        & #chips { height: 1; padding-left: 3; }
        & #note { height: auto; min-height: 1; max-height: 3; color: $text-muted; }
        & #note.-error { color: $text-error; text-style: bold; }
    }
    """

    def compose(self) -> ComposeResult:
        """The list, a field for each side, and what is wrong with them."""
        with Vertical(id="compare-picker") as box:
            box.border_title = "Compare: is B worse than A?"
            box.border_subtitle = "enter take · a, b as that side · tab fields · ^s compare · esc close"
            yield SessionList(id="sessions")
            yield Static("", id="note", markup=False)
            for side in ("a", "b"):
                with Horizontal(classes="row"):
                    yield Label(side.upper(), classes="name")
                    yield PlainInput(id=side, placeholder=HINT)
            with Horizontal(id="chips"):
                yield Chip("take as A", id="take-a")
                yield Chip("take as B", id="take-b")
                yield Chip("compare", id="compare")
                yield Chip("close", id="close")

    def on_mount(self) -> None:
        """The list has the focus."""
        self.query_one(SessionList).focus()

    def offer(self, row: SessionRow) -> bool:
        """One more session; the one on the screen is what is judged, as long as nothing else was chosen.

        False once the list is closed.
        """
        if not self.query(SessionList):
            return False
        self.query_one(SessionList).add(row)
        if row.here and row.requests and not self._value("b"):
            self._put("b", row.wanted)
        return True

    def finish(self) -> None:
        """All sessions were offered."""
        for shown in self.query(SessionList):  # none once it is closed
            shown.finish()

    def say(self, text: str, *, error: bool = False) -> None:
        """One line below the list."""
        note = self.query_one("#note", Static)
        note.set_class(error, "-error")
        note.update(f"✗ {text}" if error else text)

    def _value(self, side: SideName) -> str:
        return clean(self.query_one(f"#{side}", PlainInput).value).strip()

    def _put(self, side: SideName, wanted: str) -> None:
        self.query_one(f"#{side}", PlainInput).value = wanted

    @on(SessionList.Taken)
    def _taken(self, event: SessionList.Taken) -> None:
        """Into the side that is empty; once none is, compare."""
        event.stop()
        empty: list[SideName] = [side for side in ("a", "b") if not self._value(side)]
        if empty:
            self._put(empty[0], event.row.wanted)
        if len(empty) < 2:
            self.action_compare()

    @on(Input.Changed)
    def _edited(self, event: Input.Changed) -> None:
        event.stop()
        if self.query_one("#note").has_class("-error"):
            self.say("")
        self.query_one(SessionList).mark({self._value("b"): "B", self._value("a"): "A"})

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        if self._value("a") and self._value("b"):
            self.action_compare()
        else:
            self.query_one("#b" if self._value("a") else "#a").focus()

    @on(Chip.Pressed)
    def _pressed(self, event: Chip.Pressed) -> None:
        event.stop()
        match event.chip.id:
            case "take-a":
                self.action_take("a")
            case "take-b":
                self.action_take("b")
            case "compare":
                self.action_compare()
            case _:
                self.action_close()

    def action_take(self, side: SideName) -> None:
        """The session under the cursor as A or as B."""
        row = self.query_one(SessionList).chosen
        if row is not None:
            self._put(side, row.wanted)

    def action_compare(self) -> None:
        """Ask for the comparison."""
        missing = [side for side in ("a", "b") if not self._value(side)]
        if missing:
            self.say(f"choose {' and '.join(missing).upper()} first: a session above, or a path", error=True)
            return
        self.say("reading …")
        self.post_message(self.Wanted(self, self._value("a"), self._value("b")))

    def action_close(self) -> None:
        """Close without a comparison."""
        self.dismiss(None)

    class Wanted(Message):
        """Two sides are to be compared, each by path or name of a session; `picker.say` takes what is wrong."""

        def __init__(self, picker: "ComparePicker", a: str, b: str) -> None:
            super().__init__()
            self.picker = picker
            self.a, self.b = a, b
