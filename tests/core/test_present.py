"""State to views."""

import pytest

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.present import (
    Presenter,
    cache_view,
    log_view,
    memory_view,
    request_phase,
    request_row,
    status_view,
)
from support.story import Story


def two_questions() -> Story:
    story = Story()
    story.server(prompt_cache_size=3)
    story.sent("a", entry=1, prompt=131)
    story.compose("b")
    story.look_up("b", prompt=122, cached=112, base="a", shared=112, entry=1)
    story.store(2, "b", 125)
    story.answer("b", prompt=122, cached=112)
    return story


def test_phases_follow_the_stamps() -> None:
    story = Story()
    story.server()
    request = story.compose("a")
    assert request_phase(request) == "queued"
    story.tell(ev.RequestAdmitted(at_ns=story.tick(), origin="client", key="a", status=200))
    assert request_phase(request) == "prefill"
    story.tell(ev.FirstTokenArrived(at_ns=story.tick(), origin="client", key="a", kind="reasoning"))
    assert request_phase(request) == "thinking"
    story.tell(ev.FirstTokenArrived(at_ns=story.tick(), origin="client", key="a", kind="answer"))
    assert request_phase(request) == "answering"
    story.end("a", "cancelled")
    assert request_phase(request) == "cancelled"


def test_the_second_row_says_what_was_reused_and_why() -> None:
    story = two_questions()
    row = request_row(story.state, story.state.requests["b"])
    assert (row.cached_tokens, row.reason, row.why) == (112, "hit", "hit: 112 tokens of #1")
    assert row.ttft_s is not None


def test_running_out_while_thinking_is_said() -> None:
    story = Story()
    story.server()
    story.compose("a")
    story.answer("a", prompt=100, cached=0, finish="length", kind="reasoning")
    request = story.state.requests["a"]
    assert "ran out while thinking" in request_row(story.state, request).why
    request.warmup = True  # one token is all that it asks for
    assert "ran out" not in request_row(story.state, request).why


def test_the_row_that_threw_an_entry_out_says_so() -> None:
    story = two_questions()
    story.compose("c", system="other", policy="warranty")
    story.store(3, "c", 60)
    story.evict(1, "c", limit=2)
    assert "→ threw out returns (#1)" in request_row(story.state, story.state.requests["c"]).why


def test_the_status_line_counts_reuse_by_tokens_without_warm_ups() -> None:
    story = Story()
    story.server(model="mlx-community/Qwen3-4B-4bit")
    story.compose("w", purpose="readiness")
    story.answer("w", prompt=1_000, cached=1_000)
    story.sent("a", entry=1, prompt=131)
    view = status_view(story.state)
    assert (view.model, view.observed, view.reuse_last, view.reuse_session) == ("Qwen3-4B-4bit", "observer", 0, 0)
    assert view.evictions == 0


def test_without_the_observer_evictions_are_unknown() -> None:
    story = Story()
    story.server(observed=False)
    assert status_view(story.state).evictions is None


def test_entries_show_who_made_and_used_them_and_who_goes_next() -> None:
    view = cache_view(two_questions().state)
    assert [(row.made_by, row.used_by, row.next_victim) for row in view.entries] == [(1, (2,), True), (2, (), False)]
    assert (view.count, view.max_count) == (2, 3)


def test_an_evicted_entry_stays_for_a_while_with_the_rule() -> None:
    story = two_questions()
    story.evict(1, "b", limit=1)
    gone = cache_view(story.state).entries[-1]
    assert (gone.gone, gone.gone_text) == ("evicted", "by #2 · count 1")


@pytest.mark.parametrize("phase", ["exited", "unreachable"])
def test_of_a_server_that_is_gone_nothing_is_said_to_be_there(phase: ev.ServerPhase) -> None:
    story = two_questions()
    story.tell(ev.MlxMemorySampled(at_ns=story.tick(), origin="observer", active=5, pool=5, peak=9))
    story.tell(ev.ServerPhaseChanged(at_ns=story.tick(), origin="process", phase=phase, text="gone"))
    cache, memory = cache_view(story.state), memory_view(story.state)
    assert (cache.note, cache.entries, cache.count, cache.bytes) == ("no server", (), None, None)
    story.state.replayed = True
    assert ("goes back" in cache_view(story.state).note) == (phase == "exited")
    assert (memory.now, memory.mlx_active, memory.mlx_pool, memory.weights, memory.cache) == (None,) * 5
    assert memory.mlx_peak == 9


def test_a_stock_server_claims_only_its_counters() -> None:
    story = Story()
    story.server(observed=False)
    story.tell(ev.CacheCounted(at_ns=1, origin="log", count=2, gigabytes=0.31, by_type={"assistant": 2}))
    view = cache_view(story.state)
    assert (view.known, view.count, view.entries) == ("counted", 2, ())
    assert view.counted_text == "log, before the last request: 2 sequences, 0.31 GB (2 assistant)"


def test_a_limit_that_is_not_applied_is_said() -> None:
    story = Story()
    story.server(prompt_cache_bytes=500)
    story.sent("a", entry=1)
    assert any("stored over the byte limit" in warning.text for warning in cache_view(story.state).warnings)


def test_memory_is_taken_apart_only_where_all_is_known() -> None:
    story = Story()
    story.server()
    story.tell(ev.MemorySampled(at_ns=1, origin="memory", pid=10, source="pss", bytes=3_000_000))
    assert memory_view(story.state).other is None
    story.tell(ev.MlxMemorySampled(at_ns=2, origin="observer", active=1, pool=500_000, peak=9))
    view = memory_view(story.state)
    assert (view.weights, view.mlx_pool, view.other) == (1_000_000, 500_000, 1_500_000)


def test_an_empty_log_says_how_to_get_one() -> None:
    story = Story()
    story.tell(ev.ServerTargeted(at_ns=1, origin="program", url="http://h:1", mode="attached"))
    assert "--log" in log_view(story.state).source


def test_rows_that_did_not_change_are_the_same_objects() -> None:
    story = two_questions()
    presenter = Presenter()
    first = presenter.rows(story.state)
    story.compose("c")
    second = presenter.rows(story.state)
    assert second[0] is first[0]
    assert len(second) == 3


def test_rows_of_an_earlier_server_process_say_so_at_once() -> None:
    story = two_questions()
    presenter = Presenter()
    assert not any(row.earlier for row in presenter.rows(story.state))
    story.server(pid=11)
    story.compose("c")
    assert [row.earlier for row in presenter.rows(story.state)] == [True, True, False]


def test_a_warm_up_that_is_told_late_stands_where_it_was_sent() -> None:
    story = Story()
    presenter = Presenter()
    story.compose("before")
    between = story.tick()
    story.compose("after")
    assert [row.key for row in presenter.rows(story.state)] == ["before", "after"]
    story.tell(
        ev.RequestComposed(
            at_ns=between, origin="observer", key="warm", purpose="readiness", path="/v1/chat/completions", messages=()
        )
    )
    assert [row.key for row in presenter.rows(story.state)] == ["before", "warm", "after"]
    assert list(story.state.requests) == ["before", "warm", "after"]
