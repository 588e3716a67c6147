"""The run JSON: one object a run, keys and their order as documented. Unknown is null."""

from collections.abc import Sequence
from typing import Any

import msgspec

from mlxcache_tui.core.results import RequestResult, RunResult, StepResult
from mlxcache_tui.core.summary import Percentiles, summarise, summarise_step

SCHEMA = 1


def to_json(runs: Sequence[RunResult], *, several: bool) -> str:
    """The object of one run, or `{"schema": 1, "runs": […]}` if the call asked for several; indented, one line end.

    `several` is the caller's: a sweep that was stopped after its first run is still a sweep.
    """
    objects = [run_object(run) for run in runs]
    whole = {"schema": SCHEMA, "runs": objects} if several else objects[0]
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"


def run_object(run: RunResult) -> dict[str, Any]:
    """One run as plain data."""
    return {
        "schema": SCHEMA,
        "scenario": run.scenario,
        "started": run.started,
        "server": {
            "mlx_lm": run.server.mlx_lm,
            "mlx": run.server.mlx,
            "model": run.server.model,
            "mode": run.server.mode,
            "observed": run.server.observed,
            "flags": run.server.flags,
            "load_s": run.server.load_s,
            "differences": {name: list(pair) for name, pair in run.server.differences.items()},
            "later": [msgspec.to_builtins(server) for server in run.server.later],
        },
        "requests": [_request(request) for request in run.requests],
        "evictions": [msgspec.to_builtins(eviction) for eviction in run.evictions],
        "memory": msgspec.to_builtins(run.memory),
        "expectations": [
            {
                "step": verdict.step,
                "text": verdict.text,
                "held": verdict.held,
                "measured": verdict.measured,
                "wanted": verdict.wanted,
                "why": verdict.why,
            }
            for verdict in run.expectations
        ],
        "summary": _summary(run),
        "steps": [_step(step) for step in run.steps],
        "title": run.title,
        "digest": run.digest,
        "sweep": run.combination,
        "unjudged": run.unjudged or None,
        "interrupted": run.interrupted,
        "reached": run.reached,
        "lost": run.lost,
    }


def _request(request: RequestResult) -> dict[str, Any]:
    reason = request.reason
    return {
        "id": request.id,
        "step": request.step,
        "policy": request.policy,
        "state": request.state,
        "status": request.status,
        "warmup": request.warmup,
        "prompt_tokens": request.prompt_tokens,
        "cached_tokens": request.cached_tokens,
        "cached_source": request.cached_source,
        "output_tokens": request.output_tokens,
        "wait_s": request.wait_s,
        "ttft_s": request.ttft_s,
        "prefill_s": request.prefill_s,
        "prefill_tps": request.prefill_tps,
        "decode_tps": request.decode_tps,
        "e2e_s": request.e2e_s,
        "finish_reason": request.finish_reason,
        "reason": msgspec.to_builtins(reason) if reason is not None else None,
        "text": request.text,
        "error": request.error,
        "cached_ratio": request.cached_ratio,
        "reasoning": request.reasoning,
        "step_id": request.step_id,
        "first_after_start": request.first_after_start,
        "repeated": request.repeated,
    }


def _summary(run: RunResult) -> dict[str, Any]:
    summary = summarise(run.requests)
    return {
        "requests": summary.requests,
        "failed": summary.failed,
        "cached_ratio": summary.cached_ratio,
        "hit_ratio_by_policy": summary.hit_ratio_by_policy,
        "wall_s": summary.wall_s,
        "system_tps": summary.system_tps,
        "ttft_s": _percentiles(summary.ttft_s),
        "e2e_s": _percentiles(summary.e2e_s),
        "seconds_saved_est": summary.seconds_saved_est,
        "sum_e2e_s": summary.sum_e2e_s,
    }


def _percentiles(percentiles: Percentiles) -> dict[str, Any]:
    return {"p50": percentiles.p50, "p95": percentiles.p95, "n": percentiles.n}


def _step(step: StepResult) -> dict[str, Any]:
    """Figures of a step as a whole (not in the documented minimum): what concurrency and restarts are judged by."""
    summary = summarise_step(step)
    return {
        "id": step.id,
        "name": step.name,
        "requests": summary.requests,
        "failed": summary.failed,
        "concurrency": step.concurrency,
        "warmup": step.warmup,
        "restarted": step.restarted,
        "flags": step.flags,
        "load_s": step.load_s,
        "cached_ratio": summary.cached_ratio,
        "wall_s": summary.wall_s,
        "sum_e2e_s": summary.sum_e2e_s,
        "system_tps": summary.system_tps,
        "evictions": step.evictions,
        "peak_bytes": step.peak_bytes,
    }
