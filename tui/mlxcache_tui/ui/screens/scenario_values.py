"""The values of a scenario that one tunes: limits of the server; of each step how many at once, how often, how long."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button, Input, Label, Static

from mlxcache_tui.core.scenario import Scenario, Step
from mlxcache_tui.core.scenario_values import (
    STEP_VALUES,
    edited,
    field_of,
    flag_names,
    flag_text,
    restart_flags,
    unset_text,
    value_text,
)
from mlxcache_tui.core.text import clean
from mlxcache_tui.ui.screens.form import FormScreen
from mlxcache_tui.ui.widgets.fields import PlainInput

NOTES = (
    "An empty field keeps what stands in it dimmed; off leaves the flag away. 1, 2, 4 sweeps: a run on a fresh server "
    "for each."
)
ATTACHED = "The server was not started here: its limits cannot be changed."
HEADS = {"concurrency": "at once", "repeat": "repeat", "max_tokens": "max tokens"}


class ScenarioValues(FormScreen[Scenario | None]):
    """Dismisses with the scenario as edited, or None. Mistakes are shown at their field."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "close"),
        Binding("ctrl+s,f5", "run", "run"),  # after what was typed in front of it, so without priority
    ]
    DEFAULT_CSS = """
    ScenarioValues {
        & > #values { max-width: 90; }
        & .name { width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
        & .flag-name { width: 24; color: $text-muted; }
        & .head { width: 13; color: $text-muted; }
        & .first { margin-top: 0; }
        & .hint { color: $text-muted; text-style: italic; }
        & PlainInput { width: 11; margin-right: 2; }
        & .flag-value { width: 1fr; margin-right: 0; }
        & #buttons { margin-top: 1; }
    }
    """

    def __init__(self, scenario: Scenario, *, kept: Mapping[str, Any] | None) -> None:
        """`kept`: the flags that our server is started with; None: it is not ours, its limits cannot be changed."""
        super().__init__()
        self._scenario = scenario
        self._kept = kept

    def compose(self) -> ComposeResult:
        """The limits, a row for all steps, and one for each."""
        scenario = self._scenario
        with Vertical(id="values", classes="form") as box:
            box.border_title = f"Values of {scenario.title}"
            box.border_subtitle = "tab ↑ ↓ fields · ^s run · esc close"
            with VerticalScroll(id="value-fields", classes="form-fields", can_focus=False):
                yield Static("Limits of the server", classes="section first")
                yield Static(ATTACHED if self._kept is None else NOTES, classes="hint", markup=False)
                if self._kept is not None:
                    for name in flag_names(scenario, self._kept):
                        with Horizontal(classes="row"):
                            yield Label(name, classes="flag-name", markup=False)
                            text = flag_text(scenario, name)
                            unset = unset_text(name, self._kept)
                            field = PlainInput(text, id=f"flag-{name}", placeholder=unset, replace=True)
                            yield field.add_class("flag-value")
                        yield Static("", id=f"flag-{name}-error", classes="error", markup=False)
                    for index, step in enumerate(scenario.steps):
                        yield from self._restart_rows(index, step)
                with Horizontal(classes="row section"):
                    yield Label("Steps", classes="name")
                    for name in STEP_VALUES:
                        yield Label(HEADS[name], classes="head")
                if len(scenario.steps) > 1:
                    with Horizontal(classes="row"):
                        yield Label("in every step", classes="name")
                        for name in STEP_VALUES:
                            yield PlainInput(id=f"every-{name}", placeholder="as below", digits=True, max_length=6)
                for index, step in enumerate(scenario.steps):
                    with Horizontal(classes="row"):
                        yield Label(step.name, classes="name", markup=False)
                        for name in STEP_VALUES:
                            value = str(getattr(step, name))
                            yield PlainInput(value, id=f"step{index}-{name}", digits=True, max_length=6)
                    for name in STEP_VALUES:
                        yield Static("", id=f"step{index}-{name}-error", classes="error", markup=False)
                with Horizontal(classes="row", id="buttons"):
                    yield Button("Run (^s)", id="run", variant="primary", compact=True)
                    yield Button("Close", id="cancel", compact=True)

    def _restart_rows(self, index: int, step: Step) -> ComposeResult:
        """The limits that the server is restarted with before a step."""
        for name in restart_flags(step):
            with Horizontal(classes="row"):
                yield Label(f"{name} from “{step.name}” on", classes="name", markup=False)
                text = value_text((step.restart or {})[name])
                yield PlainInput(text, id=f"step{index}-{name}", placeholder="as before", replace=True)
            yield Static("", id=f"step{index}-{name}-error", classes="error", markup=False)

    def on_mount(self) -> None:
        """Start in the first field; what is typed for every step stands in each of them at once."""
        self.query(PlainInput).first().focus()
        for name in STEP_VALUES:
            for field in self.query(f"#every-{name}").results(PlainInput):
                self.watch(field, "value", partial(self._fill_steps, name), init=False)

    def _fill_steps(self, name: str, value: str) -> None:
        if value:
            for index in range(len(self._scenario.steps)):
                self.query_one(f"#step{index}-{name}", PlainInput).value = value

    @on(Input.Changed)
    def _field_edited(self, event: Input.Changed) -> None:
        event.stop()
        name = event.input.id or ""
        for error in self.query(f"#{name}-error").results(Static):
            error.remove_class("-shown")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_run()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "run":
            self.action_run()
        else:
            self.action_cancel()

    def action_cancel(self) -> None:
        """Close; nothing is run."""
        self.dismiss(None)

    def action_run(self) -> None:
        """Check everything and close with the edited scenario, or show what is wrong at its field."""
        fields = {field.id or "": clean(field.value) for field in self.query(PlainInput)}
        flags = {name.removeprefix("flag-"): text for name, text in fields.items() if name.startswith("flag-")}
        ids = {
            field_of(step.id, name): f"step{index}-{name}"
            for index, step in enumerate(self._scenario.steps)
            for name in (*STEP_VALUES, *restart_flags(step))
        }
        texts = {key: fields[name] for key, name in ids.items() if name in fields}
        result, errors = edited(self._scenario, flags, texts)
        if result is not None:
            self.dismiss(result)
            return
        for name, text in errors.items():
            field = ids.get(name, f"flag-{name}")
            line = self.query_one(f"#{field}-error", Static)
            line.update(text)
            line.add_class("-shown")
        first = next(iter(errors))
        self.query_one(f"#{ids.get(first, f'flag-{first}')}").focus()
