"""Sizes, times and rates as a person reads and writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.units import (
    UNKNOWN,
    human_bytes,
    human_count,
    human_duration,
    human_percent,
    human_rate,
    parse_size,
    seconds,
    server_size,
    whole,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, UNKNOWN),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (75_264, "75.3 kB"),
        (999_950, "1 MB"),
        (328_000_000, "328 MB"),
        (1_250_000_000, "1.25 GB"),
        (2_260_000_000, "2.26 GB"),
        (12_000_000_000, "12 GB"),
        (3_100_000_000_000, "3.1 TB"),
    ],
)
def test_bytes(count: int | None, text: str) -> None:
    assert human_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, UNKNOWN),
        (0, "0 ms"),
        (0.0004, "0.4 ms"),
        (0.002, "2 ms"),
        (0.31, "310 ms"),
        (0.9996, "1.0 s"),
        (1.94, "1.9 s"),
        (9.96, "10 s"),
        (42.4, "42 s"),
        (59.7, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(None, UNKNOWN), (820.4, "820"), (99.96, "100"), (41.23, "41.2"), (0, "0.0")]
)
def test_rates(rate: float | None, text: str) -> None:
    assert human_rate(rate) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(None, UNKNOWN), (0, "0 %"), (0.001, "<1 %"), (0.918, "92 %"), (0.9999, "99 %"), (1, "100 %")],
)
def test_percent_never_says_all_or_nothing_unless_it_is(ratio: float | None, text: str) -> None:
    assert human_percent(ratio) == text


def test_counts() -> None:
    assert (human_count(None), human_count(0), human_count(4012)) == (UNKNOWN, "0", "4012")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("300000", 300_000),
        ("8GiB", 8 * 2**30),
        ("8 GB", 8 * 10**9),
        (" 512M ", 512 * 10**6),
        ("1.5gb", 1_500_000_000),
        ("8K", 8_000),
        ("0", 0),
    ],
)
def test_sizes_as_people_write_them(text: str, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "-1", "abc", "8 giga", "1e9", "8GB8", "∞"])
def test_what_is_no_size_is_refused_with_the_forms_that_are(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 8GB"):
        parse_size(text)


@given(st.integers(0, 10**18))
def test_the_server_reads_back_what_it_is_given(count: int) -> None:
    assert parse_size(server_size(count)) == count


@given(st.integers(0, 10**15))
def test_bytes_read_back_within_half_a_percent(count: int) -> None:
    assert parse_size(human_bytes(count)) == pytest.approx(count, rel=0.0051)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (0.0, "0.0 ms"),
        (0.0042, "4.2 ms"),
        (0.31, "310 ms"),
        (1.618, "1.62 s"),
        (36.04, "36.0 s"),
        (120.0, "120 s"),
    ],
)
def test_seconds(value: float | None, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(None, "—"), (0, "0"), (4012, "4,012"), (2.5, "2.5")])
def test_whole(value: float | None, text: str) -> None:
    assert whole(value) == text
