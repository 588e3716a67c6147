"""What helps a stranger to read a report: the figures in short, what the scenario is for, the words used."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from mlxcache_tui.core import stats
from mlxcache_tui.core.glossary import GLOSSARY, REASONS
from mlxcache_tui.core.results import RequestResult, RunResult, StepResult
from mlxcache_tui.core.summary import done, summarise, summarise_step
from mlxcache_tui.core.units import human_bytes, human_percent
from mlxcache_tui.report import format as fmt
from mlxcache_tui.report.text import reasons_text

WORDS = ("token", "prompt", "prefix", "KV cache", "cached tokens", "prefill", "decode", "TTFT", "eviction")
"""Those of the glossary that a report uses."""
OWN_WORDS = (
    ("completion", "From sending the request to the end of the reply."),
    ("reuse", "Cached tokens in proportion to the prompt's, over all requests of the row."),
    (
        "wall time",
        "What passed on the clock from a step's first start to its last end; of a run, its steps' added up.",
    ),
    ("system tok/s", "Output tokens of all requests together, by the wall time."),
    (
        "figures over several requests",
        "Medians of those that were done, with their range and the number of requests (n); failed ones are counted.",
    ),
    ("—", "Unknown, which is not nothing."),
    ("†", "The first request after the server's start: slower for other reasons, so no baseline for cold ones."),
)


def notes_lines(run: RunResult) -> list[str]:
    """What the scenario shows and what to look at, in its author's words: paragraphs, and commands as they are."""
    blocks: list[list[str]] = []
    for line in run.notes.splitlines():
        new = not line.strip() or line.startswith(("Shows:", "Look at:"))
        if new or not blocks or line.startswith("  ") != blocks[-1][-1].startswith("  "):
            blocks.append([])
        blocks[-1].append(line)
    return [line for block in blocks for line in _note(block)]


def _note(block: Sequence[str]) -> list[str]:
    if block[0].startswith("  "):
        return ["```text", *(line.removeprefix("  ") for line in block), "```", ""]
    text = " ".join(block).strip()
    parts = text.split("`")
    if len(parts) % 2:  # what stands between two back quotes is shown as it is
        shown = "`".join(part if number % 2 else fmt.harmless(part) for number, part in enumerate(parts))
    else:
        shown = fmt.harmless(text)
    return [shown, ""] if shown else []


def in_short(run: RunResult) -> list[str]:
    """The answers for which such a run is made, a line each: what was reused, what it saved, what it cost."""
    counted = [request for request in run.requests if not request.warmup]
    summary = summarise(run.requests)
    lines = []
    if summary.cached_ratio is not None:
        share = human_percent(summary.cached_ratio)
        lines.append(f"{share} of the prompt tokens came from the cache ({reasons_text(counted)})")
    for step in run.steps:
        if step.concurrency > 1 and not step.warmup:
            lines += [_at_once(step), _against_alone(step, run.steps), _against_cold(step, run.steps)]
    lines += [_speed(policy, run.steps) for policy in dict.fromkeys(request.policy for request in counted)]
    if summary.seconds_saved_est:
        saved = fmt.seconds(summary.seconds_saved_est)
        lines.append(f"hits saved about {saved} of waiting, added up over the requests (estimate)")
    if run.eviction_count:
        lines.append(f"{_counted(run.eviction_count, 'entry was', 'entries were')} thrown out of the cache")
    first = next((request for request in run.requests if request.first_after_start), None)
    if run.server.load_s is not None and first is not None and first.ttft_s is not None:
        load, ttft = fmt.seconds(run.server.load_s), fmt.seconds(first.ttft_s)
        lines.append(
            f"getting ready: the model was loaded in {load}, the first request after that had a TTFT of {ttft}"
        )
    if run.memory.peak_bytes is not None:
        start, peak = human_bytes(run.memory.start_bytes), human_bytes(run.memory.peak_bytes)
        lines.append(f"memory of the server: {start} as the run began, {peak} at its peak")
    return [f"- {line}" for line in lines if line]


def _at_once(step: StepResult) -> str:
    """What waiting for each other cost each, and what it gave in all."""
    summary = summarise_step(step)
    each = stats.spread(request.e2e_s for request in done(step.requests))
    if each is None:
        return ""
    most = min(step.concurrency, summary.requests)
    return (
        f"{fmt.harmless(step.name)}: {most} at once took {fmt.seconds(each.median)} each (slowest "
        f"{fmt.seconds(each.high)}); the last of {summary.requests} was done after {fmt.seconds(summary.wall_s)}, "
        f"while their times add up to {fmt.seconds(summary.sum_e2e_s)}"
    )


def _against_alone(step: StepResult, steps: Sequence[StepResult]) -> str:
    """What sending at once gave in all: its wall time against as many times the time of one that was sent alone.

    Only of requests that are alike: same policy, reused or read as these were, and about as long an answer; the first
    one after a server's start is like no other.
    """
    wall = summarise_step(step).wall_s
    whole = done(step.requests)
    first = next(iter(whole), None)
    if first is None or not wall or len(whole) < len(step.requests) or len({*map(_is_hit, whole)}) > 1:
        return ""
    alone = stats.median(
        stats.known(
            request.e2e_s
            for other in steps
            if other.concurrency == 1 and not other.warmup
            for request in done(other.requests)
            if not request.first_after_start
            and request.policy == first.policy
            and _is_hit(request) == _is_hit(first)
            and _as_long(request, whole)
        )
    )
    if alone is None:
        return ""
    count = len(whole)
    gain = count * alone / wall
    came = f"{gain:.2g} times as fast in all"
    if f"{gain:.2g}" == "1":
        came = "no faster in all"
    elif gain < 1:
        came = f"{wall / (count * alone) - 1:.0%} slower in all, a loss".replace("%", " %")
    return (
        f"{fmt.harmless(step.name)}: {fmt.seconds(wall)} against {fmt.seconds(count * alone)} for {count} one after "
        f"the other ({count} times {fmt.seconds(alone)} alone): {came}"
    )


def _as_long(request: RequestResult, others: Sequence[RequestResult]) -> bool:
    usual = stats.median(stats.known(other.output_tokens for other in others))
    return usual is not None and request.output_tokens is not None and usual / 2 <= request.output_tokens <= usual * 2


def _against_cold(step: StepResult, steps: Sequence[StepResult]) -> str:
    """A burst that one request warmed, that request included, against a burst of as many that was not warmed."""
    before = next((one for one, other in pairwise(steps) if other is step), None)
    if before is None or len(before.requests) != 1:
        return ""
    warm = before.requests[0]
    if not any(
        _is_hit(request) and request.reason and request.reason.from_request == warm.id for request in step.requests
    ):
        return ""
    cold = next(
        (
            other
            for other in steps
            if other.concurrency == step.concurrency
            and len(done(other.requests)) == len(other.requests) == len(step.requests)
            and not any(_is_hit(request) for request in other.requests)
        ),
        None,
    )
    walls = [summarise_step(one).wall_s for one in (before, step, cold) if one is not None]
    if len(walls) < 3 or None in walls:
        return ""
    first, burst, unwarmed = stats.known(walls)
    assert cold is not None
    return (
        f"warmed first: {fmt.seconds(first)} for {fmt.harmless(before.name)} and {fmt.seconds(burst)} for "
        f"{fmt.harmless(step.name)}, {fmt.seconds(first + burst)} together, against {fmt.seconds(unwarmed)} for "
        f"{fmt.harmless(cold.name)}"
    )


def _speed(policy: str, steps: Sequence[StepResult]) -> str:
    """TTFT of a policy's hits beside that of the requests that had to read it; empty unless there are both.

    Only among as many at once: waiting for each other is another thing than reading.
    """
    for concurrency in sorted({step.concurrency for step in steps}):
        alike = [request for step in steps if step.concurrency == concurrency for request in step.requests]
        if text := _compared(policy, alike):
            return text
    return ""


def _compared(policy: str, requests: Sequence[RequestResult]) -> str:
    mine = [request for request in done(requests) if request.policy == policy and request.ttft_s is not None]
    hits = [request for request in mine if _is_hit(request) and not request.warmup]
    cold = _baseline([request for request in mine if not _is_hit(request)])
    with_hit, without = _ttft(hits), _ttft(cold)
    if with_hit is None or without is None:
        return ""
    warmed = ", the warm-up" if all(request.warmup for request in cold) else ""
    started = "†" if all(request.first_after_start for request in cold) else ""
    return (
        f"{fmt.harmless(policy)}: TTFT {fmt.seconds(with_hit)} where its beginning was reused (n {len(hits)}), "
        f"{fmt.seconds(without)}{started} where it was read (n {len(cold)}{warmed})"
    )


def _is_hit(request: RequestResult) -> bool:
    return request.reason is not None and request.reason.kind == "hit"


def _baseline(read: Sequence[RequestResult]) -> Sequence[RequestResult]:
    """The counted ones; a first request after a start, slower for other reasons, only where there is no other."""
    counted = [request for request in read if not request.warmup]
    return [request for request in counted if not request.first_after_start] or counted or read


def _ttft(requests: Iterable[RequestResult]) -> float | None:
    return stats.median(stats.known(request.ttft_s for request in requests))


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def words_lines(runs: Sequence[RunResult]) -> list[str]:
    """The words of the report and the reasons that occur in it, a sentence each."""
    kinds = {request.reason.kind for run in runs for request in run.requests if request.reason is not None}
    known = dict(GLOSSARY)
    return [
        "## Words",
        "",
        *(f"- **{word}**: {known[word]}" for word in WORDS),
        *(f"- **{word}**: {text}" for word, text in OWN_WORDS),
        "",
        "Why a prompt was reused or read:",
        "",
        *(f"- **{kind}**: {text}" for kind, text in REASONS.items() if kind in kinds),
        "",
    ]
