"""What became of what was stored: which entry decides, and how long two requests overlapped."""

import pytest

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.retention import Fate, what_became
from support.story import Story, reason


def overlapping() -> Story:
    story = Story()
    story.server()
    story.compose("a")
    story.look_up("a", prompt=1000)
    story.tick(118)
    story.compose("b")
    story.look_up("b", prompt=1000, base="a", shared=990)
    return story


def test_in_flight_tells_when_the_other_began_and_when_it_was_stored() -> None:
    story = overlapping()
    state = story.state
    assert reason(story, "b").detail == "#1 was still in flight: begun 123 ms before"
    assert "begun 123 ms before it; send one first" in reason(story, "b").evidence[1]
    state.dirty.clear()
    story.tick(339)
    story.store(1, "a", 1003)
    assert reason(story, "b").detail == "#1 was still in flight: begun 123 ms before, stored 340 ms after"
    assert reason(story, "b").evidence[-1] == (
        "its prompt was stored 340 ms after this look-up: so long the two overlapped"
    )
    assert "b" in state.dirty
    story.store(2, "a", 1003)
    story.end("a", origin="observer")
    assert len(reason(story, "b").evidence) == 3


def test_in_flight_of_one_that_ends_with_nothing_stored() -> None:
    story = overlapping()
    story.tick(49)
    story.end("a", "cancelled", origin="observer")
    assert reason(story, "b").detail == "#1 was still in flight: begun 123 ms before, over 50 ms after"
    assert "it was over, nothing stored, 50 ms after this look-up" in reason(story, "b").evidence[-1]


def test_of_several_in_flight_the_first_is_waited_for() -> None:
    story = overlapping()
    story.compose("c")
    story.look_up("c", prompt=1000, base="b", shared=1000)
    assert reason(story, "c").from_request == 1
    story.store(1, "a", 1003)
    assert "stored 1 ms after" in reason(story, "c").detail


def test_one_that_is_over_is_not_in_flight() -> None:
    story = overlapping()
    story.end("a", "cancelled", origin="observer")
    story.end("a", "cancelled")
    story.compose("c")
    story.look_up("c", prompt=1000, base="a", shared=990)
    assert reason(story, "c").kind == "cancelled"


def test_without_the_observer_the_span_is_that_of_the_client() -> None:
    story = Story()
    story.server(observed=False)
    story.compose("a")
    story.tick(10)
    story.compose("b")
    story.tell(ev.RequestAdmitted(at_ns=story.tick(), origin="client", key="b", status=200))
    story.answer("a", prompt=100, cached=0)
    usage = ev.UsageReported(
        at_ns=story.tick(), origin="client", key="b", prompt_tokens=100, cached_tokens=0, output_tokens=1
    )
    story.tell(usage)
    story.end("b")
    found = reason(story, "b")
    assert (found.kind, found.inferred) == ("in_flight", True)
    (line,) = found.evidence
    assert line == (
        "#1 was sent 15 ms before this one was taken in, and ended 42 ms after that; send one first, then the others"
    )


@pytest.mark.parametrize(
    ("gone", "shared", "kind"),
    [
        ((1, 2, 3), 95, "evicted"),  # the checkpoint behind the system message would have done
        ((1, 2, 3), 40, "not_trimmable"),  # none of them ends in what is shared: kept, they would have been of no use
        ((3,), 95, "unknown"),  # the checkpoint is stored
        ((), 40, "not_trimmable"),
    ],
)
def test_of_layers_that_cannot_be_cut_an_entry_within_the_shared_part_decides(
    gone: tuple[int, ...], shared: int, kind: str
) -> None:
    story = Story()
    story.server(trimmable=False)
    story.compose("a")
    story.look_up("a", prompt=100)
    for entry, type_, tokens in ((1, "system", 60), (2, "user", 97), (3, "assistant", 110)):
        story.store(entry, "a", tokens, kind=type_, trimmable=False)  # type: ignore[arg-type]
    story.answer("a", prompt=100, cached=0)
    story.compose("b", system="other")
    story.look_up("b", prompt=100)
    for entry in gone:
        story.evict(entry, "b", limit=3)
    story.compose("c")
    story.look_up("c", prompt=100, base="a", shared=shared)
    fate = what_became(story.state, story.state.requests["c"], story.state.requests["a"], shared)
    assert fate.kind == kind
    assert ("gone by now" in fate.text) == (bool(gone) and kind == "not_trimmable")


def test_what_was_never_looked_up_is_unknown() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1)
    story.compose("b")
    fate = what_became(story.state, story.state.requests["b"], story.state.requests["a"], 50)
    assert fate == Fate("unknown", 1, "unknown", "the server has not looked it up")
