"""Quantiles against the printed tables (Abramowitz and Stegun, table 26.10), and what any distribution keeps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.student import t_cdf, t_quantile

TABLE = {
    1: (3.078, 6.314, 12.706, 63.657),
    2: (1.886, 2.920, 4.303, 9.925),
    3: (1.638, 2.353, 3.182, 5.841),
    4: (1.533, 2.132, 2.776, 4.604),
    5: (1.476, 2.015, 2.571, 4.032),
    8: (1.397, 1.860, 2.306, 3.355),
    10: (1.372, 1.812, 2.228, 3.169),
    20: (1.325, 1.725, 2.086, 2.845),
    30: (1.310, 1.697, 2.042, 2.750),
    120: (1.289, 1.658, 1.980, 2.617),
    1_000_000: (1.282, 1.645, 1.960, 2.576),
}


@pytest.mark.parametrize(("df", "row"), TABLE.items())
def test_the_tables(df: int, row: tuple[float, ...]) -> None:
    for probability, wanted in zip((0.90, 0.95, 0.975, 0.995), row, strict=True):
        assert t_quantile(probability, df) == pytest.approx(wanted, abs=6e-4)


def test_one_degree_is_cauchys() -> None:
    assert t_cdf(1.0, 1) == pytest.approx(0.75)
    assert t_cdf(-1.0, 1) == pytest.approx(0.25)
    assert t_cdf(0.0, 1) == pytest.approx(0.5)


@given(st.floats(0.001, 0.999), st.floats(0.5, 500))
def test_the_quantile_is_the_inverse(probability: float, df: float) -> None:
    assert t_cdf(t_quantile(probability, df), df) == pytest.approx(probability, abs=1e-6)


@given(st.floats(0.51, 0.999), st.floats(0.5, 500))
def test_fewer_degrees_are_wider_and_the_sides_are_alike(probability: float, df: float) -> None:
    assert t_quantile(probability, df) >= t_quantile(probability, df + 1) - 1e-9
    assert t_quantile(1 - probability, df) == pytest.approx(-t_quantile(probability, df))


@pytest.mark.parametrize(("probability", "df"), [(0, 5), (1, 5), (0.5, 0), (0.5, float("nan"))])
def test_what_has_no_quantile(probability: float, df: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(probability, df)
