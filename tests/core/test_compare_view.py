"""A comparison in words: both sides named, figures in their units, and steps in the order in which they were run."""

import msgspec
import pytest

from mlxcache_tui.core.compare_view import OF_STEPS, compare_view, side_of
from support.comparisons import compared, request, run, side
from support.fake_engine import FakeEngine
from support.scenario_runs import run_of


def test_both_sides_are_named_with_model_version_and_flags() -> None:
    first, second = compared().sides
    assert (first.name, first.when, first.measured) == ("before", "2026-11-29 20:10:33", "s · 2 requests")
    assert first.server == "m · mlx-lm 0.32.2 · prompt_cache_size 10 · prompt_cache_bytes off · started here · observed"
    assert "prompt_cache_size 1 ·" in second.server


def test_what_differs_comes_first_among_the_flags() -> None:
    assert "0.32.2 · prompt_cache_size 10 · top_p 1.0 · prompt_cache_bytes" in compared(top_p=0.5).sides[0].server


def test_a_side_of_several_runs_tells_each_value_once() -> None:
    runs = [run(request(), sweep={"prompt_cache_size": n}, flags={"prompt_cache_size": n}) for n in (1, 2)]
    found = compare_view(side("a", *runs), side("b", *runs)).sides[0]
    assert found.measured == "s · 2 runs · 2 requests"
    assert "prompt_cache_size 1, 2 ·" in found.server


def test_a_server_of_which_nothing_is_known_says_so() -> None:
    bare = run(request(), server=type(run().server)())
    server = compare_view(side("a", bare), side("b", bare)).sides[0].server
    assert server == "model not known · flags not known"


def test_the_scenario_is_not_said_twice() -> None:
    one = side("folder/s.json", run(request()))
    assert compare_view(one, one).sides[0].measured == "1 request"


def test_figures_are_in_their_units_and_unknown_is_a_dash() -> None:
    rows = {row.metric: row for row in compared().rows}
    ttft = rows["ttft_s"]
    assert (ttft.name, ttft.a, ttft.b, ttft.ratio, ttft.interval, ttft.n) == (
        "TTFT",
        "550 ms",
        "1.00 s",
        "1.82",
        "—",
        "2",
    )
    assert (rows["cached_ratio"].a, rows["cached_ratio"].b, rows["cached_ratio"].verdict) == ("45 %", "0 %", "worse")
    assert (rows["memory_peak_bytes"].a, rows["prefill_tps"].n) == ("—", "0")


def test_intervals_and_unequal_counts() -> None:
    a = side("a", run(*(request(ttft=value) for value in (1.0, 1.1, 0.9))))
    b = side("b", run(*(request(ttft=value) for value in (50.0, 51.0, 49.0, 50.0))))
    row = compare_view(a, b).rows[0]
    assert (row.ratio, row.n) == ("50.0", "3, 4")
    low, high = row.interval.split(" to ")
    assert float(low) < 50 < float(high)
    far = side("b", run(*(request(ttft=value) for value in (5000.0, 5001.0, 4999.0))))
    assert compare_view(a, far).rows[0].ratio == "5000"


def test_steps_have_their_metrics_and_both_answers() -> None:
    steps = compared().steps
    assert [step.name for step in steps] == ["first", "second"]
    assert [row.metric for row in steps[1].rows] == list(OF_STEPS)
    assert [step.answers.same for step in steps] == [True, False]


def test_a_refusal_has_its_differences_and_can_be_lifted() -> None:
    view = compared(top_p=0.5)
    assert view.refused is not None
    assert view.unmeant == ("prompt_cache_size", "top_p")
    assert [(row.name, row.a, row.b) for row in view.differences] == [
        ("prompt_cache_size", "10", "1"),
        ("top_p", "1.0", "0.5"),
    ]
    assert (view.rows, view.steps) == ((), ())
    assert compared(top_p=0.5, changed=view.unmeant).refused is None


def test_a_run_that_did_not_come_to_its_end_is_told() -> None:
    whole, _ = run_of(engine=FakeEngine(cache=10))
    half = msgspec.structs.replace(whole, steps=whole.steps[:2], interrupted=True)
    gone = msgspec.structs.replace(whole, lost="it exited with 1")
    assert side_of("this run", [whole]).note == ""
    assert side_of("x", [half]).note == "the run did not come to an end: stopped; what was measured is compared"
    note = "2 of 3 runs did not come to an end: stopped, server lost (it exited with 1); what was measured is compared"
    assert compare_view(side_of("x", [half, gone, whole]), side_of("y", [whole])).sides[0].note == note


@pytest.mark.parametrize("size", [1, 10])
def test_runs_measured_here_are_a_side(size: int) -> None:
    before, now = (run_of(engine=FakeEngine(cache=cache))[0] for cache in (10, size))
    sides = side_of("before", [before]), side_of("now", [now])
    view = compare_view(*sides)
    assert view.sides[1].when == "2026-11-29 12:00:00"
    assert view.verdict == ("worse" if size == 1 else "inconclusive")
