"""What the composer says would happen."""

from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.forecast import forecast
from support.story import Story

POLICY = "word " * 400


def story() -> Story:
    made = Story()
    made.server()
    made.sent("a", entry=1, prompt=502, system=POLICY)
    return made


def test_a_stored_policy_would_be_reused() -> None:
    text = forecast(story().state, Draft(user="question", policy_text=POLICY)).text
    assert text.startswith("would reuse ≈500 of ≈502 (#1), read ≈2")


def test_text_in_front_of_it_would_be_read_anew() -> None:
    text = forecast(story().state, Draft(user="question", policy_text=POLICY, before="today")).text
    assert text.startswith("would read all ≈")


def test_an_evicted_policy_would_be_read_anew() -> None:
    made = story()
    made.evict(1, "a")
    assert forecast(made.state, Draft(user="question", policy_text=POLICY)).text.startswith("would read all")


def test_without_the_observer_nothing_is_said() -> None:
    made = Story()
    made.server(observed=False)
    assert forecast(made.state, Draft(user="question", policy_text=POLICY)).text == ""
