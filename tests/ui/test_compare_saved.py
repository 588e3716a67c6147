"""A comparison on the screen is saved as the command would write it."""

import json
import stat

import pytest
from textual.pilot import Pilot

from mlxcache_tui.cli.reports import comparison_reports
from mlxcache_tui.engine.recorded import read_sides
from mlxcache_tui.store.paths import sessions_dir, state_dir
from mlxcache_tui.ui.replay import ReplayApp
from mlxcache_tui.ui.screens.compare import CompareScreen
from support.sessions import told, write
from support.until import until


@pytest.fixture
def app() -> ReplayApp:
    """The later one of two sessions."""
    for size in (9, 1):
        write(sessions_dir() / f"2026-11-0{size}.jsonl", told(size=size))
    return ReplayApp(sessions_dir() / "2026-11-09.jsonl", None, comparison_reports)


async def compared(app: ReplayApp, pilot: Pilot[int]) -> None:
    """Wait until the comparison of both is shown."""
    await until(pilot, lambda: app.player is not None and app.player.view.position > 0)
    app.comparisons.open(*read_sides("2026-11-01", "2026-11-09"))
    await until(pilot, lambda: isinstance(app.screen, CompareScreen) and app.screen.body.text)


async def test_w_saves_what_is_shown_as_markdown_and_json(app: ReplayApp) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await compared(app, pilot)
        await pilot.press("w")
        folder = state_dir() / "saved"
        await until(pilot, lambda: (folder / "comparison.json").exists())
        assert json.loads((folder / "comparison.json").read_text())["schema"] == 1
        assert (folder / "comparison.md").read_text().startswith("# 2026-11-01 against 2026-11-09\n")
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        await pilot.press("s", "w")
        await until(pilot, lambda: (folder / "comparison-2.md").exists())
        assert (folder / "comparison-2.md").read_text().startswith("# 2026-11-09 against 2026-11-01\n")


async def test_where_it_cannot_be_saved_the_screen_says_so(app: ReplayApp) -> None:
    shown: list[str] = []
    app.notify = lambda text, **_: shown.append(text)  # type: ignore[method-assign]
    async with app.run_test(size=(120, 40)) as pilot:
        await compared(app, pilot)
        (state_dir() / "saved").write_text("in the way")
        await pilot.press("w")
        await until(pilot, lambda: shown)
        assert shown[0].startswith("not saved: ")
