"""Writes the README's pictures from real runs: `uv run pytest -m screenshots -n 0`.

Each drives the app on a real server as a person would, and saves what stands on the screen. `MLXCACHE_SHOTS=smollm2`
takes the real chat model (fetched once), otherwise the tiny one.
"""

import os
import re
from pathlib import Path

import pytest

from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.ui.app import MonitorApp
from mlxcache_tui.ui.screens.scenario_picker import ScenarioPicker
from mlxcache_tui.ui.screens.scenario_values import ScenarioValues
from support.pictures import anchored
from support.screen import answered, ready
from support.until import until

pytestmark = pytest.mark.screenshots
FOLDER = Path(__file__).parents[2] / "screenshots"
KIND = os.environ.get("MLXCACHE_SHOTS", "tiny")
FONTS = re.compile(r"@font-face\s*{.*?}", re.DOTALL)


def save(app: MonitorApp, name: str) -> None:
    """The screen as a self-contained SVG: no font is fetched from anywhere."""
    svg = anchored(FONTS.sub("", app.export_screenshot(title="mlxcache-tui")))
    (FOLDER / f"{name}.svg").write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")


def app_on(tmp_path: Path, **flags: int) -> MonitorApp:
    spec = ServerSpec(model=f"demo:{KIND}", port=0, flags=dict(flags))
    return MonitorApp(Settings(start=spec, save_path=str(tmp_path / "session.jsonl")))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 50)])
async def test_the_first_run(tmp_path: Path, width: int, height: int) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(width, height)) as pilot:
        await ready(app, pilot)
        await pilot.press("ctrl+s")
        await answered(app, pilot, 1)
        await pilot.press("f3", "ctrl+s")
        await answered(app, pilot, 2)
        save(app, f"first-run-{width}x{height}")


async def test_an_eviction_and_the_detail_that_explains_it(tmp_path: Path) -> None:
    app = app_on(tmp_path, prompt_cache_size=2)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(app, pilot)
        await pilot.press("ctrl+s")
        await answered(app, pilot, 1)
        for count in (2, 3):
            await pilot.press("f2", "ctrl+s")
            await answered(app, pilot, count)
        await pilot.press("escape", "home", "down", "ctrl+r")
        await answered(app, pilot, 4)
        await pilot.press("end")
        save(app, "eviction")
        await pilot.press("enter")
        await pilot.pause()
        save(app, "detail")


async def test_a_scenario_and_its_verdict_beside_the_last_result(tmp_path: Path) -> None:
    app = app_on(tmp_path, prompt_cache_size=2)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(app, pilot)
        await pilot.press("ctrl+l")
        await until(pilot, lambda: isinstance(app.screen, ScenarioPicker) and app.screen.offered, limit_s=90)
        await pilot.press("home", "enter")
        await until(pilot, lambda: app.scenarios.busy, limit_s=90)
        await until(pilot, lambda: not app.scenarios.busy, limit_s=600)
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, ScenarioValues), limit_s=90)
        await pilot.press("shift+home", "4", "ctrl+s")
        await until(pilot, lambda: app.scenarios.busy, limit_s=90)
        await until(pilot, lambda: not app.scenarios.busy, limit_s=600)
        save(app, "scenario")
