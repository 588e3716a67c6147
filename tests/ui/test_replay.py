"""The screen over a recording, by its keys."""

import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.codec import encode_event
from mlxcache_tui.core.reduce import fold
from mlxcache_tui.engine import player as playing
from mlxcache_tui.ui.keys import ACTIONS, OF_LIVE
from mlxcache_tui.ui.replay import ReplayApp
from mlxcache_tui.ui.screens.detail import DetailScreen
from mlxcache_tui.ui.screens.help import HelpScreen
from mlxcache_tui.ui.screens.replay import ReplayDetail
from mlxcache_tui.ui.widgets.composer import Composer
from mlxcache_tui.ui.widgets.replay_bar import ReplayBar
from mlxcache_tui.ui.widgets.request_table import RequestTable
from mlxcache_tui.ui.widgets.text_flow import TextFlow
from support.golden import screen_lines, text_lines
from support.same import same
from support.sessions import told, write
from support.until import until

STORY = told()
COUNT = len(STORY.events)


@pytest.fixture
def fresh_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was just written is one that grows, also where the test is slow to get there."""
    monkeypatch.setattr(playing, "FRESH_S", 600.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = write(tmp_path / "s.jsonl", STORY)
    os.utime(made, (0, 0))
    return made


async def at(app: ReplayApp, pilot: Pilot[int], position: int) -> None:
    """Wait until the recording stands there and is drawn."""
    await until(pilot, lambda: app.player is not None and app.player.view.position == position)
    await until(pilot, lambda: app.monitor.query_one(RequestTable).rows == app.presenter.rows(app.player.state))  # type: ignore[union-attr]


def numbers(app: ReplayApp) -> list[int]:
    return [row.number for row in app.monitor.query_one(RequestTable).rows]


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_it_opens_with_all_that_happened_in_order(path: Path, size: tuple[int, int]) -> None:
    app = ReplayApp(path)
    async with app.run_test(size=size) as pilot:
        await at(app, pilot, COUNT)
        assert numbers(app) == [0, 1, 2, 3, 4]
        await until(pilot, lambda: "space play  ] next request" in text_lines(app)[-1])
        await until(pilot, lambda: "paused" in text_lines(app)[-2])
        assert not app.monitor.query_one(Composer).display
        assert app.monitor.focused is app.monitor.query_one(RequestTable)


async def test_a_key_that_leads_nowhere_says_so_in_the_replays_line(path: Path) -> None:
    app = ReplayApp(path)
    async with app.run_test(size=(80, 24)) as pilot:
        await at(app, pilot, COUNT)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "no further request; < to the start" in text_lines(app)[-2])
        await pilot.press("comma")
        await at(app, pilot, COUNT - 1)
        await until(pilot, lambda: f"event {COUNT - 1} of {COUNT}" in text_lines(app)[-2])


async def test_every_move_by_keys(path: Path) -> None:
    app = ReplayApp(path)
    async with app.run_test(size=(120, 36)) as pilot:
        await at(app, pilot, COUNT)
        player = app.player
        assert player is not None
        await pilot.press("less_than_sign")
        await at(app, pilot, 0)
        assert numbers(app) == []
        await pilot.press("full_stop", "full_stop", "comma")
        await at(app, pilot, 1)
        await pilot.press("e")
        await until(pilot, lambda: len(player.state.cache.evictions) == 1)
        place = player.view.position
        await at(app, pilot, place)
        assert numbers(app) == [0, 1, 2, 3]
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: player.view.request == 2)
        await at(app, pilot, player.view.position)
        assert numbers(app) == [0, 1, 2]
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: player.view.request == 3)
        await pilot.press("E")
        await at(app, pilot, place)
        await pilot.press("E")
        await at(app, pilot, 0)
        await pilot.press("plus", "plus", "minus")
        assert player.speed == 2
        await pilot.press("space")
        await until(pilot, lambda: player.view.position > 0)
        await pilot.press("greater_than_sign")
        await at(app, pilot, COUNT)
        assert same(player.state, STORY.state)


async def test_before_the_first_request_the_table_says_how_to_go_on(path: Path) -> None:
    app = ReplayApp(path)
    async with app.run_test(size=(80, 24)) as pilot:
        await at(app, pilot, COUNT)
        await pilot.press("less_than_sign")
        await at(app, pilot, 0)
        await until(pilot, lambda: any("space plays" in line for line in screen_lines(app)))


async def test_the_key_that_plays_is_called_pause_while_it_plays(path: Path) -> None:
    app = ReplayApp(path, speed=0.01)  # plays at once
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "space pause" in screen_lines(app)[-1])
        await pilot.press("space")
        await until(pilot, lambda: "space play" in screen_lines(app)[-1])


async def test_everything_that_can_be_opened_live_can_be_opened_here(path: Path) -> None:
    app = ReplayApp(path)
    async with app.run_test(size=(120, 36)) as pilot:
        await at(app, pilot, COUNT)
        await pilot.press("home", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, DetailScreen))
        await pilot.press("escape")
        for key in ("3", "4", "5", "1", "z", "z"):
            await pilot.press(key)
        await pilot.press("slash", *"cache . e", "enter")
        assert app.player is not None
        assert app.player.view.position == COUNT
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and app.screen.query_one(TextFlow).text)
        text = app.screen.query_one(TextFlow).text
        assert "Go on to the next eviction." in text
        assert "Send the composer's request" not in text


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_the_recording_is_moved_through_while_a_request_is_open(path: Path, size: tuple[int, int]) -> None:
    app = ReplayApp(path)
    async with app.run_test(size=size) as pilot:
        await at(app, pilot, COUNT)
        player = app.player
        assert player is not None
        await pilot.press("home", "down", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, ReplayDetail) and "#2" in screen_lines(app)[0])
        foot = "esc close  space play  ] next request  . next event  e eviction  + faster"
        await until(pilot, lambda: foot in screen_lines(app)[-1])
        await until(pilot, lambda: f"event {COUNT} of {COUNT}" in screen_lines(app)[-2])
        await pilot.press("left_square_bracket", "left_square_bracket")  # before the last one, before the third
        await until(pilot, lambda: player.view.request == 2)
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: "it was not sent yet" in screen_lines(app)[3])
        await until(pilot, lambda: "event" in screen_lines(app)[-2])
        await pilot.press("left")
        await until(pilot, lambda: "#1" in screen_lines(app)[0] and "not sent yet" not in screen_lines(app)[3])
        await pilot.press("right", "e")
        await until(pilot, lambda: len(player.state.cache.evictions) == 1)
        await pilot.press("right")
        await until(pilot, lambda: "#2" in screen_lines(app)[0] and "not sent yet" not in screen_lines(app)[3])
        await pilot.press("plus", "space")
        assert player.speed == 2
        await until(pilot, lambda: player.view.position == COUNT)
        await pilot.press("less_than_sign", "full_stop", "full_stop", "full_stop", "comma")
        await until(pilot, lambda: player.view.position == 2)
        await pilot.press("escape")
        await at(app, pilot, 2)
        assert app.screen is app.monitor


async def test_a_line_that_was_found_is_in_sight_at_every_size(tmp_path: Path) -> None:
    story = told()
    lines = tuple(ev.LogLine(text=f"line {number}", kind="record") for number in range(100))
    story.tell(ev.LogRead(at_ns=story.tick(), origin="log", lines=lines))
    app = ReplayApp(write(tmp_path / "s.jsonl", story))
    async with app.run_test(size=(120, 40)) as pilot:
        await at(app, pilot, COUNT + 1)
        await pilot.press("5", "slash", *"line 93", "enter")
        for size in ((80, 24), (40, 10), (120, 40)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: any("▸ " in line and "line 93" in line for line in text_lines(app)))


async def test_nothing_is_sent_and_no_form_opens(path: Path) -> None:
    app = ReplayApp(path)
    async with app.run_test(size=(120, 36)) as pilot:
        await at(app, pilot, COUNT)
        await pilot.press("ctrl+s", "ctrl+r", "ctrl+t", "f4", "f6", "f10", "ctrl+o", "ctrl+l", "escape", "2")
        await pilot.pause()
        assert app.screen is app.monitor
        assert app.player is not None
        assert same(app.player.state, STORY.state)
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert any(title.startswith("eviction (e)") for title in titles)
        assert sorted(title.partition(" ")[0].casefold() for title in titles).count("quit") == 1
        assert not any(title.startswith("send") for title in titles)
    assert {info.id for info in ACTIONS if info.id == "send"} <= set(OF_LIVE)


async def test_a_click_on_the_time_line_goes_there(path: Path) -> None:
    app = ReplayApp(path)
    async with app.run_test(size=(120, 36)) as pilot:
        await at(app, pilot, COUNT)
        assert app.player is not None
        await pilot.click(ReplayBar, offset=(60, 0))
        await until(pilot, lambda: app.player is not None and 0 < app.player.view.position < COUNT)
        assert same(app.player.state, fold(STORY.events[: app.player.view.position]))


@pytest.fixture
def cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-7])
    os.utime(path, (0, 0))
    return path


async def test_damage_is_told_below_the_line(cut: Path) -> None:
    app = ReplayApp(cut)
    async with app.run_test(size=(120, 36)) as pilot:
        await at(app, pilot, COUNT - 1)
        await until(pilot, lambda: app.query_one(ReplayBar).size.height == 2)
        damage = f"✗ damaged: line {COUNT} has no end: the recording was interrupted"
        await until(pilot, lambda: damage in text_lines(app)[-2])


async def test_a_file_that_is_being_written_is_followed(tmp_path: Path, fresh_for_long: None) -> None:
    lines = [encode_event(event) for event in STORY.events]
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines[:-30]))
    app = ReplayApp(path)
    async with app.run_test(size=(120, 36)) as pilot:
        await at(app, pilot, COUNT - 30)
        await until(pilot, lambda: "following" in text_lines(app)[-2])
        with path.open("ab") as file:
            file.write(b"".join(lines[-30:]))
        await at(app, pilot, COUNT)


async def test_what_was_told_is_told_again_where_it_can_be_read(tmp_path: Path) -> None:
    story = told()
    story.tell(ev.Noticed(at_ns=story.tick(), origin="program", level="info", pane="server", text="it was told then"))
    app = ReplayApp(write(tmp_path / "s.jsonl", story), 1)
    shown: list[str] = []
    app.notify = lambda text, **_: shown.append(text)  # type: ignore[method-assign]
    async with app.run_test(size=(120, 36)) as pilot:
        await at(app, pilot, COUNT + 1)
        assert app.player is not None
        app.player.to_start()
        await at(app, pilot, 0)
        app.player.to_end()
        await at(app, pilot, COUNT + 1)
    assert shown in ([], ["it was told then"])
