"""The scenario pane's view: made from runs on the fake engine."""

from typing import Any

import pytest
from msgspec.structs import replace

from mlxcache_tui.core.expect import Verdict
from mlxcache_tui.core.results import RunResult, StepResult
from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_check import check
from mlxcache_tui.core.scenario_view import (
    RAN_AGAIN,
    RunProgress,
    ScenarioView,
    measured,
    scenario_view,
    with_result,
    with_step,
)
from support.fake_engine import FakeEngine
from support.scenario_runs import TWO_QUESTIONS, run_of


def scenario(text: str = TWO_QUESTIONS) -> Scenario:
    return check(text, source="x.toml", name="two-questions", read_policy=lambda file: file)


def progress_of(result: RunResult, **more: Any) -> RunProgress:
    """The run as it is once it is over; verdicts by the step's name, which the texts here have only once."""
    ids = {step.name: step.id for step in scenario().steps}
    verdicts: dict[str, tuple[Verdict, ...]] = {step.id: () for step in result.steps}
    for verdict in result.expectations:
        verdicts[ids[verdict.step]] += (verdict,)
    run = RunProgress(combination=result.combination, begun=True)
    return with_result(run, result, more.get("verdicts", verdicts))


@pytest.fixture(scope="module")
def result() -> RunResult:
    return run_of()[0]


def over(*runs: RunProgress, **more: Any) -> ScenarioView:
    return scenario_view(scenario(), runs, "over", **more)


def test_before_anything_ran() -> None:
    view = scenario_view(scenario(), [RunProgress(combination={})], "running")
    assert [step.status for step in view.runs[0].steps] == ["waiting"] * 3
    assert (view.runs[0].status, view.runs[0].label, view.share) == ("waiting", "", 0)
    assert [expect.held for expect in view.runs[0].steps[2].expects] == [None, None]
    assert view.head.text == "running · 0 of 5 requests"
    assert view.verdict == ()


def test_underway(result: RunResult) -> None:
    run = RunProgress(combination={}, begun=True)
    for step in result.steps[:2]:
        run = with_step(run, step, ())
    run = replace(run, step="second", finished=1, text="loading m")
    view = scenario_view(scenario(), [run], "running")
    assert view.head.text == "running · step 3 of 3 · loading m"
    assert [step.status for step in view.runs[0].steps] == ["done", "done", "running"]
    assert (view.runs[0].steps[2].done, view.runs[0].steps[2].total, view.share) == (1, 3, 3 / 5)
    assert scenario_view(scenario(), [run], "paused").head.text == "paused · step 3 of 3 · 3 of 5 requests"


def test_what_failed_is_named_with_by_how_much(result: RunResult) -> None:
    view = over(progress_of(result))
    assert view.head.text == "1 of 2 expectations failed"
    assert view.head.tone == "bad"
    (line,) = view.verdict
    assert line.text.startswith("second | question: ttft_s < 0.01 * first.ttft_s: ")
    assert line.text.endswith(" too much")
    assert [step.status for step in view.runs[0].steps] == ["done", "done", "failed"]
    assert view.runs[0].status == "failed"
    held, failed = view.runs[0].steps[2].expects
    assert (held.held, held.detail[-2:]) == (True, " %")
    assert failed.held is False


def test_a_step_that_ran_again_says_on_what_cache_it_is_judged(result: RunResult) -> None:
    run = progress_of(result)
    view = over(replace(run, again=frozenset({"first"})))
    assert [RAN_AGAIN in step.notes for step in view.runs[0].steps] == [False, True, False]


def test_figures_beside_the_last_ones(result: RunResult) -> None:
    view = over(progress_of(result), before=[measured(result)], changed=("repeat 1 → 2",))
    for step in view.runs[0].steps:
        assert step.figures is not None
        assert step.figures == step.before
    assert view.runs[0].figures == view.runs[0].before
    assert (view.has_before, view.changed) == (True, ("repeat 1 → 2",))


def test_a_single_run_stands_beside_each_run_of_the_sweep_that_it_was_edited_to(result: RunResult) -> None:
    runs = [progress_of(replace(result, combination={"prompt_cache_size": size})) for size in (2, 4)]
    view = over(*runs, before=[measured(result)])
    for run in view.runs:
        assert run.before == measured(result).whole
        assert all(step.before is not None for step in run.steps)


def test_a_run_of_a_sweep_stands_beside_the_last_one_with_the_same_limits(result: RunResult) -> None:
    two, four = ({"prompt_cache_size": size} for size in (2, 4))
    runs = [progress_of(replace(result, combination=limits)) for limits in (two, four)]
    before = [measured(replace(result, combination={"prompt_cache_size": size})) for size in (4, 8)]
    view = over(*runs, before=before)
    assert [run.before is not None for run in view.runs] == [False, True]
    assert [(run.label, run.values) for run in view.runs] == [
        ("prompt_cache_size 2", "2"),
        ("prompt_cache_size 4", "4"),
    ]
    assert view.current == 1
    assert view.verdict[0].text == "reuse is the same under every limit: 72 %"
    assert view.verdict[1].text.startswith("prompt_cache_size 2: second | question: ")
    assert [point.label for point in view.points] == ["2", "4"]


def test_all_held(result: RunResult) -> None:
    held = replace(result, expectations=result.expectations[:1])
    assert over(progress_of(held)).head.text == "the expectation held"
    held = replace(result, expectations=result.expectations[:1] * 2)
    assert over(progress_of(held)).head == over(progress_of(held)).head
    assert over(progress_of(held)).head.text == "all 2 expectations held"
    assert over(progress_of(held)).head.tone == "good"
    assert over(progress_of(held)).runs[0].status == "done"


def test_nothing_expected(result: RunResult) -> None:
    view = over(progress_of(replace(result, expectations=())))
    assert view.head.text == "done; the scenario expects nothing: look at the figures"


def test_stopped(result: RunResult) -> None:
    cut = replace(result, steps=result.steps[:2], expectations=(), interrupted=True)
    view = over(progress_of(cut, verdicts={"warm": ()}))
    assert view.head.text == "stopped; what was measured is kept"
    assert [step.status for step in view.runs[0].steps] == ["done", "stopped", "waiting"]
    assert view.runs[0].status == "stopped"
    none = replace(cut, steps=())
    assert over(progress_of(none)).head.text == "stopped before anything was measured"
    assert over(progress_of(cut), RunProgress(combination={})).runs[1].status == "waiting"


def test_a_lost_server_has_its_last_words() -> None:
    result, _ = run_of(engine=FakeEngine(dies_at=2))
    view = over(progress_of(result, verdicts={}))
    assert view.head.text.startswith("server lost")
    assert view.runs[0].status == "lost"
    assert view.verdict[1].text == "last"


def test_a_server_that_was_never_there_is_not_lost() -> None:
    result, _ = run_of(engine=FakeEngine(starts=False))
    assert over(progress_of(result, verdicts={})).head.text == "no server"


def test_a_failed_request_is_named() -> None:
    result, _ = run_of(engine=FakeEngine(fails_at=2))
    view = over(progress_of(result))
    assert "1 request failed" in view.head.text
    assert view.verdict[0].text == "first question: #2 failed: HTTP 500: it broke"
    assert view.runs[0].steps[1].status == "failed"


def test_a_failure_that_was_expected_is_none() -> None:
    text = TWO_QUESTIONS.replace('user = "It is opened."', 'user = "It is opened."\nexpect = ["state == \'failed\'"]')
    result, _ = run_of(text, engine=FakeEngine(fails_at=2))
    run = progress_of(result)
    assert scenario_view(scenario(text), [run], "over").runs[0].steps[1].status == "done"


def test_an_attached_server_that_differs_is_told(result: RunResult) -> None:
    server = replace(result.server, differences={"prompt_cache_size": (2, None)})
    view = over(progress_of(replace(result, server=server)))
    assert view.verdict[-1].text == "the server's prompt_cache_size is not set, the scenario's 2"


def test_a_step_without_requests_has_no_figures(result: RunResult) -> None:
    empty: StepResult = replace(result.steps[0], requests=())
    run = progress_of(replace(result, steps=(empty,), expectations=(), interrupted=True), verdicts={})
    view = over(run)
    assert view.runs[0].figures is None
    assert view.runs[0].steps[0].figures is None


def test_evictions_that_could_not_be_seen_are_unknown(result: RunResult) -> None:
    blind = tuple(replace(step, evictions=None) for step in result.steps)
    figures = over(progress_of(replace(result, steps=blind))).runs[0].figures
    assert figures is not None
    assert figures.evictions is None


def test_measured_words_are_one_short_clean_line(result: RunResult) -> None:
    long = Verdict(
        step="first question", text="text contains 'x'", held=True, measured="a\n\x1b[2J" * 99, wanted="x", why=""
    )
    run = progress_of(replace(result, expectations=(long,)))
    (expect,) = over(run).runs[0].steps[1].expects
    assert len(expect.detail) <= 60
    assert expect.detail.isprintable()
