"""Where two texts and two prompts part."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.difference import common_prefix, common_tokens, first_difference
from support.story import Story


@pytest.mark.parametrize(
    ("a", "b", "shared"), [("", "", 0), ("abc", "abd", 2), ("abc", "abc", 3), ("x", "y", 0), ("日本語", "日本人", 2)]
)
def test_common_prefix(a: str, b: str, shared: int) -> None:
    assert common_prefix(a, b) == shared


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_common_tokens_are_those_up_to_the_first_that_differs(a: list[int], b: list[int]) -> None:
    count = common_tokens(array("q", a), array("q", b))
    assert a[:count] == b[:count]
    assert count == min(len(a), len(b)) or a[count] != b[count]


def test_a_difference_shows_both_texts_on_one_line() -> None:
    story = Story()
    story.compose("a", system="x" * 100 + "one\nline" + "y" * 100)
    story.compose("b", system="x" * 100 + "two\nlines" + "y" * 100)
    found = first_difference(story.state, story.state.requests["b"], story.state.requests["a"])
    assert found is not None
    assert (found.message, found.role, found.char) == (0, "system", 100)
    assert found.ours.startswith("…" + "x" * 20 + "▸two lines")
    assert found.ours.endswith("y…")


def test_one_that_goes_on_as_the_other_ends_does_not_differ() -> None:
    story = Story()
    story.compose("a", "question")
    story.compose("b", "question")
    assert first_difference(story.state, story.state.requests["b"], story.state.requests["a"]) is None
