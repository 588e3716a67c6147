"""The picker: what it tells of a scenario, and what it dismisses with."""

from typing import Any

import pytest
from textual import on
from textual.app import App
from textual.widgets import OptionList, Static

from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_check import check
from mlxcache_tui.core.scenario_plan import ServerHere, plan_of
from mlxcache_tui.ui.screens.scenario_picker import Choice, Offer, ScenarioPicker, offer_blocks, paragraphs
from mlxcache_tui.ui.widgets.text_flow import TextFlow
from support.golden import screen_lines
from support.until import until

OURS = ServerHere(model="demo:tiny", ours=True, reachable=True)
THEIRS = ServerHere(model="m", ours=False, reachable=True)
TEXT = """# Shows: that it is picked
# and read.
#
#   as it stands
title = "A scenario"
about = "Is it read?"
[[steps]]
user = "q"
expect = ["cached_ratio < 0.5"]
restart = true
"""
OPEN = "open"


def scenario(name: str = "x") -> Scenario:
    return check(TEXT, source=f"{name}.toml", name=name, read_policy=lambda file: file)


def offer(name: str, here: ServerHere = OURS, *, own: bool = False) -> Offer:
    return Offer(name=name, own=own, scenario=scenario(name), plan=plan_of(scenario(name), here))


BROKEN = Offer(name="broken", own=True, mistakes=("broken.toml:1: titel: unknown key",))


class PickerApp(App[None]):
    """Opens the picker and keeps its result."""

    def __init__(self, *offers: Offer, chosen: str = "") -> None:
        super().__init__()
        self.picker = ScenarioPicker(chosen=chosen)
        self.offers = offers
        self.result: Any = OPEN
        self.files: list[str] = []

    async def on_mount(self) -> None:
        await self.push_screen(self.picker, self._done)
        self.picker.offer(self.offers)

    def _done(self, result: Choice | None) -> None:
        self.result = result

    @on(ScenarioPicker.FileNamed)
    def _named(self, event: ScenarioPicker.FileNamed) -> None:
        self.files.append(event.path)
        event.picker.add(offer("named", own=True))

    @property
    def note(self) -> str:
        return str(self.picker.query_one("#note", Static).content)

    @property
    def about(self) -> str:
        return self.picker.query_one("#about", TextFlow).text

    @property
    def highlighted(self) -> int | None:
        return self.picker.query_one("#names", OptionList).highlighted


async def test_a_sign_goes_with_the_cursor() -> None:
    app = PickerApp(offer("one"), BROKEN)
    async with app.run_test(size=(80, 24)) as pilot:
        for key, shown in (("home", ("▸ one", "✗ broken")), ("down", ("one", "▸✗ broken"))):
            await pilot.press(key)
            await pilot.pause()
            assert tuple(" ".join(line[2:27].replace("*", "").split()) for line in screen_lines(app)[1:3]) == shown


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_what_is_under_the_cursor_is_told_and_enter_runs_it(size: tuple[int, int]) -> None:
    app = PickerApp(offer("one"), offer("two"), chosen="two")
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.highlighted == 1 and "What it will do" in app.about)
        assert "Starts demo:tiny anew" in app.about
        await pilot.press("up", "enter")
        await until(pilot, lambda: app.result == Choice(scenario("one"), "run"))


@pytest.mark.parametrize("key", ["v", "f2"])
async def test_values_can_be_edited_first(key: str) -> None:
    app = PickerApp(offer("one"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.highlighted == 0)
        await pilot.press(key)
        await until(pilot, lambda: app.result == Choice(scenario("one"), "edit"))


async def test_one_with_mistakes_stays_and_lists_them() -> None:
    app = PickerApp(BROKEN, offer("one"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "titel: unknown key" in app.about)
        await pilot.press("enter")
        await until(pilot, lambda: "has mistakes" in app.note)
        assert any(line.strip(" │").startswith("✗ broken") for line in screen_lines(app))
        await pilot.press("down")
        await until(pilot, lambda: app.note == "")
        assert app.result == OPEN


async def test_one_that_cannot_run_here_says_why() -> None:
    app = PickerApp(offer("one", THEIRS))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "It cannot run here" in app.about)
        await pilot.press("enter")
        await until(pilot, lambda: "cannot be restarted" in app.note)
        await pilot.press("escape")
        await until(pilot, lambda: app.result is None)


async def test_a_file_is_named_in_the_field() -> None:
    app = PickerApp(offer("one"), chosen="one")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.highlighted == 0)
        app.picker.query_one("#file").focus()
        await pilot.press("enter", *"my.toml", "enter")
        await until(pilot, lambda: app.files == ["my.toml"] and "x" in app.about)
        await until(pilot, lambda: app.focused is app.picker.query_one("#names"))
        await pilot.press("enter")
        await until(pilot, lambda: app.result == Choice(scenario("named"), "run"))


async def test_before_the_files_are_read_nothing_can_be_chosen() -> None:
    app = PickerApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.picker.is_mounted)
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert app.result == OPEN


def test_a_comment_block_is_wrapped_by_paragraphs() -> None:
    text = "A title.\n\nShows: one\nthing.\nLook at: another.\n  kept as it is\n  also\nand on"
    assert paragraphs(text) == [
        "A title.",
        "Shows: one thing.",
        "Look at: another.",
        "  kept as it is",
        "  also",
        "and on",
    ]
    assert paragraphs("") == []


def test_the_text_has_everything_and_no_empty_parts() -> None:
    texts = [block.text for block in offer_blocks(offer("x", own=True))]
    for wanted in ("A scenario", "Is it read?", "Shows: that it is picked and read.", "  as it stands", "Steps"):
        assert wanted in texts
    assert "   expects cached_ratio < 0.5" in texts
    assert "* from x.toml" in texts
    bare = check('[[steps]]\nuser = "q"', source="y.toml", name="y", read_policy=lambda file: file)
    texts = [block.text for block in offer_blocks(Offer(name="y", own=False, scenario=bare, plan=plan_of(bare, OURS)))]
    assert "Notes" not in texts


async def test_on_a_slim_terminal_the_text_stands_below_the_list() -> None:
    app = PickerApp(offer("one"), offer("two"))
    async with app.run_test(size=(40, 10)) as pilot:
        await until(pilot, lambda: app.about)
        names, about = app.picker.query_one("#names").region, app.picker.query_one("#about").region
        assert names.bottom == about.y
        assert names.width == about.width == 36
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: app.picker.query_one("#names").region.y == app.picker.query_one("#about").region.y)
