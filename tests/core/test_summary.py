"""Figures over several requests: warm-ups left out, the unknown never counted."""

import msgspec
import pytest

from mlxcache_tui.core.expect import METRICS
from mlxcache_tui.core.results import RequestResult
from mlxcache_tui.core.scenario_view import measured
from mlxcache_tui.core.summary import (
    cached_ratio,
    metric_values,
    parted,
    seconds_saved,
    summarise,
    summarise_step,
    wall_s,
)
from mlxcache_tui.report.markdown import to_markdown
from mlxcache_tui.report.text import run_lines
from support.fake_engine import FakeEngine
from support.scenario_runs import run_of

RUN, _ = run_of()
REQUESTS = RUN.requests


def changed(request: RequestResult, **fields: object) -> RequestResult:
    return msgspec.structs.replace(request, **fields)


def test_the_ratio_is_weighted_by_tokens() -> None:
    short = changed(REQUESTS[0], prompt_tokens=10, cached_tokens=10)
    long = changed(REQUESTS[0], prompt_tokens=90, cached_tokens=0)
    unknown = changed(REQUESTS[0], prompt_tokens=500, cached_tokens=None)
    assert cached_ratio([short, long, unknown]) == pytest.approx(0.1)
    assert cached_ratio([unknown]) is None


def test_a_warm_up_step_has_figures_of_its_own() -> None:
    assert summarise(RUN.steps[0].requests).requests == 0
    assert summarise_step(RUN.steps[0]).requests == 1


def test_nothing_measured_is_unknown() -> None:
    summary = summarise([])
    assert (summary.cached_ratio, summary.wall_s, summary.sum_e2e_s, summary.system_tps) == (None, None, None, None)
    assert (summary.ttft_s.p50, summary.ttft_s.n, summary.seconds_saved_est) == (None, 0, None)


def test_throughput_is_unknown_when_a_count_is() -> None:
    assert summarise(REQUESTS).system_tps is not None
    assert summarise([changed(REQUESTS[1], output_tokens=None), REQUESTS[2]]).system_tps is None


def test_failed_requests_are_counted_and_their_times_are_not() -> None:
    run, _ = run_of(engine=FakeEngine(fails_at=3))
    failed = run.requests[2]
    assert (failed.state, failed.e2e_s) == ("failed", None)
    summary = summarise(run.requests)
    assert (summary.requests, summary.failed, summary.e2e_s.n, summary.ttft_s.n) == (4, 1, 3, 3)
    cut = changed(REQUESTS[2], state="cut", ttft_s=99.0)
    assert summarise([REQUESTS[1], cut]).ttft_s.p50 == REQUESTS[1].ttft_s


def test_wall_time_is_that_of_the_steps_and_what_ran_at_once_counts_once() -> None:
    second = 1_000_000_000

    def at(step: str, start: int, end: int) -> RequestResult:
        return changed(REQUESTS[1], step_id=step, sent_ns=start * second, end_ns=end * second)

    one, another = at("a", 0, 2), at("a", 3, 4)
    later = at("b", 600, 601)
    assert wall_s([one, another, later]) == 5
    assert wall_s([one, another, at("b", 3, 6)]) == 6
    assert wall_s([one, at("b", 1, 2)]) == 2
    tokens = one.output_tokens
    assert tokens is not None
    assert summarise([one, later]).system_tps == pytest.approx(2 * tokens / 3)


def test_hit_ratio_counts_judged_requests_only() -> None:
    run, _ = run_of(engine=FakeEngine(fails_at=3))
    assert summarise(run.requests).hit_ratio_by_policy == {"returns": pytest.approx(2 / 3)}


def test_saved_seconds_need_a_cold_request() -> None:
    cold, hit = REQUESTS[1], REQUESTS[2]
    assert cold.prefill_tps is not None
    assert hit.cached_tokens is not None
    assert seconds_saved([cold, hit]) == pytest.approx(hit.cached_tokens / cold.prefill_tps)
    assert seconds_saved([hit]) is None
    assert seconds_saved([cold]) == 0


def test_every_metric_of_expectations_has_values() -> None:
    for name in METRICS:
        values = metric_values(RUN.steps[2], name)
        assert len(values) in (1, 3)
    assert metric_values(RUN.steps[2], "hits") == [3]
    assert metric_values(RUN.steps[2], "reason") == ["hit"] * 3
    assert metric_values(RUN.steps[2], "error") == [""] * 3
    failed, _ = run_of(engine=FakeEngine(fails_at=2))
    assert metric_values(failed.steps[1], "hits") == [None]
    assert metric_values(failed.steps[1], "reason") == [None]


REPEATED = """
[policies]
returns = "The policy says that opened accessories can be returned only if they arrived damaged."
[[steps]]
id = "a"
policy = "returns"
user = "It is opened."
repeat = 3
"""


def test_warm_repeats_of_a_cold_step_are_another_condition() -> None:
    run, _ = run_of(REPEATED)
    assert [request.repeated for request in run.requests] == [False, True, True]
    cold, warm = parted(run.steps[0])
    assert warm is not None
    assert [len(cold.requests), len(warm.requests)] == [1, 2]
    cold_ttft, warm_ttft = summarise_step(cold).ttft_s.p50, summarise_step(warm).ttft_s.p50
    assert cold_ttft is not None
    assert warm_ttft is not None
    assert cold_ttft > 10 * warm_ttft
    assert [line.split("  ")[1] for line in run_lines(run)[2:4]] == ["a", "a, again (warm)"]
    rows = [
        line for line in to_markdown([run]).splitlines() if line.startswith(("| a† | 1 ", "| a, again (warm) | 2 "))
    ]
    assert len(rows) == 2
    assert measured(run).steps["a"] is not None
    assert measured(run).steps["a"].ttft_s == cold_ttft  # type: ignore[union-attr]


def test_repeats_that_are_warm_from_the_first_on_stay_together() -> None:
    step = RUN.steps[2]
    assert parted(step) == (step, None)
