"""Order statistics: known values, and the bounds that any of them keeps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core import stats

numbers = st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([5.0], 95, 5.0),
        ([1.0, 2.0], 50, 1.5),
        ([1.0, 2.0, 3.0, 4.0], 50, 2.5),
        ([4.0, 1.0, 3.0, 2.0], 95, 3.85),
        ([1.0, 2.0, 3.0], 0, 1.0),
        ([1.0, 2.0, 3.0], 100, 3.0),
    ],
)
def test_percentile_interpolates(values: list[float], percent: float, expected: float) -> None:
    assert stats.percentile(values, percent) == pytest.approx(expected)


def test_nothing_known_is_unknown() -> None:
    assert stats.percentile([], 50) is None
    assert stats.median([]) is None
    assert stats.spread([None, None]) is None
    assert stats.known([None, 1.0, None, 0.0]) == [1.0, 0.0]


def test_spread_leaves_the_unknown_out() -> None:
    assert stats.spread([3.0, None, 1.0, 2.0]) == stats.Spread(n=3, median=2.0, low=1.0, high=3.0)


@given(numbers, st.floats(min_value=0, max_value=100))
def test_a_percentile_lies_within_the_values(values: list[float], percent: float) -> None:
    found = stats.percentile(values, percent)
    assert found is not None
    assert min(values) - 1e-6 <= found <= max(values) + 1e-6
