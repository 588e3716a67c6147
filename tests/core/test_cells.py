"""Widths are those that the screen's library draws with, or columns tear."""

import pytest
import rich.cells
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.cells import cell_width, graphemes

TRICKY = st.text(
    st.one_of(st.sampled_from("aé 漢か👍🏽👨👩👧🇩🇪❤☺1#█\u200d\ufe0f\u0301\u0903\u200b\t\x1b"), st.characters()),
    max_size=40,
)


def test_each_code_point_is_as_wide_as_drawn() -> None:
    different = [
        hex(code) for code in range(0x110000) if cell_width(chr(code)) != rich.cells.get_character_cell_size(chr(code))
    ]
    assert different == []


def test_each_code_point_widens_as_drawn() -> None:
    different = [
        hex(code)
        for code in range(0x110000)
        if cell_width(f"{chr(code)}\ufe0f") != rich.cells.cell_len(f"{chr(code)}\ufe0f")
    ]
    assert different == []


@given(TRICKY)
def test_a_text_is_as_wide_as_drawn(text: str) -> None:
    assert cell_width(text) == rich.cells.cell_len(text)


@given(TRICKY)
def test_graphemes_are_the_text_and_their_widths_add_up(text: str) -> None:
    parts = list(graphemes(text))
    assert "".join(part for part, _ in parts) == text
    assert sum(width for _, width in parts) == cell_width(text)
    seen, used = "", 0
    for part, width in parts:
        seen, used = seen + part, used + width
        assert cell_width(seen) == used


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("policy", 6),
        ("返品", 4),
        ("e\u0301", 1),
        ("👨\u200d👩\u200d👧", 2),
        ("👍🏽", 2),
        ("❤", 1),
        ("❤\ufe0f", 2),
        ("─█⣿…", 4),
    ],
)
def test_known_widths(text: str, width: int) -> None:
    assert cell_width(text) == width
    assert len(list(graphemes(text))) <= len(text)
