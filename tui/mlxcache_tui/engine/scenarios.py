"""Scenarios for the screen: found on disk, run through all their limits, paused, stopped, one step again, saved."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.events import Noticed
from mlxcache_tui.core.results import RunResult
from mlxcache_tui.core.scenario import Scenario, Step
from mlxcache_tui.core.scenario_check import ScenarioError
from mlxcache_tui.core.scenario_view import RunProgress, ScenarioPhase, with_result, with_step
from mlxcache_tui.core.text import clean
from mlxcache_tui.engine.port import EnginePort
from mlxcache_tui.engine.progress import Progress, RequestFinished, ServerWaited, StepFinished, StepStarted
from mlxcache_tui.engine.runner import Runner
from mlxcache_tui.store.files import save_text
from mlxcache_tui.store.paths import PathsError, config_dir
from mlxcache_tui.store.scenario_files import load_scenario, shipped_names

FOLDER = "scenarios"
"""The person's own ones lie here, in the folder of their settings."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario file: what is in it, or every mistake. `wanted` names it for opening it again."""

    wanted: str
    name: str
    own: bool
    scenario: Scenario | None
    mistakes: tuple[str, ...] = ()


def find_scenarios() -> tuple[Found, ...]:
    """The person's own scenarios, then those that ship, read and checked. Reads files: not for the screen's loop."""
    own: list[Path] = []
    with contextlib.suppress(PathsError):  # told already, when the session began
        own = sorted((config_dir() / FOLDER).glob("*.toml"))
    return (*(open_scenario(str(path)) for path in own), *(open_scenario(name) for name in shipped_names()))


def open_scenario(wanted: str) -> Found:
    """A scenario by path or shipped name."""
    own = wanted not in shipped_names()
    name = clean(Path(wanted).stem if own else wanted)
    try:
        return Found(wanted=wanted, name=name, own=own, scenario=load_scenario(wanted))
    except ScenarioError as error:
        mistakes = tuple(clean(str(mistake)) for mistake in error.mistakes)
        return Found(wanted=wanted, name=name, own=own, scenario=None, mistakes=mistakes)


def save_reports(name: str, reports: Sequence[tuple[str, str]]) -> tuple[bool, str]:
    """Write reports, (ending, text) each, to private files; returns whether it worked, and the line that says so."""
    try:
        paths = [save_text(f"{name}.{ending}", text) for ending, text in reports]
    except PathsError as error:
        return False, f"not saved: {error}"
    except OSError as error:
        return False, f"not saved: {error.strerror or error}"
    return True, "saved to " + " and ".join(map(str, paths))


class ScenarioRun:
    """A scenario under way, or over: one `Runner` after the other, one for each combination of its sweep.

    Args:
        engine: an engine that runs on this loop.
        scenario: what to do.
        spec: how to start the server for each run; the scenario's flags win over its flags, the sweep's over both.
            None: the server that is watched is used as it is.
        listener: called after each change of `runs` or `phase`.
    """

    def __init__(
        self, engine: EnginePort, scenario: Scenario, *, spec: ServerSpec | None, listener: Callable[[], None]
    ) -> None:
        self.scenario = scenario
        self.runs = [RunProgress(combination=combination) for combination in scenario.combinations()]
        self.phase: ScenarioPhase = "running"
        self._engine, self._spec, self._changed = engine, spec, listener
        self._at = 0
        self._runner: Runner | None = None
        self._task: asyncio.Future[None] | None = None

    @property
    def results(self) -> tuple[RunResult, ...]:
        """What was measured, a result for each run that began."""
        return tuple(run.result for run in self.runs if run.result is not None)

    @property
    def kept(self) -> dict[str, Any]:
        """The flags that the server is started with where the scenario sets none."""
        return self._spec.flags if self._spec is not None else {}

    def start(self) -> None:
        """Begin with the first run."""
        self._begin(self._run_all())

    def pause(self) -> None:
        """Send nothing more until `resume`; what is in flight goes on."""
        if self.phase == "running" and self._runner is not None:
            self._runner.pause()
            self._go("paused")

    def resume(self) -> None:
        """Go on after `pause`."""
        if self.phase == "paused" and self._runner is not None:
            self._runner.resume()
            self._go("running")

    def stop(self) -> None:
        """End the run; requests in flight are cancelled, what was measured is kept."""
        if self._task is not None and self.phase in ("running", "paused"):
            self._go("stopping")
            self._task.cancel()

    async def close(self) -> None:
        """Stop, and wait until that is done."""
        self.stop()
        if self._task is not None:
            await asyncio.wait([self._task])

    def refuses_again(self, step_id: str) -> str:
        """Why a step cannot be run once more now; empty if it can."""
        if self.phase != "over":
            return "the scenario still runs: wait or stop it first"
        if self._runner is None or self.runs[self._at].result is None:
            return "nothing ran yet"
        if self._engine.state.server.phase != "ready":
            return "the server is not ready"
        earlier = self.scenario.step(step_id).continues
        if earlier is not None and earlier not in self._runner.verdicts:
            return f"the step continues {self.scenario.step(earlier).name}, which was not finished: run that one again"
        return ""

    def again(self, step_id: str) -> None:
        """Run one step of the last run once more, on the server as it is now."""
        assert self._runner is not None
        self._runner.resume()  # it may have been stopped while it was paused
        self.phase = "running"
        self._update(step=step_id, finished=0, text="", again=self.runs[self._at].again | {step_id})
        self._begin(self._run_again(self.scenario.step(step_id)))

    # --- underway ---

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[None]) -> None:
        """However the work ended, also by a mistake of ours or before its first step: nothing is left running."""
        if not task.cancelled() and (error := task.exception()) is not None:
            text = clean(f"the scenario broke: {type(error).__name__}: {error}")
            at = self._engine.state.now_ns
            self._engine.emit(Noticed(at_ns=at, origin="program", level="error", pane="scenario", text=text))
        run = self.runs[self._at]
        if self._runner is not None and run.begun and (run.result is None or run.step is not None):
            self._over(self._runner.result(interrupted=True))
        self._go("over")

    async def _run_all(self) -> None:
        for index in range(len(self.runs)):
            self._at = index
            self._runner = self._make_runner()
            if self.phase == "paused":
                self._runner.pause()
            self._update(begun=True)
            result = await self._runner.run()
            self._over(result)
            if result.interrupted or result.lost is not None or self.phase == "stopping":
                break

    async def _run_again(self, step: Step) -> None:
        assert self._runner is not None
        self._over(await self._runner.again(step))

    def _make_runner(self) -> Runner:
        combination = self.runs[self._at].combination
        spec = None
        if self._spec is not None:
            wanted = {name: value for name, value in self.scenario.server.items() if name != "model"}
            flags = {**self.kept, **wanted, **combination}
            flags = {name: value for name, value in flags.items() if value is not None}
            spec = msgspec.structs.replace(self._spec, flags=flags)
        return Runner(
            self._engine,
            self.scenario,
            spec=spec,
            combination=combination,
            clock=lambda: datetime.now().astimezone(),
            listener=self._heed,
        )

    def _heed(self, progress: Progress) -> None:
        run = self.runs[self._at]
        match progress:
            case ServerWaited(text=text):
                self._update(text=clean(text))
            case StepStarted(step=step):
                self._update(step=step.id, finished=0, text=f"in {step.wait_s:g} s" if step.wait_s else "")
            case RequestFinished():
                self._update(finished=run.finished + 1, text="")
            case StepFinished(result=result, verdicts=verdicts):
                self._put(with_step(run, result, verdicts))

    def _over(self, result: RunResult) -> None:
        """The runner's own word on the run: it also has the step that was stopped, and verdicts judged anew."""
        assert self._runner is not None
        self._put(with_result(self.runs[self._at], result, self._runner.verdicts))

    def _update(self, **changes: object) -> None:
        self._put(msgspec.structs.replace(self.runs[self._at], **changes))

    def _put(self, run: RunProgress) -> None:
        self.runs[self._at] = run
        self._changed()

    def _go(self, phase: ScenarioPhase) -> None:
        self.phase = phase
        self._changed()
