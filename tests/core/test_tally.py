"""Running figures: always what a walk through all requests would give."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.reduce import apply
from mlxcache_tui.core.state import RequestState, SessionState
from mlxcache_tui.core.tally import KEPT_NAMES
from support.story import Story
from support.streams import EVENTS


def reported(state: SessionState) -> list[RequestState]:
    """The requests that are over and told both counts, warm-ups left out."""
    known = (request for request in state.requests.values() if request.counts and request.outcome is not None)
    return [request for request in known if request.cached_tokens is not None and request.prompt_tokens]


@settings(max_examples=300, deadline=None)
@given(stream=st.lists(EVENTS, max_size=60))
def test_the_sums_are_those_of_a_walk_through_all_requests(stream: list[ev.AnyEvent]) -> None:
    state = SessionState()
    for event in stream:
        apply(state, event)
    assert set(state.open) == {key for key, request in state.requests.items() if request.outcome is None}
    assert all(state.requests[key] is request for key, request in state.open.items())
    for name, tally in [(None, state.tally.all), *state.tally.policies.items()]:
        mine = [request for request in reported(state) if name in (None, request.policy)]
        assert tally.cached_tokens == sum(request.cached_tokens or 0 for request in mine)
        assert tally.prompt_tokens == sum(request.prompt_tokens or 0 for request in mine)
        counted = [request for request in state.requests.values() if request.counts]
        assert tally.requests == sum(name in (None, request.policy) for request in counted)
    gone = state.cache.evictions
    assert state.tally.evictions == len(gone)
    assert state.tally.evictions_seen == sum(not eviction.inferred for eviction in gone)
    assert state.tally.by_count == sum(eviction.rule == "count" for eviction in gone)


def usage(story: Story, key: str, *, prompt: int, cached: int | None, origin: ev.Origin = "client") -> None:
    at_ns = story.tick()
    story.tell(
        ev.UsageReported(
            at_ns=at_ns, origin=origin, key=key, prompt_tokens=prompt, output_tokens=3, cached_tokens=cached
        )
    )


def test_what_is_told_late_takes_the_place_of_what_was_told_before() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1, prompt=100)
    usage(story, "a", prompt=100, cached=40, origin="observer")
    assert (story.state.tally.all.ratio, story.state.tally.all.last_ratio) == (0.4, 0.4)


def test_the_last_ratio_is_that_of_the_latest_request_whichever_ends_last() -> None:
    story = Story()
    story.server()
    story.compose("a")
    story.compose("b", policy="warranty")
    story.answer("b", prompt=100, cached=90)
    story.answer("a", prompt=100, cached=10)
    tally = story.state.tally
    assert (tally.all.last_ratio, tally.policies["returns"].last_ratio, tally.all.ratio) == (0.9, 0.1, 0.5)


def test_a_request_that_goes_on_is_open_again_and_not_counted_until_its_end() -> None:
    story = Story()
    story.server()
    story.compose("a", origin="observer", purpose="foreign")
    usage(story, "a", prompt=100, cached=50, origin="observer")
    story.tell(ev.EventsLost(at_ns=story.tick(), origin="observer", count=1))
    assert (len(story.state.open), story.state.tally.all.ratio) == (0, 0.5)
    story.tell(ev.PrefillProgressed(at_ns=story.tick(), origin="observer", key="a", done=1, total=2))
    assert (len(story.state.open), story.state.tally.all.ratio) == (1, None)
    story.end("a", origin="observer")
    assert (len(story.state.open), story.state.tally.all.ratio) == (0, 0.5)


def test_policies_are_bounded_and_the_one_in_use_stays() -> None:
    story = Story()
    story.server()
    for number in range(2 * KEPT_NAMES):
        for key, policy in ((f"a{number}", "returns"), (f"b{number}", f"p{number}")):
            story.compose(key, policy=policy)
            story.answer(key, prompt=10, cached=1)
    policies = story.state.tally.policies
    assert len(policies) == KEPT_NAMES
    assert policies["returns"].requests == 2 * KEPT_NAMES
    assert story.state.tally.all.requests == 4 * KEPT_NAMES


def test_a_policy_that_is_stored_keeps_its_figures_whatever_others_send() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1, policy="kept")
    for number in range(KEPT_NAMES + 20):
        story.compose(f"o{number}", policy=f"p{number}")
    assert story.state.tally.policies["kept"].requests == 1
    assert len(story.state.tally.policies) <= KEPT_NAMES + 1


def test_a_warm_up_tells_how_fast_prompts_are_read() -> None:
    story = Story()
    story.server()
    story.compose("w", warmup=True)
    story.answer("w", prompt=502, cached=0)
    assert story.state.tally.prefill_tps is not None


def test_another_process_begins_with_an_empty_memory() -> None:
    story = Story()
    story.server()
    for number in range(4):
        story.sent(f"k{number}", entry=number + 1)
    process = story.state.tally.process
    assert (process.done, len(process.ends), next(iter(process.cold.values()))[0]) == (4, 4, 2)
    story.server(pid=11)
    process = story.state.tally.process
    assert (process.done, len(process.ends), process.cold) == (0, 0, {})
