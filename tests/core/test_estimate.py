"""Tokens of texts that were not sent yet."""

import pytest

from mlxcache_tui.core.codec import text_id_of
from mlxcache_tui.core.estimate import difference, estimate, rates, scripts
from mlxcache_tui.core.events import RequestComposed, TextKept
from support.story import Story

ENGLISH = "An unopened accessory may be returned within thirty days. "
JAPANESE = "未開封の付属品は三十日以内に返品できます。"


def told(*prompts: tuple[str, int]) -> Story:
    """A session in which these texts were sent, of so many tokens each."""
    story = Story()
    story.server()
    for number, (text, tokens) in enumerate(prompts):
        story.sent(f"r{number}", entry=number + 1, prompt=tokens + 7, system=text)
    return story


def test_dashes_and_accents_are_plain_letters_and_alphabets_are_not() -> None:
    assert scripts("naïve — “yes” …") == (15, 0)
    assert scripts("返品 ok") == (3, 2)
    assert scripts("да") == (0, 2)


def test_before_anything_was_sent_the_usual_rates_hold() -> None:
    assert rates(Story().state) == pytest.approx((0.25, 1.0))
    assert estimate(Story().state, "word" * 100) == 100


def test_a_prompt_in_one_script_says_nothing_of_another() -> None:
    text = JAPANESE * 240
    state = told((text, round(len(text) * 1.58))).state
    assert estimate(state, ENGLISH * 400) == pytest.approx(len(ENGLISH) * 100, rel=0.03)
    assert estimate(state, text) == pytest.approx(len(text) * 1.58, rel=0.03)


def test_prompts_in_two_scripts_give_both_rates() -> None:
    english, japanese = ENGLISH * 200, JAPANESE * 200
    mixed = english[:3000] + japanese[:3000]
    state = told((mixed, round(3000 / 4.4 + 3000 * 0.7)), (english, round(len(english) / 4.4))).state
    assert rates(state) == pytest.approx((1 / 4.4, 0.7), rel=0.03)


def test_what_two_texts_have_in_common_counts_for_nothing() -> None:
    state = told((ENGLISH * 100, 1500)).state
    assert difference(state, [JAPANESE * 100, "abcd" * 10], [JAPANESE * 100, "abcd" * 10]) == 0
    assert difference(state, [ENGLISH * 3], [ENGLISH * 2]) == round(len(ENGLISH) * rates(state)[0])


def test_the_texts_of_long_conversations_are_looked_at_once() -> None:
    story = Story()
    story.server()
    for number in range(16):
        texts = [f"{JAPANESE}{number} {turn}" for turn in range(8)]
        for text in texts:
            story.tell(TextKept(at_ns=story.tick(), origin="observer", text_id=text_id_of(text), text=text))
        messages = tuple(("user", text_id_of(text)) for text in texts)
        path = "/v1/chat/completions"
        story.tell(
            RequestComposed(
                at_ns=story.tick(), origin="observer", key=f"{number}", purpose="send", path=path, messages=messages
            )
        )
        story.look_up(f"{number}", prompt=500)
    rates(story.state)
    looked = scripts.cache_info().misses
    rates(story.state)
    assert scripts.cache_info().misses == looked
