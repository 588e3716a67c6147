"""Scenarios on the whole program: picked, run, paused, stopped, edited and saved by keys, on the real server."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from mlxcache_tui.cli.reports import run_reports
from mlxcache_tui.core.commands import AttachServer, ServerSpec
from mlxcache_tui.core.scenario_view import ScenarioView
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.ui.app import MonitorApp
from mlxcache_tui.ui.screens.compare import CompareScreen
from mlxcache_tui.ui.screens.detail import DetailScreen
from mlxcache_tui.ui.screens.scenario_picker import ScenarioPicker
from mlxcache_tui.ui.screens.scenario_values import ScenarioValues
from mlxcache_tui.ui.widgets.fields import PlainInput
from support.golden import screen_lines
from support.live_server import Server
from support.screen import PATIENCE_S, ready

pytestmark = pytest.mark.mlx
LONG = """
title = "A long one"
[[steps]]
id = "many"
user = "Tell me {{n}}."
repeat = 200
max_tokens = 60
[[steps]]
user = "Tell me."
"""


def app_on(tmp_path: Path, start: ServerSpec | AttachServer | None = None) -> MonitorApp:
    start = start or ServerSpec(model="demo:tiny", port=0)
    return MonitorApp(Settings(start=start, save_path=str(tmp_path / "session.jsonl")), run_reports)


async def until(pilot: Pilot[int], holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await pilot.pause(0.02)


async def pick(app: MonitorApp, pilot: Pilot[int], *keys: str) -> None:
    """Open the picker and press keys in it once it is filled."""
    await pilot.press("ctrl+l")
    await until(pilot, lambda: isinstance(app.screen, ScenarioPicker) and app.screen.offered and app.focused)
    await pilot.press(*keys)


def view(app: MonitorApp) -> ScenarioView | None:
    return app.scenarios.pane.view


async def over(app: MonitorApp, pilot: Pilot[int]) -> ScenarioView:
    await until(pilot, lambda: (shown := view(app)) is not None and shown.phase == "over")
    shown = view(app)
    assert shown is not None
    return shown


def held(shown: ScenarioView, all_held: str) -> None:
    """Every expectation held but, where the machine was busy with something else meanwhile, one on a time."""
    failed = [line.text for line in shown.verdict if line.tone == "bad"]
    assert shown.head.text == all_held or (failed and all("ttft_s" in text for text in failed)), shown


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_return_policy_then_edited_and_run_again_beside_it(tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=size) as pilot:
        state = await ready(app, pilot)
        await pick(app, pilot, "enter")
        first = await over(app, pilot)
        held(first, "all 5 expectations held")
        assert [step.done for step in first.runs[0].steps] == [1] * 4
        assert not first.has_before
        await pilot.press("equals_sign")
        await pilot.pause()
        assert app.screen is app.monitor  # there is nothing yet to compare it with
        sent = [request for request in state.requests.values() if request.purpose == "scenario"]
        assert [request.step for request in sent][:2] == ["first question", "second question"]
        assert app.monitor.query_one("#composer").display is False

        await pilot.press("1", "end", "enter")
        await until(pilot, lambda: isinstance(app.screen, DetailScreen))
        await pilot.press("escape", "6", "v")
        await until(pilot, lambda: isinstance(app.screen, ScenarioValues) and isinstance(app.focused, PlainInput))
        await pilot.press(*"4", "tab", "tab", "tab", "tab", "tab", "3", "tab", "8", "ctrl+s")
        await until(pilot, lambda: (shown := view(app)) is not None and shown.has_before)
        second = await over(app, pilot)
        assert second.changed == ("prompt_cache_size default → 4", "repeat 1 → 3", "max_tokens 64 → 8")
        assert [step.total for step in second.runs[0].steps] == [3] * 4
        assert all(step.figures and step.before for step in second.runs[0].steps)
        assert state.server.flags["prompt_cache_size"] == 4

        await pilot.press("equals_sign")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen) and app.screen.body.text)
        assert isinstance(app.screen, CompareScreen)
        text = app.screen.body.text
        assert "the run before · return-policy · 4 requests" in text
        assert "this run · return-policy · 12 requests" in text
        assert "≠  prompt_cache_size  10 → 4" in text
        assert "not compared" not in text  # what was edited was meant
        await pilot.press("escape")

        await pilot.press("w")
        saved = Path(tmp_path / "home" / "state" / "saved")
        report = saved / "return-policy.json"  # written after the other
        await until(pilot, lambda: report.exists() and report.read_text().rstrip().endswith("}"))
        assert (saved / "return-policy.md").read_text().startswith("# Same policy, other question")
        run = json.loads(report.read_text())
        assert (run["scenario"], run["summary"]["requests"]) == ("return-policy", 12)
        await pilot.press("c")
        await until(pilot, lambda: view(app) is None and app.monitor.query_one("#composer").display)


async def test_alternate_policies_with_a_pause_and_one_step_again(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        state = await ready(app, pilot)
        await pick(app, pilot, "home", "enter")
        await until(pilot, lambda: (shown := view(app)) is not None and shown.runs[0].steps[0].status == "done")
        await pilot.press("space")
        await until(pilot, lambda: (shown := view(app)) is not None and shown.phase == "paused")
        await until(pilot, lambda: "continue" in screen_lines(app)[-1])
        await pilot.press("space")
        done = await over(app, pilot)
        held(done, "all 7 expectations held")
        assert [step.figures.evictions for step in done.runs[0].steps if step.figures] == [0, 1, 1, 1, 0, 0, 0, 0]
        assert state.server.flags["prompt_cache_size"] == 10
        before = len(state.requests)
        await pilot.press("r")  # without a step under the cursor: the last one
        await until(pilot, lambda: len(state.requests) == before + 1)
        await over(app, pilot)
        assert list(state.requests.values())[-1].step == done.runs[0].steps[-1].name
        await pilot.press("down", "r")  # the first step, whose policy is stored by now
        await until(pilot, lambda: len(state.requests) > before + 1)

        def reused() -> bool:
            figures = shown.runs[0].steps[0].figures if (shown := view(app)) is not None else None
            return figures is not None and (figures.cached_ratio or 0) > 0.5

        await until(pilot, reused)
        await over(app, pilot)


async def test_stop_keeps_what_was_measured_and_the_program_can_end_in_the_middle(tmp_path: Path) -> None:
    file = tmp_path / "long.toml"
    file.write_text(LONG)
    app = app_on(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        state = await ready(app, pilot)
        await pick(app, pilot, "tab", "tab", *str(file), "enter")
        await until(pilot, lambda: app.focused is not None and app.focused.id == "names")
        await pilot.press("enter")
        await until(pilot, lambda: (shown := view(app)) is not None and shown.runs[0].steps[0].done >= 3)
        await pilot.press("x")
        stopped = await over(app, pilot)
        assert stopped.head.text == "stopped; what was measured is kept"
        assert [step.status for step in stopped.runs[0].steps] == ["stopped", "waiting"]
        assert stopped.runs[0].figures is not None
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, ScenarioValues) and isinstance(app.focused, PlainInput))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: (shown := view(app)) is not None and shown.runs[0].steps[0].done >= 1)
    assert state.server.phase == "exited"
    # What both runs had measured when the program was quit is kept, as `run` keeps it.
    saved = sorted((tmp_path / "home" / "state" / "saved").glob("*.json"))
    assert len(saved) == 2
    for file in saved:
        run = json.loads(file.read_text())
        assert run["interrupted"] is True
        assert run["summary"]["requests"] >= 1
        assert any(line.startswith("A long one, interrupted: ") and str(file) in line for line in app.farewell)


async def test_a_sweep_runs_through_all_limits(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(app, pilot)
        await pick(app, pilot, "home", "down", "down", "v")
        await until(pilot, lambda: isinstance(app.screen, ScenarioValues) and isinstance(app.focused, PlainInput))
        await pilot.press("shift+home", *"1,8", "ctrl+s")
        done = await over(app, pilot)
        assert [(run.values, run.status) for run in done.runs] == [("1", "done"), ("8", "done")]
        one, eight = (run.figures for run in done.runs)
        assert one is not None
        assert eight is not None
        assert (one.evictions or 0) > (eight.evictions or 0)


async def test_what_an_attached_server_cannot_do_is_refused_in_the_picker(tmp_path: Path, observed: Server) -> None:
    app = app_on(tmp_path, AttachServer(url=f"http://127.0.0.1:{observed.port}"))
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(app, pilot)
        await pick(app, pilot, "home", "enter")
        note = app.screen.query_one("#note", Static)
        await until(pilot, lambda: "cannot be restarted" in str(note.content))
        assert isinstance(app.screen, ScenarioPicker)
        await pilot.press("escape")
        await pick(app, pilot, "enter")  # return-policy needs no restart
        done = await over(app, pilot)
        held(done, "all 5 expectations held")
        assert [step.done for step in done.runs[0].steps] == [1] * 4
