"""The scenario pane's view: how a run goes and what came of it, beside the last result."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from mlxcache_tui.core.expect import Verdict, parse
from mlxcache_tui.core.last_words import telling
from mlxcache_tui.core.results import RequestResult, RunResult, StepResult, here_text
from mlxcache_tui.core.scenario import Scenario, Step
from mlxcache_tui.core.scenario_plan import step_notes
from mlxcache_tui.core.scenario_values import flag_word, flags_text
from mlxcache_tui.core.summary import parted, summarise, summarise_step
from mlxcache_tui.core.sweep import SweepPoint, sweep_points, sweep_text, whole_runs
from mlxcache_tui.core.text import bounded, clean
from mlxcache_tui.core.verdict_words import measured_text, shortfall
from mlxcache_tui.core.views import View

StepStatus = Literal["waiting", "running", "done", "failed", "stopped"]
RunStatus = Literal["waiting", "running", "done", "failed", "stopped", "lost"]
ScenarioPhase = Literal["running", "paused", "stopping", "over"]
Tone = Literal["good", "bad", "warn", "plain"]
_ABOUT_FAILURE = ("state", "status", "error", "failed")
LINE_LENGTH = 240
"""Characters shown of a line that a server or a request left."""


class Figures(View, frozen=True, kw_only=True):
    """What is compared of a step or a run: medians, seconds, a ratio from 0 to 1; None is unknown."""

    ttft_s: float | None
    cached_ratio: float | None
    evictions: int | None
    wall_s: float | None


class Measured(View, frozen=True, kw_only=True):
    """The figures of one run, worked out once: as a whole, and by step id."""

    combination: dict[str, Any]
    whole: Figures | None
    steps: dict[str, Figures | None]


RAN_AGAIN = "ran again, on a cache that may have held it already"


class RunProgress(View, frozen=True, kw_only=True):
    """One run under one set of limits, as far as it has come. `step`: the id of the step that runs now.

    `finished` counts that step's requests that ended; `text` says what the server does while it gets ready; `result` is
    there once the run is over. Results, figures and verdicts are by step id. `again`: the steps that ran once more.
    """

    combination: dict[str, Any]
    begun: bool = False
    step: str | None = None
    finished: int = 0
    text: str = ""
    steps: dict[str, StepResult] = msgspec.field(default_factory=dict)
    figures: dict[str, Figures | None] = msgspec.field(default_factory=dict)
    verdicts: dict[str, tuple[Verdict, ...]] = msgspec.field(default_factory=dict)
    whole: Figures | None = None
    result: RunResult | None = None
    again: frozenset[str] = frozenset()


class ExpectView(View, frozen=True, kw_only=True):
    """An expectation; `held` None is not judged yet. `detail`: what was measured, and by how much it failed."""

    text: str
    held: bool | None = None
    detail: str = ""


class StepView(View, frozen=True, kw_only=True):
    """One step of a run with the figures of now and of the last run."""

    id: str
    name: str
    status: StepStatus
    done: int
    total: int
    notes: tuple[str, ...]
    figures: Figures | None
    before: Figures | None
    expects: tuple[ExpectView, ...]


class RunView(View, frozen=True, kw_only=True):
    """One run; `label` names its limits, `values` has them without their names; both are empty without a sweep."""

    label: str
    values: str
    status: RunStatus
    steps: tuple[StepView, ...]
    figures: Figures | None
    before: Figures | None


class VerdictLine(View, frozen=True, kw_only=True):
    """One line of what came of it."""

    tone: Tone
    text: str


class ScenarioView(View, frozen=True, kw_only=True):
    """The scenario pane. `current` is the run that goes on or was last; `head` one line of how far it is."""

    name: str
    title: str
    phase: ScenarioPhase
    head: VerdictLine
    share: float
    """Requests that ended ÷ all that will be sent, 0 to 1."""
    runs: tuple[RunView, ...]
    limits: str
    """Names of the flags that are swept."""
    current: int
    changed: tuple[str, ...]
    """What was edited since the last result, which stands beside the new one."""
    has_before: bool
    verdict: tuple[VerdictLine, ...]
    points: tuple[SweepPoint, ...] = ()
    """Once a sweep is over: what is plotted of it."""


def measured(result: RunResult) -> Measured:
    """The figures of a run, for standing beside those of another."""
    steps = {step.id: _step_figures(step) for step in result.steps}
    return Measured(combination=result.combination, whole=_run_figures(result), steps=steps)


def with_step(run: RunProgress, result: StepResult, verdicts: tuple[Verdict, ...]) -> RunProgress:
    """The run once a step of it was measured and judged."""
    return msgspec.structs.replace(
        run,
        step=None,
        text="",
        steps={**run.steps, result.id: result},
        figures={**run.figures, result.id: _step_figures(result)},
        verdicts={**run.verdicts, result.id: verdicts},
    )


def with_result(run: RunProgress, result: RunResult, verdicts: dict[str, tuple[Verdict, ...]]) -> RunProgress:
    """The run once it is over, or once a step of it ran again; the result has the step that was stopped as well."""
    figures = measured(result)
    return msgspec.structs.replace(
        run,
        step=None,
        text="",
        steps={step.id: step for step in result.steps},
        figures=figures.steps,
        verdicts=verdicts,
        whole=figures.whole,
        result=result,
    )


# --- what happens ----------------------------------------------------------------------------------------------------


def scenario_view(
    scenario: Scenario,
    runs: Sequence[RunProgress],
    phase: ScenarioPhase,
    before: Sequence[Measured] = (),
    changed: Sequence[str] = (),
) -> ScenarioView:
    """The pane's view. `runs` has one for each combination; `before` are the figures of the last time."""
    current = max((index for index, run in enumerate(runs) if run.begun), default=0)
    views = tuple(_run_view(scenario, run, _matching(run, before)) for run in runs)
    results = [run.result for run in runs if run.result is not None] if phase == "over" else []
    total = sum(step.count for step in scenario.steps) * len(runs)
    done = sum(step.done for view in views for step in view.steps)
    return ScenarioView(
        name=scenario.name,
        title=scenario.title,
        phase=phase,
        head=_outcome(runs) if phase == "over" else _progress(scenario, runs, current, phase, done, total),
        share=done / total,
        runs=views,
        limits=" · ".join(scenario.sweep),
        current=current,
        changed=tuple(changed),
        has_before=bool(before),
        verdict=_verdict(results),
        points=sweep_points(results),
    )


def _matching(run: RunProgress, before: Sequence[Measured]) -> Measured | None:
    """The last figures under the same limits; where there was but one run, that one: what was edited is told."""
    if len(before) == 1:
        return before[0]
    return next((old for old in before if old.combination == run.combination), None)


def _run_view(scenario: Scenario, run: RunProgress, before: Measured | None) -> RunView:
    old = before.steps if before else {}
    return RunView(
        label=flags_text(run.combination),
        values=" · ".join(flag_word(name, value) for name, value in run.combination.items()),
        status=_run_status(run),
        steps=tuple(_step_view(step, run, old.get(step.id)) for step in scenario.steps),
        figures=run.whole,
        before=before.whole if before else None,
    )


def _run_status(run: RunProgress) -> RunStatus:
    if run.result is None or run.step is not None:
        return "running" if run.begun else "waiting"
    if run.result.lost is not None:
        return "lost"
    if run.result.interrupted:
        return "stopped"
    return "done" if run.result.held else "failed"


def _step_view(step: Step, run: RunProgress, old: Figures | None) -> StepView:
    result, verdicts = run.steps.get(step.id), run.verdicts.get(step.id)
    running = run.step == step.id
    status: StepStatus = "waiting"
    if running:
        status, result, verdicts = "running", None, None
    elif result is not None:
        status = "stopped" if verdicts is None else "failed" if _has_failed(result, verdicts) else "done"
    return StepView(
        id=step.id,
        name=step.name,
        status=status,
        done=run.finished if running else len(result.requests) if result else 0,
        total=step.count,
        notes=(*step_notes(step), RAN_AGAIN) if step.id in run.again and step.restart is None else step_notes(step),
        figures=run.figures.get(step.id) if result else None,
        before=old,
        expects=tuple(map(_judged, verdicts))
        if verdicts
        else tuple(ExpectView(text=expectation.text) for expectation in step.expect),
    )


def _has_failed(result: StepResult, verdicts: Sequence[Verdict]) -> bool:
    broken = any(request.state in ("failed", "cut") for request in result.requests)
    foreseen = any(verdict.held and parse(verdict.text).left.name in _ABOUT_FAILURE for verdict in verdicts)
    return (broken and not foreseen) or not all(verdict.held for verdict in verdicts)


def _step_figures(step: StepResult) -> Figures | None:
    if not step.requests:
        return None
    summary = summarise_step(step)
    return Figures(
        ttft_s=summarise_step(parted(step)[0]).ttft_s.p50,
        cached_ratio=summary.cached_ratio,
        evictions=step.evictions,
        wall_s=summary.wall_s,
    )


def _run_figures(result: RunResult) -> Figures | None:
    if not result.requests:
        return None
    summary = summarise(result.requests)
    return Figures(
        ttft_s=summary.ttft_s.p50,
        cached_ratio=summary.cached_ratio,
        evictions=result.eviction_count,
        wall_s=summary.wall_s,
    )


def _judged(verdict: Verdict) -> ExpectView:
    detail = measured_text(verdict) if verdict.held else shortfall(verdict)
    return ExpectView(text=verdict.text, held=verdict.held, detail=detail)


# --- how far, and what came of it ------------------------------------------------------------------------------------


def _progress(
    scenario: Scenario, runs: Sequence[RunProgress], current: int, phase: ScenarioPhase, done: int, total: int
) -> VerdictLine:
    run = runs[current]
    words: list[str] = [phase]
    if len(runs) > 1:
        words.append(f"run {current + 1} of {len(runs)}")
    ids = [step.id for step in scenario.steps]
    if run.step in ids:
        words.append(f"step {ids.index(run.step) + 1} of {len(ids)}")
    counted = f"{done} of {total} requests"
    words.append(counted if phase == "paused" else run.text or counted)
    return VerdictLine(tone="plain", text=" · ".join(words))


def _outcome(runs: Sequence[RunProgress]) -> VerdictLine:
    """The whole in one line."""
    results = [run.result for run in runs if run.result is not None]
    verdicts = [verdict for result in results for verdict in result.expectations]
    failed = sum(not verdict.held for verdict in verdicts)
    broken = sum(len(result.unexpected_failures()) for result in results)
    words = []
    if failed or broken:
        words += [f"{failed} of {len(verdicts)} expectations failed"] if failed else []
        words += [f"{broken} request{'s' * (broken != 1)} failed"] if broken else []
    elif verdicts and len(whole_runs(results)) == len(runs):
        words.append("the expectation held" if len(verdicts) == 1 else f"all {len(verdicts)} expectations held")
    elif verdicts:
        words.append(f"{len(verdicts)} expectation{'s' * (len(verdicts) != 1)} held until then")
    lost = next((result for result in results if result.lost is not None), None)
    if lost is not None:
        what = "server lost" if lost.reached else "no server"
        return VerdictLine(tone="bad", text=", ".join([what, *words]))
    if len(results) < len(runs) or any(result.interrupted for result in results):
        tone: Tone = "bad" if failed or broken else "warn"
        if not any(result.steps for result in results):
            return VerdictLine(tone=tone, text="stopped before anything was measured")
        return VerdictLine(tone=tone, text=", ".join(["stopped; what was measured is kept", *words]))
    if not words and any(result.unjudged for result in results):
        return VerdictLine(tone="warn", text="done; what it expects is not judged on this model")
    if not words:
        return VerdictLine(tone="plain", text="done; the scenario expects nothing: look at the figures")
    return VerdictLine(tone="bad" if failed or broken else "good", text=", ".join(words))


def _verdict(results: Sequence[RunResult]) -> tuple[VerdictLine, ...]:
    """Which limit is enough; what failed, by name and by how much; what else one must know of the runs."""
    lines = [VerdictLine(tone="plain", text=text)] if (text := sweep_text(results)) else []
    for result in results:
        limits = flags_text(result.combination)
        lines += [
            VerdictLine(tone=tone, text=f"{limits}: {text}" if limits else text) for tone, text in _run_verdict(result)
        ]
    return tuple(lines)


def _run_verdict(result: RunResult) -> list[tuple[Tone, str]]:
    lines: list[tuple[Tone, str]] = []
    if result.lost is not None:
        lines.append(("bad", _shown_line(result.lost)))
        lines += [("plain", _shown_line(line)) for line in telling(result.lost_lines)]
    if result.unjudged:
        lines.append(("warn", result.unjudged))
    lines += [("bad", _failure(request)) for request in result.unexpected_failures()]
    lines += [
        ("bad", f"{verdict.step}: {verdict.text}: {shortfall(verdict)}")
        for verdict in result.expectations
        if not verdict.held
    ]
    differences = result.server.differences if result.steps else {}  # nothing was measured on that server
    for name, (wanted, here) in differences.items():
        lines.append(("warn", f"the server's {name} is {here_text(result.server, here)}, the scenario's {wanted}"))
    return lines


def _failure(request: RequestResult) -> str:
    return f"{request.step}: #{request.id} {request.state}: {_shown_line(request.error or 'no reason given')}"


def _shown_line(text: str) -> str:
    return bounded(clean(text), LINE_LENGTH)
