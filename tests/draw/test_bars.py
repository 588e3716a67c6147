"""Bars."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.draw.bars import bar


@pytest.mark.parametrize(
    ("fraction", "drawn"),
    [
        (0.0, "──────────"),
        (2 / 3, "██████▋───"),
        (0.5, "█████─────"),
        (1.0, "██████████"),
        (1.4, "██████████"),
        (-1.0, "──────────"),
        (None, "──────────"),
        (0.0001, "▏─────────"),
        (0.9999, "█████████▉"),
    ],
)
def test_a_bar_is_exact_to_an_eighth_and_honest_at_its_ends(fraction: float | None, drawn: str) -> None:
    assert "".join(bar(fraction, 10)) == drawn


@given(st.floats(-1, 2) | st.none(), st.integers(-2, 40))
def test_a_bar_has_its_width(fraction: float | None, width: int) -> None:
    filled, rest = bar(fraction, width)
    assert len(filled) + len(rest) == max(0, width)
