"""A comparison as people read it: both sides named, what differs, figures in their units; for screen and reports."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from mlxcache_tui.core.compare import ALL, CONFIDENCE, ENOUGH, THRESHOLD, Answers, Comparison, Metric, Verdict, compare
from mlxcache_tui.core.results import RunResult
from mlxcache_tui.core.run_file import Run, run_of
from mlxcache_tui.core.scenario_values import TUNED_FLAGS, flag_word
from mlxcache_tui.core.text import short_model
from mlxcache_tui.core.units import UNKNOWN, human_bytes, human_percent, human_rate, seconds, whole
from mlxcache_tui.core.views import View

NAMES = {
    "ttft_s": "TTFT",
    "e2e_s": "total",
    "cached_ratio": "cached",
    "prefill_tps": "prefill tok/s",
    "decode_tps": "decode tok/s",
    "evictions": "evictions",
    "failed": "failed",
    "memory_peak_bytes": "memory peak",
    "mlx_peak_bytes": "MLX peak",
}
OF_STEPS = ("ttft_s", "e2e_s", "cached_ratio", "prefill_tps", "decode_tps")
"""What there is of each step."""
WHOLE: dict[Verdict, str] = {
    "worse": "B is worse than A",
    "better": "B is better than A",
    "same": "B is no worse than A",
    "inconclusive": "inconclusive: this does not show that B is no worse",
}
RULE = (
    f"Times and rates, by the {CONFIDENCE:.0%} interval of B ÷ A: worse or better where all of it lies beyond "
    f"{THRESHOLD:.0%}, from {ENOUGH} runs a side on; the same where all of it lies within, from {ENOUGH} values a side "
    "on. Cached ratio, evictions and failures are counted, so that they need no interval."
)
_OBSERVED = {"observer": "observed", "log": "its log read", "client": "seen from outside"}


class Side(View, frozen=True, kw_only=True):
    """What is compared on one side. `when`: its start as the clock here shows it; `note`: what is not whole."""

    name: str
    runs: tuple[Run, ...]
    when: str | None = None
    note: str = ""


class SideView(View, frozen=True, kw_only=True):
    """One side in words: `measured` is the scenario and its extent, `server` model, version and flags."""

    name: str
    when: str
    measured: str
    server: str
    note: str


class Difference(View, frozen=True, kw_only=True):
    """A flag or version that is not the same on both sides."""

    name: str
    a: str
    b: str


class MetricRow(View, frozen=True, kw_only=True):
    """One metric with its verdict; `ratio` is B ÷ A."""

    metric: str
    name: str
    a: str
    b: str
    ratio: str
    interval: str
    n: str
    verdict: Verdict


class StepView(View, frozen=True, kw_only=True):
    """One step: the metrics of `OF_STEPS`, and the first answer on each side."""

    name: str
    n: str
    rows: tuple[MetricRow, ...]
    answers: Answers


class CompareView(View, frozen=True, kw_only=True):
    """All of it. `refused`: why there is no verdict; `unmeant`: the differences that would have to be meant for one."""

    sides: tuple[SideView, SideView]
    differences: tuple[Difference, ...]
    refused: str | None
    unmeant: tuple[str, ...]
    verdict: Verdict
    rows: tuple[MetricRow, ...]
    steps: tuple[StepView, ...]
    notes: tuple[str, ...]


class SessionRow(View, frozen=True, kw_only=True):
    """A recorded session to choose. `wanted` names it for reading; `here`: it is the one on the screen.

    `limits` are the counts of entries that the prompt caches of its servers might hold, in order.
    """

    wanted: str
    when: str | None
    server: str | None
    model: str | None
    limits: tuple[int, ...]
    requests: int
    reuse: float | None
    evictions: int | None
    bytes: int
    recording: bool
    here: bool


def compare_view(a: Side, b: Side, changed: Collection[str] = ()) -> CompareView:
    """Compare B with A. `changed` names the differences that were meant."""
    comparison = compare(a.runs, b.runs, changed)
    return CompareView(
        sides=(_side_view(a, comparison), _side_view(b, comparison)),
        differences=difference_rows(comparison),
        refused=comparison.refused,
        unmeant=comparison.unmeant,
        verdict=comparison.verdict,
        rows=overall_rows(comparison),
        steps=step_views(comparison),
        notes=comparison.notes,
    )


def side_of(name: str, results: Sequence[RunResult]) -> Side:
    """What was measured here as one side; there is one result at least."""
    when = results[0].started[:19].replace("T", " ")
    runs = tuple(map(run_of, results))
    return Side(name=name, runs=runs, when=when, note=unfinished(runs))


def unfinished(runs: Sequence[Run]) -> str:
    """Which of the runs did not come to their end, and why; empty if all of them did."""
    ended = ["stopped" if run.interrupted else f"server lost ({run.lost})" for run in runs if not run.finished]
    if not ended:
        return ""
    count = f"{len(ended)} of {len(runs)} runs" if len(runs) > 1 else "the run"
    return f"{count} did not come to an end: {', '.join(dict.fromkeys(ended))}; what was measured is compared"


# --- what differs ----------------------------------------------------------------------------------------------------


def difference_rows(comparison: Comparison) -> tuple[Difference, ...]:
    """What differs, in words."""
    return tuple(
        Difference(name=name, a=_value(pair[0]), b=_value(pair[1])) for name, pair in comparison.differences.items()
    )


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value)) or UNKNOWN
    return UNKNOWN if value is None else str(value)


# --- figures ---------------------------------------------------------------------------------------------------------


def overall_rows(comparison: Comparison) -> tuple[MetricRow, ...]:
    """The metrics over all steps."""
    return tuple(_row(metric) for metric in comparison.metrics if metric.step == ALL)


def step_views(comparison: Comparison) -> tuple[StepView, ...]:
    """The steps in the order in which they were run."""
    steps: dict[str, dict[str, MetricRow]] = {answers.step: {} for answers in comparison.answers}
    for metric in comparison.metrics:
        if metric.step in steps:
            steps[metric.step][metric.metric] = _row(metric)
    return tuple(
        StepView(
            name=answers.step,
            n=steps[answers.step]["ttft_s"].n,
            rows=tuple(steps[answers.step][name] for name in OF_STEPS),
            answers=answers,
        )
        for answers in comparison.answers
    )


def _row(metric: Metric) -> MetricRow:
    show = _shower(metric.metric)
    known = metric.low is not None and metric.high is not None
    return MetricRow(
        metric=metric.metric,
        name=NAMES[metric.metric],
        a=show(metric.a),
        b=show(metric.b),
        ratio=_ratio(metric.ratio),
        interval=f"{_ratio(metric.low)} to {_ratio(metric.high)}" if known else UNKNOWN,
        n=str(metric.n[0]) if metric.n[0] == metric.n[1] else f"{metric.n[0]}, {metric.n[1]}",
        verdict=metric.verdict,
    )


def _ratio(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _shower(metric: str) -> Callable[[float | None], str]:
    if metric.endswith("_s"):
        return seconds
    if metric.endswith("_bytes"):
        return human_bytes
    return {"cached_ratio": human_percent}.get(metric, human_rate if metric.endswith("_tps") else whole)


# --- the sides -------------------------------------------------------------------------------------------------------


def _side_view(side: Side, comparison: Comparison) -> SideView:
    runs = side.runs
    requests = sum(not request.warmup for run in runs for request in run.requests)
    measured = (
        _together(run.scenario for run in runs if run.scenario not in side.name),
        f"{len(runs)} runs" if len(runs) > 1 else "",
        f"{requests} request{'s' * (requests != 1)}",
    )
    server = (
        _together(short_model(run.server.model) for run in runs) or "model not known",
        _together(f"mlx-lm {run.server.mlx_lm}" for run in runs if run.server.mlx_lm),
        _flags(runs, comparison),
        _together({"launched": "started here"}.get(run.server.mode or "", run.server.mode) for run in runs),
        _together(_OBSERVED.get(run.server.observed or "") for run in runs),
    )
    return SideView(
        name=side.name,
        when=side.when or "",
        measured=" · ".join(filter(None, measured)),
        server=" · ".join(filter(None, server)),
        note=side.note,
    )


def _flags(runs: tuple[Run, ...], comparison: Comparison) -> str:
    """The limits, and whatever flag differs: these first."""
    known = {name for run in runs for name in run.server.flags}
    words = [
        f"{name} {_together(flag_word(name, run.server.flags.get(name)) for run in runs)}"
        for name in dict.fromkeys((*comparison.differences, *TUNED_FLAGS))
        if name in known
    ]
    return " · ".join(words) or "flags not known"


def _together(values: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(filter(None, values)))
