"""One line of options for sending: how many at once, how long, streamed or not, thinking or not, with a seed or not."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import DescendantBlur
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Input, Label

from mlxcache_tui.ui.widgets.chip import Chip
from mlxcache_tui.ui.widgets.fields import PlainInput

COUNTS = (1, 2, 4, 8)
THINKING_STEPS: dict[bool | None, bool | None] = {None: False, False: True, True: None}
THINKING_WORDS: dict[bool | None, str] = {None: "default", True: "on", False: "off"}
THINKING_TIP = "Whether the model thinks before it answers"
SEED = 42
SEED_TIP = f"Sent with seed {SEED}, which the server serves one at a time, without checkpoints: press to leave it out"
NO_SWITCH_TIP = "This model's chat template has no switch for thinking"


class OptionsRow(Horizontal):
    """Each option is a word that can be pressed; max tokens is a field."""

    DEFAULT_CSS = """
    OptionsRow {
        height: 1;
        overflow-x: auto;
        scrollbar-size-horizontal: 0;
        & #max-name { width: 4; color: $text-muted; }
        & #max-tokens { width: 7; margin-right: 1; }
        & #seed { display: none; margin-right: 0; }
        & #seed.-set { display: block; }
        & #max-tokens.-invalid { color: $text-error; text-style: underline; }
    }
    """

    count: reactive[int] = reactive(1, init=False)
    stream: reactive[bool] = reactive(True, init=False)
    thinking: reactive[bool | None] = reactive(None, init=False)
    seed: reactive[int | None] = reactive(None, init=False)
    max_tokens: reactive[int] = reactive(64, init=False)
    thinking_available: reactive[bool | None] = reactive(None, init=False)
    """None: not known, so that it may be tried."""

    def compose(self) -> ComposeResult:
        """The button to send, then the options."""
        yield Chip("▶ send", id="send", tooltip="Send the draft")
        yield Chip("×1", id="count", tooltip="How many requests are sent at once")
        yield Label("max", id="max-name")
        yield PlainInput(str(self.max_tokens), id="max-tokens", max_length=6, digits=True)
        yield Chip("stream", id="stream", tooltip="Whether the answer comes piece by piece or at once")
        yield Chip("thinking default", id="thinking", tooltip=THINKING_TIP)
        yield Chip("seed", id="seed", tooltip=SEED_TIP)

    def cycle_count(self) -> None:
        """One, two, four or eight at once."""
        self.count = COUNTS[(COUNTS.index(self.count) + 1) % len(COUNTS)]

    def toggle_thinking(self) -> None:
        """Default, off, on; nothing where the model's template has no switch."""
        if self.thinking_available is not False:
            self.thinking = THINKING_STEPS[self.thinking]

    def toggle_seed(self) -> None:
        """With a seed, or without as usual."""
        self.seed = None if self.seed is not None else SEED

    def watch_count(self) -> None:
        """Draw and tell."""
        self.query_one("#count", Chip).update(f"×{self.count}")
        self.post_message(self.Changed())

    def watch_stream(self) -> None:
        """Draw and tell."""
        self.query_one("#stream", Chip).update("stream" if self.stream else "no stream")
        self.post_message(self.Changed())

    def watch_thinking(self) -> None:
        """Draw and tell."""
        chip = self.query_one("#thinking", Chip)
        chip.disabled = self.thinking_available is False
        chip.tooltip = NO_SWITCH_TIP if chip.disabled else THINKING_TIP
        chip.update(f"thinking {'–' if chip.disabled else THINKING_WORDS[self.thinking]}")
        self.post_message(self.Changed())

    def watch_seed(self) -> None:
        """Draw and tell."""
        self.query_one("#seed").set_class(self.seed is not None, "-set")
        self.post_message(self.Changed())

    def watch_thinking_available(self) -> None:
        """Draw and tell."""
        self.watch_thinking()

    @on(Input.Changed, "#max-tokens")
    def _max_edited(self, event: Input.Changed) -> None:
        event.stop()
        valid = event.value.isdigit() and int(event.value) > 0
        event.input.set_class(not valid, "-invalid")
        if valid and int(event.value) != self.max_tokens:
            self.max_tokens = int(event.value)
            self.post_message(self.Changed())

    @on(DescendantBlur)
    def _field_left(self, event: DescendantBlur) -> None:
        if event.widget.id == "max-tokens":
            self.query_one("#max-tokens", PlainInput).value = str(self.max_tokens)

    @on(Chip.Pressed)
    def _chip_pressed(self, event: Chip.Pressed) -> None:
        match event.chip.id:
            case "count":
                self.cycle_count()
            case "stream":
                self.stream = not self.stream
            case "thinking":
                self.toggle_thinking()
            case "seed":
                self.toggle_seed()
            case _:
                return
        event.stop()

    class Changed(Message):
        """An option is another one than before."""
