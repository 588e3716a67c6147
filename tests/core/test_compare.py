"""Verdicts by the rule: never from one noisy pair, never across more differences than were meant."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.compare import ALL, TOO_FEW, Comparison, Metric, compare
from mlxcache_tui.core.run_file import Memory, Mlx, Request, Run, Server, Step


def request(step: str = "a", ttft: float | None = 1.0, cached: int = 0, **more: Any) -> Request:
    fields: dict[str, Any] = {"ttft_s": ttft, "e2e_s": ttft, "prompt_tokens": 100, "cached_tokens": cached}
    return Request(**({"step": step, "state": "done"} | fields | more))


def run(*requests: Request, evictions: int | None = 0, **more: Any) -> Run:
    fields: dict[str, Any] = {
        "scenario": "s",
        "digest": "d",
        "server": Server(mlx_lm="0.32.2", mlx="1", model="m", flags={"prompt_cache_size": 2, "top_p": 1.0}),
        "steps": (Step(id="a", evictions=evictions),),
        "evictions": (None,) * (evictions or 0),
    }
    return Run(schema=1, requests=requests, **(fields | more))


def times(*values: float, step: str = "a") -> tuple[Request, ...]:
    return tuple(request(step, value) for value in values)


def runs(*values: float) -> list[Run]:
    """A run for each value."""
    return [run(*times(value)) for value in values]


def metric(comparison: Comparison, name: str, step: str | None = ALL) -> Metric:
    (found,) = (metric for metric in comparison.metrics if (metric.metric, metric.step) == (name, step))
    return found


def flags(**values: Any) -> Server:
    return Server(mlx_lm="0.32.2", mlx="1", model="m", flags={"prompt_cache_size": 2, "top_p": 1.0} | values)


# --- times


@pytest.mark.parametrize(
    ("b", "verdict"),
    [
        ((1.5, 1.51, 1.49), "worse"),
        ((0.5, 0.51, 0.49), "better"),
        ((1.02, 1.0, 1.01), "same"),
        ((0.5, 2.5, 1.2), "inconclusive"),
        ((1.12, 1.06, 1.15), "inconclusive"),
    ],
)
def test_a_time_is_judged_by_its_interval(b: tuple[float, ...], verdict: str) -> None:
    found = metric(compare(runs(1.0, 1.01, 0.99), runs(*b)), "ttft_s")
    assert found.verdict == verdict
    assert found.low is not None
    assert found.high is not None
    assert found.ratio is not None
    assert found.low <= found.ratio <= found.high


def test_the_interval_is_welchs() -> None:
    """By hand: both means 2, variances 1 and 0.01, n 3: 2.04 degrees of freedom, t(0.95) 2.885 between the table's."""
    found = metric(compare(runs(1.0, 2.0, 3.0), runs(1.9, 2.0, 2.1)), "ttft_s")
    variance = (1 + 0.01) / 3 / 4
    assert found.high is not None
    assert math.log(found.high) / math.sqrt(variance) == pytest.approx(2.885, abs=0.01)


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_say_nothing_on_times(count: int) -> None:
    found = compare(runs(*[1.0] * count), runs(*[9.0] * count))
    assert metric(found, "ttft_s").verdict == "inconclusive"
    assert metric(found, "ttft_s").ratio == pytest.approx(9)
    assert found.verdict == "inconclusive"


def test_a_rate_is_better_when_it_is_more() -> None:
    a = [run(request(prefill_tps=value)) for value in (100.0, 101.0, 99.0)]
    b = [run(request(prefill_tps=value)) for value in (200.0, 201.0, 199.0)]
    assert metric(compare(a, b), "prefill_tps").verdict == "better"
    assert metric(compare(b, a), "prefill_tps").verdict == "worse"


def test_one_pair_of_runs_is_never_worse_or_better_however_many_requests_it_has() -> None:
    a, b = [run(*times(*[1.0, 1.01] * 20))], [run(*times(*[3.0, 3.01] * 20))]
    found = compare(a, b)
    assert metric(found, "ttft_s").verdict == "inconclusive"
    assert metric(found, "ttft_s").low == pytest.approx(3, abs=0.05)
    assert found.verdict == "inconclusive"
    assert found.notes == (f"{TOO_FEW} (best: 5 runs a side, taken in turns)",)
    assert compare(a, a).verdict == "same"
    assert compare(b, a).verdict == "same"


def test_one_run_a_side_says_what_it_says_it_does() -> None:
    """Two requests show nothing, three can show that times are no worse; three runs have no need of the words."""
    assert "3 requests a side or more can show that they are no worse" in TOO_FEW
    for count, verdict in ((2, "inconclusive"), (3, "same")):
        found = compare([run(*times(*[1.0] * count))], [run(*times(*[1.0] * count))])
        assert (metric(found, "ttft_s").verdict, found.verdict, len(found.notes)) == (verdict, verdict, 1)
    assert compare(runs(1.0, 1.0, 1.0), runs(1.0, 1.0, 1.0)).notes == ()


def test_failed_and_warm_up_requests_do_not_count_in_times() -> None:
    noise = (request(ttft=50.0, state="failed"), request(ttft=50.0, warmup=True))
    found = compare([run(*times(1.0, 1.0, 1.0))], [run(*times(1.0, 1.0, 1.0), *noise)])
    assert metric(found, "ttft_s").n == (3, 3)
    assert metric(found, "failed").verdict == "worse"
    assert found.verdict == "worse"


def test_each_step_is_a_stratum_so_that_unlike_steps_do_not_blur() -> None:
    def side(factor: float) -> list[Run]:
        pairs = zip((0.010, 0.0101, 0.0099), (5.0, 5.05, 4.95), strict=True)
        return [run(*times(hit * factor, step="hit"), *times(miss * factor, step="miss")) for hit, miss in pairs]

    found = compare(side(1.0), side(1.3))
    assert metric(found, "ttft_s").verdict == "worse"
    assert metric(found, "ttft_s").ratio == pytest.approx(1.3)
    assert metric(found, "ttft_s", "hit").verdict == "worse"


def test_runs_are_the_unit_where_there_are_three_a_side() -> None:
    """Requests of one run are alike: a side whose runs differ widely says nothing, however many requests there are."""
    a = [run(*times(*[level] * 20)) for level in (1.0, 1.0, 1.0)]
    b = [run(*times(*[level] * 20)) for level in (1.0, 1.5, 1.6)]
    found = metric(compare(a, b), "ttft_s")
    assert found.n == (3, 3)
    assert found.verdict == "inconclusive"


# --- what is counted


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (90, 80, "worse"),
        (80, 90, "better"),
        (5, 1, "same"),
        (90, 90, "same"),
        (99, 98, "same"),
        (50, 48, "same"),
        (13, 7, "worse"),
        (50, 20, "worse"),
    ],
)
def test_the_cached_ratio_is_judged_by_what_had_to_be_read(a: int, b: int, verdict: str) -> None:
    found = compare([run(request(cached=a))], [run(request(cached=b))])
    assert metric(found, "cached_ratio").verdict == verdict
    assert (found.verdict == "worse") is (verdict == "worse")


def test_a_loss_in_one_step_is_not_hidden_by_the_others() -> None:
    rest = [request(f"s{n}") for n in range(30)]
    found = compare([run(request(cached=95), *rest)], [run(request(cached=0), *rest)])
    assert metric(found, "cached_ratio").verdict == "same"
    assert metric(found, "cached_ratio", "a").verdict == "worse"
    assert found.verdict == "worse"


def test_evictions_are_counted_and_unknown_ones_are_not_judged() -> None:
    steady = times(1.0, 1.0, 1.0)
    assert metric(compare([run(*steady, evictions=0)], [run(*steady, evictions=3)]), "evictions").verdict == "worse"
    assert metric(compare([run(*steady, evictions=3)], [run(*steady, evictions=0)]), "evictions").verdict == "better"
    unknown = compare([run(*steady, evictions=None)], [run(*steady, evictions=3)])
    assert metric(unknown, "evictions").verdict == "inconclusive"
    assert unknown.verdict == "same"
    bare = run(*steady, steps=None, server=flags())
    assert metric(compare([bare], [bare]), "evictions").a is None


def of(peak: int, *more: Request, **fields: Any) -> Run:
    return run(request(), *more, memory=Memory(peak_bytes=peak, mlx=Mlx(peak_bytes=peak)), **fields)


def test_memory_needs_three_runs() -> None:
    assert metric(compare([of(100)], [of(200)]), "memory_peak_bytes").verdict == "inconclusive"
    found = compare([of(100), of(101), of(99)], [of(200), of(201), of(199)])
    assert metric(found, "memory_peak_bytes").verdict == metric(found, "mlx_peak_bytes").verdict == "worse"


OF_RUNS = ("evictions", "memory_peak_bytes", "mlx_peak_bytes")


def test_what_whole_runs_did_is_not_judged_where_steps_were_left_out() -> None:
    """The five evictions, the memory and the failure may all be the doing of a step that A has not."""
    a = [of(100)] * 3
    b = [of(200, request("b", state="failed"), evictions=5)] * 3
    found = compare(a, b)
    assert [metric(found, name).verdict for name in OF_RUNS] == ["inconclusive"] * 3
    assert (metric(found, "evictions").b, metric(found, "failed").b) == (5, 0)
    assert found.verdict == "same"
    told = "evictions and memory are told, not judged: they are of whole runs, and steps were left out"
    assert told in found.notes
    assert compare(b, a).verdict == "same"
    assert metric(compare(b, b), "evictions").verdict == "same"


def test_a_failure_in_a_step_of_both_counts_whatever_was_left_out() -> None:
    found = compare([run(request())], [run(request(), request(state="cut"), request("b"))])
    assert metric(found, "failed").verdict == found.verdict == "worse"


@pytest.mark.parametrize("ended", [{"interrupted": True}, {"lost": "it exited with 1"}])
def test_what_whole_runs_did_is_not_judged_where_one_did_not_end(ended: dict[str, Any]) -> None:
    found = compare([of(100)] * 3, [of(200, evictions=5), of(200, evictions=5), of(200, evictions=5, **ended)])
    assert [metric(found, name).verdict for name in OF_RUNS] == ["inconclusive"] * 3
    assert found.notes[-1].endswith("they are of whole runs, and a run did not come to its end")


# --- the whole


def test_the_whole_is_no_worse_only_if_that_was_shown() -> None:
    steady = runs(1.0, 1.01, 0.99)
    assert compare(steady, steady).verdict == "same"
    assert compare(steady, runs(0.5, 0.51, 0.49)).verdict == "better"
    assert compare(steady, runs(0.4, 0.9, 1.6)).verdict == "inconclusive"
    found = compare(steady, runs(0.8, 0.9, 1.0))
    assert metric(found, "ttft_s").verdict == "inconclusive"
    assert found.verdict == "same"


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=8), st.integers(0, 100))
def test_with_itself_nothing_is_better_or_worse(values: list[float], cached: int) -> None:
    side = [run(*(request(ttft=value, cached=cached) for value in values))]
    found = compare(side, side)
    assert found.verdict in ("same", "inconclusive")
    assert not {metric.verdict for metric in found.metrics} & {"better", "worse"}
    assert not found.differences


def test_of_two_hundred_pairs_of_like_runs_hardly_any_is_told_to_differ() -> None:
    """The rate of false alarms: lognormal times with 20 % spread, 5 a side."""
    chance = random.Random(5)

    def side() -> list[Run]:
        return runs(*(chance.lognormvariate(0, 0.2) for _ in range(5)))

    verdicts = [compare(side(), side()).verdict for _ in range(200)]
    assert sum(verdict in ("better", "worse") for verdict in verdicts) <= 10


def test_a_step_may_have_any_name() -> None:
    found = compare([run(request("one", cached=90), request("all"))], [run(request("one"), request("all"))])
    assert metric(found, "cached_ratio").a == pytest.approx(0.45)
    assert metric(found, "cached_ratio", "all").verdict == "same"
    assert found.verdict == "worse"


@pytest.mark.parametrize("least", [1e-320, 1e-200, 1e-9])
def test_figures_may_be_as_far_apart_as_a_file_allows(least: float) -> None:
    for values in ((least, 2 * least, 3 * least), (1e15, 0.0, least)):
        found = compare(runs(*values), runs(1e15, 1e14, 1e13))
        assert metric(found, "ttft_s").verdict in ("worse", "inconclusive")


# --- what the two have in common


def test_a_refusal_has_its_differences_and_no_figures() -> None:
    found = compare([run(request())], [run(request(), server=flags(prompt_cache_size=10, top_p=0.5))])
    assert "prompt_cache_size (2 and 10), top_p (1.0 and 0.5)" in str(found.refused)
    assert (list(found.differences), found.unmeant) == (["prompt_cache_size", "top_p"], ("prompt_cache_size", "top_p"))
    assert found.metrics == ()


def test_nothing_in_common_is_refused() -> None:
    found = compare([run(request("a"))], [run(request("b"))])
    assert found.refused == "the two have no step in common: they did not measure the same thing"
    assert "B has no request" in str(compare([run(request())], [run(request(warmup=True))]).refused)


def test_prompts_that_are_not_alike_are_told() -> None:
    found = compare([run(request(prompt_tokens=300), request("b"))], [run(request(prompt_tokens=1500), request("b"))])
    assert found.notes[0] == "step a: the prompts are not alike, 300 and 1500 tokens on average"
    assert not any("not alike" in note for note in compare([run(request())], [run(request(prompt_tokens=105))]).notes)
    assert not any("not alike" in note for note in compare([run(request())], [run(request(prompt_tokens=None))]).notes)


def test_what_is_left_out_is_said() -> None:
    found = compare([run(request("a"), request("b"))], [run(request("a"))], ["top-p"])
    assert found.notes[:2] == ("step b is only in A: left out", "top-p is the same on both sides")


# --- pairing


def test_each_set_of_limits_of_a_sweep_is_paired_with_its_like() -> None:
    sweep = [
        run(request(cached=size), sweep={"prompt_cache_size": size}, server=flags(prompt_cache_size=size))
        for size in (1, 2)
    ]
    found = compare(sweep, sweep)
    assert found.differences == {}
    steps = [metric.step for metric in found.metrics if metric.metric == "cached_ratio"]
    assert steps == [ALL, "prompt_cache_size 1 · a", "prompt_cache_size 2 · a"]


def test_a_sweep_and_a_single_run_are_refused_with_the_limits_that_differ() -> None:
    sweep = [
        run(request(), sweep={"prompt_cache_size": size}, server=flags(prompt_cache_size=size)) for size in (22, 4)
    ]
    found = compare(sweep, [run(request(), server=flags(prompt_cache_size=10))])
    told = "A is a sweep over prompt_cache_size (22, 4), B a single run: compare two of the same limits"
    assert found.refused == told
    assert found.differences == {"prompt_cache_size": ([22, 4], 10)}
    other = [run(request(), sweep={"prompt_cache_size": 8}, server=flags(prompt_cache_size=8))]
    assert "B a sweep over prompt_cache_size (8)" in str(compare(sweep, other).refused)
    elsewhere = [run(request("z"), sweep=one.sweep, server=one.server) for one in sweep]
    assert "no step in common" in str(compare(sweep, elsewhere).refused)


def test_several_scenarios_are_kept_apart() -> None:
    both = [run(request()), run(request(), scenario="t", digest="e")]
    steps = {metric.step for metric in compare(both, both).metrics}
    assert steps == {ALL, "s · a", "t · a"}


def test_answers_side_by_side() -> None:
    found = compare([run(request(text="yes"))], [run(request(text="no"))])
    assert [(answers.a, answers.b, answers.same) for answers in found.answers] == [("yes", "no", False)]
