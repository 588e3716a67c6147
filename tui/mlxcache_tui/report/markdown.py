"""The report of one or several runs in Markdown, for someone who was not there.

It answers in the field's words what a person tunes by: for each condition TTFT, completion time, cached and output
tokens; for requests at once the median and the slowest, wall time against the sum, tokens per second, memory; for a
sweep one row a limit; hits and misses with their reasons; the answers.
"""

from collections.abc import Sequence
from typing import Any

from mlxcache_tui.core import stats
from mlxcache_tui.core.results import LaterServer, RequestResult, RunResult, ServerResult, StepResult
from mlxcache_tui.core.scenario_values import flags_text
from mlxcache_tui.core.summary import done, parted, summarise, summarise_step
from mlxcache_tui.core.sweep import limit_text, sweep_points, sweep_text
from mlxcache_tui.core.units import UNKNOWN, human_bytes, human_percent, human_rate
from mlxcache_tui.core.verdict_words import measured_text, shortfall
from mlxcache_tui.draw.chart import sweep_plots
from mlxcache_tui.engine.measure import differences_text
from mlxcache_tui.report import format as fmt
from mlxcache_tui.report.reading import in_short, notes_lines, words_lines
from mlxcache_tui.report.text import reasons_text

_SEEN = {
    "observer": "its cache watched from inside",
    "log": "its cache judged by its log and its replies",
    "client": "its cache judged by its replies only",
}
_LIMITS = {"count": "prompt_cache_size", "bytes": "prompt_cache_bytes"}
ANSWER_LENGTH = 600
"""Characters of an answer that are shown: enough to see whether it names the policy."""
PLOT_WIDTH = 78
AT_ONCE = (
    "Requests at once wait for each other, so that each takes longer than alone; yet all of them are done after the "
    "wall time. The sum of their times is not a time that passed."
)


def to_markdown(runs: Sequence[RunResult]) -> str:
    """The whole report; sweeps first as one table, then each run."""
    lines: list[str] = []
    for name in dict.fromkeys(run.scenario for run in runs):
        mine = [run for run in runs if run.scenario == name]
        lines += ["", f"# {fmt.one_line(mine[0].title)}", ""]
        lines += [f"**{fmt.harmless(mine[0].about)}**", ""] if mine[0].about else []
        lines += notes_lines(mine[0])
        if len(mine) > 1 or mine[0].combination:
            lines += [*_sweep(mine), ""]
        for run in mine:
            lines += _run(run)
    return "\n".join([*lines[1:], "---", "", *words_lines(runs)])


# --- a sweep ---------------------------------------------------------------------------------------------------------


def _sweep(runs: Sequence[RunResult]) -> list[str]:
    """Which limit is enough, one row a limit, and the plots."""
    rows = []
    for run in runs:
        summary = summarise(run.requests)
        counted = [request for request in run.requests if not request.warmup]
        whole = done(counted)
        rows.append(
            (
                limit_text(run),
                human_percent(summary.cached_ratio),
                reasons_text(counted),
                fmt.whole(run.eviction_count),
                fmt.with_spread(stats.spread(request.ttft_s for request in whole), fmt.seconds),
                fmt.seconds(summary.wall_s),
                human_bytes(run.memory.peak_bytes),
                human_bytes(run.memory.mlx.peak_bytes if run.memory.mlx else None),
            )
        )
    limits = " · ".join(runs[0].combination)
    head = (limits, "reuse", "reasons", "evictions", "TTFT", "wall time", "peak memory", "MLX peak")
    text = sweep_text(runs)
    said = [f"**{fmt.harmless(text)}**", ""] if text else []
    plots = sweep_plots(sweep_points(runs), PLOT_WIDTH)
    drawn = ["", f"Over {fmt.harmless(limits)}:", "", "```text", *plots, "```"] if plots else []
    return ["## One row a limit", "", *said, *fmt.markdown_table(head, rows), *drawn]


def _set_flags(flags: dict[str, Any]) -> str:
    """The flags that are set, those of the cache first."""
    known = {name: value for name, value in flags.items() if value not in (None, False, "", {})}
    names = sorted(known, key=lambda name: not name.startswith("prompt_cache"))
    return flags_text({name: known[name] for name in names}) or UNKNOWN


# --- one run ---------------------------------------------------------------------------------------------------------


def _run(run: RunResult) -> list[str]:
    limits = flags_text(run.combination)
    parts = [
        [f"## {fmt.one_line(run.title)}: {limits}" if limits else "## What was run", "", *_conditions_of(run)],
        _section("In short", in_short(run)),
        _verdicts(run),
        _section("Conditions", _conditions([step for step in run.steps if not step.warmup])),
        _section("Warm-up (left out of all other figures)", _conditions([step for step in run.steps if step.warmup])),
        _section("At once", _at_once(run.steps)),
        _section("Hits and misses", _reasons(run)),
        _section("Evictions", _evictions(run)),
        _section("Memory", _memory(run)),
        _section("Answers", _answers(run)),
    ]
    return [line for part in parts for line in part]


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"### {title}", "", *lines, ""] if lines else []


def _conditions_of(run: RunResult) -> list[str]:
    server = run.server
    lines = [
        f"- scenario: {run.scenario} (digest {run.digest}), started {run.started}",
        f"- server: mlx-lm {server.mlx_lm or UNKNOWN}, mlx {server.mlx or UNKNOWN}, "
        f"{'started for this run' if server.mode == 'launched' else 'running before, not ours'}, "
        f"{_SEEN[server.observed] if run.requests else 'nothing was measured'}",
        f"- model: {server.model or UNKNOWN}, loaded in {fmt.seconds(server.load_s)}",
        f"- flags: {_set_flags(server.flags)}",
        *_later_servers(server),
    ]
    if server.differences:
        lines.append(f"- **the server differs from the scenario:** {differences_text(server)}")
    if run.unjudged:
        lines.append(f"- **expectations:** {run.unjudged}")
    if run.interrupted:
        lines.append("- **interrupted:** what was measured until then is here")
    if run.lost is not None:
        what = "the server was lost" if run.reached else "there was no server"
        lines.append(f"- **{what}:** {fmt.one_line(run.lost)}")
    return [*lines, ""]


def _later_servers(server: ServerResult) -> list[str]:
    """A line for each server process after the first, with what was otherwise than in the one before it."""
    lines = []
    before = LaterServer(since=1, model=server.model, flags=server.flags, load_s=server.load_s)
    for number, later in enumerate(server.later, 2):
        changed = {name: value for name, value in later.flags.items() if value != before.flags.get(name)}
        model = f"model {later.model or UNKNOWN}, " if later.model != before.model else ""
        lines.append(
            f"- **since #{later.since}, server {number}** (another process, on an empty cache): {model}"
            f"{flags_text(changed) or 'the same flags'}, loaded in {fmt.seconds(later.load_s)}"
        )
        before = later
    if lines:
        lines.append("- what stands in short is over all of these servers; a row of the conditions is of one")
    return lines


def _verdicts(run: RunResult) -> list[str]:
    failures = run.unexpected_failures()
    if not run.expectations and not failures:
        return []
    held = sum(verdict.held for verdict in run.expectations)
    rows = [
        (
            "held" if verdict.held else "**failed**",
            verdict.step,
            f"`{verdict.text}`",
            measured_text(verdict) if verdict.held else shortfall(verdict),
        )
        for verdict in run.expectations
    ]
    rows += [
        ("**failed**", request.step, f"#{request.id} answers", f"{request.state}: {request.error or 'no reason given'}")
        for request in failures
    ]
    head = ("", "step", "expected", "measured")
    title = f"Expectations: {held} of {len(run.expectations)} held"
    return _section(title, fmt.markdown_table(head, rows))


def _conditions(steps: Sequence[StepResult]) -> list[str]:
    """A row for each step, and for its warm repeats: what is written down for each condition."""
    rows = []
    restarted = any(step.restarted for step in steps)
    for step in filter(None, (part for whole_step in steps for part in parted(whole_step))):
        requests, whole, summary = step.requests, done(step.requests), summarise_step(step)

        def over(name: str, show: Any = fmt.seconds, whole: Any = whole) -> str:
            spread = stats.spread(getattr(request, name) for request in whole)
            return fmt.with_spread(spread, show, n=len(whole))

        rows.append(
            (
                step.name + ("†" if any(request.first_after_start for request in requests) else ""),
                fmt.counted(len(requests), summary.failed),
                over("prompt_tokens", fmt.whole),
                over("cached_tokens", fmt.whole),
                human_percent(summary.cached_ratio),
                over("ttft_s"),
                over("e2e_s"),
                over("output_tokens", fmt.whole),
                over("prefill_tps", human_rate),
                over("decode_tps", human_rate),
                fmt.whole(step.evictions),
                human_bytes(step.peak_bytes),
                *([_restart_text(step)] if restarted else []),
            )
        )
    if not rows:
        return []
    head = (
        "step",
        "n",
        "prompt",
        "cached",
        "reuse",
        "TTFT",
        "completion",
        "output",
        "prefill tok/s",
        "decode tok/s",
        "evicted",
        "peak memory",
        *(["server"] if restarted else []),
    )
    return fmt.markdown_table(head, rows)


def _restart_text(step: StepResult) -> str:
    if not step.restarted:
        return ""
    flags = flags_text(step.flags)
    return f"restarted{', ' + flags if flags else ''}, loaded in {fmt.seconds(step.load_s)}"


def _at_once(steps: Sequence[StepResult]) -> list[str]:
    """Waiting against throughput, where several were sent at once; the other steps stand beside to compare with."""
    if all(step.concurrency == 1 for step in steps):
        return []
    rows = []
    for step in steps:
        if step.warmup or not step.requests:
            continue
        summary = summarise_step(step)
        ttft = stats.spread(request.ttft_s for request in done(step.requests))
        e2e = stats.spread(request.e2e_s for request in done(step.requests))
        rows.append(
            (
                step.name,
                str(step.concurrency),
                fmt.counted(summary.requests, summary.failed),
                fmt.seconds(ttft.median if ttft else None),
                fmt.seconds(ttft.high if ttft else None),
                fmt.seconds(e2e.median if e2e else None),
                fmt.seconds(e2e.high if e2e else None),
                fmt.seconds(summary.wall_s),
                fmt.seconds(summary.sum_e2e_s),
                human_rate(summary.system_tps),
                human_bytes(step.peak_bytes),
            )
        )
    head = (
        "step", "at once", "n", "TTFT median", "TTFT slowest", "completion median", "completion slowest", "wall time",
        "sum of completions", "system tok/s", "peak memory",
    )  # fmt: skip
    return [*fmt.markdown_table(head, rows), "", AT_ONCE]


def _reasons(run: RunResult) -> list[str]:
    rows = [
        (
            f"#{request.id}{'†' if request.first_after_start else ''}",
            request.step,
            request.policy,
            f"{fmt.cached(request)} of {fmt.whole(request.prompt_tokens)}",
            request.reason.kind if request.reason else request.state,
            _detail(request),
        )
        for request in run.requests
    ]
    return fmt.markdown_table(("#", "step", "policy", "cached", "reason", "detail"), rows) if rows else []


def _detail(request: RequestResult) -> str:
    if request.reason is None:
        return request.error or ""
    return "" if request.reason.detail == request.reason.kind else request.reason.detail


def _evictions(run: RunResult) -> list[str]:
    if not run.requests:
        return []
    if run.eviction_count is None:
        return ["Unknown: the server's cache could not be seen."]
    rows = [
        (
            f"{'≈ ' if gone.inferred else ''}{gone.policy}",
            gone.type,
            fmt.whole(gone.tokens),
            human_bytes(gone.bytes),
            _number(gone.made_by),
            _number(gone.caused_by),
            _LIMITS.get(gone.rule, gone.rule),
        )
        for gone in run.evictions
    ]
    head = ("policy", "type", "tokens", "bytes", "made by", "thrown out by", "limit")
    return fmt.markdown_table(head, rows) if rows else ["None."]


def _number(number: int | None) -> str:
    return UNKNOWN if number is None else f"#{number}" if number else "warm-up"


def _memory(run: RunResult) -> list[str]:
    memory = run.memory
    if memory.source is None and memory.mlx is None:
        return []
    rows = [
        (f"server process ({memory.source or 'not seen'})", memory.start_bytes, memory.peak_bytes, memory.end_bytes)
    ]
    if memory.mlx:
        rows.append(("MLX active", None, memory.mlx.peak_bytes, memory.mlx.active_bytes))
        rows.append(("MLX pool", None, None, memory.mlx.pool_bytes))
    table = fmt.markdown_table(
        ("", "start", "peak", "end"), [(name, *map(human_bytes, sizes)) for name, *sizes in rows]
    )
    return [*table, "", "An eviction need not give memory back to the system: MLX keeps freed buffers in its pool."]


def _answers(run: RunResult) -> list[str]:
    """What was asked and what came back, so that a person can check that the policy was followed."""
    lines: list[str] = []
    for request in run.requests:
        lines += [f"**#{request.id} {request.step}**: {_shortened(request.question, 200)}", "", *_quoted(request), ""]
    return lines[:-1]


def _quoted(request: RequestResult) -> list[str]:
    text = request.text.strip()
    if not text:
        empty = request.error or (
            "it ran out while thinking" if request.reasoning and not request.warmup else "no text"
        )
        return [f"> *{fmt.one_line(empty)}*"]
    return [f"> {_shortened(text, ANSWER_LENGTH)}"]


def _shortened(text: str, length: int) -> str:
    """One line, cut; marks that Markdown or HTML would act on are made harmless."""
    line = fmt.one_line(text)
    return fmt.harmless(line if len(line) <= length else line[: length - 1] + "…")
