"""Is B worse than A? Two sides of runs, paired by step; a verdict for each metric, or a refusal with its reason.

Times and rates: Welch's t interval (90 %) on the log of the ratio of means, B over A, against a threshold of 10 %.
Worse or better where the whole interval lies beyond it, the same where it lies within, else inconclusive. The values
are the means of whole runs where both sides have 3 runs or more of a step. Else they are the requests: from 3 a side on
there is an interval, but never a worse or better, since the requests of one run share its conditions (a machine that is
busy during one of two runs is slower in all of its requests). Over all steps each step is a stratum of its own (means
are added up, and so are their variances), or all requests are one stratum where a step has fewer than 3 values.

Counted figures carry no noise and are judged as they are, against the same threshold. Failed requests and evictions:
by their ratio. The cached ratio: 0.05 more or less is a difference, and 0.02 where it changes what had to be read,
(1 - b) / (1 - a), beyond the threshold; 0.96 that falls to 0.93 nearly doubles the reading, 0.06 to 0.03 does not.

The whole: worse if any metric over all steps is, or a step's cached ratio; inconclusive unless TTFT, total time and
cached ratio are each shown to be no worse; else better if any metric over all steps is, else the same (no worse).
"""

import math
import statistics
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

import msgspec

from mlxcache_tui.core.compare_check import find_differences, find_unmeant, refusal, unlike_sweeps
from mlxcache_tui.core.run_file import Request, Run
from mlxcache_tui.core.student import t_quantile

THRESHOLD = 0.10
CONFIDENCE = 0.90
ENOUGH = 3
"""Values a side, at the least; fewer say nothing on times."""
TOO_FEW = (
    f"times of fewer than {ENOUGH} runs a side are never better or worse; {ENOUGH} requests a side or more can show "
    "that they are no worse"
)
SHARE, LARGE_SHARE = 0.02, 0.05
"""Smallest difference of two cached ratios that may be one, and the one that is whatever it means for the reading."""
ALL = None
"""The step of a metric over all of them: no name, since a step may have any."""

Verdict = Literal["better", "worse", "same", "inconclusive"]


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one step, or of `ALL`: both sides, B ÷ A with its interval, values a side, and the verdict."""

    metric: str
    step: str | None
    a: float | None
    b: float | None
    ratio: float | None
    low: float | None
    high: float | None
    n: tuple[int, int]
    verdict: Verdict


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """The first answer of a step on each side."""

    step: str
    a: str
    b: str
    same: bool


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The whole. `differences`: what is not the same on both sides, by flag or version; `notes`: a line each.

    `unmeant`: those of the differences that stand in the way, so that it is refused.
    """

    refused: str | None
    differences: dict[str, tuple[Any, Any]]
    unmeant: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    verdict: Verdict = "inconclusive"
    answers: tuple[Answers, ...] = ()
    notes: tuple[str, ...] = ()


def compare(a: Sequence[Run], b: Sequence[Run], changed: Collection[str] = ()) -> Comparison:
    """Compare two sides. `changed` names the differences that were meant; a single server flag needs no name."""
    differences = find_differences(a, b)
    steps_a, steps_b = _by_step(a), _by_step(b)
    paired = [name for name in steps_a if name in steps_b]
    unmeant = find_unmeant(differences, changed)
    refused = refusal(differences, unmeant) or _nothing_to_compare(steps_a, steps_b)
    if refused is None and not paired:
        refused = unlike_sweeps(a, b) or "the two have no step in common: they did not measure the same thing"
    if refused:
        return Comparison(refused=refused, differences=differences, unmeant=unmeant)
    pairs = {name: (steps_a[name], steps_b[name]) for name in paired}
    left_out = [name for name in {**steps_a, **steps_b} if name not in pairs]
    metrics = (*_metrics(pairs), *_of_runs(a, b, left_out))
    answers = tuple(_answers(name, steps_a[name], steps_b[name]) for name in paired)
    return Comparison(
        refused=None,
        differences=differences,
        metrics=metrics,
        verdict=_whole(metrics),
        answers=answers,
        notes=(
            *(f"step {name} is only in {'A' if name in steps_a else 'B'}: left out" for name in left_out),
            *(f"{name} is the same on both sides" for name in changed if name.replace("-", "_") not in differences),
            *_other_prompts(pairs),
            *_too_few(pairs),
            *_not_whole(a, b, left_out),
        ),
    )


# --- what the two have in common --------------------------------------------------------------------------------------


def _nothing_to_compare(a: dict[str, Any], b: dict[str, Any]) -> str | None:
    for side, steps in (("A", a), ("B", b)):
        if not steps:
            return f"{side} has no request that counts: nothing was measured, or all of it was warm-up"
    return None


def _other_prompts(pairs: "Pairs") -> tuple[str, ...]:
    """Steps whose prompts are longer on one side: sessions have no digest that would tell other requests."""
    found = []
    for name, pair in pairs.items():
        one, other = (_known(request.prompt_tokens for request in _flat(side)) for side in pair)
        if one and other and _judged_count(statistics.fmean(one), statistics.fmean(other)) != "same":
            lengths = f"{statistics.fmean(one):.0f} and {statistics.fmean(other):.0f} tokens"
            found.append(f"step {name}: the prompts are not alike, {lengths} on average")
    return tuple(found)


def _too_few(pairs: "Pairs") -> tuple[str, ...]:
    if all(_by_run(one, other) for one, other in pairs.values()):
        return ()
    return (f"{TOO_FEW} (best: 5 runs a side, taken in turns)",)


def _not_whole(a: Sequence[Run], b: Sequence[Run], left_out: Sequence[str]) -> tuple[str, ...]:
    if _alike(a, b, left_out):
        return ()
    why = "steps were left out" if left_out else "a run did not come to its end"
    return (f"evictions and memory are told, not judged: they are of whole runs, and {why}",)


# --- pairing ---------------------------------------------------------------------------------------------------------

Grouped = list[list[Request]]
"""The requests of one step, for each run of the side that has it."""


def _by_step(runs: Sequence[Run]) -> dict[str, Grouped]:
    """Requests that count, by step; in a sweep each set of limits has steps of its own."""
    steps: dict[str, Grouped] = {}
    for run, label in zip(runs, _labels(runs), strict=True):
        mine: dict[str, list[Request]] = {}
        for request in run.requests:
            if not request.warmup:
                mine.setdefault(label + request.step, []).append(request)
        for name, requests in mine.items():
            steps.setdefault(name, []).append(requests)
    return steps


def _labels(runs: Sequence[Run]) -> list[str]:
    """What stands in front of each run's steps: the scenario where there are several, and the limits of a sweep."""
    several = len({run.scenario for run in runs if run.digest}) > 1
    labels = []
    for run in runs:
        limits = ", ".join(f"{name} {value}" for name, value in run.sweep.items())
        labels.append("".join(f"{part} · " for part in (run.scenario if several else "", limits) if part))
    return labels


# --- metrics ---------------------------------------------------------------------------------------------------------

Pairs = dict[str, tuple[Grouped, Grouped]]
_MEASURED: dict[str, bool] = {"ttft_s": False, "e2e_s": False, "prefill_tps": True, "decode_tps": True}
"""Whether more is better."""


def _metrics(pairs: Pairs) -> Iterable[Metric]:
    for name, more in _MEASURED.items():
        strata = [_pair(one, other, name) for one, other in pairs.values()]
        by_run = all(_by_run(one, other) for one, other in pairs.values())
        yield _measured(name, ALL, _strata(strata), more=more, sure=by_run)
        for (step, (one, other)), pair in zip(pairs.items(), strata, strict=True):
            yield _measured(name, step, [pair], more=more, sure=_by_run(one, other))
    yield _cached(
        ALL, [r for one, _ in pairs.values() for r in _flat(one)], [r for _, o in pairs.values() for r in _flat(o)]
    )
    yield from (_cached(step, _flat(one), _flat(other)) for step, (one, other) in pairs.items())


def _of_runs(a: Sequence[Run], b: Sequence[Run], left_out: Collection[str]) -> Iterable[Metric]:
    """What is known of whole runs only: no verdict on it where one had other steps, or not all of them."""
    judged = _alike(a, b, left_out)
    n = len(a), len(b)
    evictions = _counted("evictions", _evictions(a), _evictions(b), n)
    failed = _counted("failed", _failed(a, left_out), _failed(b, left_out), n)
    peaks = [
        _measured(name, ALL, [(_known(map(peak, a)), _known(map(peak, b)))], more=False, sure=True)
        for name, peak in (("memory_peak_bytes", _peak), ("mlx_peak_bytes", _mlx_peak))
    ]
    for metric in (evictions, failed, *peaks):
        told = judged or metric is failed
        yield metric if told else msgspec.structs.replace(metric, verdict="inconclusive")


def _alike(a: Sequence[Run], b: Sequence[Run], left_out: Collection[str]) -> bool:
    """Whether whole runs did the same on both sides."""
    return not left_out and all(run.finished for run in (*a, *b))


def _flat(grouped: Grouped) -> list[Request]:
    return [request for requests in grouped for request in requests]


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _pair(a: Grouped, b: Grouped, name: str) -> tuple[list[float], list[float]]:
    """The values of a step's requests that were answered, or the means of its runs where there are enough of them."""
    by_run = _by_run(a, b)
    return _values(a, name, by_run=by_run), _values(b, name, by_run=by_run)


def _by_run(a: Grouped, b: Grouped) -> bool:
    """Whether there are runs enough of a step on both sides for runs to be the unit."""
    return min(len(a), len(b)) >= ENOUGH


def _values(grouped: Grouped, name: str, *, by_run: bool) -> list[float]:
    runs = [_known(getattr(request, name) for request in requests if request.state == "done") for requests in grouped]
    if by_run:
        return [statistics.fmean(values) for values in runs if values]
    return [value for values in runs for value in values]


Strata = list[tuple[list[float], list[float]]]


def _strata(strata: Strata) -> Strata:
    """Each step for itself where each has enough values, else all of them as one."""
    filled = [pair for pair in strata if pair[0] and pair[1]]
    if all(min(map(len, pair)) >= ENOUGH for pair in filled):
        return filled
    return [([value for one, _ in filled for value in one], [value for _, other in filled for value in other])]


def _measured(metric: str, step: str | None, strata: Strata, *, more: bool, sure: bool) -> Metric:
    """A time, rate or size. `more`: more of it is better. `sure`: the values are of whole runs."""
    n = sum(len(one) for one, _ in strata), sum(len(other) for _, other in strata)
    a, b = (_mean_of(strata, side) for side in (0, 1))
    interval = _interval(strata) if min(n, default=0) >= ENOUGH else None
    ratio, low, high = interval if interval else (_ratio(a, b), None, None)
    verdict: Verdict = "inconclusive"
    if low is not None and high is not None:
        verdict = _judged(low, high, more=more)
        if not sure and verdict != "same":
            verdict = "inconclusive"
    return Metric(metric=metric, step=step, a=a, b=b, ratio=ratio, low=low, high=high, n=n, verdict=verdict)


def _mean_of(strata: Strata, side: int) -> float | None:
    """The mean of the strata's means; None where one has no value on this side."""
    values = [pair[side] for pair in strata]
    return statistics.fmean(map(statistics.fmean, values)) if values and all(values) else None


def _interval(strata: Strata) -> tuple[float, float, float] | None:
    """B ÷ A of the summed means, and its interval; None where a mean is not above 0."""
    totals = [sum(statistics.fmean(pair[side]) for pair in strata) for side in (0, 1)]
    if min(totals) <= 0:
        return None
    # Variance of a log is the variance over the square of the mean (delta method); Satterthwaite's degrees of freedom.
    # Quotients before squares: the square of a very small or large number is none.
    parts = [
        ((statistics.stdev(pair[side]) / totals[side]) ** 2 / len(pair[side]), len(pair[side]) - 1)
        for pair in strata
        for side in (0, 1)
    ]
    variance = sum(part for part, _ in parts)
    ratio = totals[1] / totals[0]
    if variance == 0:
        return ratio, ratio, ratio
    df = 1 / sum((part / variance) ** 2 / free for part, free in parts)
    width = math.exp(t_quantile((1 + CONFIDENCE) / 2, df) * math.sqrt(variance))
    return ratio, ratio / width, ratio * width


def _judged(low: float, high: float, *, more: bool) -> Verdict:
    above, below = 1 + THRESHOLD, 1 / (1 + THRESHOLD)
    if low > above:
        return "better" if more else "worse"
    if high < below:
        return "worse" if more else "better"
    return "same" if below <= low and high <= above else "inconclusive"


def _ratio(a: float | None, b: float | None) -> float | None:
    return b / a if a and b is not None else None


# --- what is counted -------------------------------------------------------------------------------------------------


def _cached(step: str | None, a: Sequence[Request], b: Sequence[Request]) -> Metric:
    one, other = _share(a), _share(b)
    verdict: Verdict = "inconclusive"
    if one is not None and other is not None:
        verdict = _judged_share(one, other)
    return Metric(
        metric="cached_ratio", step=step, a=one, b=other, ratio=_ratio(one, other), low=None, high=None,
        n=(_reporting(a), _reporting(b)), verdict=verdict,
    )  # fmt: skip


def _judged_share(a: float, b: float) -> Verdict:
    if abs(a - b) >= LARGE_SHARE:
        return "better" if b > a else "worse"
    return _judged_count(1 - a, 1 - b) if abs(a - b) >= SHARE else "same"


def _share(requests: Sequence[Request]) -> float | None:
    """Σ cached ÷ Σ prompt tokens over those that reported both."""
    pairs = [(r.cached_tokens, r.prompt_tokens) for r in requests if r.cached_tokens is not None and r.prompt_tokens]
    return sum(cached for cached, _ in pairs) / sum(prompt for _, prompt in pairs) if pairs else None


def _reporting(requests: Sequence[Request]) -> int:
    return sum(r.cached_tokens is not None and bool(r.prompt_tokens) for r in requests)


def _counted(metric: str, a: float | None, b: float | None, n: tuple[int, int]) -> Metric:
    """A count over all steps that should be small; None is not known."""
    verdict: Verdict = "inconclusive" if a is None or b is None else _judged_count(a, b)
    return Metric(metric=metric, step=ALL, a=a, b=b, ratio=_ratio(a, b), low=None, high=None, n=n, verdict=verdict)


def _judged_count(a: float, b: float) -> Verdict:
    if b > a * (1 + THRESHOLD):
        return "worse"
    return "better" if a > b * (1 + THRESHOLD) else "same"


def _evictions(runs: Sequence[Run]) -> float | None:
    """Evictions a run; None where they were not seen in one."""
    counts: list[int] = []
    for run in runs:
        seen = [step.evictions for step in run.steps] if run.steps is not None else []
        if None in seen or (run.steps is None and run.server.observed != "observer"):
            return None
        counts.append(len(run.evictions))
    return statistics.fmean(counts)


def _failed(runs: Sequence[Run], left_out: Collection[str]) -> float:
    """Failed requests a run, those of steps that were left out apart."""
    return statistics.fmean(
        sum(request.state in ("failed", "cut") and label + request.step not in left_out for request in run.requests)
        for run, label in zip(runs, _labels(runs), strict=True)
    )


def _peak(run: Run) -> float | None:
    return run.memory.peak_bytes


def _mlx_peak(run: Run) -> float | None:
    return run.memory.mlx.peak_bytes if run.memory.mlx else None


# --- the whole -------------------------------------------------------------------------------------------------------


def _whole(metrics: Sequence[Metric]) -> Verdict:
    overall = {metric.metric: metric for metric in metrics if metric.step == ALL}
    judged = [*overall.values(), *(metric for metric in metrics if metric.metric == "cached_ratio")]
    if any(metric.verdict == "worse" for metric in judged):
        return "worse"
    if not all(_no_worse(overall[name]) for name in ("ttft_s", "e2e_s", "cached_ratio")):
        return "inconclusive"
    return "better" if any(metric.verdict == "better" for metric in overall.values()) else "same"


def _no_worse(metric: Metric) -> bool:
    """Whether it is shown that less of it is not lost: the whole interval of a time lies under the threshold."""
    return metric.verdict in ("better", "same") or (metric.high is not None and metric.high <= 1 + THRESHOLD)


def _answers(step: str, a: Grouped, b: Grouped) -> Answers:
    one, other = _flat(a)[0].text, _flat(b)[0].text
    return Answers(step=step, a=one, b=other, same=one == other)
