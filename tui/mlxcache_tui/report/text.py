"""Progress while a scenario runs, one line for each thing that ends, and the short table at its end."""

from collections.abc import Sequence

from mlxcache_tui.core import stats
from mlxcache_tui.core.expect import Verdict
from mlxcache_tui.core.last_words import telling
from mlxcache_tui.core.results import RequestResult, RunResult, StepResult
from mlxcache_tui.core.summary import done, parted, summarise, summarise_step
from mlxcache_tui.core.sweep import limit_text, sweep_text
from mlxcache_tui.core.units import UNKNOWN, human_bytes, human_percent
from mlxcache_tui.core.verdict_words import measured_text, shortfall
from mlxcache_tui.engine.measure import differences_text
from mlxcache_tui.engine.progress import Progress, RequestFinished, ServerFound, ServerWaited, StepFinished, StepStarted
from mlxcache_tui.report import format as fmt


def progress_lines(progress: Progress) -> list[str]:
    """What to print for one report of progress."""
    match progress:
        case ServerWaited(text=text) | ServerFound(text=text):
            return [f"  {text}"]
        case StepStarted(step=step):
            waits = f", after {step.wait_s:g} s" if step.wait_s else ""
            again = ", server restarted" if step.restart is not None else ""
            return [f"▸ {step.name}{' (warm-up)' if step.warmup else ''}{waits}{again}"]
        case RequestFinished(result=result):
            return [request_line(result)]
        case StepFinished(verdicts=verdicts):
            return [verdict_line(verdict) for verdict in verdicts]


def request_line(result: RequestResult) -> str:
    """One finished request."""
    if result.state in ("failed", "cut", "cancelled"):
        return f"  #{result.id} {result.policy}  {result.state}: {result.error or 'no reason given'}"
    why = result.reason.detail if result.reason else "reuse unknown"
    return (
        f"  #{result.id} {result.policy}  {fmt.cached(result)} of {fmt.whole(result.prompt_tokens)} cached"
        f" ({human_percent(result.cached_ratio)})  TTFT {fmt.seconds(result.ttft_s)}  total {fmt.seconds(result.e2e_s)}"
        f"  {fmt.whole(result.output_tokens)} out  {why}"
    )


def verdict_line(verdict: Verdict) -> str:
    """One expectation, with what was measured where that is not in it already, or by how much it failed."""
    if not verdict.held:
        return f"  ✗ {verdict.text}: {shortfall(verdict)}"
    return f"  ✓ {verdict.text}" if " == " in verdict.text else f"  ✓ {verdict.text}: {measured_text(verdict)}"


def run_lines(run: RunResult) -> list[str]:
    """The end of a run: a row for each step, then the verdict."""
    limits = "  ".join(f"{name}={value}" for name, value in run.combination.items())
    lines = [f"{run.scenario}: {run.title}{'  ' + limits if limits else ''}"]
    if run.steps:
        head = ("step", "n", "cached", "TTFT", "total", "out", "evicted", "why")
        lines += [f"  {line}" for line in fmt.text_table(head, _step_rows(run))]
    if run.server.differences:
        lines.append(f"  note: the server's {differences_text(run.server)}")
    return [*lines, *verdict_lines(run)]


def sweep_lines(runs: Sequence[RunResult]) -> list[str]:
    """The end of a sweep: a row for each limit, and which one is enough; nothing for a run that is none of a sweep."""
    if len(runs) < 2 and not any(run.planned > 1 for run in runs):
        return []
    head = (" · ".join(runs[0].combination), "cached", "TTFT", "evicted", "wall", "peak memory", "why")
    text = sweep_text(runs)
    return [
        f"{runs[0].scenario}: one row a limit",
        *(f"  {line}" for line in fmt.text_table(head, [_limit_row(run) for run in runs])),
        *([f"  {text}"] if text else []),
    ]


def _limit_row(run: RunResult) -> tuple[str, ...]:
    summary = summarise(run.requests)
    return (
        limit_text(run),
        human_percent(summary.cached_ratio),
        fmt.seconds(summary.ttft_s.p50),
        fmt.whole(run.eviction_count),
        fmt.seconds(summary.wall_s),
        human_bytes(run.memory.peak_bytes),
        reasons_text([request for request in run.requests if not request.warmup]),
    )


def _step_rows(run: RunResult) -> list[tuple[str, ...]]:
    return [_step_row(part) for step in run.steps for part in parted(step) if part is not None]


def _step_row(step: StepResult) -> tuple[str, ...]:
    summary = summarise_step(step)
    out = stats.spread(request.output_tokens for request in done(step.requests))
    return (
        step.name + (" (warm-up)" if step.warmup else ""),
        fmt.counted(len(step.requests), summary.failed),
        human_percent(summary.cached_ratio),
        fmt.seconds(summary.ttft_s.p50),
        fmt.seconds(summary.e2e_s.p50),
        fmt.whole(out.median if out else None),
        fmt.whole(step.evictions),
        reasons_text(step.requests),
    )


def reasons_text(requests: Sequence[RequestResult]) -> str:
    """`hit ×3, evicted ×1`; failed requests are counted by their state; none at all is unknown."""
    if not requests:
        return UNKNOWN
    kinds = [request.reason.kind if request.reason else request.state for request in requests]
    if len(kinds) == 1:
        return kinds[0]
    return ", ".join(f"{kind} ×{kinds.count(kind)}" for kind in dict.fromkeys(kinds))


def verdict_lines(run: RunResult) -> list[str]:
    """What came of the run, in one line or a few."""
    lines: list[str] = []
    if run.lost is not None:
        lines.append(f"  {'server lost' if run.reached else 'no server'}: {run.lost}")
        lines += [f"    {line}" for line in telling(run.lost_lines)]
    if run.interrupted:
        lines.append("  interrupted: what was measured until then is kept")
    if run.unjudged:
        lines.append(f"  note: {run.unjudged}")
    for request in run.unexpected_failures():
        lines.append(f"  ✗ #{request.id} of {request.step} {request.state}: {request.error or 'no reason given'}")
    failed = [verdict for verdict in run.expectations if not verdict.held]
    lines += [f"  ✗ {verdict.step}: {verdict.text}: {shortfall(verdict)}" for verdict in failed]
    if run.expectations:
        lines.append(f"  {len(run.expectations) - len(failed)} of {len(run.expectations)} expectations held")
    return lines
