"""The run JSON: the documented object, keys and order; unknown is null; several runs in one list."""

import json
from typing import Any

from mlxcache_tui.core.results import RunResult
from mlxcache_tui.report.json import to_json
from support.fake_engine import FakeEngine
from support.scenario_runs import run_of

TOP = ["schema", "scenario", "started", "server", "requests", "evictions", "memory", "expectations", "summary"]
SERVER = ["mlx_lm", "mlx", "model", "mode", "observed", "flags", "load_s"]
REQUEST = [
    "id", "step", "policy", "state", "status", "warmup", "prompt_tokens", "cached_tokens", "cached_source",
    "output_tokens", "wait_s", "ttft_s", "prefill_s", "prefill_tps", "decode_tps", "e2e_s", "finish_reason", "reason",
    "text", "error",
]  # fmt: skip
REASON = ["kind", "detail", "from_request", "shared_tokens", "evicted_by", "rule"]
EVICTION = ["type", "policy", "tokens", "bytes", "made_by", "caused_by", "rule", "inferred"]
MEMORY = ["source", "start_bytes", "peak_bytes", "end_bytes", "mlx"]
EXPECTATION = ["step", "text", "held", "measured"]
SUMMARY = [
    "requests", "failed", "cached_ratio", "hit_ratio_by_policy", "wall_s", "system_tps", "ttft_s", "e2e_s",
    "seconds_saved_est",
]  # fmt: skip


def written(run: RunResult) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(to_json([run], several=False))
    return whole


def begins(found: dict[str, Any], keys: list[str]) -> bool:
    """The documented keys come first and in order; further ones may follow."""
    return list(found)[: len(keys)] == keys


def test_the_documented_object() -> None:
    run, _ = run_of(engine=FakeEngine(cache=2))
    whole = written(run)
    assert begins(whole, TOP)
    assert begins(whole["server"], SERVER)
    assert all(begins(request, REQUEST) for request in whole["requests"])
    assert all(list(request["reason"]) == REASON for request in whole["requests"])
    assert whole["evictions"]
    assert all(list(eviction) == EVICTION for eviction in whole["evictions"])
    assert list(whole["memory"]) == MEMORY
    assert all(begins(expectation, EXPECTATION) for expectation in whole["expectations"])
    assert begins(whole["summary"], SUMMARY)
    assert (whole["schema"], whole["scenario"]) == (1, "two-questions")
    assert list(whole["summary"]["ttft_s"])[:2] == ["p50", "p95"]


def test_warm_ups_are_there_and_do_not_count() -> None:
    whole = written(run_of()[0])
    assert [request["warmup"] for request in whole["requests"]] == [True, False, False, False, False]
    assert whole["summary"]["requests"] == 4
    assert whole["summary"]["hit_ratio_by_policy"] == {"returns": 0.75}


def test_the_unknown_is_null() -> None:
    whole = written(run_of(engine=FakeEngine(observed=False))[0])
    assert whole["server"]["mlx_lm"] is None
    assert whole["server"]["load_s"] is None
    assert whole["memory"]["mlx"] is None
    assert whole["steps"][0]["evictions"] is None


def test_a_failed_request_keeps_its_error() -> None:
    whole = written(run_of(engine=FakeEngine(fails_at=2))[0])
    failed = whole["requests"][1]
    assert (failed["state"], failed["status"], failed["error"]) == ("failed", 500, "HTTP 500: it broke")
    assert failed["ttft_s"] is None
    assert failed["reason"] is None
    assert whole["summary"]["failed"] == 1


def test_several_runs_stand_in_one_list() -> None:
    runs = [run_of(combination={"prompt_cache_size": size})[0] for size in (1, 2)]
    whole = json.loads(to_json(runs, several=True))
    assert list(whole) == ["schema", "runs"]
    assert [run["sweep"] for run in whole["runs"]] == [{"prompt_cache_size": 1}, {"prompt_cache_size": 2}]


def test_a_sweep_that_was_stopped_early_is_still_a_list() -> None:
    assert len(json.loads(to_json([run_of()[0]], several=True))["runs"]) == 1
