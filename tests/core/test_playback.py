"""Places in a recording: times never run back, and each jump lands where one wants to look."""

from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.playback import Track
from support.sessions import told
from support.story import Story


def track_of(events: list[ev.AnyEvent]) -> Track:
    track = Track()
    for event in events:
        track.add(event)
    return track


def test_a_request_step_ends_before_the_next_one_is_composed() -> None:
    story = told()
    track = track_of(story.events)
    at, seen = 0, []
    while at < len(story.events):
        at = track.next("request", at)
        seen.append(at)
    composed = [n for n, e in enumerate(story.events) if isinstance(e, ev.RequestComposed) and e.purpose != "readiness"]
    assert seen == [*composed, len(story.events)]
    assert [track.requests_before(place) for place in seen] == [0, 1, 2, 3, 4]
    back = []
    while at > 0:
        at = track.previous("request", at)
        back.append(at)
    assert back == [*reversed(composed), 0]


def test_a_request_that_is_told_twice_is_one() -> None:
    story = Story()
    story.compose("a")
    story.compose("a", origin="observer")
    assert len(track_of(story.events).requests) == 1


def test_an_eviction_jump_lands_right_behind_it() -> None:
    story = told()
    track = track_of(story.events)
    at = track.next("eviction", 0)
    assert isinstance(story.events[at - 1], ev.EntryEvicted)
    assert track.next("eviction", at) == len(story.events)
    assert track.previous("eviction", len(story.events)) == at
    assert track.previous("eviction", at) == 0
    assert [kind for _, kind in track.marks] == ["eviction"]


def test_restarts_are_marked_and_the_first_start_is_none() -> None:
    story = Story()
    story.server(pid=1)
    story.server(pid=2)
    assert [kind for _, kind in track_of(story.events).marks] == ["restart"]


def test_an_empty_recording() -> None:
    track = Track()
    assert (track.time_at(0), track.position_at(5), track.next("eviction", 0), track.previous("request", 0)) == (0,) * 4


@given(st.lists(st.integers(0, 100), min_size=1, max_size=30))
def test_times_never_run_back_and_positions_follow_them(stamps: list[int]) -> None:
    track = track_of([ev.MlxMemorySampled(at_ns=at, origin="observer", active=0, pool=0, peak=0) for at in stamps])
    assert track.times == sorted(track.times)
    assert track.position_at(max(stamps)) == len(stamps)
    for position in range(1, len(stamps) + 1):
        assert track.position_at(track.time_at(position)) >= position
