"""The cache pane's keys on the whole program: by policy, a warning put away, what was warm warmed again."""

from pathlib import Path

import pytest

from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.ui.app import MonitorApp
from support.golden import screen_lines
from support.screen import answered, ready, until
from support.until import until as soon

pytestmark = pytest.mark.mlx


def app_on(tmp_path: Path, model: str, **flags: int) -> MonitorApp:
    spec = ServerSpec(model=model, port=0, flags=flags)
    return MonitorApp(Settings(start=spec, save_path=str(tmp_path / "session.jsonl")))


async def test_what_was_warm_before_a_restart_is_offered_and_warmed(tmp_path: Path) -> None:
    app = app_on(tmp_path, "demo:tiny")
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(app, pilot)
        await pilot.press("ctrl+s")
        await answered(app, pilot, 1)
        await pilot.press("f10")
        await until(app, pilot, lambda state: state.server.epoch == 2 and state.server.phase == "ready")
        await pilot.press("escape", "3")
        await soon(pilot, lambda: any("w: warm again after the restart: returns" in line for line in screen_lines(app)))
        await pilot.press("p")
        await soon(pilot, lambda: any("returns" in line and "↻ cold" in line for line in screen_lines(app)))
        await pilot.press("w")

        def warmed(state: SessionState) -> bool:
            return any(r.purpose == "warm" and r.outcome == "done" and r.entries for r in state.requests.values())

        await until(app, pilot, warmed)
        await soon(pilot, lambda: not any("w: warm again" in line for line in screen_lines(app)))
        await pilot.press("ctrl+s")
        last = (await answered(app, pilot, 2))[-1]
        assert last.reason is not None
        assert last.reason.kind == "hit"


async def test_a_warning_is_seen_once(tmp_path: Path) -> None:
    app = app_on(tmp_path, "demo:tiny-sliding", prompt_cache_size=6)
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(app, pilot)
        await pilot.press("escape", "3")
        await soon(pilot, lambda: any("a cold request takes 3 of the 6 places" in line for line in screen_lines(app)))
        await pilot.press("x")
        await soon(pilot, lambda: not any("a cold request" in line for line in screen_lines(app)))
        await pilot.press("ctrl+s")
        await answered(app, pilot, 1)
        assert not any("a cold request" in line for line in screen_lines(app))
