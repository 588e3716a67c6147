"""The life of a request from both sides."""

import pytest

from mlxcache_tui.core import events as ev
from support.story import Story


def test_readiness_is_number_nought_and_the_first_question_is_one() -> None:
    story = Story()
    story.server()
    story.compose("w", purpose="readiness", policy=None)
    story.compose("a")
    assert [request.number for request in story.state.requests.values()] == [0, 1]
    assert story.state.requests["w"].policy == "warm-up"
    assert not story.state.requests["w"].counts


def test_the_observer_adds_to_a_request_of_ours_without_doubling_it() -> None:
    story = Story()
    story.server()
    story.compose("a")
    ours = story.state.requests["a"]
    sent = ours.client.sent
    story.compose("a", origin="observer", purpose="foreign", client="127.0.0.1 python")
    assert len(story.state.requests) == 1
    assert ours.ours
    assert (ours.client.sent, ours.server.sent is not None) == (sent, True)


def test_the_server_ends_a_request_of_ours_only_for_itself() -> None:
    story = Story()
    story.server()
    story.compose("a")
    story.end("a", origin="observer")
    assert story.state.requests["a"].outcome is None
    story.end("a")
    assert story.state.requests["a"].outcome == "done"


def test_a_foreign_request_lives_by_the_servers_stamps() -> None:
    story = Story()
    story.server()
    request = story.compose("o1", origin="observer", purpose="foreign", policy=None)
    story.answer("o1", prompt=100, cached=0, origin="observer")
    assert request.outcome == "done"
    assert request.stamps is request.server
    assert request.cached_source == "observer"


def test_a_foreign_request_with_a_known_policy_gets_its_label() -> None:
    story = Story()
    story.server()
    story.tell(ev.PolicyKnown(at_ns=1, origin="program", label="returns", text="the whole policy"))
    more = {"origin": "observer", "purpose": "foreign", "policy": None}
    known = story.compose("o1", system="You help. the whole policy", **more)  # type: ignore[arg-type]
    other = story.compose("o2", system="Something that nobody knows of", **more)  # type: ignore[arg-type]
    bare = story.compose("o3", system=None, user="", **more)  # type: ignore[arg-type]
    assert known.policy == "returns"
    assert other.policy == "“Something that nob…”"
    assert bare.policy == "—"


@pytest.mark.parametrize(("field", "cached"), [(None, None), (0, 0), (12, 12)])
def test_a_missing_field_is_unknown_and_nought_is_nought(field: int | None, cached: int | None) -> None:
    story = Story()
    story.server(observed=False)
    story.compose("a")
    story.answer("a", prompt=100, cached=field)
    assert story.state.requests["a"].cached_tokens == cached


def test_versions_without_the_field_are_derived_from_the_progress_total() -> None:
    story = Story()
    story.server(observed=False)
    story.compose("a")
    story.tell(ev.PrefillProgressed(at_ns=story.tick(), origin="client", key="a", done=10, total=10))
    story.answer("a", prompt=122, cached=None)
    request = story.state.requests["a"]
    assert (request.cached_tokens, request.cached_source) == (112, "derived")


def test_events_of_unknown_requests_are_passed_over() -> None:
    story = Story()
    story.end("nobody")
    assert not story.state.requests


def test_a_long_answer_is_bounded_in_memory() -> None:
    story = Story()
    story.server()
    request = story.compose("a")
    for _ in range(100):
        story.tell(ev.TextArrived(at_ns=story.tick(), origin="client", key="a", kind="answer", text="x" * 10_000))
    assert len(request.answer) < 80_000
