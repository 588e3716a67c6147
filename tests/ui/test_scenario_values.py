"""The form for the values of a scenario."""

from typing import Any

import pytest
from textual.app import App
from textual.events import Key
from textual.widgets import Static

from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_check import check
from mlxcache_tui.ui.screens.scenario_values import ScenarioValues
from mlxcache_tui.ui.widgets.fields import PlainInput
from support.golden import screen_lines
from support.until import until

TEXT = """
title = "A scenario"
[server]
prompt_cache_size = 2
[[steps]]
id = "a"
name = "first"
user = "q"
[[steps]]
id = "b"
name = "second"
users = ["q", "r"]
concurrency = 2
"""
OPEN = "open"


def scenario(text: str = TEXT) -> Scenario:
    return check(text, source="x.toml", name="x", read_policy=lambda file: file)


class ValuesApp(App[None]):
    """Opens the form and keeps its result."""

    def __init__(self, form: ScenarioValues) -> None:
        super().__init__()
        self.form = form
        self.result: Any = OPEN

    def on_mount(self) -> None:
        self.push_screen(self.form, self._done)

    def _done(self, result: Scenario | None) -> None:
        self.result = result

    def field(self, name: str) -> PlainInput:
        return self.form.query_one(f"#{name}", PlainInput)

    def error(self, name: str) -> str:
        line = self.form.query_one(f"#{name}-error", Static)
        return str(line.content) if line.display else ""

    @property
    def ready(self) -> bool:
        return self.form.is_mounted and isinstance(self.focused, PlainInput)


async def test_unchanged_values_give_the_same_scenario() -> None:
    app = ValuesApp(ScenarioValues(scenario(), kept={}))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.result == scenario())


async def test_what_is_typed_replaces_the_limit_that_stands_there() -> None:
    app = ValuesApp(ScenarioValues(scenario(), kept={}))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        first = app.form.query(PlainInput).first()
        assert (app.focused, first.value) == (first, "2")
        await pilot.press(*"2, 4")
        assert first.value == "2, 4"


async def test_keys_that_come_at_once_are_all_heeded() -> None:
    app = ValuesApp(ScenarioValues(scenario(), kept={}))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        app.field("every-repeat").focus()
        await until(pilot, lambda: app.focused is app.field("every-repeat"))
        # As a terminal sends them in one piece: nothing is worked off in between.
        for key in (Key("3", "3"), Key("ctrl+s", None)):
            app.post_message(key)
        await until(pilot, lambda: app.result != OPEN)
    assert [step.repeat for step in app.result.steps] == [3, 3]


async def test_a_limit_is_changed_and_swept() -> None:
    app = ValuesApp(ScenarioValues(scenario(), kept={}))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        await pilot.press("end", *",4", "tab", *"8MB", "enter")
        await until(pilot, lambda: app.result != OPEN)
        assert app.result.sweep == {"prompt_cache_size": (2, 4)}
        assert app.result.server == {"prompt_cache_bytes": 8_000_000}


async def test_what_is_typed_for_every_step_goes_into_each() -> None:
    app = ValuesApp(ScenarioValues(scenario(), kept={}))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        app.field("every-repeat").focus()
        await pilot.press("3")
        await until(pilot, lambda: app.field("step1-repeat").value == "3")
        app.field("step0-repeat").focus()
        await pilot.press("1", "ctrl+s")
        await until(pilot, lambda: app.result != OPEN)
        assert [step.repeat for step in app.result.steps] == [1, 3]
        assert [step.concurrency for step in app.result.steps] == [1, 2]


async def test_mistakes_stand_at_their_fields_and_go_with_the_next_key() -> None:
    app = ValuesApp(ScenarioValues(scenario(), kept={}))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        app.field("flag-prompt_cache_bytes").value = "oops"
        app.field("step1-concurrency").value = "0"
        await pilot.pause()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "expected a size" in app.error("flag-prompt_cache_bytes"))
        assert "from 1 to 256" in app.error("step1-concurrency")
        assert app.focused is app.field("flag-prompt_cache_bytes")
        await pilot.press("end", "backspace")
        await until(pilot, lambda: not app.error("flag-prompt_cache_bytes"))
        assert app.result == OPEN


async def test_limits_of_an_attached_server_are_not_offered() -> None:
    app = ValuesApp(ScenarioValues(scenario('[[steps]]\nuser = "q"'), kept=None))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        assert not app.form.query("#flag-prompt_cache_size")
        assert not app.form.query("#every-repeat")
        assert "cannot be changed" in " ".join(screen_lines(app))


async def test_an_empty_field_shows_what_the_run_will_have() -> None:
    app = ValuesApp(ScenarioValues(scenario('[[steps]]\nuser = "q"'), kept={"prompt_cache_size": 2}))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        shown = [line for line in screen_lines(app) if "prompt_cache_size" in line or "decode_conc" in line]
        assert "2 (as started)" in shown[0]
        assert "32 (default)" in shown[1]


@pytest.mark.parametrize("button", ["run", "cancel"])
async def test_buttons(button: str) -> None:
    app = ValuesApp(ScenarioValues(scenario(), kept={}))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        app.form.query_one(f"#{button}").focus()
        await pilot.press("enter")
        await until(pilot, lambda: app.result == (scenario() if button == "run" else None))


async def test_escape_runs_nothing() -> None:
    app = ValuesApp(ScenarioValues(scenario(), kept={}))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        await pilot.press("escape")
        await until(pilot, lambda: app.result is None)
