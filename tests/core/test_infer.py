"""What is inferred of a server without the observer: entries, evictions, the reason, and where the log disagrees."""

from typing import Any

import pytest

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.by_policy import to_warm
from mlxcache_tui.core.present import Presenter, cache_view, request_row
from mlxcache_tui.core.reduce import apply
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
    for key, cached in (("a", 0), ("b", 99)):
        sent(story, key, cached=cached)
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
    assert "limit 10 and no byte limit assumed" in cache_view(story.state).note
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


# --- others use the server too ---------------------------------------------------------------------------------------

POST = '127.0.0.1 - - [29/Nov/2026 14:48:18] "POST /v1/chat/completions HTTP/1.1" {} -'
BEGAN = "2026-11-29 14:48:18,123 - INFO - Starting httpd at 127.0.0.1 on port 8080..."


def log(story: Story, *lines: str) -> None:
    told = tuple(ev.LogLine(text=line, kind="record" if line == BEGAN else "access") for line in lines)
    story.tell(ev.LogRead(at_ns=story.tick(), origin="log", lines=told))


def posted(story: Story, count: int = 1, status: int = 200) -> None:
    log(story, *[POST.format(status)] * count)


def two_of_ours() -> Story:
    story = stock()
    limit_to(story, 2)
    for key in ("a", "b"):
        sent(story, key, system=f"{key} " * 100, policy=key)
        posted(story)
    return story


def test_own_lines_of_the_log_are_not_others() -> None:
    story = two_of_ours()
    assert [row.next_victim for row in cache_view(story.state).entries] == [True, False]
    story.compose("failed", system="f")
    story.end("failed", "failed")
    sent(story, "c", system="b " * 100, policy="b", cached=90)
    posted(story)
    assert story.state.cache.inferred.others.count == 0


def test_requests_of_others_put_older_entries_and_the_next_victim_in_doubt() -> None:
    story = two_of_ours()
    posted(story, 3)
    posted(story, status=404)
    view = cache_view(story.state)
    assert view.note.startswith("≈ others use the server: 3 requests since #2")
    assert [(row.doubtful, row.next_victim) for row in view.entries] == [(True, False)] * 2
    sent(story, "c", system="c", policy="c")
    posted(story)
    assert {row.policy: row.doubtful for row in cache_view(story.state).entries} == {"a": False, "b": True, "c": False}
    sent(story, "d", system="d", policy="d")
    posted(story)
    view = cache_view(story.state)
    assert [row.next_victim for row in view.entries if row.gone is None] == [True, False], "ours fill it again"
    assert view.note.startswith("≈ inferred from what was sent here")


def test_a_log_touches_the_cache_only_where_it_tells_of_others() -> None:
    story = two_of_ours()
    lines = (POST.format(404), POST.format(200), POST.format(404))
    told = [ev.LogRead(at_ns=story.tick(), origin="log", lines=(ev.LogLine(text=x, kind="access"),)) for x in lines]
    assert ["cache" in apply(story.state, event) for event in told] == [False, True, False]


def test_what_others_sent_before_us_is_not_taken_for_ours() -> None:
    story = stock()
    log(story, POST.format(200), BEGAN, POST.format(200), POST.format(200))
    assert story.state.cache.inferred.others.count == 2
    sent(story, "a")
    posted(story)
    assert story.state.cache.inferred.others.count == 2
    (row,) = cache_view(story.state).entries
    assert (row.doubtful, row.next_victim) == (False, False)


def test_an_entry_that_was_not_reused_is_gone() -> None:
    story = two_of_ours()
    posted(story, 3)
    sent(story, "a2", "another", system="a " * 100, policy="a", cached=5)
    view = cache_view(story.state)
    assert view.note == "≈ a (#1) is gone: #3 reused 5 of its ≈96 tokens; others pushed it out"
    assert {(row.made_by, row.gone, row.gone_text) for row in view.entries} == {
        (2, None, ""),
        (3, None, ""),
        (1, "evicted", "≈ before #3"),
    }
    assert story.state.log.rows[-1].text == f"✂ {view.note}"
    reason = story.state.requests["a2"].reason
    assert reason is not None
    assert (reason.kind, reason.detail, reason.inferred) == ("evicted", "evicted by other clients", True)
    assert reason.evidence == ("≈96 tokens were stored for #1; the log tells of 3 requests of others since #2",)
    assert not story.state.cache.evictions, "nobody saw it happen"
    sent(story, "a3", "third", system="a " * 100, policy="a", cached=95)
    assert story.state.cache.inferred.missed is None


def test_without_a_log_the_contradiction_alone_shows_it() -> None:
    story = stock()
    sent(story, "a", system="a " * 100, policy="a")
    sent(story, "a2", "another", system="a " * 100, policy="a", cached=5)
    assert cache_view(story.state).note.endswith("somebody else, or a limit, pushed it out")
    reason = story.state.requests["a2"].reason
    assert reason is not None
    assert reason.kind == "unknown"


@pytest.mark.parametrize("near_miss", ["in flight", "segments", "other arguments", "reused"])
def test_what_is_no_contradiction(near_miss: str) -> None:
    story = stock()
    system = "a " * 100
    if near_miss == "in flight":
        story.compose("a", system=system)
        story.compose("a2", "another", system=system)
        story.answer("a", prompt=100, cached=0)
        story.answer("a2", prompt=100, cached=5)
    else:
        sent(story, "a", system=system)
        if near_miss == "segments":
            told = {"assistant": 1, "user": 1, "system": 1}
            story.tell(ev.CacheCounted(at_ns=story.tick(), origin="log", count=3, gigabytes=0.0, by_type=told))
        params = {"tools": [1]} if near_miss == "other arguments" else {}
        sent(story, "a2", "another", system=system, params=params, cached=60 if near_miss == "reused" else 5)
    assert story.state.cache.inferred.missed is None
    assert {row.gone for row in cache_view(story.state).entries} == {None}


# --- restarts --------------------------------------------------------------------------------------------------------


def sample(story: Story, pid: int) -> None:
    story.tell(ev.MemorySampled(at_ns=story.tick(), origin="memory", pid=pid, source="rss", bytes=1))


def test_a_restart_is_shown_whole_and_offers_to_warm() -> None:
    story, presenter = stock(), Presenter()
    sample(story, 5)
    sent(story, "a", system="a", policy="a")
    assert not presenter.rows(story.state)[0].earlier
    restart = ev.MemorySampled(at_ns=story.tick(), origin="memory", pid=6, source="rss", bytes=1)
    assert apply(story.state, restart) >= {"requests", "cache", "log", "memory", "server"}
    assert presenter.rows(story.state)[0].earlier
    assert story.state.log.rows[-1].text.startswith("↻")
    assert to_warm(story.state) == ("a",)
    view = cache_view(story.state)
    assert view.warnings[0].text == "w: warm again after the restart: a"
    assert [row.warm_before for row in view.policies] == [True]
    sent(story, "a2", "again", system="a", policy="a")
    assert to_warm(story.state) == ()
    assert not cache_view(story.state).warnings


def test_what_others_sent_since_a_restart_counts_though_it_is_read_with_it() -> None:
    story = two_of_ours()
    posted(story, 2)
    log(story, POST.format(200), BEGAN, POST.format(200), POST.format(200))
    assert story.state.server.epoch == 2
    assert story.state.cache.inferred.others.count == 2


def test_where_the_process_cannot_be_seen_the_log_tells_of_a_restart() -> None:
    story = stock()
    log(story, BEGAN)
    epoch = story.state.server.epoch
    sent(story, "a", system="a", policy="a")
    log(story, BEGAN)
    assert (story.state.server.epoch, to_warm(story.state)) == (epoch + 1, ("a",))
    assert story.state.cache.inferred.others.own == 0
    sample(story, 7)
    log(story, BEGAN)
    assert story.state.server.epoch == epoch + 1, "its pid is the same"
