"""A sweep as plots: plain text of a given width, the limits below, the units beside."""

import sys
from collections.abc import Iterator

import pytest

from mlxcache_tui.core.sweep import SweepPoint
from mlxcache_tui.core.text import cell_width
from mlxcache_tui.draw.chart import NARROWEST, sweep_plots

POINTS = (
    SweepPoint(label="64 MB", reuse=0.0, ttfts=(0.31, 0.3), peak_bytes=2_400_000_000),
    SweepPoint(label="256 MB", reuse=0.5, ttfts=(0.31, 0.05), peak_bytes=2_600_000_000),
    SweepPoint(label="1 GB", reuse=1.0, ttfts=(0.05, 0.05), peak_bytes=3_100_000_000),
)


@pytest.fixture
def no_plotext(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nor does a plot that is remembered from other tests stand in for it, or remain for them."""
    monkeypatch.setitem(sys.modules, "plotext", None)
    sweep_plots.cache_clear()
    yield
    sweep_plots.cache_clear()


@pytest.mark.parametrize("width", [36, 56, 78, 118, 198])
def test_lines_are_plain_and_fit(width: int) -> None:
    lines = sweep_plots(POINTS, width)
    assert lines
    assert all(line.isprintable() and cell_width(line) <= width for line in lines)


def test_limits_stand_below_and_units_beside_each_plot() -> None:
    text = "\n".join(sweep_plots(POINTS, 78))
    assert text.count("256 MB") == 3
    for word in ("reuse of prompt tokens", "100 %", "TTFT", "400 ms", "peak memory of the server", "4 GB", "0 B"):
        assert word in text


def test_a_bar_is_as_high_as_its_value() -> None:
    canvas = [line[6:36] for line in sweep_plots(POINTS, 78)[2:7]]
    columns = [sum(row[place] not in " │" for row in canvas) for place in (6, 14, 23)]
    assert columns == [0, 3, 5]


def test_each_request_has_its_dot() -> None:
    assert "\n".join(sweep_plots(POINTS, 78)).count("•") - 1 >= 4  # the title has one


def test_side_by_side_where_there_is_room_else_one_below_the_other() -> None:
    heights = [len(sweep_plots(POINTS, width)) for width in (40, 78, 118)]
    assert heights == [27, 18, 9]
    long = tuple(SweepPoint(label=f"a long limit {n}", reuse=0.5, ttfts=(1.0,), peak_bytes=1) for n in range(4))
    assert len(sweep_plots(long, 78)) == 27


def test_what_is_unknown_is_left_out() -> None:
    points = (POINTS[0], SweepPoint(label="256 MB", reuse=None, ttfts=(), peak_bytes=None), POINTS[2])
    assert "256 MB" in "\n".join(sweep_plots(points, 78))
    unseen = tuple(SweepPoint(label=point.label, reuse=point.reuse, ttfts=(), peak_bytes=None) for point in POINTS)
    assert len(sweep_plots(unseen, 78)) == 9
    assert "TTFT" not in "".join(sweep_plots(unseen, 78))


def test_no_plot_without_points_or_room() -> None:
    assert sweep_plots((), 78) == ()
    assert sweep_plots(POINTS, NARROWEST - 1) == ()


@pytest.mark.usefixtures("no_plotext")
@pytest.mark.parametrize("width", [36, 78])
def test_bars_where_plotext_cannot_be_loaded(width: int) -> None:
    lines = sweep_plots(POINTS, width)
    assert lines[:4][0].startswith("reuse of prompt tokens")
    assert all(cell_width(line) <= width for line in lines)
    assert any("256 MB" in line and "50 %" in line and "███" in line for line in lines)
