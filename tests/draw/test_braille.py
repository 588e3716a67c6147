"""Area graphs."""

from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.draw.braille import area, downsample, group_size, scale

VALUES = st.lists(st.none() | st.integers(0, 10**11), max_size=80)


def test_the_area_is_filled_from_below_two_samples_a_cell() -> None:
    assert area([0, 2, 4, 8], 2, 2, 0, 8) == [" ⢸", "⣠⣿"]


def test_a_gap_is_empty_and_the_lowest_value_still_shows() -> None:
    assert area([0, 0, None, None, 8, None], 4, 1, 0, 8) == ["⣀ ⡇ "]


def test_values_beyond_the_edges_stay_inside() -> None:
    assert area([-5, 50], 1, 1, 0, 8) == ["⣸"]


def test_a_flat_scale_is_drawn_full() -> None:
    assert area([3, 3], 1, 1, 3, 3) == ["⣿"]


@given(VALUES, st.integers(1, 20), st.integers(1, 8))
def test_a_graph_has_its_size(values: list[int | None], width: int, height: int) -> None:
    rows = area(values, width, height, 0, 100)
    assert [len(row) for row in rows] == [width] * height


@given(VALUES, st.integers(2, 40), st.integers(0, 500))
def test_samples_are_grouped_until_they_fit_and_no_peak_is_lost(
    values: list[int | None], most: int, first: int
) -> None:
    groups = downsample(values, most, first)
    assert len(groups) <= most
    known = [value for value in values if value is not None]
    assert max((value for value in groups if value is not None), default=None) == max(known, default=None)
    if len(values) <= most:
        assert groups == values


def test_columns_that_are_complete_do_not_change_while_samples_come_and_go() -> None:
    before = downsample(list(range(100, 120)), 11, 100)
    after = downsample(list(range(102, 122)), 11, 102)
    assert group_size(20, 11, 100) == 2
    assert before[1:] == after[:-1]


@given(st.integers(0, 10**11), st.integers(0, 10**11))
def test_the_scale_holds_all_values(one: int, other: int) -> None:
    low, high = sorted((one, other))
    bottom, top = scale(low, high)
    assert bottom <= low
    assert top >= high
    assert bottom < top


def test_the_scale_is_round_and_cut_off_only_where_little_moves() -> None:
    assert scale(100_000_000, 3_100_000_000) == (0, 4_000_000_000)
    assert scale(3_000_000_000, 3_100_000_000) == (3_000_000_000, 3_100_000_000)
