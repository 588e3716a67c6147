"""Each reason, and beside it the near miss that must not be it."""

from mlxcache_tui.core.events import EntrySwallowed
from mlxcache_tui.core.present import request_row
from mlxcache_tui.core.state import Reason
from support.prompts import ask
from support.story import HEAD, Story, reason


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


def test_one_token_short_of_all_is_not_all_in_the_evidence_either() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1, prompt=332)
    story.sent("b", entry=2, prompt=332, cached=331, base="a", shared=332, how="trimmed")
    assert "331 of 332 prompt tokens (99 %) came from #1, 1 read anew" in reason(story, "b").evidence


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


# --- content is ruled out before what became of the entries -----------------------------------------------------------


def changed_in_front(shared: int, *, trimmable: bool = True, evicted: bool = False) -> Reason:
    """The same policy behind a case number, of whose prompt the first tokens are shared; none of them were found."""
    story = Story()
    story.server(prompt_cache_size=1, trimmable=trimmable)
    story.sent("a", entry=1, prompt=1559, system="Case 17, today. The policy")
    if evicted:
        story.sent("b", entry=2, prompt=700, system="Case 98, today. Another", policy="other", base="a", shared=20)
        story.evict(1, "b", limit=1)
    story.sent("c", entry=3, prompt=1559, system="Case 18, today. The policy", base="a", shared=shared)
    return reason(story, "c")


def test_a_difference_in_front_is_the_reason_though_the_entry_could_not_be_cut_back_or_is_gone() -> None:
    for found in (changed_in_front(20, trimmable=False), changed_in_front(20, evicted=True)):
        assert (found.kind, found.from_request, found.shared_tokens) == ("diverged", 1, 20)
        assert found.detail == "differs from #1 at message 0, char 6"
        assert "here: Case 1▸8, today. The policy" in found.evidence
        assert "#1:   Case 1▸7, today. The policy" in found.evidence
        assert found.evicted_by is None


def test_the_evidence_says_what_became_of_the_little_that_is_shared() -> None:
    assert any(
        line.startswith("20 of the shared tokens were not found either: its entry") and "thrown out by #2" in line
        for line in changed_in_front(20, evicted=True).evidence
    )
    assert not any("not found either" in line for line in changed_in_front(12, evicted=True).evidence)


def test_where_most_is_shared_the_entry_is_the_reason() -> None:
    assert changed_in_front(1474, trimmable=False).kind == "not_trimmable"
    found = changed_in_front(1474, evicted=True)
    assert (found.kind, found.evicted_by, found.rule) == ("evicted", 2, "count")


def test_the_first_message_counts_also_where_it_is_the_persons() -> None:
    story = Story()
    story.server()
    for key, user, more in (("a", "Read this. One", {}), ("b", "Read this. Two", {"cached": 20, "base": "a"})):
        story.compose(key, user, system=None, policy=None)
        story.look_up(key, prompt=400, shared=20 if more else 0, **more)  # type: ignore[arg-type]
    assert reason(story, "b").kind == "diverged"


# --- a hit that could have been more ----------------------------------------------------------------------------------


def four(cached: int = 186, entry: int | None = None) -> Story:
    """Long, short, short, and the long one again, of which the third threw the entry out."""
    story = Story()
    story.server(prompt_cache_size=2)
    story.sent("a", entry=1, prompt=339, system="long", policy="p")
    story.sent("b", entry=2, prompt=190, system="long", policy="p", cached=180, base="a", shared=186)
    story.sent("c", entry=3, prompt=190, system="long", policy="p", cached=188, base="b", shared=189)
    story.evict(1, "c", limit=2)
    story.compose("d", system="long", policy="p")
    story.look_up("d", prompt=339, cached=cached, base="a", shared=339, entry=entry)
    return story


def test_a_hit_names_what_more_there_was_and_who_threw_it_out() -> None:
    story = four()
    found = reason(story, "d")
    assert (found.kind, found.shared_tokens, found.evicted_by, found.rule) == ("hit", 186, 3, "count")
    assert found.detail == "hit: 186 tokens of #1 · 152 more lost: #1 evicted by #3 (count 2)"
    assert request_row(story.state, story.state.requests["d"]).why == found.detail
    (line,) = (line for line in found.evidence if line.startswith("152 more"))
    assert line.startswith("152 more were shared with #1, yet read anew: its entry (342 tokens, assistant, 1 kB)")
    assert "thrown out by #3, 5 ms before: count limit 2" in line


def test_a_hit_names_the_entry_it_came_from_and_the_lost_one_apart() -> None:
    found = reason(four(entry=2), "d")
    assert (found.from_request, found.evicted_by) == (2, 3)
    assert found.detail == "hit: 186 tokens of #2 · 152 more lost: #1 evicted by #3 (count 2)"


def test_a_small_loss_is_no_more_than_evidence_and_has_its_true_cause() -> None:
    found = reason(four(cached=327), "d")
    assert found.detail == "hit: 327 tokens of #1"
    assert found.evicted_by is None
    assert any(line.startswith("11 more were shared with #1, yet read anew") for line in found.evidence)
    assert not any("segment" in line for line in found.evidence)


def test_a_hit_whose_rest_is_still_computed_or_was_cut_short() -> None:
    for outcome, cause in ((None, "#2 was still in flight"), ("cancelled", "#2 was cancelled before it was stored")):
        story = Story()
        story.server()
        story.sent("a", entry=1, prompt=190)
        story.compose("b")
        story.look_up("b", prompt=339, cached=186, base="a", shared=186)
        if outcome:
            story.end("b", "cancelled")
        story.compose("c")
        story.look_up("c", prompt=339, cached=186, base="b", shared=339)
        assert reason(story, "c").detail == f"hit: 186 tokens of #2 · 152 more lost: {cause}"


def test_a_hit_on_a_checkpoint_whose_next_one_was_thrown_out_or_cannot_be_cut_back() -> None:
    for evicted in (True, False):
        story = Story()
        story.server(trimmable=False)
        story.compose("a")
        story.look_up("a", prompt=300)
        for entry, kind, tokens in ((1, "system", 200), (2, "user", 290), (3, "assistant", 310)):
            story.store(entry, "a", tokens, kind=kind)  # type: ignore[arg-type]
        story.answer("a", prompt=300, cached=0)
        if evicted:
            story.sent("b", entry=4, system="other", policy="other")
            story.evict(2, "b", limit=3)
        story.compose("c")
        shared = 300 if evicted else 260
        story.look_up("c", prompt=300, cached=200, base="a", shared=shared, entry=1, how="extended")
        lost = "99 more lost: #1 evicted by #2 (count 3)" if evicted else "60 more lost: #1's entry cannot be cut back"
        assert reason(story, "c").detail == f"hit: 200 tokens of #1 · {lost}"


# --- the same text behind other text ----------------------------------------------------------------------------------

TEXT = (
    "Opened accessories can be returned only if they arrived damaged. A receipt is needed for each of them. "
    "Whoever has none is asked for the number of the order. Refunds are made to the card that was paid with."
)


def test_a_text_that_is_no_known_policy_is_found_behind_other_text() -> None:
    story = Story()
    story.server()
    for key, system in (("a", TEXT), ("b", f"Monday morning it is. {TEXT}"), ("c", f"Zebra. {TEXT}")):
        story.compose(key, system=system, policy=None)
        story.look_up(key, prompt=106, cached=HEAD, base="a" if key != "a" else None, shared=HEAD if key != "a" else 0)
    assert reason(story, "a").kind == "first"
    for key, front in (("b", "▸Monday morning it is"), ("c", "▸Zebra")):
        found = reason(story, key)
        assert (found.kind, found.detail[-20:]) == ("diverged", "at message 0, char 0")
        assert any(line.startswith(f"here: {front}") for line in found.evidence)
        assert any("with other text in front: they are read again" in line for line in found.evidence)


def test_two_policies_with_one_sentence_in_common_are_both_first() -> None:
    story = Story()
    story.server()
    for key, rest in (("a", "A lamp is paid back."), ("b", "We ship on Monday.")):
        system = f"{rest} Always answer in the language of the person who asks, and be polite to everybody."
        story.compose(key, system=system, policy=None)
        story.look_up(key, prompt=60, cached=HEAD, base="a" if key == "b" else None, shared=HEAD if key == "b" else 0)
        assert reason(story, key).kind == "first"


def test_the_text_of_a_person_behind_a_clock_is_found_too() -> None:
    story = Story()
    story.server()
    document = " ".join(f"Rule {number} of this document says what to do then." for number in range(30))
    for key, clock in (("a", "10:31"), ("b", "10:32")):
        story.compose(key, f"It is {clock}. {document}", system="Be brief.", policy=None)
        story.look_up(key, prompt=400, cached=15, base="a" if key == "b" else None, shared=15 if key == "b" else 0)
    assert (reason(story, "b").kind, reason(story, "b").from_request) == ("diverged", 1)
    assert reason(story, "b").detail == "differs from #1 at message 1, char 10"


def test_what_is_shared_with_one_that_is_not_the_closest_is_counted() -> None:
    story = Story()
    story.server()
    ask(story, "a", f"<s>A. {TEXT}", system=f"A. {TEXT}")
    ask(story, "b", "<s>Zebra. Others", system="Zebra. Others", base="a")
    ask(story, "c", f"<s>Zebra. {TEXT}", system=f"Zebra. {TEXT}", base="b")
    found = reason(story, "c")
    assert (found.kind, found.from_request, found.shared_tokens) == ("diverged", 1, 1)


def test_a_text_whose_prompt_the_servers_side_forgot_is_still_known_by_its_tokens() -> None:
    story = Story()
    story.server(prompt_cache_size=1)
    ask(story, "a", f"<s>{TEXT}", system=TEXT)
    story.store(1, "a", 120)
    story.answer("a", prompt=104, cached=0)
    story.sent("b", entry=2, system="other", policy="other")
    story.evict(1, "b", limit=1)
    ask(story, "c", f"<s>{TEXT}", system=TEXT)
    assert (reason(story, "c").kind, reason(story, "c").evicted_by) == ("evicted", 2)
