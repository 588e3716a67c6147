"""A recorded session has the form of a run."""

from mlxcache_tui.engine.recorded import run_of_session
from support.sessions import told


def test_requests_of_one_policy_are_one_step_and_the_warm_up_is_none() -> None:
    story = told()
    run, state = run_of_session(story.events, "s")
    assert state == story.state
    assert [(step.name, len(step.requests)) for step in run.steps] == [("returns", 3), ("other", 1)]
    assert [step.evictions for step in run.steps] == [0, 1]
    assert (run.server.mode, run.server.observed, run.server.mlx_lm) == ("launched", "observer", "0.32.2")
    assert run.server.flags["prompt_cache_size"] == 2
    assert run.memory.peak_bytes == run.memory.start_bytes == 5_000_000
    assert len(run.evictions) == 1


def test_without_an_observer_evictions_are_not_known() -> None:
    events = [event for event in told().events if event.origin != "observer"]
    run, _ = run_of_session(events, "s")
    assert {step.evictions for step in run.steps} == {None}


def test_an_empty_session_is_an_empty_run() -> None:
    run, _ = run_of_session([], "s")
    assert run.steps == ()
    assert (run.server.mode, run.memory.mlx) == ("attached", None)
