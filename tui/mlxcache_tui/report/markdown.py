"""The report of one or several runs in Markdown, for someone who was not there.

It answers in the field's words what a person tunes by: for each condition TTFT, completion time, cached and output
tokens; for requests at once the median and the slowest, wall time against the sum, tokens per second, memory; for a
sweep one row a limit; hits and misses with their reasons; the answers.
"""

from collections.abc import Sequence
from typing import Any

from mlxcache_tui.core import stats
from mlxcache_tui.core.results import RequestResult, RunResult, StepResult
from mlxcache_tui.core.summary import summarise, summarise_step
from mlxcache_tui.core.units import UNKNOWN, human_bytes, human_percent, human_rate
from mlxcache_tui.engine.measure import differences_text
from mlxcache_tui.report import format as fmt
from mlxcache_tui.report.text import reasons_text

ANSWER_LENGTH = 600
"""Characters of an answer that are shown: enough to see whether it names the policy."""
LEGEND = (
    "TTFT is the time from the first byte sent to the first token of the reply; completion, to its last one. "
    "Cached tokens are the part of the prompt that the server took from its prompt cache instead of reading it. "
    "Figures over several requests are medians, with their range and the number of requests (n). "
    "— is unknown. † is the first request after the server's start: no baseline for cold ones."
)


def to_markdown(runs: Sequence[RunResult]) -> str:
    """The whole report; sweeps first as one table, then each run."""
    lines: list[str] = []
    for name in dict.fromkeys(run.scenario for run in runs):
        mine = [run for run in runs if run.scenario == name]
        lines += ["", f"# {fmt.one_line(mine[0].title)}", ""]
        lines += [mine[0].about, ""] if mine[0].about else []
        if len(mine) > 1 or mine[0].combination:
            lines += [*_sweep(mine), ""]
        for run in mine:
            lines += _run(run)
    return "\n".join([*lines[1:], "---", "", LEGEND, ""])


# --- a sweep ---------------------------------------------------------------------------------------------------------


def _sweep(runs: Sequence[RunResult]) -> list[str]:
    """One row a limit, and a bar for the reuse of each."""
    rows = []
    for run in runs:
        summary = summarise(run.requests)
        counted = [request for request in run.requests if not request.warmup]
        rows.append(
            (
                limits_text(run.combination) or "as given",
                human_percent(summary.cached_ratio),
                reasons_text(counted) if counted else UNKNOWN,
                fmt.whole(evictions(run)),
                fmt.with_spread(stats.spread(request.ttft_s for request in counted), fmt.seconds),
                fmt.seconds(summary.wall_s),
                human_bytes(run.memory.peak_bytes),
                human_bytes(run.memory.mlx.peak_bytes if run.memory.mlx else None),
            )
        )
    head = ("limit", "reuse", "reasons", "evictions", "TTFT", "wall time", "peak memory", "MLX peak")
    width = max(len(row[0]) for row in rows)
    bars = [f"{row[0]:<{width}}  {row[1]:>5}  {_reuse_bar(run)}" for row, run in zip(rows, runs, strict=True)]
    return ["## One row a limit", "", *fmt.markdown_table(head, rows), "", "```", "reuse by limit", *bars, "```"]


def _reuse_bar(run: RunResult) -> str:
    return fmt.bar(summarise(run.requests).cached_ratio or 0.0, 1.0)


def _flags_text(flags: dict[str, Any]) -> str:
    return limits_text({name: value for name, value in flags.items() if value not in (None, False, "", {})}) or UNKNOWN


def limits_text(flags: dict[str, Any]) -> str:
    """`prompt_cache_size 2, prompt_cache_bytes 8.0 MB`."""
    return ", ".join(
        f"{name} {human_bytes(value) if name.endswith('_bytes') and isinstance(value, int) else value}"
        for name, value in flags.items()
    )


def evictions(run: RunResult) -> int | None:
    """How many entries were thrown out in the run; None where that could not be seen."""
    counts = [step.evictions for step in run.steps]
    return None if None in counts else len(run.evictions)


# --- one run ---------------------------------------------------------------------------------------------------------


def _run(run: RunResult) -> list[str]:
    limits = limits_text(run.combination)
    parts = [
        [f"## {fmt.one_line(run.title)}: {limits}" if limits else "## What was run", "", *_conditions_of(run)],
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
        f"{'started for this run' if server.mode == 'launched' else 'running before, not ours'}, seen through "
        f"{ {'observer': 'the observer', 'log': 'its log', 'client': 'its replies only'}[server.observed] }",
        f"- model: {server.model or UNKNOWN}, loaded in {fmt.seconds(server.load_s)}",
        f"- flags: {_flags_text(server.flags)}",
    ]
    if server.differences:
        lines.append(f"- **the server differs from the scenario:** {differences_text(server.differences)}")
    if run.interrupted:
        lines.append("- **interrupted:** what was measured until then is here")
    if run.lost is not None:
        lines.append(f"- **the server was lost:** {fmt.one_line(run.lost)}")
    return [*lines, ""]


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
            _measured(verdict.measured),
            verdict.why,
        )
        for verdict in run.expectations
    ]
    rows += [
        ("**failed**", request.step, f"#{request.id} answers", request.state, request.error or "")
        for request in failures
    ]
    head = ("", "step", "expected", "measured", "by how much")
    title = f"Expectations: {held} of {len(run.expectations)} held"
    return _section(title, fmt.markdown_table(head, rows))


def _measured(value: float | str | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:.4g}" if isinstance(value, float) else _shortened(value, 60)


def _conditions(steps: Sequence[StepResult]) -> list[str]:
    """A row for each step: what the guide writes down for each condition."""
    rows = []
    for step in steps:
        requests = step.requests

        def over(name: str, show: Any = fmt.seconds, requests: Any = requests) -> str:
            return fmt.with_spread(stats.spread(getattr(request, name) for request in requests), show)

        rows.append(
            (
                step.name + ("†" if any(request.first_after_start for request in requests) else ""),
                str(len(requests)),
                over("prompt_tokens", fmt.whole),
                over("cached_tokens", fmt.whole),
                human_percent(summarise_step(step).cached_ratio),
                over("ttft_s"),
                over("e2e_s"),
                over("output_tokens", fmt.whole),
                over("prefill_tps", human_rate),
                over("decode_tps", human_rate),
                _restart_text(step),
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
        "server",
    )
    return fmt.markdown_table(head, rows)


def _restart_text(step: StepResult) -> str:
    if not step.restarted:
        return ""
    flags = limits_text(step.flags)
    return f"restarted{', ' + flags if flags else ''}, loaded in {fmt.seconds(step.load_s)}"


def _at_once(steps: Sequence[StepResult]) -> list[str]:
    """Steps of several requests: waiting against throughput. The sum of the delays is not the time that passed."""
    rows = []
    for step in steps:
        if len(step.requests) < 2 or step.warmup:
            continue
        summary = summarise_step(step)
        ttft = stats.spread(request.ttft_s for request in step.requests)
        e2e = stats.spread(request.e2e_s for request in step.requests)
        rows.append(
            (
                step.name,
                str(step.concurrency),
                str(summary.requests),
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
    if not rows:
        return []
    head = (
        "step", "at once", "n", "TTFT median", "TTFT slowest", "completion median", "completion slowest", "wall time",
        "sum of completions", "system tok/s", "peak memory",
    )  # fmt: skip
    return fmt.markdown_table(head, rows)


def _reasons(run: RunResult) -> list[str]:
    rows = [
        (
            f"#{request.id}{'†' if request.first_after_start else ''}",
            request.step,
            request.policy,
            f"{fmt.whole(request.cached_tokens)} of {fmt.whole(request.prompt_tokens)}",
            request.reason.kind if request.reason else request.state,
            request.reason.detail if request.reason else request.error or "",
        )
        for request in run.requests
    ]
    return fmt.markdown_table(("#", "step", "policy", "cached", "reason", "detail"), rows) if rows else []


def _evictions(run: RunResult) -> list[str]:
    if evictions(run) is None:
        return ["Unknown: the server's cache could not be seen."]
    rows = [
        (
            f"{'≈ ' if gone.inferred else ''}{gone.policy}",
            gone.type,
            fmt.whole(gone.tokens),
            human_bytes(gone.bytes),
            _number(gone.made_by),
            _number(gone.caused_by),
            gone.rule,
        )
        for gone in run.evictions
    ]
    head = ("policy", "type", "tokens", "bytes", "made by", "thrown out by", "limit")
    return fmt.markdown_table(head, rows) if rows else ["None."]


def _number(number: int | None) -> str:
    return UNKNOWN if number is None else f"#{number}"


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
        empty = request.error or ("it ran out while thinking" if request.reasoning else "no text")
        return [f"> *{fmt.one_line(empty)}*"]
    return [f"> {_shortened(text, ANSWER_LENGTH)}"]


def _shortened(text: str, length: int) -> str:
    """One line, cut; marks that Markdown or HTML would act on are made harmless."""
    line = fmt.one_line(text)
    line = line if len(line) <= length else line[: length - 1] + "…"
    return line.translate({ord(mark): f"\\{mark}" for mark in "\\`*_[]#|<>"})
