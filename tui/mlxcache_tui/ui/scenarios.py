"""What the person does with scenarios: pick, run, pause, stop, one step again, edit and run again, save, close."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.compare_view import side_of
from mlxcache_tui.core.results import RunResult
from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_plan import ServerHere, plan_of
from mlxcache_tui.core.scenario_values import changed_flags, changes
from mlxcache_tui.core.scenario_view import Measured, measured, scenario_view
from mlxcache_tui.draw.chart import load_plotext
from mlxcache_tui.ui.screens.scenario_picker import Choice, Offer, ScenarioPicker
from mlxcache_tui.ui.screens.scenario_values import ScenarioValues
from mlxcache_tui.ui.widgets.key_footer import KeyFooter
from mlxcache_tui.ui.widgets.scenario_pane import ScenarioPane

if TYPE_CHECKING:
    from mlxcache_tui.engine.engine import Engine
    from mlxcache_tui.engine.scenarios import Found, ScenarioRun
    from mlxcache_tui.ui.app import MonitorApp

Reporter = Callable[[Sequence[RunResult], bool], tuple[tuple[str, str], ...]]
"""Turns results into reports, (file ending, text) each; the flag says whether the JSON is a list of runs."""
GONE = ("none", "exited", "unreachable")


class Scenarios:
    """The scenarios' side of the app."""

    def __init__(self, app: "MonitorApp") -> None:
        self._app = app
        self._run: ScenarioRun | None = None
        self._earlier: ScenarioRun | None = None
        """The run of the same scenario before this one."""
        self._before: tuple[Measured, ...] = ()
        self._changed: tuple[str, ...] = ()
        self._saved: list[tuple[RunResult, ...]] = []
        """Results as they were when they were saved."""
        self.farewell: tuple[str, ...] = ()
        """Where results were saved when the program ended."""

    @property
    def pane(self) -> ScenarioPane:
        """Where a run is shown."""
        return self._app.monitor.query_one(ScenarioPane)

    @property
    def _engine(self) -> "Engine | None":
        """The engine of a live session; a recorded one has none that could send."""
        from mlxcache_tui.engine.engine import Engine

        engine = self._app.engine
        return engine if isinstance(engine, Engine) else None

    @property
    def busy(self) -> bool:
        """Whether a scenario is being run."""
        return self._run is not None and self._run.phase != "over"

    # --- picking ---

    def open_picker(self) -> None:
        """The list of scenarios; while one runs, its pane."""
        if self._engine is None:
            return
        if self.busy:
            self._app.monitor.pick("scenario")
            self._app.notify("a scenario runs: x stops it", markup=False)
            return
        picker = ScenarioPicker(chosen=self._run.scenario.name if self._run else "return-policy")
        self._app.push_screen(picker, self._chosen)
        self._app.run_worker(self._fill(picker), group="scenario-files", exclusive=True)

    async def _fill(self, picker: ScenarioPicker) -> None:
        from mlxcache_tui.engine.scenarios import find_scenarios

        found = await asyncio.to_thread(find_scenarios)
        if picker.is_mounted:
            picker.offer(tuple(map(self._offer, found)))

    def open_file(self, picker: ScenarioPicker, path: str) -> None:
        """Read a file that was named in the picker."""
        self._app.run_worker(self._read_file(picker, path), group="scenario-files", exclusive=True)

    async def _read_file(self, picker: ScenarioPicker, path: str) -> None:
        from mlxcache_tui.engine.scenarios import open_scenario

        found = await asyncio.to_thread(open_scenario, path)
        if picker.is_mounted:
            picker.add(self._offer(found))

    def _offer(self, found: "Found") -> Offer:
        scenario = found.scenario
        plan = plan_of(scenario, self._here(scenario)) if scenario is not None else None
        return Offer(name=found.name, own=found.own, scenario=scenario, plan=plan, mistakes=found.mistakes)

    def _here(self, scenario: Scenario) -> ServerHere:
        assert self._app.engine is not None
        server, spec = self._app.engine.state.server, self._spec(scenario)
        return ServerHere(
            model=spec.model if spec else server.model,
            ours=spec is not None,
            reachable=server.phase not in GONE,
            watch_only=server.watch_only,
            flags=spec.flags if spec else {},
        )

    def _spec(self, scenario: Scenario) -> ServerSpec | None:
        """How a server is started for it: as ours was; without any server, on the model that the scenario names."""
        assert self._app.engine is not None
        if self._app.servers.spec is not None or self._app.engine.state.server.mode == "attached":
            return self._app.servers.spec
        model = scenario.server.get("model")
        return ServerSpec(model=model, port=0) if model else None

    def _chosen(self, choice: Choice | None) -> None:
        if choice is None:
            return
        if choice.then == "edit":
            self._edit(choice.scenario)
        else:
            self.start(choice.scenario)

    # --- running ---

    def start(self, scenario: Scenario) -> None:
        """Run a scenario; the last result of the same one stays beside the new."""
        from mlxcache_tui.engine.scenarios import ScenarioRun

        last, engine, spec = self._run, self._engine, self._spec(scenario)
        if engine is None or self.busy:
            return
        self._earlier, self._before, self._changed = None, (), ()
        if last is not None and last.scenario.source == scenario.source and last.results:
            self._earlier = last
            self._before = tuple(map(measured, last.results))
            self._changed = changes(last.scenario, scenario, last.kept, spec.flags if spec else {})
        self._run = ScenarioRun(engine, scenario, spec=spec, listener=self.refresh)
        self._run.start()
        if scenario.sweep:
            self._app.run_worker(asyncio.to_thread(load_plotext), group="plotext")  # it is wanted when the sweep ends
        self.refresh()
        self._app.monitor.pick("scenario")

    def refresh(self) -> None:
        """Show how far it is."""
        run = self._run
        view = (
            scenario_view(run.scenario, run.runs, run.phase, self._before, self._changed) if run is not None else None
        )
        for pane in self._app.monitor.query(ScenarioPane):  # none any more once the program ends
            pane.show(view)
        for footer in self._app.monitor.query(KeyFooter):
            footer.relabel("ask('pause')", "continue" if run is not None and run.phase == "paused" else None)

    def heed(self, event: ScenarioPane.Asked) -> None:
        """Do what the pane asks for."""
        run = self._run
        if run is None:
            if event.wish == "close":
                self._app.monitor.pick("composer")
            elif event.wish == "compare":
                self._app.comparisons.open_picker()
            else:
                self.open_picker()
            return
        match event.wish:
            case "pause" if run.phase == "paused":
                run.resume()
            case "pause":
                run.pause()
            case "stop":
                run.stop()
            case "again":
                self._again(run, event)
            case "values" if not self.busy:
                self._edit(run.scenario)
            case "report" if run.results and self._app.reporter is not None:
                saved, line = self._save(run)
                self._app.notify(line, severity="information" if saved else "error", markup=False)
            case "compare" if not self.busy:
                self._compare(run)
            case "close" if not self.busy:
                self._close()
            case _:
                self._app.notify("the scenario still runs: x stops it", severity="warning", markup=False)

    def _again(self, run: "ScenarioRun", event: ScenarioPane.Asked) -> None:
        last = max((index for index, known in enumerate(run.runs) if known.begun), default=0)
        # Without a step under the cursor the one that ran last is meant.
        ran = run.results[-1].steps if run.results else ()
        step = event.step or (ran[-1].id if ran else None)
        if step is None:
            refused = "nothing ran yet"
        elif event.run != last:
            refused = "only steps of the last run can run again: the server has its limits now"
        else:
            refused = run.refuses_again(step)
        if refused or step is None:
            self._app.notify(refused, severity="warning", markup=False)
        else:
            run.again(step)

    def _edit(self, scenario: Scenario) -> None:
        spec = self._spec(scenario)
        form = ScenarioValues(scenario, kept=spec.flags if spec else None)
        self._app.push_screen(form, lambda edited: self.start(edited) if edited is not None else None)

    def _save(self, run: "ScenarioRun") -> tuple[bool, str]:
        """Write the results down; returns whether that worked, and the line that says so."""
        from mlxcache_tui.engine.scenarios import save_reports

        assert self._app.reporter is not None
        reports = self._app.reporter(run.results, bool(run.scenario.sweep))
        saved, line = save_reports(run.scenario.name, reports)
        if saved:
            self._saved.append(run.results)
        return saved, line

    def _compare(self, run: "ScenarioRun") -> None:
        """The last two runs; what was edited in between was meant."""
        earlier = self._earlier
        if earlier is None or not run.results:
            text = "there is one run so far: v edits its values and runs it again, to be compared with this one"
            self._app.notify(text, severity="warning", markup=False)
            return
        meant = changed_flags(earlier.scenario, run.scenario, earlier.kept, run.kept)
        if earlier.scenario.digest != run.scenario.digest:
            meant = (*meant, "scenario")
        sides = side_of("the run before", earlier.results), side_of("this run", run.results)
        self._app.comparisons.open(*sides, meant)

    def _close(self) -> None:
        self._run, self._earlier, self._before, self._changed = None, None, (), ()
        self.refresh()
        self._app.monitor.pick("composer")

    async def close(self) -> None:
        """The program ends: so does a run. Its results, and those beside it, are saved if they were not yet.

        Of runs before these the session file has the events.
        """
        if self._run is not None:
            await self._run.close()
        for run in filter(None, (self._earlier, self._run)):
            unsaved = run.results not in self._saved and any(result.steps for result in run.results)
            if unsaved and self._app.reporter is not None:
                _, line = self._save(run)
                stopped = ", interrupted" if any(result.interrupted for result in run.results) else ""
                self.farewell += (f"{run.scenario.title}{stopped}: {line}",)
