"""What is let go of a long session, and what has to hold for what stays."""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlxcache_tui.core import bounds, infer
from mlxcache_tui.core import events as ev
from mlxcache_tui.core.codec import text_id_of
from mlxcache_tui.core.present import Presenter, cache_view, request_row, status_view
from mlxcache_tui.core.present_detail import detail_view
from mlxcache_tui.core.reduce import apply
from mlxcache_tui.core.state import SessionState
from support.story import Story
from support.streams import EVENTS

SMALL: dict[str, Any] = {
    "KEPT_REQUESTS": 2,
    "LEAST_REQUESTS": 1,
    "UNUSED_TEXTS": 1,
    "KEPT_RECORDS": 2,
    "KEPT_EVICTIONS": 2,
    "AT_ONCE": 1,
}
"""Bounds that a short story reaches."""


@pytest.fixture
def small() -> Iterator[None]:
    """Bounds that a short story reaches."""
    with patch.multiple(bounds, **SMALL):
        yield


def check(state: SessionState) -> None:
    """What has to hold after every event."""
    kept = state.requests.values()
    assert len(kept) <= bounds.KEPT_REQUESTS + len(state.open)
    uses = Counter(text_id for request in kept for text_id in {name for _, name in request.messages})
    assert state.text_uses == uses
    assert set(state.texts) <= set(uses) | set(state.unused_texts)
    assert not set(state.unused_texts) & set(uses)
    assert len(state.unused_texts) <= 2 * bounds.KEPT_REQUESTS
    assert state.size == sum(map(len, state.texts.values())) + sum(request.size for request in kept)
    assert all(state.requests.get(key) is request for key, request in state.open.items())
    assert set(state.dirty) <= set(state.requests)
    assert set(state.cache.stored) <= set(state.cache.records)


@settings(max_examples=300, deadline=None)
@given(stream=st.lists(EVENTS, max_size=60))
def test_after_any_stream_nothing_is_left_of_what_was_let_go(stream: list[ev.AnyEvent]) -> None:
    with patch.multiple(bounds, **SMALL):
        state, presenter = SessionState(), Presenter()
        for event in stream:
            apply(state, event)
            check(state)
        presenter.rows(state)
        assert len(state.cache.records) <= len(state.cache.stored) + bounds.KEPT_RECORDS + bounds.AT_ONCE
        assert len(state.cache.evictions) <= bounds.KEPT_EVICTIONS + bounds.AT_ONCE


def four_requests() -> Story:
    """Each a policy of its own; the entries of the first two are gone."""
    story = Story()
    story.server(prompt_cache_size=2)
    for number, key in enumerate("abcd", 1):
        story.sent(key, entry=number, system=f"policy {key}", policy=f"p{number}")
        if number > 2:
            story.evict(number - 2, key)
    return story


@pytest.mark.usefixtures("small")
def test_the_oldest_go_the_numbers_and_the_sums_go_on() -> None:
    story = four_requests()
    state = story.state
    assert [request.number for request in state.requests.values()] == [3, 4]
    assert (state.let_go, state.next_number) == (2, 5)
    assert (state.tally.all.requests, state.tally.all.prompt_tokens) == (4, 400)
    assert status_view(state).evictions == 2
    assert [row.number for row in Presenter().rows(state)] == [3, 4]
    assert detail_view(state, "a", "") is None


@pytest.mark.usefixtures("small")
def test_what_stays_tells_of_what_went_by_its_number() -> None:
    state = four_requests().state
    assert "→ threw out p1 (#1)" in request_row(state, state.requests["c"]).why
    gone = {row.entry: (row.made_by, row.policy) for row in cache_view(state).entries}
    assert gone == {1: (1, "p1"), 2: (2, "p2"), 3: (3, "p3"), 4: (4, "p4")}


@pytest.mark.usefixtures("small")
def test_the_first_of_its_kind_is_so_as_far_back_as_is_kept() -> None:
    reason = four_requests().state.requests["d"].reason
    assert reason is not None
    assert reason.evidence == ("nothing like it was sent in the last 2 requests",)


@pytest.mark.usefixtures("small")
def test_the_rows_of_a_presenter_go_with_the_requests() -> None:
    story, presenter = Story(), Presenter()
    for key in "ab":
        story.compose(key)
        story.answer(key)
    first = presenter.rows(story.state)
    story.compose("c")
    assert presenter.rows(story.state)[0] is first[1]
    assert len(presenter.rows(story.state)) == 2


@pytest.mark.usefixtures("small")
def test_a_text_goes_with_the_last_request_that_has_it() -> None:
    story = Story()
    for key in "abc":
        story.compose(key, user=f"question {key}", system="shared")
        story.answer(key)
    texts = story.state.texts
    assert text_id_of("shared") in texts
    assert text_id_of("question a") not in texts
    assert text_id_of("question b") in texts


def test_few_large_requests_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "KEPT_SIZE", 10_000)
    monkeypatch.setattr(bounds, "LEAST_REQUESTS", 2)
    story = Story()
    for number in range(9):
        story.compose(f"k{number}", user=f"{number}" * 3_000, system=None)
        story.answer(f"k{number}")
    assert len(story.state.requests) == 3
    for number in range(3):
        story.compose(f"l{number}", user=f"{number}" * 30_000, system=None)
        story.answer(f"l{number}")
    assert len(story.state.requests) == 2, "the least are kept, whatever they weigh"


def test_an_answer_and_tokens_weigh_too() -> None:
    story = Story()
    story.server()
    request = story.compose("a", user="", system=None)
    story.answer("a")
    run = ev.TokenRun(count=3, new=(1, 2, 3))
    look = ev.LookedUp(
        at_ns=story.tick(), origin="observer", key="a", tokens=run, cached_tokens=0, how="none", path="batched"
    )
    story.tell(look)
    story.tell(look)
    assert story.state.size == request.size == len("yes") + 3 * 4


@pytest.mark.usefixtures("small")
@pytest.mark.usefixtures("small")
def test_a_request_in_work_stays_until_its_end_is_told() -> None:
    story = Story()
    story.server()
    story.compose("open")
    for number in range(5):
        story.sent(f"r{number}", entry=number)
    assert list(story.state.requests) == ["open", "r4"]
    story.answer("open")
    assert story.state.requests["open"].outcome == "done"
    assert story.state.tally.all.requests == 6


def test_a_greeting_that_tells_all_texts_first_loses_none() -> None:
    count = bounds.UNUSED_TEXTS + 500
    state = SessionState()
    texts = [f"question {number}" for number in range(count)]
    for text in texts:
        apply(state, ev.TextKept(at_ns=1, origin="observer", text_id=text_id_of(text), text=text))
    for text in texts:
        message = ("user", text_id_of(text))
        apply(
            state,
            ev.RequestComposed(at_ns=2, origin="observer", key=text, purpose="foreign", path="/", messages=(message,)),
        )
    assert all(state.message_text(request.messages[0][1]) == key for key, request in state.requests.items())
    assert len(state.requests) == count


def test_without_bounds_all_is_kept() -> None:
    state = SessionState(bounded=False)
    for event in four_requests().events:
        apply(state, event)
    assert (len(state.requests), state.let_go, len(state.cache.evictions), len(state.cache.records)) == (4, 0, 2, 4)


def test_inferred_entries_are_bounded_and_the_stored_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(infer, "KEPT_ENTRIES", 3)
    story = Story()
    story.tell(ev.ServerTargeted(at_ns=story.tick(), origin="program", url="http://h:1", mode="attached"))
    story.tell(ev.ServerIdentified(at_ns=story.tick(), origin="http", mlx_lm="0.32.2", flags={"prompt_cache_size": 2}))
    for number in range(9):
        story.compose(f"k{number}", user=f"question {number}", system=f"policy {number}")
        story.answer(f"k{number}", prompt=100, cached=0)
    inferred = story.state.cache.inferred
    assert inferred.model is not None
    assert {kept.entry for kept in inferred.model.stored} <= set(inferred.entries)
    assert len(inferred.entries) <= 3
    assert len(inferred.counts) <= infer.KEPT_COUNTS
