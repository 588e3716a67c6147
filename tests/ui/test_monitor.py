"""The main screen's layout: at every size all that is shown is whole, and the way to help and out is in sight."""

from itertools import combinations
from pathlib import Path
from typing import ClassVar

import pytest
from textual.app import App
from textual.binding import BindingType

import mlxcache_tui.ui
from mlxcache_tui.ui.keys import bindings
from mlxcache_tui.ui.screens.monitor import PANES, MonitorScreen
from mlxcache_tui.ui.widgets.composer import Composer
from support.golden import screen_lines

SIZES = [(200, 50), (120, 40), (120, 34), (110, 33), (100, 30), (80, 24), (80, 16), (60, 15), (40, 12)]


class ScreenApp(App[None]):
    """The screen with its keys and its style, without an engine."""

    CSS_PATH = Path(mlxcache_tui.ui.__file__).parent / "screens" / "monitor.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings()

    def __init__(self) -> None:
        super().__init__()
        self.monitor = MonitorScreen()

    def get_default_screen(self) -> MonitorScreen:
        return self.monitor

    def shown(self) -> list[str]:
        """Names of the panes that have a place on the screen."""
        return [name for name in PANES if self.monitor.query_one(f"#{name}").region.area]


@pytest.mark.parametrize(("width", "height"), SIZES)
async def test_nothing_overlaps_and_nothing_is_outside(width: int, height: int) -> None:
    app = ScreenApp()
    async with app.run_test(size=(width, height)) as pilot:
        await app.monitor.query_one(Composer).fill()
        for pane in PANES:
            app.monitor.pick(pane)
            await pilot.pause()
            assert pane in app.shown()
            regions = [app.monitor.query_one(f"#{name}").region for name in app.shown()]
            assert app.monitor.max_scroll_y == 0
            assert all(region.bottom < height and region.right <= width for region in regions), pane
            assert not any(one.overlaps(other) for one, other in combinations(regions, 2)), pane


async def test_four_panes_stand_where_the_table_still_has_room() -> None:
    app = ScreenApp()
    async with app.run_test(size=(100, 34)) as pilot:
        await pilot.pause()
        assert app.shown() == ["requests", "composer", "cache", "memory", "log"]
        assert app.monitor.query_one("#requests").region.height >= 7
        await pilot.resize_terminal(100, 33)
        await pilot.pause()
        assert app.shown() == ["requests", "composer"]
        await pilot.resize_terminal(100, 15)
        await pilot.pause()
        assert app.shown() == ["composer"]


@pytest.mark.parametrize("width", [40, 80, 120])
async def test_help_and_quit_are_in_sight(width: int) -> None:
    app = ScreenApp()
    async with app.run_test(size=(width, 24)) as pilot:
        for pane in ("composer", "cache", "log"):
            app.monitor.pick(pane)
            await pilot.pause()
            foot = screen_lines(app)[-1]
            assert "^q quit" in foot
            assert "f1 help" in foot
            assert foot.endswith("f3 question") or width != 80 or pane == "cache"
        assert ("^l scenarios  ^o server" in foot) == (width == 120)
