"""The main job on the whole program: the screen, the engine, the observer and the real server, keys only."""

import asyncio
import sys
from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static, TextArea

from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.flags import ServerHelp
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.engine import face
from mlxcache_tui.store.paths import state_dir
from mlxcache_tui.store.replay import read_session
from mlxcache_tui.ui.app import MonitorApp
from mlxcache_tui.ui.screens.detail import DetailScreen
from mlxcache_tui.ui.screens.once import Palette
from mlxcache_tui.ui.screens.start_form import StartForm
from mlxcache_tui.ui.widgets.cache_pane import CachePane
from mlxcache_tui.ui.widgets.request_table import RequestTable
from support.screen import answered, ready, until
from support.until import until as shown

pytestmark = pytest.mark.mlx
SIZES = [(80, 24), (120, 40), (200, 50)]


def app_on(tmp_path: Path, model: str = "demo:tiny", **flags: int) -> MonitorApp:
    return MonitorApp(
        Settings(start=ServerSpec(model=model, port=0, flags=flags), save_path=str(tmp_path / "session.jsonl"))
    )


async def send(app: MonitorApp, pilot: Pilot[int], count: int, *keys: str) -> None:
    await pilot.press(*keys, "ctrl+s")
    await answered(app, pilot, count)


@pytest.mark.parametrize("size", SIZES)
async def test_the_first_run(tmp_path: Path, size: tuple[int, int]) -> None:
    """Press send, change the question, press send: the second row says what was reused and from which."""
    app = app_on(tmp_path)
    async with app.run_test(size=size) as pilot:
        state = await ready(app, pilot)
        assert state.server.observed
        await send(app, pilot, 1)
        await send(app, pilot, 2, "f3")
        first, second = (r for r in state.requests.values() if r.number)
        assert first.reason is not None
        assert second.reason is not None
        assert (first.reason.kind, second.reason.kind, second.reason.from_request) == ("first", "hit", 1)
        assert first.policy == second.policy == "returns"
        assert first.messages[0] == second.messages[0]
        assert first.messages[1] != second.messages[1]
        rows = app.presenter.rows(state)
        assert rows[-1].cached_ratio is not None
        assert rows[-1].cached_ratio >= 0.5
        assert rows[1].ttft_s is not None
        assert rows[-1].ttft_s is not None
    assert state.server.phase == "exited"
    recorded = read_session(tmp_path / "session.jsonl")
    assert recorded.damage is None
    assert (tmp_path / "session.jsonl").stat().st_mode & 0o077 == 0


async def test_an_eviction_is_seen_while_it_happens_and_explained_afterwards(tmp_path: Path) -> None:
    app = app_on(tmp_path, prompt_cache_size=2)
    async with app.run_test(size=(120, 40)) as pilot:
        state = await ready(app, pilot)
        await send(app, pilot, 1)
        await send(app, pilot, 2, "f2")
        await send(app, pilot, 3, "f2")
        await pilot.press("escape", "home", "down", "ctrl+r")
        last = (await answered(app, pilot, 4))[-1]
        assert last.reason is not None
        assert (last.reason.kind, last.reason.evicted_by, last.reason.rule) == ("evicted", 3, "count")
        await until(app, pilot, lambda state: bool(last.entries) and len(state.cache.stored) == 2)
        assert any("✂ evicted returns" in row.text for row in state.log.rows)
        assert "eviction" in [mark.kind for mark in state.memory.marks]
        assert app.query_one(CachePane) is not None


async def test_a_request_from_another_client_appears_with_its_tokens_and_times(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        state = await ready(app, pilot)
        body = '{"messages": [{"role": "user", "content": "hello from elsewhere"}], "max_tokens": 3}'
        code = (
            "import sys, urllib.request as u; "
            "u.urlopen(u.Request(sys.argv[1], sys.argv[2].encode(), {'Content-Type': 'application/json'})).read()"
        )
        url = f"{state.server.url}/v1/chat/completions"
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, url, body)
        (foreign,) = await answered(app, pilot, 1)
        await process.wait()
        assert not foreign.ours
        assert (foreign.outcome, foreign.output_tokens) == ("done", 3)
        assert foreign.prompt_tokens
        assert foreign.server.first_token is not None
        assert [row.ours for row in app.presenter.rows(state)] == [True, False]


async def test_the_detail_shows_a_request_and_goes_on_to_the_next(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(app, pilot)
        await send(app, pilot, 1)
        await send(app, pilot, 2, "f3")
        await pilot.press("escape", "end", "enter")
        await shown(pilot, lambda: isinstance(app.screen, DetailScreen) and app.focused)
        await pilot.press("left")
        await shown(pilot, lambda: str(app.screen.query_one("#detail").border_title).startswith("#1"))
        await pilot.press("w", "escape")
        await shown(pilot, lambda: app.screen_stack[-1] is app.monitor)


async def test_what_did_not_start_stands_in_the_form_to_be_mended(tmp_path: Path) -> None:
    app = app_on(tmp_path, model=str(tmp_path / "none"))
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot, lambda: isinstance(app.screen, StartForm))
        await shown(pilot, lambda: bool(app.screen.query("#note")))
        await shown(pilot, lambda: "no model folder at" in str(app.screen.query_one("#note", Static).visual))
        assert app.screen.query_one("#model", Input).value == str(tmp_path / "none")


async def test_what_is_typed_in_one_burst_with_send_is_sent(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        state = await ready(app, pilot)
        user = app.monitor.query_one("#user", TextArea)
        user.focus()
        user.clear()
        await shown(pilot, lambda: app.focused is user)
        # As a terminal sends them in one piece: nothing is worked off in between.
        for key in (*(Key(letter, letter) for letter in "why"), Key("ctrl+s", None)):
            app.post_message(key)
        (request,) = await answered(app, pilot, 1)
        assert state.message_text(request.messages[1][1]) == "why"


async def test_the_first_alternation_sends_a_and_the_cursor_goes_to_what_is_sent_again(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(app, pilot)
        await pilot.press("ctrl+t")
        await answered(app, pilot, 1)
        await pilot.press("ctrl+t")
        await answered(app, pilot, 2)
        table = app.monitor.query_one(RequestTable)
        await pilot.press("escape", "up", "ctrl+r")
        requests = await answered(app, pilot, 3)
        assert [request.policy for request in requests] == ["returns", "warranty", "returns"]
        await shown(pilot, lambda: table.cursor_key == requests[-1].key)


async def test_the_server_stops_with_us_though_our_last_steps_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(tmp_path)

    async def broken() -> None:
        raise RuntimeError("a disk of another kind")

    monkeypatch.setattr(app.scenarios, "close", broken)
    with pytest.raises(RuntimeError, match="a disk of another kind"):
        async with app.run_test(size=(120, 40)) as pilot:
            await ready(app, pilot)
    assert app.engine is not None
    assert app.engine.state.server.phase == "exited"


async def test_the_form_may_be_left_while_the_server_is_asked_for_its_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(_: str) -> ServerHelp:
        asked.set()
        await answer.wait()
        return ServerHelp(mlx_lm="0.32.2")

    app = app_on(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(app, pilot)
        monkeypatch.setattr(face, "read_server_help", slow)
        app.action_server()
        await asked.wait()
        await shown(pilot, lambda: isinstance(app.screen, StartForm) and app.focused)
        assert app.screen.query_one("#form").border_title == "Restart the server: its cache starts empty"
        await pilot.press("escape")
        await shown(pilot, lambda: app.screen is app.monitor)
        answer.set()
        await pilot.press("ctrl+s")
        await answered(app, pilot, 1)


async def test_a_choice_of_the_palette_in_one_burst_closes_it_once(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(app, pilot)
        await pilot.press("ctrl+p")
        await shown(pilot, lambda: isinstance(app.screen, Palette))
        await pilot.press(*"screenshot")
        await shown(pilot, lambda: app.screen.query_one(OptionList).option_count == 1)
        for _ in range(3):
            app.post_message(Key("enter", None))
        await shown(pilot, (state_dir() / "saved" / "screen.svg").exists)
        await shown(pilot, lambda: app.screen is app.monitor)


async def test_above_the_detail_the_palette_has_what_works_there(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(app, pilot)
        await pilot.press("escape", "end", "enter")
        await shown(pilot, lambda: isinstance(app.screen, DetailScreen))
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert "screenshot" in titles
        assert not any(title.startswith(("send", "restart")) for title in titles)
        app.action_picture()
        saved = state_dir() / "saved" / "screen.svg"
        await shown(pilot, saved.exists)
        assert saved.stat().st_mode & 0o077 == 0
        await shown(pilot, lambda: saved.read_text().rstrip().endswith("</svg>"))


async def test_several_at_once_and_cancel(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        state = await ready(app, pilot)
        await pilot.press("f9", "f9", "ctrl+s")
        four = await answered(app, pilot, 4)
        assert {request.outcome for request in four} == {"done"}
        assert app.engine is not None
        await pilot.press("f9", "f9")
        app.monitor.query_one("#max-tokens").value = "100000"  # type: ignore[attr-defined]
        await pilot.press("ctrl+s")
        await until(app, pilot, lambda state: any(r.client.first_token for r in list(state.requests.values())[5:]))
        await pilot.press("f4")
        last = (await answered(app, pilot, 5))[-1]
        assert last.outcome == "cancelled"
        assert state.server.phase == "ready"


async def test_a_restart_with_the_same_flags_empties_the_cache_and_says_so(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        state = await ready(app, pilot)
        await send(app, pilot, 1)
        await pilot.press("f10")
        await until(app, pilot, lambda state: state.server.epoch == 2 and state.server.phase == "ready")
        assert len(state.requests) == 3
        await send(app, pilot, 2)
        last = list(state.requests.values())[-1]
        assert last.reason is not None
        assert (last.reason.kind, last.reason.from_request) == ("restarted", 1)


async def test_thinking_is_kept_apart_and_can_be_turned_off(tmp_path: Path) -> None:
    app = app_on(tmp_path, model="demo:tiny-thinking")
    async with app.run_test(size=(120, 40)) as pilot:
        state = await ready(app, pilot)
        await send(app, pilot, 1)
        await send(app, pilot, 2, "f7")
        thought, answer = (r for r in state.requests.values() if r.number)
        assert thought.reasoning
        assert not thought.answer
        assert "ran out while thinking" in app.presenter.rows(state)[1].why
        assert answer.answer
        assert not answer.reasoning


async def test_the_terminal_shrinks_and_grows_back(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(app, pilot)
        for width, height in [(40, 10), (200, 50), (80, 24), (20, 5), (120, 40)]:
            await pilot.resize_terminal(width, height)
            await pilot.pause()
        await send(app, pilot, 1)
        await shown(pilot, lambda: app.monitor.query_one(RequestTable).size.width > 100)
