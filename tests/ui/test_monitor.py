"""The main screen's layout: at every size all that is shown is whole, and the way to help and out is in sight."""

from functools import partial
from itertools import combinations
from pathlib import Path
from typing import ClassVar

import pytest
from textual.app import App
from textual.binding import BindingType

import mlxcache_tui.ui
from mlxcache_tui.core.commands import AttachServer
from mlxcache_tui.core.events import ServerPhase
from mlxcache_tui.core.present import Presenter
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.ui.app import MonitorApp
from mlxcache_tui.ui.bindings import bindings
from mlxcache_tui.ui.screens.help import HelpScreen
from mlxcache_tui.ui.screens.monitor import PANES, MonitorScreen
from mlxcache_tui.ui.widgets.composer import Composer
from mlxcache_tui.ui.widgets.text_flow import TextFlow
from support.golden import screen_lines
from support.live_server import free_port
from support.until import until
from support.views import status

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


def in_sight(app: ScreenApp, pane: str) -> bool:
    return pane in app.shown()


def in_first_line(app: ScreenApp, text: str) -> bool:
    return text in screen_lines(app)[0]


@pytest.mark.parametrize(("width", "height"), SIZES)
async def test_nothing_overlaps_and_nothing_is_outside(width: int, height: int) -> None:
    app = ScreenApp()
    async with app.run_test(size=(width, height)) as pilot:
        await app.monitor.query_one(Composer).fill()
        for pane in PANES:
            app.monitor.pick(pane)
            await until(pilot, partial(in_sight, app, pane))
            await pilot.pause()
            regions = [app.monitor.query_one(f"#{name}").region for name in app.shown()]
            assert app.monitor.max_scroll_y == 0
            assert all(region.bottom < height and region.right <= width for region in regions), pane
            assert not any(one.overlaps(other) for one, other in combinations(regions, 2)), pane


async def test_four_panes_stand_where_the_table_still_has_room() -> None:
    app = ScreenApp()
    async with app.run_test(size=(100, 34)) as pilot:
        await until(pilot, lambda: app.shown() == ["requests", "composer", "cache", "memory", "log"])
        assert app.monitor.query_one("#requests").region.height >= 7
        await pilot.resize_terminal(100, 33)
        await until(pilot, lambda: app.shown() == ["requests", "composer"])
        await pilot.resize_terminal(100, 15)
        await until(pilot, lambda: app.shown() == ["composer"])


@pytest.mark.parametrize(
    ("width", "pane", "shown"),
    [
        (40, "composer", "^q quit  f1 help  ^s send  ^o server"),
        (80, "composer", "^q quit  f1 help  ^s send  esc 3 4 5 panes  ^l scenarios  ^o server  ^r again"),
        (120, "composer", "^q quit  f1 help  ^s send  esc 3 4 5 panes  ^l scenarios  ^o server  ^r again  f3 question"
         "  f2 policy  ^t alternate"),
        (80, "requests", "^q quit  f1 help  ^s send  2 composer  3 cache  4 memory  5 log  ^l scenarios"),
        (80, "cache", "^q quit  f1 help  ^s send  2 composer  4 memory  5 log  ^l scenarios  ^r again"),
        (40, "log", "^q quit  f1 help  ^s send  2 composer"),
    ],
)  # fmt: skip
async def test_the_footer_shows_whole_keys_that_can_be_used_where_the_focus_is(
    width: int, pane: str, shown: str
) -> None:
    app = ScreenApp()
    async with app.run_test(size=(width, 24)) as pilot:
        await app.monitor.query_one(Composer).fill()
        app.monitor.pick(pane)
        await until(pilot, lambda: screen_lines(app)[-1].strip() == shown)


async def test_another_width_has_room_for_other_keys() -> None:
    app = ScreenApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.monitor.pick("cache")
        await pilot.pause()
        await pilot.resize_terminal(160, 24)
        await until(pilot, lambda: "f12 compare" in screen_lines(app)[-1])


async def test_until_something_is_heard_of_the_server_the_screen_says_what_is_expected() -> None:
    app = ScreenApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.monitor.expect(status(phase="starting", ours=False))
        state = SessionState()
        told: tuple[tuple[ServerPhase, str], ...] = (
            ("none", "◔ connecting"),
            ("unreachable", "✗ unreachable"),
            ("none", "○ no server"),
        )
        for phase, shown in told:
            state.server.phase = phase
            app.monitor.show(state, Presenter(), set())
            await until(pilot, partial(in_first_line, app, shown))


async def test_the_composers_last_word_ends_nothing_when_its_pane_is_gone(tmp_path: Path, own_folders: None) -> None:
    start = AttachServer(url=f"http://127.0.0.1:{free_port()}")
    app = MonitorApp(Settings(start=start, save_path=str(tmp_path / "session.jsonl")))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.engine is not None)
        composer = app.monitor.query_one(Composer)
        await composer.remove()
        app.post_message(composer.Changed())
        await pilot.pause()
        assert app.is_running


async def test_who_only_watches_has_the_table_in_focus_and_no_keys_to_send(tmp_path: Path, own_folders: None) -> None:
    start = AttachServer(url=f"http://127.0.0.1:{free_port()}", watch_only=True)
    app = MonitorApp(Settings(start=start, save_path=str(tmp_path / "session.jsonl")))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: any(word in screen_lines(app)[0] for word in ("◔ connecting", "✗ unreachable")))
        await until(pilot, lambda: "watching only" in screen_lines(app)[0])
        await until(pilot, lambda: app.focused is app.monitor.query_one("#requests"))
        await until(pilot, lambda: "3 cache" in screen_lines(app)[-1])
        assert not any(word in screen_lines(app)[-1] for word in ("send", "again", "composer"))
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and app.screen.query_one(TextFlow).text)
        text = app.screen.query_one(TextFlow).text
        assert "Go to the cache pane." in text
        assert "Send the" not in text
        assert "Take the" not in text


async def test_where_a_scenario_stands_in_the_composers_place_the_key_that_sends_says_why_it_does_not(
    tmp_path: Path, own_folders: None
) -> None:
    start = AttachServer(url=f"http://127.0.0.1:{free_port()}")
    app = MonitorApp(Settings(start=start, save_path=str(tmp_path / "session.jsonl")))
    shown: list[str] = []
    app.notify = lambda text, **_: shown.append(text)  # type: ignore[method-assign]
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.engine is not None)
        app.monitor.pick("scenario")
        await pilot.press("1")
        await until(pilot, lambda: "3 cache" in screen_lines(app)[-1])
        assert "send" not in screen_lines(app)[-1]
        await pilot.press("ctrl+s")
        await until(pilot, lambda: any("2 brings the composer back" in text for text in shown))
        shown.clear()
        await pilot.press("2", *"hi", "ctrl+s")
        await until(pilot, lambda: app.engine is not None and app.engine.state.requests)
        assert not any("scenario" in text for text in shown)
