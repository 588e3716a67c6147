"""Prompts put together again from token runs, and where two of them part."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.difference import prompt_tokens
from mlxcache_tui.core.events import LookedUp, TokenRun, TokensNamed
from mlxcache_tui.core.lens import PromptTexts, lens_view, sent_text
from mlxcache_tui.core.views import LensView
from support.prompts import PIECE, ask, tokens_of
from support.story import Story


def observed() -> Story:
    story = Story()
    story.server()
    return story


def view(story: Story, key: str, against: str | None = None) -> LensView:
    found = lens_view(story.state, key, against, PromptTexts())
    assert found is not None
    return found


def whole(found: LensView) -> str:
    return "".join(part.text for part in found.parts)


def test_the_prompt_is_told_whole_with_its_reused_part_and_its_first_difference() -> None:
    story = observed()
    ask(story, "a", "<s>the policy<u>opened")
    ask(story, "b", "<s>the policy<u>damaged", cached=8, base="a")
    found = view(story, "b")
    assert found.exact
    assert whole(found) == "<s>the policy<u>damaged"
    assert [(part.text, part.reused, part.same) for part in found.parts] == [
        ("<s>the policy<u>", True, True),
        ("damaged", False, False),
    ]
    assert [(part.text, part.same) for part in found.other_parts] == [("<s>the policy<u>", True), ("opened", False)]
    assert (found.shared, found.cached, found.tokens) == (8, 8, 12)
    assert (found.here, found.there) == ("“damaged”", "“opened”")


def test_reuse_may_end_before_the_texts_part_and_behind_it() -> None:
    story = observed()
    ask(story, "a", "aabbccdd")
    ask(story, "b", "aabbccxx", cached=1, base="a")
    assert [(part.text, part.reused, part.same) for part in view(story, "b").parts] == [
        ("aa", True, True),
        ("bbcc", False, True),
        ("xx", False, False),
    ]
    ask(story, "c", "aazzccxx", cached=3, base="b")
    assert [(part.text, part.reused, part.same) for part in view(story, "c", "b").parts] == [
        ("aa", True, True),
        ("zzcc", True, False),
        ("xx", False, False),
    ]


def test_a_token_that_ends_inside_a_character_cuts_before_it() -> None:
    story = observed()
    ask(story, "a", "返品")
    ask(story, "b", "返物", cached=1, base="a")
    found = view(story, "b")
    assert [part.text for part in found.parts] == ["", "返物"]
    assert (found.here, found.there) == ("“返物”", "“返品”")
    assert found.shared == 1


def test_equal_prompts_have_no_difference_and_one_that_goes_on_says_so() -> None:
    story = observed()
    ask(story, "a", "aabb")
    ask(story, "b", "aabb", cached=1, base="a")
    same = view(story, "b")
    assert (same.here, same.there, same.shared) == ("", "", 2)
    ask(story, "c", "aabbcc", cached=2, base="b")
    longer = view(story, "c")
    assert (longer.here, longer.there) == ("“cc”", "the end")
    assert view(story, "b", "c").here == "the end"


def test_another_request_can_be_chosen_and_what_cannot_be_compared_is_not_offered() -> None:
    story = observed()
    ask(story, "a", "aabb")
    ask(story, "b", "aaxx", base="a")
    story.compose("waiting")
    ask(story, "c", "aabbcc", base="a", params={"seed": 3})
    found = view(story, "c")
    assert found.others == ("a", "b")
    assert found.other_key == "a"
    assert (view(story, "c", "b").other_number, view(story, "c", "b").shared) == (2, 1)
    assert view(story, "c").parameters == ("seed: 3 here, none in #1",)
    assert view(story, "c", "waiting").other_key == "a"


def test_the_reason_decides_what_it_is_held_against() -> None:
    story = observed()
    rules = "a policy that is longer than any head of a template" * 2
    ask(story, "a", f"<s>{rules}", system="policy")
    ask(story, "b", f"<s>other {rules}", system="other", base="a")
    ask(story, "c", f"<s>{rules}?", system="policy", base="a", cached=40)
    assert story.state.requests["c"].reason is not None
    assert view(story, "c").other_number == story.state.requests["c"].reason.from_request == 1


def test_the_first_of_all_stands_alone() -> None:
    story = observed()
    ask(story, "a", "aabb")
    found = view(story, "a")
    assert (found.other_key, found.shared, found.other_parts) == (None, None, ())
    assert [(part.text, part.same) for part in found.parts] == [("aabb", None)]


def test_without_the_observer_the_messages_are_compared_and_said_to_be_approximate() -> None:
    story = Story()
    story.server(observed=False)
    story.compose("a", "opened")
    story.answer("a", prompt=20, cached=0)
    story.compose("b", "damaged")
    story.answer("b", prompt=20, cached=15)
    found = view(story, "b")
    assert not found.exact
    assert "approximate" in found.note
    assert [(part.text, part.reused, part.same) for part in found.parts] == [
        ("[system]\npolicy\n[user]\n", None, True),
        ("damaged", None, False),
    ]
    assert (found.here, found.there, found.shared) == ("“damaged”", "“opened”", None)
    assert whole(found) == sent_text(story.state, story.state.requests["b"])


def test_what_is_missing_leads_to_the_messages() -> None:
    story = observed()
    ask(story, "a", "aabb", named=False)
    assert not view(story, "a").exact
    assert "what its tokens say" in view(story, "a").note
    story.compose("b")
    assert "has not looked it up" in view(story, "b").note
    story.look_up("b", prompt=100, base="gone", shared=90)
    assert prompt_tokens(story.state.requests["b"]) is None
    assert lens_view(story.state, "nobody", None, PromptTexts()) is None


def test_a_prompt_is_known_without_the_requests_that_it_was_told_against() -> None:
    story = observed()
    ask(story, "a", "aabbccdd")
    ask(story, "b", "aabbccxx", base="a")
    ask(story, "c", "aabbxx", base="b")
    del story.state.requests["a"], story.state.requests["b"]
    request = story.state.requests["c"]
    assert prompt_tokens(request) == array("q", tokens_of("aabbxx"))
    assert request.lookup is not None
    assert request.lookup.tokens.start is not None
    assert request.lookup.tokens.start.start is None  # what stood between the two is not needed


def test_ids_of_any_size_are_kept() -> None:
    story = observed()
    for key, token in (("a", 1 << 40), ("b", 1 << 70)):
        story.compose(key)
        run = TokenRun(count=2, new=(1, token))
        look = LookedUp(
            at_ns=story.tick(), origin="observer", key=key, tokens=run, cached_tokens=0, how="none", path="batched"
        )
        story.tell(look)
    assert prompt_tokens(story.state.requests["a"]) == array("q", [1, 1 << 40])
    assert prompt_tokens(story.state.requests["b"]) is None


def test_control_characters_are_shown_as_marks() -> None:
    story = observed()
    ask(story, "a", "a\x1b[2Jb\x07\n")
    assert whole(view(story, "a")) == "ab␇\n"


def test_bad_hex_is_passed_over() -> None:
    story = observed()
    story.tell(TokensNamed(at_ns=story.tick(), origin="observer", pairs=((1, "zz"), (2, "616"), (3, "61")), model="m"))
    assert story.state.vocabularies == {"m": {3: b"a"}}


def test_texts_are_kept_and_the_oldest_dropped() -> None:
    story = observed()
    texts = PromptTexts()
    for number in range(20):
        ask(story, str(number), f"text {number}", base=str(number - 1) if number else None)
        assert texts.of(story.state, str(number)) is not None
    kept = texts.of(story.state, "19")
    assert kept is texts.of(story.state, "19")
    assert kept is not None
    assert kept.text == "text 19"
    assert texts.of(story.state, "nobody") is None


@given(st.lists(st.text(max_size=12), min_size=1, max_size=6), st.integers(0, 40))
def test_any_prompt_comes_back_whole_and_characters_and_tokens_agree(prompts: list[str], cut: int) -> None:
    story = observed()
    texts = PromptTexts()
    for number, prompt in enumerate(prompts):
        ask(story, str(number), prompt + "x", base=str(number - 1) if number else None)
        found = texts.of(story.state, str(number))
        assert found is not None
        assert found.text == prompt + "x"
        for tokens in range(len(found.tokens) + 1):
            characters = found.characters(tokens)
            assert found.whole_tokens(characters) <= tokens
            assert len(found.text[:characters].encode()) <= tokens * PIECE
        assert found.characters(found.whole_tokens(min(cut, len(found.text)))) <= cut
