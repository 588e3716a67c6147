"""Comparing on the screen: two sides are picked, read, told apart; driven by keys and by the mouse."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from mlxcache_tui.core.compare_view import CompareView, compare_view
from mlxcache_tui.engine import recorded
from mlxcache_tui.report.json import to_json
from mlxcache_tui.store.paths import sessions_dir
from mlxcache_tui.ui.replay import ReplayApp
from mlxcache_tui.ui.screens.compare import CompareScreen
from mlxcache_tui.ui.screens.compare_picker import ComparePicker
from mlxcache_tui.ui.screens.help import HelpScreen
from mlxcache_tui.ui.widgets.chip import Chip
from mlxcache_tui.ui.widgets.fields import PlainInput
from mlxcache_tui.ui.widgets.session_list import SessionList
from mlxcache_tui.ui.widgets.text_flow import TextFlow
from support.comparisons import compared, session_row
from support.fake_engine import FakeEngine
from support.golden import check_golden, screen_lines
from support.scenario_runs import run_of
from support.sessions import told, write
from support.until import until

SIZES = [(80, 24), (120, 40)]
ANSWER = "返品は三十日以内に限ります。開封した付属品は、破損して届いた場合にだけ返品できます。"


@pytest.fixture
def sessions() -> tuple[Path, Path]:
    """A session with room for ten entries, and a later one with room for one."""
    ten, one = (sessions_dir() / f"2026-11-0{day}.jsonl" for day in (1, 2))
    return write(ten, told(size=10)), write(one, told(size=1))


@pytest.fixture
def results(tmp_path: Path) -> tuple[Path, Path]:
    """The same as results of a run."""
    paths = tmp_path / "ten.json", tmp_path / "one.json"
    for path, cache in zip(paths, (10, 1), strict=True):
        path.write_text(to_json([run_of(engine=FakeEngine(cache=cache))[0]], several=False))
    return paths


async def picker_of(app: ReplayApp, pilot: Pilot[int], key: str = "f12") -> ComparePicker:
    """Press the key once the recording is there, and wait for the list."""
    await until(pilot, lambda: app.player is not None and app.player.view.position > 0)
    await pilot.press(key)
    await until(pilot, lambda: isinstance(app.screen, ComparePicker) and app.screen.query(SessionList))
    assert isinstance(app.screen, ComparePicker)
    picker = app.screen
    await until(pilot, lambda: len(picker.query_one(SessionList).rows) == len(list(sessions_dir().glob("*.jsonl"))))
    return picker


async def opened(app: App[Any], pilot: Pilot[Any]) -> CompareScreen:
    await until(pilot, lambda: isinstance(app.screen, CompareScreen) and app.screen.body.text)
    assert isinstance(app.screen, CompareScreen)
    return app.screen


def note(picker: ComparePicker) -> str:
    return str(picker.query_one("#note", Static).content)


def fields(picker: ComparePicker) -> tuple[str, str]:
    return picker.query_one("#a", PlainInput).value, picker.query_one("#b", PlainInput).value


# --- picking


@pytest.mark.parametrize("size", SIZES)
async def test_the_session_on_the_screen_against_another_by_one_key(
    sessions: tuple[Path, Path], size: tuple[int, int]
) -> None:
    app = ReplayApp(sessions[1])
    async with app.run_test(size=size) as pilot:
        picker = await picker_of(app, pilot)
        assert fields(picker) == ("", "2026-11-02")
        await pilot.press("down", "enter")
        screen = await opened(app, pilot)
        text = screen.body.text
        assert "2026-11-01 · 4 requests" in text
        assert "≠  prompt_cache_size  10 → 1" in text
        assert "evictions" in text
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.monitor)


async def test_the_key_of_a_sign_opens_it_and_each_side_can_be_chosen(sessions: tuple[Path, Path]) -> None:
    app = ReplayApp(sessions[1])
    async with app.run_test(size=(80, 24)) as pilot:
        picker = await picker_of(app, pilot, "equals_sign")
        await pilot.press("a", "down", "b")
        assert fields(picker) == ("2026-11-02", "2026-11-01")
        lines = screen_lines(app)
        assert lines[2].startswith("│  A ")
        assert lines[3].startswith("│ ▸B ")
        await pilot.press("ctrl+s")
        screen = await opened(app, pilot)
        assert "≠  prompt_cache_size  1 → 10" in screen.body.text


async def test_the_mouse_does_it_too(sessions: tuple[Path, Path]) -> None:
    app = ReplayApp(sessions[1])
    async with app.run_test(size=(120, 40)) as pilot:
        picker = await picker_of(app, pilot)
        await pilot.click(SessionList, offset=(5, 2))
        await pilot.click("#take-a")
        assert fields(picker) == ("2026-11-01", "2026-11-02")
        await pilot.click("#compare")
        screen = await opened(app, pilot)
        row = next(index for index, line in enumerate(screen_lines(app)) if line.startswith("│ other "))
        await pilot.click(offset=(10, row))
        await until(pilot, lambda: "step 2 of 2  other" in screen.body.text)


async def test_a_click_on_the_row_of_the_cursor_takes_it(sessions: tuple[Path, Path]) -> None:
    app = ReplayApp(sessions[1])
    async with app.run_test(size=(80, 24)) as pilot:
        await picker_of(app, pilot)
        await pilot.click(SessionList, offset=(5, 2))
        await pilot.click(SessionList, offset=(5, 2))
        await opened(app, pilot)


async def test_paths_are_typed_and_the_last_enter_compares(
    sessions: tuple[Path, Path], results: tuple[Path, Path]
) -> None:
    app = ReplayApp(sessions[1])
    async with app.run_test(size=(120, 40)) as pilot:
        picker = await picker_of(app, pilot)
        picker.query_one("#b", PlainInput).value = ""
        picker.query_one("#a", PlainInput).value = f"{results[0]}x"
        await pilot.press("tab", "backspace", "enter")
        await until(pilot, lambda: app.focused is picker.query_one("#b"))
        picker.query_one("#b", PlainInput).value = str(results[1])
        await pilot.press("enter")
        screen = await opened(app, pilot)
        assert "▼  B is worse than A" in screen.body.text
        assert "second | question" in screen.body.text


async def test_it_is_in_the_palette_and_in_the_help(sessions: tuple[Path, Path]) -> None:
    app = ReplayApp(sessions[1])
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.player is not None)
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert "compare (f12)" in titles
        assert not any(title.startswith("swap") for title in titles)
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and app.screen.query_one(TextFlow).text)
        text = app.screen.query_one(TextFlow).text
        for told_of in ("Compare two recorded sessions", "Keys: compare", "A and B change", "As A"):
            assert told_of in text


# --- what goes wrong


async def test_mistakes_are_one_line_and_the_list_stays(sessions: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"\x00\x01")
    (tmp_path / "cut.json").write_text('{"schema": 1, "scen')
    app = ReplayApp(sessions[1])
    async with app.run_test(size=(120, 40)) as pilot:
        picker = await picker_of(app, pilot)
        await pilot.press("ctrl+s")
        assert note(picker) == "✗ choose A first: a session above, or a path"
        for name, told_of in (
            ("none.json", "none.json: cannot be read: no such file or directory"),
            ("model.bin", "model.bin: neither a session nor a result of run --json"),
            ("cut.json", "cut.json: no run JSON: Input data was truncated"),
            ("", "is not a file"),
            ("~nosuchuser/x", "cannot be read: no home is known for ~nosuchuser"),
        ):
            picker.query_one("#a", PlainInput).value = name if name.startswith("~") else str(tmp_path / name)
            await pilot.press("ctrl+s")
            await until(pilot, lambda told_of=told_of: note(picker).endswith(told_of))  # type: ignore[misc]
            assert note(picker).startswith("✗ ")
        picker.query_one("#a", PlainInput).value = str(sessions[1])
        await pilot.press("ctrl+s")
        await until(pilot, lambda: note(picker).startswith("✗ A and B are the same file"))
        assert app.screen is picker


async def test_a_mistake_of_ours_while_reading_is_a_line_too(
    sessions: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(a: str, b: str) -> Any:
        raise KeyError(a)

    monkeypatch.setattr(recorded, "read_sides", broken)
    app = ReplayApp(sessions[1])
    async with app.run_test(size=(120, 40)) as pilot:
        picker = await picker_of(app, pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: note(picker) == "✗ cannot be compared: KeyError: '2026-11-01'")
        assert app.screen is picker


async def test_a_damaged_session_is_compared_as_far_as_it_goes(sessions: tuple[Path, Path]) -> None:
    sessions[0].write_bytes(sessions[0].read_bytes()[:-3])
    app = ReplayApp(sessions[1])
    async with app.run_test(size=(120, 40)) as pilot:
        await picker_of(app, pilot)
        await pilot.press("down", "enter")
        screen = await opened(app, pilot)
        assert "!  A: 2026-11-01: line" in screen.body.text
        assert "has no end" in screen.body.text


async def test_while_files_are_read_the_screen_lives_and_can_be_left(
    sessions: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, begun = threading.Event(), threading.Event()
    read = recorded.read_sides

    def slow(a: str, b: str) -> Any:
        begun.set()
        assert go_on.wait(30)
        return read(a, b)

    monkeypatch.setattr(recorded, "read_sides", slow)
    app = ReplayApp(sessions[1])
    async with app.run_test(size=(80, 24)) as pilot:
        picker = await picker_of(app, pilot)
        await pilot.press("down", "enter")
        await asyncio.to_thread(begun.wait, 30)
        assert note(picker) == "reading …"
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.monitor)
        go_on.set()
        await app.workers.wait_for_complete()
        assert app.screen is app.monitor


async def test_nothing_recorded_yet_is_said(tmp_path: Path) -> None:
    app = ReplayApp(write(tmp_path / "s.jsonl", told()))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.player is not None)
        picker = ComparePicker()
        await app.push_screen(picker)
        await pilot.press("down", "end", "pageup", "enter", "a")
        picker.finish()
        await until(pilot, lambda: any("no session was recorded yet" in line for line in screen_lines(app)))


# --- the list


async def test_the_cursor_is_kept_in_sight_and_the_marks_follow_the_fields() -> None:
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        picker = ComparePicker()
        await app.push_screen(picker)
        for number in range(40):
            picker.offer(session_row(f"session {number}", requests=number))
        shown = picker.query_one(SessionList)
        for keys, wanted in (("end", 39), ("pageup", 23), ("up", 22), ("home", 0), ("pagedown", 16), ("down", 17)):
            await pilot.press(keys)
            assert shown.chosen is not None
            assert shown.chosen.requests == wanted
            assert shown.scroll_offset.y <= wanted <= shown.scroll_offset.y + shown.size.height - 2
        await pilot.press("enter")
        assert picker.query_one("#a", PlainInput).value == "session 17"
        row = next(line for line in screen_lines(app) if line.startswith("│ ▸A "))
        assert " 17 " in row
        await pilot.click(picker.query(Chip).last())
        await until(pilot, lambda: app.screen is not picker)


# --- the comparison


class CompareApp(App[None]):
    """Opens the screen on a made-up comparison."""

    def __init__(self, view: CompareView) -> None:
        super().__init__()
        self.shown = CompareScreen(view)
        self.wishes: list[bool] = []

    def on_mount(self) -> None:
        self.push_screen(self.shown)

    def on_compare_screen_wished(self, event: CompareScreen.Wished) -> None:
        self.wishes.append(event.meant)


@pytest.mark.parametrize("size", SIZES)
async def test_what_it_looks_like(size: tuple[int, int], request: pytest.FixtureRequest) -> None:
    app = CompareApp(compared(answer=ANSWER))
    async with app.run_test(size=size) as pilot:
        await opened(app, pilot)
        overview = screen_lines(app)
        await pilot.press("right", "right")
        check_golden(request, f"compare-{size[0]}", [*overview, "", *screen_lines(app)])


async def test_without_colour_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = CompareApp(compared())
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(app, pilot)
        lines = [line.strip("│ ") for line in screen_lines(app)]
        assert "▼  B is worse than A" in lines
        assert any(line.startswith("cached") and line.endswith("▼ worse") for line in lines)
        await app.push_screen(picker := ComparePicker())
        picker.offer(session_row())
        await until(pilot, lambda: any("2026-11-29 20:10:33" in line for line in screen_lines(app)))


async def test_the_steps_are_gone_through_and_esc_goes_back_by_levels() -> None:
    app = CompareApp(compared())
    async with app.run_test(size=(80, 24)) as pilot:
        body = (await opened(app, pilot)).body
        for key, step in (("left", None), ("right", 0), ("right", 1), ("right", 1), ("left", 0), ("left", None)):
            await pilot.press(key)
            assert body.step == step
        await pilot.press("right", "escape")
        assert body.step is None
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not app.shown)


async def test_without_steps_there_are_none_to_go_through() -> None:
    app = CompareApp(compared(top_p=0.5))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot)
        assert screen_lines(app)[-1] == " esc back  ? help  s swap  m meant  w save"


async def test_long_answers_scroll_below_the_sides_that_stand_still() -> None:
    app = CompareApp(compared(answer=ANSWER * 30))
    async with app.run_test(size=(80, 24)) as pilot:
        body = (await opened(app, pilot)).body
        before = screen_lines(app)
        await pilot.press("right", "right", "end")
        await until(pilot, lambda: body.scroll_offset.y == body.max_scroll_y > 20)
        assert screen_lines(app)[1:5] == before[1:5]
        assert body.text.splitlines()[-1].split(maxsplit=2)[2] in screen_lines(app)[-3]
        await pilot.press("home", "pagedown", "down", "up")
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: body.columns > 80)


async def test_what_was_refused_can_be_meant_and_only_then() -> None:
    app = CompareApp(compared(top_p=0.5))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(app, pilot)
        assert "✗  not compared: prompt_cache_size, top_p differ" in screen.body.text
        assert "m meant" in screen_lines(app)[-1]
        await pilot.press("right", "m", "s")
        assert (screen.body.step, app.wishes) == (None, [True, False])
        screen.show(compared())
        await until(pilot, lambda: "m meant" not in screen_lines(app)[-1])
        await pilot.press("m")
        assert app.wishes == [True, False]


async def test_sides_are_swapped_and_differences_meant_in_the_app(
    sessions: tuple[Path, Path], results: tuple[Path, Path]
) -> None:
    app = ReplayApp(sessions[1])
    async with app.run_test(size=(120, 40)) as pilot:
        picker = await picker_of(app, pilot)
        picker.query_one("#a", PlainInput).value = str(results[1])
        await pilot.press("ctrl+s")
        screen = await opened(app, pilot)
        assert "scenario" in screen.body.text
        assert "not compared" in screen.body.text
        await pilot.press("m")
        # Nothing stands in the way any more, but for what no word can lift: they did different things.
        await until(pilot, lambda: "no step in common" in screen.body.text)
        first = screen.body.text.splitlines()[0]
        await pilot.press("s")
        await until(pilot, lambda: first.replace("A ", "B ", 1) in screen.body.text.splitlines())


async def test_while_a_comparison_is_made_the_screen_lives_and_each_wish_is_reckoned_once(
    sessions: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, begun, made = threading.Event(), threading.Event(), list[str]()

    def slow(*args: Any) -> CompareView:
        assert threading.current_thread() is not threading.main_thread()
        begun.set()
        assert go_on.wait(30)
        made.append(args[0].name)
        return compare_view(*args)

    monkeypatch.setattr("mlxcache_tui.ui.comparisons.compare_view", slow)
    app = ReplayApp(sessions[1])
    async with app.run_test(size=(120, 40)) as pilot:
        picker = await picker_of(app, pilot)
        await pilot.press("down", "enter")
        await asyncio.to_thread(begun.wait, 30)
        assert (note(picker), app.screen) == ("reading …", picker)
        go_on.set()
        screen = await opened(app, pilot)
        go_on.clear()
        begun.clear()
        await pilot.press("s")
        await asyncio.to_thread(begun.wait, 30)
        await pilot.press("right")
        assert screen.body.step == 0
        assert "comparing …" in screen_lines(app)[-2]
        go_on.set()
        await until(pilot, lambda: screen.body.text.startswith("A  ") and "comparing …" not in screen_lines(app)[-2])
        assert made == ["2026-11-01", "2026-11-02"]
        await pilot.press("escape", "escape")
        await until(pilot, lambda: app.screen is app.monitor)
