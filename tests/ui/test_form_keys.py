"""Keys on the screens above the monitor: a burst of them goes where each was meant to, and `?` explains everywhere."""

from typing import ClassVar

import pytest
from textual.app import App
from textual.binding import BindingType
from textual.events import Key
from textual.screen import Screen

from mlxcache_tui.core.flags import ServerHelp
from mlxcache_tui.core.views import DetailView
from mlxcache_tui.ui.bindings import bindings
from mlxcache_tui.ui.screens.compare import CompareScreen
from mlxcache_tui.ui.screens.compare_picker import ComparePicker
from mlxcache_tui.ui.screens.detail import DetailScreen
from mlxcache_tui.ui.screens.scenario_picker import ScenarioPicker
from mlxcache_tui.ui.screens.start_form import StartForm
from support.comparisons import compared
from support.until import until
from support.views import request_row

DETAIL = DetailView(
    row=request_row(),
    title="#1",
    answer="",
    reasoning="",
    error="",
    hint="",
    evidence=(),
    messages=(),
    timeline=(),
    facts=(),
    curl="",
)


class KeysApp(App[None]):
    """One screen above an empty one, with the keys of the whole app."""

    BINDINGS: ClassVar[list[BindingType]] = bindings()

    def __init__(self, screen: Screen[None]) -> None:
        super().__init__()
        self.above = screen
        self.helped = 0
        self.wanted: list[tuple[str, str]] = []

    def on_mount(self) -> None:
        self.push_screen(self.above)

    def action_help(self) -> None:
        self.helped += 1

    def on_compare_picker_wanted(self, event: ComparePicker.Wanted) -> None:
        self.wanted.append((event.a, event.b))


async def test_what_is_typed_behind_tab_in_one_burst_stands_in_the_next_field() -> None:
    app = KeysApp(ComparePicker())
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.screen.query("#a") and app.focused is app.screen.query_one("#sessions"))
        for key in ("tab", *"ab.json", "tab", *"baa", "ctrl+s"):
            app.post_message(Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: app.wanted)
        assert app.wanted == [("ab.json", "baa")]


@pytest.mark.parametrize(
    "screen",
    [CompareScreen(compared()), DetailScreen(DETAIL), ComparePicker(), ScenarioPicker(), StartForm(ServerHelp())],
    ids=lambda screen: type(screen).__name__,
)
async def test_the_question_mark_opens_the_help_where_nothing_is_typed(screen: Screen[None]) -> None:
    app = KeysApp(screen)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.screen is screen and screen.is_active)
        await pilot.pause()
        screen.set_focus(None)
        await pilot.press("question_mark")
        await until(pilot, lambda: app.helped)
