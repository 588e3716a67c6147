"""Lines of spans: exact widths, cut where a person would."""

from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.text import clean
from mlxcache_tui.draw.spans import Line, Look, Span, common_edges, drop_cells, fit_line, line_width, note_lines, plain

TEXTS = st.text(st.sampled_from("ab 漢字🎁é…⣿─"), max_size=12).map(clean)
LOOKS: tuple[Look, ...] = ("plain", "bad")
LINES = st.lists(st.builds(Span, TEXTS, st.sampled_from(LOOKS)), max_size=5).map(tuple)


@given(LINES, st.integers(0, 40))
def test_a_fitted_line_has_exactly_its_width(line: Line, width: int) -> None:
    assert line_width(fit_line(line, width)) == width


def test_what_is_cut_ends_in_an_ellipsis() -> None:
    line = (Span("hit: "), Span("112 tokens", "good"))
    assert plain(fit_line(line, 9)) == "hit: 112…"
    assert plain(fit_line(line, 5)) == "hit:…"
    assert plain(fit_line(line, 15)) == "hit: 112 tokens"
    assert plain(fit_line(line, 17)) == "hit: 112 tokens  "


@given(LINES, st.integers(0, 40))
def test_dropping_cells_shifts_the_rest_by_exactly_these_cells(line: Line, cells: int) -> None:
    left = drop_cells(line, cells)
    assert line_width(left) == max(0, line_width(line) - cells)
    assert plain(line).endswith(plain(left).lstrip(" "))


def test_half_of_a_wide_character_is_a_blank() -> None:
    assert plain(drop_cells((Span("漢字"),), 1)) == " 字"
    assert plain(drop_cells((Span("a漢"), Span("字b")), 4)) == " b"


@given(LINES, LINES, st.integers(1, 30))
def test_outside_of_the_common_edges_lines_are_equal(old: Line, new: Line, width: int) -> None:
    old, new = fit_line(old, width), fit_line(new, width)
    start, end = common_edges(old, new)
    if start + end < width:
        assert plain(fit_line(old, start)) == plain(fit_line(new, start)) or start == 0
        assert plain(drop_cells(old, width - end)) == plain(drop_cells(new, width - end))
    else:
        assert plain(old) == plain(new)


def test_only_the_figure_that_changed_is_not_common() -> None:
    old, new = (Span("out "), Span("31", "info"), Span("  rest")), (Span("out "), Span("32", "info"), Span("  rest"))
    assert common_edges(old, new) == (5, 6)


def test_another_look_is_a_change() -> None:
    assert common_edges((Span("a"), Span("b", "dim")), (Span("a"), Span("b"))) == (1, 0)


def test_a_note_stands_in_the_middle_and_is_broken_where_it_is_long() -> None:
    lines = [plain(line) for line in note_lines("not observed: start the server again", 20, 5)]
    assert lines == [
        " " * 20,
        "   not observed:    ",
        "  start the server  ",
        "       again        ",
        " " * 20,
    ]
    assert note_lines("anything", 20, 0) == []
