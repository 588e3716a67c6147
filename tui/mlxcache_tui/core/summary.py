"""Figures over several requests of a run. Warm-ups are left out; unknown never counts in a rate."""

import statistics
from collections.abc import Iterable, Sequence

import msgspec

from mlxcache_tui.core import stats
from mlxcache_tui.core.expect import REQUEST_METRICS
from mlxcache_tui.core.results import RequestResult, StepResult

UNJUDGED = (None, "pending", "not_reported", "unknown")
"""Reasons that say neither hit nor miss."""


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """p50 and p95 by linear interpolation, with the number of values behind them."""

    p50: float | None
    p95: float | None
    n: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a run or a step. `sum_e2e_s` adds the requests' times up, `wall_s` is what passed on the clock.

    Times are those of requests that were done; the others are counted (`failed` has those that were cut as well).
    """

    requests: int
    failed: int
    cached_ratio: float | None
    hit_ratio_by_policy: dict[str, float | None]
    wall_s: float | None
    sum_e2e_s: float | None
    system_tps: float | None
    ttft_s: Percentiles
    e2e_s: Percentiles
    seconds_saved_est: float | None


def summarise(requests: Sequence[RequestResult]) -> Summary:
    """The figures of these requests; warm-ups among them do not count."""
    counted = [request for request in requests if not request.warmup]
    whole = done(counted)
    e2e = stats.known(request.e2e_s for request in whole)
    wall = wall_s(counted)
    return Summary(
        requests=len(counted),
        failed=failed(counted),
        cached_ratio=cached_ratio(counted),
        hit_ratio_by_policy=_hit_ratios(counted),
        wall_s=wall,
        sum_e2e_s=sum(e2e) if e2e else None,
        system_tps=_system_tps(counted, wall),
        ttft_s=_percentiles(request.ttft_s for request in whole),
        e2e_s=_percentiles(request.e2e_s for request in whole),
        seconds_saved_est=seconds_saved(counted),
    )


def done(requests: Iterable[RequestResult]) -> list[RequestResult]:
    """Those that came to their end: only their times are compared."""
    return [request for request in requests if request.state == "done"]


def parted(step: StepResult) -> tuple[StepResult, StepResult | None]:
    """The step without its warm repeats, and these: what was read the first time and reused from then on is not one
    condition. None where there is nothing to part.
    """
    warm = tuple(request for request in step.requests if _is_warm_repeat(request))
    cold = tuple(request for request in step.requests if not _is_warm_repeat(request))
    if not warm or all(_kind(request) == "hit" for request in cold):
        return step, None
    again = msgspec.structs.replace(
        step, name=f"{step.name}, again (warm)", requests=warm, evictions=None, restarted=False
    )
    return msgspec.structs.replace(step, requests=cold), again


def _is_warm_repeat(request: RequestResult) -> bool:
    return request.repeated and _kind(request) == "hit"


def failed(requests: Iterable[RequestResult]) -> int:
    """How many failed or were cut."""
    return sum(request.state in ("failed", "cut") for request in requests)


def summarise_step(step: StepResult) -> Summary:
    """The figures of one step; of a warm-up step those of its warm-ups."""
    if not step.warmup:
        return summarise(step.requests)
    return summarise([msgspec.structs.replace(request, warmup=False) for request in step.requests])


def metric_values(step: StepResult, name: str) -> list[float | str | None]:
    """The values of a metric that expectations name: one for each request, or one for a figure of the step itself."""
    if name in REQUEST_METRICS:
        return [_request_value(request, name) for request in step.requests]
    summary = summarise_step(step)
    figures: dict[str, float | None] = {
        "evictions": step.evictions,
        "requests": summary.requests,
        "failed": summary.failed,
        "hits": _hits(step.requests),
        "wall_s": summary.wall_s,
        "system_tps": summary.system_tps,
        "peak_bytes": step.peak_bytes,
        "load_s": step.load_s,
    }
    return [figures[name]]


def _request_value(request: RequestResult, name: str) -> float | str | None:
    if name in ("reason", "shared_tokens", "rule"):
        key = "kind" if name == "reason" else name
        value = getattr(request.reason, key) if request.reason else None
    elif name == "error" and request.state == "done":
        value = ""
    else:
        value = getattr(request, name)
    known: float | str | None = value
    return known


def _hits(requests: Sequence[RequestResult]) -> int | None:
    kinds = [_kind(request) for request in requests]
    return None if any(kind in UNJUDGED for kind in kinds) else kinds.count("hit")


def cached_ratio(requests: Iterable[RequestResult]) -> float | None:
    """Σ cached ÷ Σ prompt tokens over the requests that reported both (token-weighted, as aiperf's)."""
    pairs = [
        (request.cached_tokens, request.prompt_tokens)
        for request in requests
        if request.cached_tokens is not None and request.prompt_tokens
    ]
    return sum(cached for cached, _ in pairs) / sum(prompt for _, prompt in pairs) if pairs else None


def wall_s(requests: Sequence[RequestResult]) -> float | None:
    """Last end minus first start of each step, added up, seconds: what passed between the steps (a restart, a person
    who waited and ran one again) is not of the requests. Steps that ran at the same time count once.
    """
    total, reached = 0, 0
    spans = sorted(filter(None, map(_span, _by_step(requests))))
    for start, end in spans:
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total / 1e9 if spans else None


def _by_step(requests: Sequence[RequestResult]) -> list[list[RequestResult]]:
    steps: dict[str, list[RequestResult]] = {}
    for request in requests:
        steps.setdefault(request.step_id, []).append(request)
    return list(steps.values())


def _span(requests: Sequence[RequestResult]) -> tuple[int, int] | None:
    starts = stats.known(request.sent_ns for request in requests)
    ends = stats.known(request.end_ns for request in requests)
    return (int(min(starts)), int(max(ends))) if starts and ends else None


def _system_tps(requests: Sequence[RequestResult], wall: float | None) -> float | None:
    """Σ output tokens ÷ wall time (aiperf's output token throughput); None if any count is unknown."""
    counts = [request.output_tokens for request in done(requests)]
    known = stats.known(counts)
    return sum(known) / wall if wall and known and len(known) == len(counts) else None


def _hit_ratios(requests: Sequence[RequestResult]) -> dict[str, float | None]:
    """Hits ÷ requests with a known reason, for each policy."""
    ratios: dict[str, float | None] = {}
    for policy in dict.fromkeys(request.policy for request in requests):
        kinds = [request.reason.kind if request.reason else None for request in requests if request.policy == policy]
        judged = [kind for kind in kinds if kind not in UNJUDGED]
        ratios[policy] = judged.count("hit") / len(judged) if judged else None
    return ratios


def _percentiles(values: Iterable[float | None]) -> Percentiles:
    known = stats.known(values)
    return Percentiles(p50=stats.percentile(known, 50), p95=stats.percentile(known, 95), n=len(known))


def seconds_saved(requests: Sequence[RequestResult]) -> float | None:
    """An estimate: tokens reused by hits ÷ the median speed at which cold requests of similar length were read.

    Similar: between half and twice as many tokens to read as the hit reused; where there are none, all cold requests.
    None without a cold request whose speed is known.
    """
    cold = [
        (request.prompt_tokens - (request.cached_tokens or 0), request.prefill_tps)
        for request in done(requests)
        if request.prefill_tps and request.prompt_tokens is not None and _kind(request) != "hit"
    ]
    hits = [request.cached_tokens for request in requests if _kind(request) == "hit" and request.cached_tokens]
    if not cold:
        return None
    saved = 0.0
    for reused in hits:
        similar = [tps for read, tps in cold if reused / 2 <= read <= reused * 2]
        saved += reused / statistics.median(similar or [tps for _, tps in cold])
    return saved


def _kind(request: RequestResult) -> str | None:
    return request.reason.kind if request.reason else None
