"""Numbers and tables as text."""

from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.stats import Spread
from mlxcache_tui.core.text import cell_width
from mlxcache_tui.report import format as fmt


def test_a_median_goes_with_range_and_n() -> None:
    assert fmt.with_spread(None, fmt.seconds) == "—"
    assert fmt.with_spread(Spread(n=1, median=1.0, low=1.0, high=1.0), fmt.whole) == "1"
    assert fmt.with_spread(Spread(n=2, median=1.0, low=1.0, high=1.0), fmt.whole) == "1 (n 2)"
    wide = Spread(n=3, median=2.0, low=1.0, high=4.0)
    assert fmt.with_spread(wide, fmt.whole) == "2 (1 to 4, n 3)"
    assert fmt.with_spread(wide, fmt.whole, 3) == "2 (1 to 4)"
    assert fmt.with_spread(wide, fmt.whole, 4) == "2 (1 to 4, n 3)"


def test_a_text_table_lines_up_with_wide_letters() -> None:
    lines = fmt.text_table(("a", "b", "c"), [("返品", "1", "x"), ("y", "100", "z")])
    assert lines == ["a       b  c", "返品    1  x", "y     100  z"]


@given(st.text(max_size=20))
def test_no_cell_breaks_a_markdown_table(text: str) -> None:
    lines = fmt.markdown_table(("a",), [(text,)])
    assert len(lines) == 3
    assert "\n" not in lines[2]
    assert lines[2].count("|") - lines[2].count("\\|") == 2


def test_a_bar_is_escaped_once_in_a_table() -> None:
    for cell, shown in (("a|b", "a\\|b"), ("a\\|b", "a\\\\\\|b")):
        assert fmt.markdown_table(("x",), [(fmt.harmless(cell),)])[-1] == f"| {shown} |"
    assert fmt.markdown_table(("x",), [("a|b",)])[-1] == "| a\\|b |"


def test_marks_of_markdown_are_made_harmless() -> None:
    assert fmt.harmless("a <i> *c* [d]") == "a \\<i\\> \\*c\\* \\[d\\]"
    assert fmt.harmless("prompt_cache_size _so_ __init__") == "prompt_cache_size \\_so\\_ \\_\\_init\\_\\_"


HEAD = ("step", "n", "TTFT", "total", "")
ROWS = [("a rather long name of a step", "1", "10 ms", "20 ms", "worse"), ("b", "1", "10 ms", "20 ms", "")]


def test_a_table_gives_up_columns_and_then_the_end_of_names() -> None:
    assert fmt.fitted_table(HEAD, ROWS, None, ("n",)) == fmt.text_table(HEAD, ROWS)
    assert fmt.fitted_table(HEAD, ROWS, 52, ("n", "total")) == fmt.text_table(HEAD, ROWS)
    assert fmt.fitted_table(HEAD, ROWS, 51, ("n", "total"))[0].split() == ["step", "TTFT", "total"]
    cut = fmt.fitted_table(HEAD, ROWS, 51, ("n", "total"), 12)
    assert cut[1] == "a rather long name of a st…  1  10 ms  20 ms  worse"
    narrow = fmt.fitted_table(HEAD, ROWS, 30, ("n", "total"), 12)
    assert narrow == ["step               TTFT", "a rather long n…  10 ms  worse", "b                 10 ms"]


@given(st.lists(st.text("ab 返", max_size=60), max_size=4), st.integers(3, 40))
def test_folded_lines_fit_and_lose_nothing(lines: list[str], width: int) -> None:
    folded = fmt.folded(lines, width, indent=1)
    assert all(cell_width(line) <= width for line in folded)
    assert "".join("".join(folded).split()) == "".join("".join(lines).split())
    assert fmt.folded(lines, None) == lines
