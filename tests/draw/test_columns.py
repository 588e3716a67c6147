"""Columns in a width."""

import pytest

from mlxcache_tui.draw.columns import Column, head_line, lay_out, place, recolour
from mlxcache_tui.draw.spans import Span, line_width, plain

COLUMNS = (
    Column("number", "#", 3, 0, "right"),
    Column("policy", "policy", 6, 1, most=10),
    Column("tokens", "tokens", 6, 3, "right"),
    Column("why", "why", 8, 2),
)


def widths(width: int) -> list[int]:
    return [column.width for column in lay_out(COLUMNS, width).columns]


def test_columns_go_by_priority_and_the_rest_grow() -> None:
    assert widths(26) == [3, 6, 6, 8]
    assert lay_out(COLUMNS, 25).names == ("number", "policy", "why")
    assert widths(25) == [3, 10, 10]
    assert lay_out(COLUMNS, 12).names == ("number", "policy")
    assert lay_out(COLUMNS, 1).names == ("number",)
    assert widths(60) == [3, 10, 6, 38]


@pytest.mark.parametrize("width", range(4, 80))
def test_a_layout_fills_its_width(width: int) -> None:
    layout = lay_out(COLUMNS, width, gap=2)
    assert line_width(head_line(layout)) == width


def test_cells_are_aligned_and_cut() -> None:
    layout = lay_out(COLUMNS, 26)
    line = place([(Span("12"),), (Span("返品ポリシー"),), (Span("4012"),), (Span("hit: 112 of #1"),)], layout)
    assert plain(line) == " 12 返品…    4012 hit: 11…"


def test_one_look_for_a_whole_line() -> None:
    assert recolour((Span("a"), Span("b", "bad")), "dim") == (Span("a", "dim"), Span("b", "dim"))
