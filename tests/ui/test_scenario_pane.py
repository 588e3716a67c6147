"""The scenario pane in an app."""

from typing import Any

import pytest
from textual import on

from mlxcache_tui.core.scenario_view import ScenarioView, VerdictLine
from mlxcache_tui.ui.widgets.scenario_pane import ScenarioPane
from support.golden import check_golden, screen_lines
from support.pane import Paints, PaneApp
from support.scenario_views import run_view, scenario_pane_view, step_view
from support.until import until

MANY = tuple(step_view(f"step {number}", status="done") for number in range(12))
FAILED = VerdictLine(tone="bad", text="second: cached_ratio >= 0.5: 2 %, 48 points too low")


class AskedApp(PaneApp):
    """Keeps what the pane asked for."""

    def __init__(self, pane: ScenarioPane) -> None:
        super().__init__(pane)
        self.asked: list[tuple[str, str | None, int]] = []

    @on(ScenarioPane.Asked)
    def _asked(self, event: ScenarioPane.Asked) -> None:
        self.asked.append((event.wish, event.step, event.run))


def over(**fields: Any) -> ScenarioView:
    known: dict[str, Any] = {
        "phase": "over",
        "head": VerdictLine(tone="bad", text="1 of 2 expectations failed"),
        "verdict": (FAILED,),
        "runs": (run_view(step_view("first", status="done"), step_view("second", status="failed")),),
    }
    return scenario_pane_view(**(known | fields))


@pytest.mark.parametrize("width", [56, 76, 118])
async def test_what_it_looks_like(width: int, request: pytest.FixtureRequest) -> None:
    app = PaneApp(pane := ScenarioPane())
    async with app.run_test(size=(width, 11)) as pilot:
        pane.show(over(has_before=True, changed=("repeat 1 → 3",)))
        await pilot.pause()
        check_golden(request, f"scenario-pane-{width}", screen_lines(app))


async def test_without_a_scenario_it_says_how_to_open_one() -> None:
    app = PaneApp(pane := ScenarioPane())
    async with app.run_test(size=(60, 7)) as pilot:
        await pilot.pause()
        assert "no scenario is open" in " ".join(screen_lines(app))
        pane.show(over())
        pane.show(None)
        await pilot.pause()
        assert "no scenario is open" in " ".join(screen_lines(app))


async def test_only_what_changed_is_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    app = PaneApp(pane := ScenarioPane())
    async with app.run_test(size=(60, 12)) as pilot:
        pane.show(scenario_pane_view())
        await pilot.pause()
        paints = Paints(pane, monkeypatch)
        pane.show(scenario_pane_view())
        assert paints.regions == []
        head = VerdictLine(tone="plain", text="running · step 2 of 3 · 2 of 3 requests")
        pane.show(scenario_pane_view(head=head))
        assert [(region.y, region.height) for region in paints.regions if region] == [(0, 1)]


async def test_the_step_that_runs_stays_in_sight_and_the_verdict_comes_at_the_end() -> None:
    app = PaneApp(pane := ScenarioPane())
    async with app.run_test(size=(60, 6)) as pilot:
        steps = (*MANY, step_view("the running one", status="running"), *MANY)
        pane.show(scenario_pane_view(runs=(run_view(*steps, status="running"),)))
        await until(pilot, lambda: any("the running one" in line for line in screen_lines(app)))
        pane.show(over(runs=(run_view(*MANY),)))
        await until(pilot, lambda: pane.scroll_offset.y == 0)
        assert "48 points too low" in screen_lines(app)[1]


async def test_a_chosen_step_stays_chosen_when_it_ran_again() -> None:
    app = PaneApp(pane := ScenarioPane())
    async with app.run_test(size=(60, 6)) as pilot:
        pane.show(over(runs=(run_view(*MANY),)))
        pane.focus()
        await pilot.press("end", "down", "down", "down", "down", "down", "down", "down", "down")
        chosen = pane.chosen_step
        running = tuple(step_view(step.name, status="running" if step.id == chosen else "done") for step in MANY)
        pane.show(over(phase="running", verdict=(), runs=(run_view(*running, status="running"),)))
        pane.show(over(runs=(run_view(*MANY),)))
        await pilot.pause()
        assert pane.chosen_step == chosen == "step 7"
        assert any("step 7" in line for line in screen_lines(app))


async def test_keys_ask_for_what_they_say_and_name_the_chosen_step() -> None:
    app = AskedApp(pane := ScenarioPane())
    async with app.run_test(size=(60, 12)) as pilot:
        pane.show(over())
        pane.focus()
        await pilot.press("r", "down", "r", "up", "r", "space", "x", "v", "w", "c")
        await until(pilot, lambda: len(app.asked) == 8)
        assert any(line.startswith("✓▸first") for line in screen_lines(app)), "the choice is seen without colour too"
        # The first press goes to the step that failed.
        assert app.asked[:3] == [("again", None, 0), ("again", "second", 0), ("again", "first", 0)]
        assert [wish for wish, _, _ in app.asked[3:]] == ["pause", "stop", "values", "report", "close"]


@pytest.mark.parametrize(
    ("view", "left"),
    [
        (None, "compare close"),
        (scenario_pane_view(), "pause stop"),
        (over(), "again values report close"),
        (over(has_before=True), "again values report compare close"),
    ],
)
async def test_the_footer_leaves_out_what_cannot_be_done_now(view: ScenarioView | None, left: str) -> None:
    app = PaneApp(pane := ScenarioPane())
    async with app.run_test(size=(60, 12)):
        pane.show(view)
        wishes = ("pause", "stop", "again", "values", "report", "compare", "close")
        assert " ".join(wish for wish in wishes if f"ask('{wish}')" not in pane.idle_actions) == left


async def test_a_run_of_a_sweep_is_chosen_by_the_cursor() -> None:
    app = AskedApp(pane := ScenarioPane())
    runs = tuple(run_view(step_view(f"in {n}", status="done"), label=f"size {n}", values=str(n)) for n in (1, 2, 4))
    async with app.run_test(size=(60, 12)) as pilot:
        pane.show(over(runs=runs, current=2, limits="size", verdict=()))
        pane.focus()
        await pilot.pause()
        assert pane.shown_run == 2
        assert any("in 4" in line for line in screen_lines(app))
        await pilot.press("down")
        await pilot.pause()
        assert pane.shown_run == 0
        assert any("in 1" in line for line in screen_lines(app))
        await pilot.press("down", "down", "down", "r")
        await until(pilot, lambda: app.asked)
        assert app.asked == [("again", "in 4", 2)]


async def test_a_click_chooses_and_pages_scroll() -> None:
    app = PaneApp(pane := ScenarioPane())
    async with app.run_test(size=(60, 6)) as pilot:
        pane.show(over(runs=(run_view(*MANY),), verdict=()))
        pane.focus()
        await pilot.click(pane, offset=(3, 3))
        assert pane.chosen_step == "step 1"
        await pilot.press("pagedown")
        await until(pilot, lambda: pane.scroll_offset.y > 0)
        await pilot.press("end")
        await until(pilot, lambda: "step 11" in screen_lines(app)[-1])
        await pilot.press("home")
        await until(pilot, lambda: pane.scroll_offset.y == 0)
        await pilot.click(pane, offset=(3, 0))
        assert pane.chosen_step == "step 1"


async def test_it_is_drawn_anew_for_another_width() -> None:
    app = PaneApp(pane := ScenarioPane())
    async with app.run_test(size=(60, 8)) as pilot:
        pane.show(over())
        await pilot.resize_terminal(30, 8)
        await until(pilot, lambda: len(max(screen_lines(app), key=len)) <= 30)
        assert "wall" not in screen_lines(app)[-3]
