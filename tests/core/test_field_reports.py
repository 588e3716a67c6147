"""The public reports on misses, limits and memory (A and B of the field reports), each as a test of its kind."""

from typing import Any

import pytest

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.by_policy import policy_rows, to_warm, warming_drafts
from mlxcache_tui.core.codec import text_id_of
from mlxcache_tui.core.difference import first_difference
from mlxcache_tui.core.present import cache_view, memory_view, request_row, status_view
from mlxcache_tui.core.reduce import fold
from mlxcache_tui.core.units import parse_size, server_size
from mlxcache_tui.core.warnings import warnings
from support.story import HEAD, Story, reason

MB = 10**6


def observed(**flags: Any) -> Story:
    story = Story()
    story.server(**flags)
    return story


def warned(story: Story) -> dict[str, str]:
    return {warning.name: warning.text for warning in warnings(story.state)}


# --- A: cache misses and cached_tokens -------------------------------------------------------------------------------


def test_report_1_a_hit_refreshes_nothing() -> None:
    """Four policies round robin in three places: each is thrown out just before it is needed, though it was used."""
    story = observed(prompt_cache_size=3)
    stored: list[tuple[int, str]] = []
    last: dict[str, str] = {}
    for number in range(12):
        name, key = "KLMN"[number % 4], f"k{number}"
        base = last.get(name)
        story.compose(key, system=name, policy=name)
        story.look_up(key, prompt=100, base=base, shared=95 if base else 0)
        story.store(number + 1, key, 103)
        stored.append((number + 1, key))
        if len(stored) > 3:
            victims = [row for row in cache_view(story.state).entries if row.next_victim]
            assert [row.entry for row in victims] == [stored[0][0]]
            story.evict(stored.pop(0)[0], key, limit=3)
        story.answer(key, prompt=100, cached=0)
        last[name] = key
    kinds = [reason(story, f"k{number}").kind for number in range(12)]
    assert kinds == ["first"] * 4 + ["evicted"] * 8
    assert [reason(story, f"k{n}").evicted_by for n in range(4, 8)] == [4, 5, 6, 7]
    assert "goes first, used or not" in " ".join(reason(story, "k4").evidence)


def test_report_3_only_whole_segments_are_reused_where_nothing_can_be_cut_back() -> None:
    story = observed(trimmable=False)
    assert warned(story)["three-places"].startswith("a cold request takes 3 of the 10 places")
    story.compose("a")
    story.look_up("a", prompt=963)
    for entry, kind, tokens in ((1, "system", 953), (2, "user", 962), (3, "assistant", 970)):
        story.store(entry, "a", tokens, kind=kind, trimmable=False)  # type: ignore[arg-type]
    story.answer("a", prompt=963, cached=0)
    story.compose("b", "other")
    story.look_up("b", prompt=963, cached=953, base="a", shared=953, entry=1, how="extended")
    assert reason(story, "b").kind == "hit"
    story.compose("c", system="policy with another end")
    story.look_up("c", prompt=963, base="a", shared=900)
    assert (reason(story, "c").kind, reason(story, "c").shared_tokens) == ("not_trimmable", 900)


def test_report_4_a_first_token_that_came_no_sooner_is_flagged_without_any_cached_field() -> None:
    story = Story()
    story.server(observed=False)
    for key, ttft, system in (("0", 900, "x"), ("1", 1310, "policy"), ("2", 1300, "policy")):
        story.compose(key, system=system)
        story.tick(ttft)
        story.answer(key, prompt=963, cached=None)
    assert reason(story, "2").kind == "not_reported"
    assert "though the text in front is equal" in warned(story)["not-faster"]


def test_report_7_other_template_arguments_change_the_tail_and_are_named() -> None:
    story = observed()
    on, off = ({"chat_template_kwargs": {"enable_thinking": value}} for value in (True, False))
    story.compose("a", params=on)
    story.look_up("a", prompt=965)
    story.store(1, "a", 970)
    story.answer("a", prompt=965, cached=0)
    story.compose("b", params={**off, "seed": 3})
    story.look_up("b", prompt=967, cached=964, base="a", shared=964, entry=1)
    found = reason(story, "b")
    assert found.kind == "hit"
    assert "chat_template_kwargs: {'enable_thinking': False} here, {'enable_thinking': True} in #1" in found.evidence
    assert "seed: 3 here, none in #1" in found.evidence


@pytest.mark.parametrize(("shared", "cached"), [(HEAD, 1), (60, 60)])
def test_report_7_arguments_that_stand_in_front_of_the_text_are_another_prompt(shared: int, cached: int) -> None:
    story = observed()
    story.sent("a", entry=1, prompt=965, system="policy " * 100)
    story.compose("b", system="policy " * 100, params={"tools": [{"name": "lookup"}]})
    story.look_up("b", prompt=1200, cached=cached, base="a", shared=shared)
    found = reason(story, "b")
    assert (found.kind, found.from_request) == ("model_changed", 1)
    assert any(line.startswith("tools: ") for line in found.evidence)


def conversation(story: Story, key: str, *texts: str) -> None:
    """A request of several turns."""
    roles = ("system", "user", "assistant", "user")
    for text in texts:
        story.tell(ev.TextKept(at_ns=story.tick(), origin="client", text_id=text_id_of(text), text=text))
    story.tell(
        ev.RequestComposed(
            at_ns=story.tick(),
            origin="client",
            key=key,
            purpose="send",
            path="/v1/chat/completions",
            messages=tuple((role, text_id_of(text)) for role, text in zip(roles, texts, strict=True)),
            policy="returns",
        )
    )


def test_report_8_dropped_thinking_is_a_tail_that_is_read_again_not_a_miss() -> None:
    story = observed()
    story.tell(
        ev.ModelLoaded(at_ns=story.tick(), origin="observer", model="m", seconds=1, trimmable=True, has_thinking=True)
    )
    story.compose("a", "opened?", system="policy")
    story.look_up("a", prompt=100)
    story.store(1, "a", 145)
    story.answer("a", prompt=100, cached=0)
    conversation(story, "b", "policy", "opened?", "yes", "damaged?")
    story.look_up("b", prompt=120, cached=98, base="a", shared=98, entry=1)
    found = reason(story, "b")
    assert found.kind == "hit"
    assert "98 of 120 prompt tokens (82 %) came from #1, 22 read anew" in found.evidence
    assert (
        "tail re-read: at most 22 tokens (thinking template): the prompt writes #1's answer otherwise, "
        "47 stored tokens are of no use"
    ) in found.evidence


def test_report_8_an_answer_that_comes_back_as_it_was_is_no_tail() -> None:
    story = observed()
    story.compose("a", "opened?", system="policy")
    story.look_up("a", prompt=100)
    story.store(1, "a", 145)
    story.answer("a", prompt=100, cached=0)
    conversation(story, "b", "policy", "opened?", "yes", "damaged?")
    story.look_up("b", prompt=170, cached=145, base="a", shared=100, entry=1, how="extended")
    assert not any("tail" in line for line in reason(story, "b").evidence)


def test_report_10_a_changing_header_costs_the_whole_policy_and_the_end_costs_nothing() -> None:
    story = observed()
    story.state.policies["returns"] = "policy"
    story.sent("a", entry=1, prompt=2001, system="id 17 policy")
    story.sent("b", entry=2, prompt=2001, system="id 18 policy", cached=6, base="a", shared=6)
    found = reason(story, "b")
    assert (found.kind, found.detail) == ("diverged", "differs from #1 at message 0, char 4")
    assert any("stands behind it, unchanged, and is read again" in line for line in found.evidence)
    story.sent("c", entry=3, prompt=2001, system="policy id 17")
    story.sent("d", entry=4, prompt=2001, system="policy id 18", cached=1980, base="c", shared=1980)
    assert reason(story, "d").kind == "hit"


def test_report_12_the_head_of_the_template_is_no_hit_and_nothing_reaches_100_percent() -> None:
    story = observed()
    story.sent("a", entry=1, prompt=963)
    story.sent("b", entry=2, prompt=963, system="other", policy="other", cached=HEAD, base="a", shared=HEAD)
    assert reason(story, "b").kind == "first"
    assert f"the {HEAD} tokens shared with others are the template's" in reason(story, "b").evidence[0]
    story.sent("c", entry=3, prompt=963, cached=962, base="a", shared=963, how="trimmed")
    assert reason(story, "c").kind == "hit"
    assert "the last token of a prompt is always read again" in reason(story, "c").evidence


@pytest.mark.parametrize("reported", [None, 0, 12])
def test_report_13_missing_nought_and_a_number_are_three_states(reported: int | None) -> None:
    story = Story()
    story.server(observed=False)
    story.compose("a")
    story.answer("a", prompt=20, cached=20)
    story.compose("b")
    story.answer("b", prompt=20, cached=reported)
    row = request_row(story.state, story.state.requests["b"])
    assert row.cached_tokens == reported
    assert (row.reason == "not_reported") == (reported is None)
    expected = 1.0 if reported is None else (20 + reported) / 40
    assert status_view(story.state).reuse_session == expected


def test_report_15_each_verdict_says_where_and_by_whom() -> None:
    story = observed(prompt_cache_size=1)
    story.sent("a", entry=1, system="A policy of shop one")
    story.sent("b", entry=2, system="A policy of shop two", cached=40, base="a", shared=40)
    assert reason(story, "b").evidence == (
        "shares 40 tokens with #1, then differs at token 40: message 0 (system), character 17",
        "here: A policy of shop ▸two",
        "#1:   A policy of shop ▸one",
    )
    difference = first_difference(story.state, story.state.requests["b"], story.state.requests["a"])
    assert difference is not None
    assert (difference.message, difference.char) == (0, 17)
    story.evict(1, "b", limit=1)
    story.sent("c", entry=3, system="A policy of shop one", base="a", shared=95)
    assert reason(story, "c").evidence == (
        "shares 95 of 100 tokens with #1",
        "its entry (103 tokens, assistant, 1 kB) was thrown out by #2, 5 ms before: count limit 1; "
        "the oldest assistant entry goes first, used or not",
    )
    story.compose("d", system="something else", policy="other")
    story.look_up("d", prompt=50, base="a", shared=HEAD)
    assert reason(story, "d").kind == "first"


def test_report_17_two_policies_in_one_place_are_told_apart_by_policy() -> None:
    story = observed(prompt_cache_size=1)
    for number in range(4):
        name = ("returns", "warranty")[number % 2]
        base = f"k{number - 2}" if number > 1 else None
        story.sent(
            f"k{number}", entry=number + 1, system=name, policy=name, base=base, shared=95 if base is not None else 0
        )
        if number:
            story.evict(number, f"k{number}", limit=1)
    rows = {row.policy: row for row in policy_rows(story.state)}
    assert (rows["returns"].evicted, rows["warranty"].evicted) == (2, 1)
    assert [(row.reuse_session, row.last_hit_ns) for row in rows.values()] == [(0.0, None), (0.0, None)]
    assert [reason(story, f"k{number}").evicted_by for number in (2, 3)] == [2, 3]


def test_report_18_several_at_once_all_miss_and_the_rate_is_weighted_by_tokens() -> None:
    story = observed()
    for number in range(4):
        story.compose(f"k{number}")
        story.look_up(f"k{number}", prompt=1015, cached=7, base="k0" if number else None, shared=1014 if number else 0)
    kinds = [reason(story, f"k{number}").kind for number in range(4)]
    assert kinds == ["first", "in_flight", "in_flight", "in_flight"]
    assert "send one first, then the others" in reason(story, "k1").evidence[1]
    for number in range(4):
        story.store(number + 1, f"k{number}", 1020)
        story.answer(f"k{number}", prompt=1015, cached=7)
    story.sent("later", entry=9, prompt=1015, cached=1014, base="k3", shared=1015)
    assert reason(story, "later").kind == "hit"
    assert story.state.tally.all.ratio == (4 * 7 + 1014) / (5 * 1015)


# --- B: eviction limits and memory -----------------------------------------------------------------------------------


def rising(story: Story, count: int, step: int) -> None:
    for number in range(count):
        story.sent(f"k{number}", entry=number + 1, system=f"policy {number}")
        story.tell(
            ev.MemorySampled(
                at_ns=story.tick(), origin="memory", pid=10, source="footprint", bytes=1000 * MB + number * step
            )
        )
        story.end(f"k{number}")


def test_report_21_unbounded_growth_is_a_trend_with_its_figure_and_survives_in_the_file() -> None:
    story = observed()
    rising(story, 10, 40 * MB)
    assert warned(story)["trend"].startswith("memory grows by 40 MB a request; no byte limit is set")
    assert warned(Story(fold(story.events))) == warned(story)
    flat = observed()
    rising(flat, 10, 0)
    assert "trend" not in warned(flat)


def test_report_23_an_eviction_is_a_mark_not_a_promise() -> None:
    story = observed(prompt_cache_size=2)
    rising(story, 2, 0)
    story.compose("c", system="other")
    story.store(3, "c", 100)
    story.evict(1, "c")
    story.tell(ev.MemorySampled(at_ns=story.tick(), origin="memory", pid=10, source="footprint", bytes=1000 * MB))
    view = memory_view(story.state)
    assert [mark.kind for mark in view.marks] == ["eviction"]
    assert view.now == 1000 * MB
    assert not any("freed" in row.text for row in story.state.log.rows)


@pytest.mark.parametrize("text", ["8GiB", "8K", "512MB", "1.5gb", "300000"])
def test_report_25_sizes_as_people_write_them_reach_the_server_as_it_reads_them(text: str) -> None:
    assert server_size(parse_size(text)).isdigit()


@pytest.mark.parametrize("text", ["-1", "abc", "8 apples", ""])
def test_report_25_what_is_no_size_is_refused_before_the_start(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


def test_report_26_what_was_warm_before_a_restart_can_be_warmed_again() -> None:
    story = observed(pid=10)
    for number, name in enumerate(("returns", "warranty", "shipping"), 1):
        story.sent(name, entry=number, system=name, policy=name)
    story.server(pid=11)
    assert [draft.policy for draft in warming_drafts(story.state)] == ["returns", "warranty", "shipping"]
    assert {draft.max_tokens for draft in warming_drafts(story.state)} == {1}
    story.compose("w", system="returns", policy="returns", purpose="warm", warmup=True)
    story.look_up("w", prompt=100)
    assert reason(story, "w").kind == "restarted"
    story.store(1, "w", 101)
    assert to_warm(story.state) == ("warranty", "shipping")


def test_report_28_counters_of_the_log_are_those_before_a_request() -> None:
    story = Story()
    story.server(observed=False)
    assert cache_view(story.state).counted_text == ""
    story.tell(ev.CacheCounted(at_ns=story.tick(), origin="log", count=0, gigabytes=0.0, by_type={}))
    assert cache_view(story.state).counted_text.startswith("log, before the last request: 0 sequences")


# --- what decides where several things are true ----------------------------------------------------------------------


def test_a_cancelled_twin_does_not_hide_that_the_stored_one_was_evicted() -> None:
    story = observed(prompt_cache_size=1)
    story.sent("a", entry=1)
    story.sent("b", entry=2, system="other", policy="other")
    story.evict(1, "b", limit=1)
    story.compose("c")
    story.look_up("c", prompt=100, base="a", shared=100)
    story.end("c", "cancelled")
    story.compose("d")
    story.look_up("d", prompt=100, base="c", shared=100)
    assert (reason(story, "d").kind, reason(story, "d").from_request) == ("evicted", 1)


def test_a_cancelled_one_alone_is_the_reason() -> None:
    story = observed()
    story.compose("a")
    story.look_up("a", prompt=100)
    story.end("a", "cancelled")
    story.compose("b")
    story.look_up("b", prompt=100, base="a", shared=100)
    assert reason(story, "b").kind == "cancelled"


def test_a_restart_counts_more_than_a_text_that_begins_alike() -> None:
    story = observed(pid=10)
    story.sent("a", entry=1, system="preamble one")
    story.server(pid=11)
    story.sent("b", entry=1, prompt=1000, system="preamble two", policy="two")
    story.sent("c", entry=2, prompt=1000, system="preamble one", cached=200, base="b", shared=200)
    assert (reason(story, "c").kind, reason(story, "c").from_request) == ("restarted", 1)


def test_changed_text_counts_more_than_the_restart() -> None:
    story = observed(pid=10)
    story.state.policies["returns"] = "policy"
    story.sent("a", entry=1, system="monday policy")
    story.server(pid=11)
    story.sent("b", entry=1, system="friday policy")
    assert reason(story, "b").kind == "diverged"


def test_another_model_with_other_tokens_is_seen_by_the_text() -> None:
    story = observed()
    story.sent("a", entry=1)
    story.sent("b", entry=2, base="a", shared=2, model="n")
    assert reason(story, "b").kind == "model_changed"


def test_a_sequential_request_leaves_no_checkpoint_for_a_later_one() -> None:
    story = observed(trimmable=False)
    story.sent("a", entry=1, path="sequential")
    story.sent("b", entry=2, base="a", shared=95)
    assert reason(story, "b").kind == "sequential"
    assert reason(story, "b").evidence[1].startswith("#1 was served one at a time")


def test_a_byte_limit_of_nought_stores_nothing() -> None:
    story = observed(prompt_cache_bytes=0)
    story.compose("a")
    story.look_up("a", prompt=100)
    assert reason(story, "a").detail == "the cache's byte limit is 0: nothing is stored"


def test_a_twin_that_the_server_never_looked_up_left_nothing_and_one_that_waits_is_none() -> None:
    story = observed()
    story.compose("a")
    story.compose("b")
    story.look_up("b", prompt=100)
    assert reason(story, "b").kind == "first"
    story.server(pid=12)
    story.compose("c", system="other")
    story.end("c", "failed")
    story.compose("d", system="other")
    story.look_up("d", prompt=100)
    assert (reason(story, "d").kind, reason(story, "d").from_request) == ("cancelled", 3)


def test_a_client_alone_sees_another_model() -> None:
    story = Story()
    story.server(observed=False)
    story.compose("a", params={"model": "one"})
    story.answer("a", prompt=100, cached=0)
    story.compose("b", params={"model": "two"})
    story.answer("b", prompt=100, cached=0)
    assert (reason(story, "b").kind, reason(story, "b").inferred) == ("model_changed", True)


def test_an_edge_of_a_segment_is_named_as_such() -> None:
    story = observed()
    story.sent("a", entry=1, prompt=100)
    story.compose("c", "other")
    story.look_up("c", prompt=120, cached=92, base="a", shared=96, entry=1)
    assert any(line.startswith("4 more shared tokens were read again") for line in reason(story, "c").evidence)
