"""What is inferred of a server without the observer: entries, evictions, the reason, and where the log disagrees."""

from typing import Any

import pytest

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.present import cache_view, request_row
from support.story import Story


def stock(version: str | None = "0.32.2", software: str | None = "mlx_lm") -> Story:
    """A server that somebody else started, of which a reply told the version."""
    story = Story()
    story.tell(ev.ServerTargeted(at_ns=story.tick(), origin="program", url="http://127.0.0.1:1", mode="attached"))
    story.tell(ev.ServerPhaseChanged(at_ns=story.tick(), origin="http", phase="ready"))
    story.tell(ev.ServerIdentified(at_ns=story.tick(), origin="client", mlx_lm=version, software=software))
    return story


def limit_to(story: Story, count: int) -> None:
    story.state.cache.max_count = count


def sent(story: Story, key: str, user: str = "question", cached: int = 0, **more: Any) -> None:
    story.compose(key, user, **more)
    story.answer(key, prompt=100, cached=cached)


def counted(story: Story, count: int) -> None:
    story.tell(ev.CacheCounted(at_ns=story.tick(), origin="log", count=count, gigabytes=0.0))


def test_each_conversation_is_one_entry_and_the_oldest_goes_first() -> None:
    story = stock()
    limit_to(story, 2)
    for key in ("a", "b", "c"):
        sent(story, key, system=key, policy=key)
    view = cache_view(story.state)
    assert (view.known, view.count, view.max_count, view.bytes) == ("inferred", 2, 2, None)
    shown = [(row.policy, row.type, row.tokens, row.bytes, row.next_victim, row.gone) for row in view.entries]
    assert shown == [
        ("b", "assistant", 103, None, True, None),
        ("c", "assistant", 103, None, False, None),
        ("a", "assistant", 103, None, False, "evicted"),
    ]
    (eviction,) = story.state.cache.evictions
    assert (eviction.policy, eviction.made_by, eviction.caused_by, eviction.inferred) == ("a", 1, 3, True)
    assert (eviction.bytes, eviction.rule, eviction.limit) == (None, "count", 2)
    assert "≈ threw out a (#1)" in request_row(story.state, story.state.requests["c"]).why
    assert story.state.log.rows[-1].text == "✂ ≈ evicted a, by #3: count limit 2 (inferred)"


def test_the_evicted_policys_next_row_says_so_and_marks_it_inferred() -> None:
    story = stock()
    limit_to(story, 2)
    for key in ("a", "b", "c"):
        sent(story, key, system=key, policy=key)
    sent(story, "a2", "another", system="a", policy="a", cached=7)
    reason = story.state.requests["a2"].reason
    assert reason is not None
    assert (reason.kind, reason.evicted_by, reason.rule, reason.inferred) == ("evicted", 3, "count", True)
    sent(story, "c2", "another", system="c", policy="c", cached=7)
    near = story.state.requests["c2"].reason
    assert near is not None
    assert near.kind == "unknown", "its entry is still stored by the rule: something else happened"


def test_a_conversation_that_goes_on_swallows_what_it_began_with() -> None:
    story = stock()
    sent(story, "a")
    first = story.state.requests["a"]
    story.compose("b", "more")
    request = story.state.requests["b"]
    story.tell(ev.TextKept(at_ns=story.tick(), origin="client", text_id="answer", text="yes"))
    request.messages = (*first.messages, ("assistant", "answer"), request.messages[-1])
    story.answer("b", prompt=120, cached=103)
    view = cache_view(story.state)
    assert [(row.made_by, row.gone) for row in view.entries] == [(2, None)]
    assert not story.state.cache.evictions


def test_the_same_again_takes_its_own_place() -> None:
    story = stock()
    for key in ("a", "b"):
        sent(story, key)
    assert [row.made_by for row in cache_view(story.state).entries] == [2]


def test_a_checkpoint_stays_when_the_client_leaves() -> None:
    story = stock()
    story.compose("a")
    story.tell(ev.FirstTokenArrived(at_ns=story.tick(), origin="client", key="a", kind="answer"))
    story.end("a", "cancelled")
    assert [(row.type, row.tokens) for row in cache_view(story.state).entries] == [("system", None)]


@pytest.mark.parametrize(
    ("version", "params", "kinds"),
    [
        ("0.32.2", {}, ["system"]),
        ("0.32.2", {"seed": 1}, ["assistant"]),
        ("0.31.1", {}, ["assistant"]),
        ("0.30.7", {}, []),
    ],
)
def test_what_a_request_leaves_that_was_cut_short(version: str, params: dict[str, Any], kinds: list[str]) -> None:
    story = stock(version)
    story.compose("a", params=params)
    story.tell(ev.FirstTokenArrived(at_ns=story.tick(), origin="client", key="a", kind="answer"))
    story.end("a", "cancelled")
    assert [row.type for row in cache_view(story.state).entries] == kinds


def test_a_thinking_model_leaves_its_prompt_too() -> None:
    story = stock()
    story.compose("a")
    story.tell(ev.FirstTokenArrived(at_ns=story.tick(), origin="client", key="a", kind="reasoning"))
    story.end("a", "cancelled")
    assert [row.type for row in cache_view(story.state).entries] == ["user"], "it begins with the system checkpoint"


def test_nothing_is_inferred_of_what_is_not_known() -> None:
    for story in (stock(version=None), stock(software="llama.cpp"), stock(version="dev")):
        sent(story, "a")
        assert cache_view(story.state).known == "unknown"
    observed = Story()
    observed.server()
    observed.sent("a", entry=1)
    observed.tell(ev.ObserverLost(at_ns=observed.tick(), origin="program"))
    sent(observed, "b", system="b")
    assert not observed.state.cache.inferred.entries


def test_where_the_log_counts_otherwise_both_numbers_are_shown() -> None:
    story = stock()
    sent(story, "a", system="a")
    sent(story, "b", system="b")
    counted(story, 1)
    assert "limit 10 assumed" in cache_view(story.state).note
    sent(story, "c", system="c")
    counted(story, 2)
    assert story.state.cache.inferred.disagreement is None
    sent(story, "d", system="d")
    counted(story, 7)
    assert story.state.cache.inferred.disagreement == (3, 7)
    assert cache_view(story.state).note.startswith("≈ 3 inferred before the last request, but the log counted 7")


def test_a_log_that_is_read_some_requests_late_agrees_all_the_way() -> None:
    story = stock()
    for key in ("a", "b", "c", "d"):
        sent(story, key, system=key)
    for count in (0, 1, 2, 3):
        counted(story, count)
        assert story.state.cache.inferred.disagreement is None, count


def test_another_process_begins_with_nothing() -> None:
    story = stock()
    sent(story, "a")
    for pid in (5, 6):
        sample = ev.MemorySampled(at_ns=story.tick(), origin="memory", pid=pid, source="rss", bytes=1)
        story.tell(sample)
    assert story.state.cache.inferred.model is None
    sent(story, "b", "other")
    assert cache_view(story.state).count == 1


def test_before_0_31_there_is_one_queue_of_ten() -> None:
    story = stock("0.30.7")
    sent(story, "a")
    assert cache_view(story.state).count == 1
    assert cache_view(story.state).max_count == 10
