"""Each reason, and beside it the near miss that must not be it."""

from mlxcache_tui.core.diagnose import common_prefix
from mlxcache_tui.core.events import EntrySwallowed
from mlxcache_tui.core.state import Reason
from support.story import HEAD, Story


def reason(story: Story, key: str) -> Reason:
    found = story.state.requests[key].reason
    assert found is not None
    return found


def test_the_first_request_is_first() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1)
    assert reason(story, "a").kind == "first"


def test_another_question_on_the_same_policy_is_a_hit_with_its_source() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1, prompt=131)
    story.sent("b", entry=2, prompt=122, cached=112, base="a", shared=112, how="trimmed")
    found = reason(story, "b")
    assert (found.kind, found.from_request, found.shared_tokens) == ("hit", 1, 112)
    assert found.detail == "hit: 112 tokens of #1"


def test_the_template_head_alone_is_no_hit() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1, prompt=963)
    story.sent("b", entry=2, prompt=963, system="other", policy="warranty", cached=HEAD, base="a", shared=HEAD)
    assert reason(story, "b").kind == "first"


def test_volatile_text_in_front_diverges_at_the_start() -> None:
    story = Story()
    story.server()
    story.state.policies["returns"] = "policy"
    story.sent("a", entry=1, prompt=2001, system="2026-11-29 policy")
    story.sent("b", entry=2, prompt=2001, system="2026-11-30 policy", cached=HEAD, base="a", shared=HEAD)
    found = reason(story, "b")
    assert (found.kind, found.from_request) == ("diverged", 1)
    assert found.detail == "differs from #1 at message 0, char 8"
    assert any("30 policy" in line for line in found.evidence)


def test_volatile_text_behind_the_policy_is_still_a_hit() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1, prompt=2001, system="policy 29")
    story.sent("b", entry=2, prompt=2001, system="policy 30", cached=1980, base="a", shared=1980)
    assert reason(story, "b").kind == "hit"


def test_documents_that_share_a_preamble_diverge_where_it_ends() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1, prompt=1000, system="preamble one")
    story.sent("b", entry=2, prompt=1000, system="preamble two", cached=200, base="a", shared=200)
    found = reason(story, "b")
    assert (found.kind, found.shared_tokens) == ("diverged", 200)


def test_a_long_question_behind_a_reused_policy_is_a_hit() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1, prompt=300)
    story.compose("b", user="a very long question")
    story.look_up("b", prompt=1300, cached=280, base="a", shared=280)
    assert reason(story, "b").kind == "hit"


def test_an_evicted_entry_names_who_threw_it_out_and_the_rule() -> None:
    story = Story()
    story.server(prompt_cache_size=2)
    story.sent("a", entry=1, system="A", policy="a")
    story.sent("b", entry=2, system="B", policy="b")
    story.compose("c", system="C", policy="c")
    story.look_up("c", prompt=100)
    story.store(3, "c", 103)
    story.evict(1, "c", limit=2)
    story.answer("c", prompt=100, cached=0)
    story.sent("d", entry=4, system="A", policy="a", base="a", shared=95)
    found = reason(story, "d")
    assert (found.kind, found.evicted_by, found.rule, found.from_request) == ("evicted", 3, "count", 1)
    assert found.detail == "evicted by #3 (count 2)"


def test_an_entry_swallowed_by_a_longer_one_is_not_evicted_until_that_is() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1)
    story.store(2, "a", 150)
    story.tell(EntrySwallowed(at_ns=story.tick(), origin="observer", entry=1, by=2, key="a"))
    story.sent("b", entry=3, base="a", shared=95)
    assert reason(story, "b").kind == "unknown"
    story.evict(2, "b", rule="bytes", limit=5_000)
    story.sent("c", entry=4, base="a", shared=95)
    assert (reason(story, "c").kind, reason(story, "c").rule) == ("evicted", "bytes")


def test_the_same_prefix_still_being_computed_is_in_flight() -> None:
    story = Story()
    story.server()
    story.compose("a")
    story.look_up("a", prompt=1000)
    story.compose("b")
    story.look_up("b", prompt=1000, cached=HEAD, base="a", shared=990)
    assert reason(story, "b").kind == "in_flight"


def test_a_cancelled_one_left_nothing() -> None:
    story = Story()
    story.server()
    story.compose("a")
    story.look_up("a", prompt=1000)
    story.end("a", "cancelled")
    story.compose("b")
    story.look_up("b", prompt=1000, base="a", shared=990)
    assert reason(story, "b").kind == "cancelled"


def test_a_restart_empties_the_cache() -> None:
    story = Story()
    story.server(pid=10)
    story.sent("a", entry=1)
    story.server(pid=11)
    story.sent("b", entry=1, prompt=100)
    assert (reason(story, "b").kind, reason(story, "b").from_request) == ("restarted", 1)


def test_another_model_has_another_cache() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1)
    story.sent("b", entry=2, base="a", shared=95, model="n")
    assert reason(story, "b").kind == "model_changed"


def test_the_sequential_path_and_entries_that_cannot_be_cut() -> None:
    story = Story()
    story.server(trimmable=False)
    story.sent("a", entry=1)
    story.sent("b", entry=2, base="a", shared=95, path="sequential")
    assert reason(story, "b").kind == "sequential"
    story.sent("c", entry=3, base="a", shared=95)
    assert reason(story, "c").kind == "not_trimmable"


def test_size_nought_is_disabled() -> None:
    story = Story()
    story.server(prompt_cache_size=0)
    story.compose("a")
    story.look_up("a", prompt=100)
    assert reason(story, "a").kind == "disabled"


def test_without_the_observer_a_hit_is_inferred_and_a_missing_field_says_so() -> None:
    story = Story()
    story.server(observed=False)
    story.compose("a")
    story.answer("a", prompt=131, cached=0)
    story.compose("b")
    story.answer("b", prompt=122, cached=112)
    story.compose("c")
    story.answer("c", prompt=122, cached=None)
    kinds = [(reason(story, key).kind, reason(story, key).inferred) for key in "abc"]
    assert kinds == [("first", True), ("hit", True), ("not_reported", False)]


def test_without_the_observer_a_miss_on_a_known_policy_claims_nothing() -> None:
    story = Story()
    story.server(observed=False)
    for key in "ab":
        story.compose(key)
        story.answer(key, prompt=131, cached=0)
    assert reason(story, "b").kind == "unknown"


def test_common_prefix() -> None:
    for a, b, shared in [("", "", 0), ("abc", "abd", 2), ("abc", "abc", 3), ("x", "y", 0), ("日本語", "日本人", 2)]:
        assert common_prefix(a, b) == shared


def test_an_entry_that_was_stored_anew_and_then_evicted_is_evicted() -> None:
    """Two requests at once on one policy store the same checkpoint twice; the first number is not stored any more."""
    story = Story()
    story.server()
    story.compose("a")
    story.look_up("a", prompt=100)
    story.store(1, "a", 90, kind="system")
    story.compose("b")
    story.look_up("b", prompt=100, base="a", shared=95)
    story.store(2, "b", 90, kind="system", replaced=1)
    story.compose("c", system="other", policy="warranty")
    story.look_up("c", prompt=100)
    story.evict(2, "c")
    story.end("a", "cancelled")
    request = story.compose("d")
    story.look_up("d", prompt=100, base="a", shared=95)
    assert request.reason is not None
    assert (request.reason.kind, request.reason.evicted_by) == ("evicted", 3)


def test_one_token_is_one_and_the_two_texts_stand_below_each_other() -> None:
    story = Story()
    story.server()
    for number in range(1, 11):
        story.sent(f"k{number}", entry=number, prompt=2001, system=f"policy {number}")
    story.sent("z", entry=11, prompt=2001, system="policy x", cached=1979, base="k10", shared=1980)
    evidence = reason(story, "z").evidence
    assert "1 more shared token was read again: the last token, or the edge of a segment" in evidence
    here, there = (next(line for line in evidence if line.startswith(name)) for name in ("here:", "#10:"))
    assert here.index("policy") == there.index("policy")
