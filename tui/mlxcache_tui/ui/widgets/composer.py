"""The composer: what is sent next, from a policy, a question and a few options."""

from typing import ClassVar, Literal

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import DescendantBlur
from textual.message import Message
from textual.widgets import Input, Label, Select, TextArea

from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.questions import Question, questions_for
from mlxcache_tui.core.text import clean_block, fit
from mlxcache_tui.core.views import ForecastView
from mlxcache_tui.ui.bindings import FIELD_KEYS
from mlxcache_tui.ui.widgets.chip import Chip
from mlxcache_tui.ui.widgets.fields import PlainArea
from mlxcache_tui.ui.widgets.forecast_line import ForecastLine
from mlxcache_tui.ui.widgets.options_row import NO_SWITCH_TIP, OptionsRow

FIRST_POLICY = "returns"
MARK_CELLS = 10
"""Room for the text in front of or behind the policy while it is folded to a mark."""


class Composer(Vertical):
    """A pane that holds a draft. It opens filled with the first policy and its first question."""

    BINDINGS: ClassVar[list[BindingType]] = [*FIELD_KEYS, Binding("escape", "fold_extra", "Fold", show=False)]
    DEFAULT_CSS = """
    Composer {
        border: round $panel-lighten-2;
        border-title-color: $text-muted;
        border-subtitle-color: $text-muted;
        padding: 0 1;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        &:focus-within { border: round $accent; border-title-color: $text-accent; border-title-style: bold; }
        & .composer-row { height: 1; overflow-x: auto; scrollbar-size-horizontal: 0; }
        & .composer-name { width: 8; color: $text-muted; }
        & #policy { width: 20; margin-right: 2; }
        & #system-name { width: 8; margin: 0; color: $text-warning; }
        & #system-name:disabled { color: $text-muted; }
        & #before-row, & #after-row { display: none; height: auto; max-height: 4; }
        & #before, & #after { height: auto; max-height: 4; background: $boost; }
        & #system-row { height: 3fr; min-height: 1; }
        & #user-row { height: 2fr; min-height: 2; }
        & #system, & #user { height: 1fr; }
        & #user { background: $boost; }
        & #before-row.-shown, & #after-row.-shown { display: block; layout: horizontal; }
    }
    """

    def __init__(
        self,
        policies: tuple[tuple[str, str], ...] = (),
        *,
        max_tokens: int = 64,
        late: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's own name
    ) -> None:
        """`late`: the frame alone until `fill`, since the fields take as long to make as all other panes together."""
        super().__init__(id=id)
        self._late = late
        self.border_title = "Composer"
        self._policies: dict[str, str] = dict(policies)
        self._edits: dict[str, str] = {}
        """Edited policy texts by label, so that alternating does not lose them."""
        self._label = ""
        self._previous = ""
        self._loaded = ""
        self._options = OptionsRow()
        self._options.set_reactive(OptionsRow.max_tokens, max_tokens)
        self._question = 0
        self._forecast = ForecastLine(id="forecast")
        self._available: bool | None = None
        self._ready = False

    def compose(self) -> ComposeResult:
        """Rows from the policy down to the forecast."""
        if self._late:
            return
        with Horizontal(classes="composer-row"):
            yield Label("policy", classes="composer-name")
            yield Select[str]([], id="policy", compact=True, prompt="no policy")
            yield Chip("before –", id="before-mark", tooltip="Text in front of the policy, in the system message")
            yield Chip("after –", id="after-mark", tooltip="Text behind the policy, in the system message")
        for name in ("before", "system", "after", "user"):
            with Horizontal(id=f"{name}-row"):
                if name == "system":
                    yield Chip(name, id="system-name", tooltip="Edited: press to bring the policy's own text back")
                else:
                    yield Label(name, classes="composer-name")
                yield PlainArea(id=name, placeholder="no system message" if name == "system" else "")
        yield self._options
        yield self._forecast

    # --- what the app says -------------------------------------------------------------------------------------------

    def set_policies(self, policies: tuple[tuple[str, str], ...]) -> None:
        """The policies to pick from, (label, text) pairs in order. The one in use stays if it is still there."""
        self._policies = dict(policies)
        if self._ready:
            self._offer_policies()

    def set_thinking_available(self, available: bool | None) -> None:
        """Whether the model's template can turn thinking on and off; None: not known, so that it may be tried."""
        self._available = available
        if self._ready:
            self._options.thinking_available = available

    def set_watch_only(self, watching: bool) -> None:
        """Whether nothing can be sent from here: then it says so."""
        self._forecast.set_watch_only(watching)

    def show_forecast(self, view: ForecastView) -> None:
        """What would happen if this were sent now."""
        self._forecast.show(view)

    # --- what the app asks and does ----------------------------------------------------------------------------------

    def draft(self) -> Draft:
        """The draft as it stands, all texts clean. The policy is None when there is no policy text."""
        if not self._ready:
            return Draft(user="")
        system, options = self._system_text(), self._options
        return Draft(
            user=self._text_of("user").strip(),
            policy=self._policy_name(system),
            policy_text=system,
            before=self._text_of("before"),
            after=self._text_of("after"),
            max_tokens=options.max_tokens,
            stream=options.stream,
            thinking=None if self._available is False else options.thinking,
            extra={} if options.seed is None else {"seed": options.seed},
        )

    def request_send(self) -> None:
        """Ask for the draft to be sent; an empty draft is refused with a line."""
        if self.draft().user:
            self.post_message(self.SendRequested(self._options.count))
        elif self._ready:
            self._forecast.refuse("nothing to send: the user message is empty")

    def next_question(self) -> None:
        """Put the next prepared question in place of the user message (undo brings that back)."""
        if not self._ready:
            return
        questions = questions_for(self._label)
        index = self._question_index(questions)
        self._set_question((index + 1) % len(questions) if index is not None else self._question % len(questions))

    def next_policy(self) -> None:
        """Go on to the next policy, round and round."""
        labels = list(self._policies)
        if labels:
            at = labels.index(self._label) if self._label in labels else -1
            self.select_policy(labels[(at + 1) % len(labels)])

    def alternate_policy(self) -> None:
        """Go back to the policy that was chosen before this one; the next one if there was none."""
        if self._previous in self._policies and self._previous != self._label:
            self.select_policy(self._previous)
        else:
            self.next_policy()

    def select_policy(self, label: str) -> None:
        """Use this policy; a prepared question changes to the one of the new policy. Unknown labels change nothing."""
        if label not in self._policies or label == self._label:
            return
        index = self._question_index(questions_for(self._label))
        self._previous, self._label = self._label, label
        with self.prevent(Select.Changed):
            self.query_one("#policy", Select).value = label
        area = self.query_one("#system", PlainArea)
        area.text = self._policies[label]
        self._loaded = area.text
        if label in self._edits:
            area.text = self._edits[label]
        if index is not None or not self._previous:
            self._set_question(index or 0)
        self._draw_edited()

    def _drop_policy(self) -> None:
        """No system message."""
        self._previous, self._label, self._loaded = self._label, "", ""
        self.query_one("#system", PlainArea).text = ""
        self._draw_edited()

    def toggle_stream(self) -> None:
        """Streamed or in one piece."""
        if self._ready:
            self._options.stream = not self._options.stream

    def toggle_thinking(self) -> None:
        """Default, off, on; a line where the model's template has no switch."""
        if self._ready and self._available is False:
            self._forecast.refuse(f"{NO_SWITCH_TIP[0].lower()}{NO_SWITCH_TIP[1:]}")
        elif self._ready:
            self._options.toggle_thinking()

    def toggle_seed(self) -> None:
        """With a seed, to see the path that such requests take, or without."""
        if self._ready:
            self._options.toggle_seed()

    def cycle_count(self) -> None:
        """One, two, four or eight at once."""
        if self._ready:
            self._options.cycle_count()

    def focus_user(self) -> None:
        """Put the cursor into the user message."""
        if self._ready:
            self.screen.set_focus(self.query_one("#user"))

    # --- watchers and handlers ---------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Fill the draft, unless there are no fields yet."""
        if not self._late:
            self._begin()
            self.focus_user()

    async def fill(self) -> None:
        """Put the fields of a late composer in; they take the focus, unless something else has it by now."""
        self._late = False
        await self.recompose()
        self._begin()
        if self.screen.focused is None:
            self.focus_user()

    def _begin(self) -> None:
        self._ready = True
        self._offer_policies()
        self._options.thinking_available = self._available
        if not self._policies:
            self._set_question(0)

    @on(Select.Changed, "#policy")
    def _policy_picked(self, event: Select.Changed) -> None:
        event.stop()
        if isinstance(event.value, str):
            self.select_policy(event.value)
        else:
            self._drop_policy()

    @on(TextArea.Changed)
    def _text_edited(self, event: TextArea.Changed) -> None:
        event.stop()
        if event.text_area.id == "system":
            self._note_edit(event.text_area.text)
        elif event.text_area.id == "user":
            self._draw_question()
        else:
            self._draw_marks()
        self._forecast.refuse("")
        self.post_message(self.Changed())

    @on(Input.Submitted, "#max-tokens")
    def _max_entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.focus_user()

    @on(OptionsRow.Changed)
    def _option_changed(self, event: OptionsRow.Changed) -> None:
        event.stop()
        self.post_message(self.Changed())

    @on(Chip.Pressed)
    def _chip_pressed(self, event: Chip.Pressed) -> None:
        event.stop()
        match event.chip.id:
            case "send":
                self.request_send()
            case "before-mark":
                self.toggle_extra("before")
            case "after-mark":
                self.toggle_extra("after")
            case "system-name":
                self.query_one("#system", PlainArea).text = self._loaded

    @on(DescendantBlur)
    def _field_left(self, event: DescendantBlur) -> None:
        name = event.widget.id or ""
        if name in ("before", "after") and not self._text_of(name):
            self.query_one(f"#{name}-row").remove_class("-shown")

    def toggle_extra(self, name: Literal["before", "after"]) -> None:
        """Open the text in front of or behind the policy for editing, or fold it to its mark."""
        row = self.query_one(f"#{name}-row")
        if row.has_class("-shown"):
            row.remove_class("-shown")
            self.focus_user()
        else:
            row.add_class("-shown")
            self.screen.set_focus(self.query_one(f"#{name}"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape folds what is open; with nothing open it is left to the app, which leaves the composer."""
        if action == "fold_extra":
            return bool(self.query("#before-row.-shown, #after-row.-shown"))
        return super().check_action(action, parameters)

    def action_fold_extra(self) -> None:
        """Fold both texts and go back to the user message; with nothing to fold the key is left to the screen."""
        shown = self.query("#before-row.-shown, #after-row.-shown")
        if not shown:
            raise SkipAction
        shown.remove_class("-shown")
        self.focus_user()

    # --- drawing and reading -----------------------------------------------------------------------------------------

    def _offer_policies(self) -> None:
        select = self.query_one("#policy", Select)
        with self.prevent(Select.Changed):
            select.set_options([(label, label) for label in self._policies])
        if self._label in self._policies:
            with self.prevent(Select.Changed):
                select.value = self._label
        elif self._policies:
            self._label = ""
            self.select_policy(FIRST_POLICY if FIRST_POLICY in self._policies else next(iter(self._policies)))

    def _system_text(self) -> str:
        area = self.query_one("#system", PlainArea)
        if area.text == self._loaded and self._label:
            return clean_block(self._policies.get(self._label, area.text))
        return clean_block(area.text)

    def _policy_name(self, system: str) -> str | None:
        if not system.strip():
            return None
        if not self._label:
            return "custom"
        edited = self.query_one("#system", PlainArea).text != self._loaded
        return f"{self._label} (edited)" if edited else self._label

    def _text_of(self, name: str) -> str:
        return clean_block(self.query_one(f"#{name}", PlainArea).text)

    def _note_edit(self, text: str) -> None:
        if text == self._loaded:
            self._edits.pop(self._label, None)
        elif self._label:
            self._edits[self._label] = text
        self._draw_edited()

    def _question_index(self, questions: tuple[Question, ...]) -> int | None:
        text = self.query_one("#user", PlainArea).text.strip()
        return next((index for index, question in enumerate(questions) if question.text == text), None)

    def _set_question(self, index: int) -> None:
        questions = questions_for(self._label)
        self._question = index % len(questions)
        area = self.query_one("#user", PlainArea)
        area.replace(questions[self._question].text, (0, 0), area.document.end, maintain_selection_offset=False)
        area.move_cursor(area.document.end)
        self._draw_question()

    def _draw_question(self) -> None:
        questions = questions_for(self._label)
        index = self._question_index(questions)
        text = "own question" if index is None else f"question {index + 1}/{len(questions)}: {questions[index].label}"
        self.border_subtitle = text

    def _draw_edited(self) -> None:
        chip = self.query_one("#system-name", Chip)
        chip.disabled = self._label not in self._edits
        chip.update("system" if chip.disabled else "edited ↺")

    def _draw_marks(self) -> None:
        for name in ("before", "after"):
            text = " ".join(self._text_of(name).split())
            mark = fit(text, MARK_CELLS).rstrip() if text else "–"
            self.query_one(f"#{name}-mark", Chip).update(f"{name} {mark}")

    class Changed(Message):
        """The draft is another one than before."""

        def can_replace(self, message: Message) -> bool:
            """Several changes at once are one."""
            return isinstance(message, Composer.Changed)

    class SendRequested(Message):
        """The draft is to be sent, `count` times at once."""

        def __init__(self, count: int) -> None:
            super().__init__()
            self.count = count
