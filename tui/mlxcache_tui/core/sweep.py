"""What the runs of a sweep tell together: a point for each limit, and the limit from which more brings nothing."""

from collections.abc import Sequence

from mlxcache_tui.core import stats
from mlxcache_tui.core.results import RunResult
from mlxcache_tui.core.scenario_values import flag_word, flags_text
from mlxcache_tui.core.summary import cached_ratio
from mlxcache_tui.core.units import human_percent
from mlxcache_tui.core.views import View

AS_MUCH = 0.01
"""Reuse that differs by less counts as the same: answers differ in length, and so do the prompts that follow them."""


class SweepPoint(View, frozen=True, kw_only=True):
    """One run: its limits as a person reads them, and what was measured, warm-ups aside. None is unknown."""

    label: str
    reuse: float | None
    ttfts: tuple[float, ...]
    peak_bytes: int | None


def whole_runs(runs: Sequence[RunResult]) -> list[RunResult]:
    """Those that came to their end: half a run cannot be compared with whole ones."""
    return [run for run in runs if run.is_whole]


def sweep_points(runs: Sequence[RunResult]) -> tuple[SweepPoint, ...]:
    """A point for each run that came to its end; none where there are fewer than two to compare."""
    points = tuple(_point(run) for run in whole_runs(runs) if run.combination)
    return points if len(points) > 1 else ()


def _point(run: RunResult) -> SweepPoint:
    counted = [request for request in run.requests if not request.warmup]
    return SweepPoint(
        label=values_text(run),
        reuse=cached_ratio(counted),
        ttfts=tuple(stats.known(request.ttft_s for request in counted)),
        peak_bytes=run.memory.peak_bytes,
    )


def values_text(run: RunResult) -> str:
    """The run's limits without their names: `256 MB`."""
    return " · ".join(flag_word(name, value) for name, value in run.combination.items())


def limit_text(run: RunResult) -> str:
    """The run's limits at the head of its row, which may be cut."""
    return values_text(run) + ("" if run.is_whole else " (cut)")


def sweep_text(runs: Sequence[RunResult]) -> str:
    """Which limit is enough, as far as reuse tells, or that the sweep was cut; empty where it cannot be said."""
    swept = [run for run in runs if run.combination]
    compared = whole_runs(swept)
    planned = max((len(swept), *(run.planned for run in swept)))
    if len(compared) < planned:
        return f"cut after {len(compared)} of {planned} limits: which one is enough cannot be said"
    known = [point.reuse for point in sweep_points(compared) if point.reuse is not None]
    if not known or len(known) < len(compared):
        return ""
    best = max(known)
    if best - min(known) <= AS_MUCH:
        return f"reuse is the same under every limit: {human_percent(best)}"
    at = next(index for index, reuse in enumerate(known) if best - reuse <= AS_MUCH)
    limit, much = flags_text(compared[at].combination), human_percent(known[at])
    if not _grows(compared):
        return f"most reuse with {limit}: {much}"
    if at == len(known) - 1:
        return f"reuse grows up to the last limit, {limit}: {much}; a higher one may bring more"
    return f"{limit} is enough for these requests: {much} reuse, a higher limit brings no more"


def _grows(runs: Sequence[RunResult]) -> bool:
    """Whether one number is swept, from low to high."""
    values = [tuple(run.combination.values()) for run in runs]
    single = all(len(value) == 1 and isinstance(value[0], int | float) for value in values)
    return single and values == sorted(values)
