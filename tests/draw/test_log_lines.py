"""One line of the log pane."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.draw.log_buffer import Fold
from mlxcache_tui.draw.log_lines import log_line, text_width
from mlxcache_tui.draw.spans import Look, line_width, plain
from support.views import log_row, traceback_rows

LONG = "漢字 the quick brown fox 🎁 jumps over the lazy dog [bold]not markup[/bold]"


@given(st.text(st.sampled_from("ab 漢🎁[]"), max_size=60), st.integers(0, 60), st.integers(0, 70), st.text(max_size=3))
def test_every_line_has_the_width(text: str, width: int, left: int, needle: str) -> None:
    line = log_line(log_row(1, text or "-"), width, left=left, needle=needle.casefold())
    assert line_width(line) == max(width, 2)


@pytest.mark.parametrize(
    ("level", "kind", "look"),
    [
        ("INFO", "record", "plain"),
        ("INFO", "progress", "dim"),
        (None, "access", "dim"),
        ("WARNING", "record", "warn"),
        ("ERROR", "traceback", "bad"),
        (None, "mark", "mark"),
        (None, "other", "plain"),
    ],
)
def test_looks(level: str | None, kind: str, look: Look) -> None:
    assert log_line(log_row(1, "text", level=level, kind=kind), 20)[1].look == look


def test_the_gutter_shows_where_whose_and_ours() -> None:
    assert plain(log_line(log_row(1, "x", request=3), 4, highlighted=3)) == "▌ x "
    assert plain(log_line(log_row(1, "x", request=4), 4, highlighted=3)) == "  x "
    assert plain(log_line(log_row(1, "x"), 4, highlighted=None)) == "  x "
    assert plain(log_line(log_row(1, "x", kind="mark"), 4)) == "◆ x "
    assert plain(log_line(log_row(1, "x"), 4, here=True)) == "▸ x "


def test_a_long_line_is_cut_on_both_sides() -> None:
    assert plain(log_line(log_row(1, LONG), 14)) == "  漢字 the qu…"
    assert plain(log_line(log_row(1, LONG), 14, left=5)) == "  …he quick b…"
    assert plain(log_line(log_row(1, "short"), 14, left=8)) == " " * 14


def test_matches_are_marked_whatever_their_case() -> None:
    line = log_line(log_row(1, "Hit and hit"), 20, needle="hit")
    assert [span.text for span in line if span.look == "match"] == ["Hit", "hit"]


def test_matches_stand_where_they_are_behind_characters_that_grow() -> None:
    line = log_line(log_row(1, "straße İ hit"), 20, needle="hit")
    assert [span.text for span in line if span.look == "match"] == ["hit"]


def test_a_folded_traceback_tells_its_last_line() -> None:
    fold = Fold(list(traceback_rows(1)))
    assert plain(log_line(fold, 44)).rstrip() == "  ▸ traceback, 4 lines: ValueError: bad"
    fold.open = True
    assert plain(log_line(fold, 44)).rstrip() == "  ▾ traceback, 4 lines"
    assert plain(log_line(Fold(list(traceback_rows(1)[:1])), 60)).startswith("  ▸ traceback, 1 line: ")


def test_a_traceback_in_a_frame_is_named_by_its_exception() -> None:
    dashes = log_row(1, "-" * 40, kind="traceback")
    opening = log_row(2, "Exception occurred during processing of request from ('127.0.0.1', 1)", kind="traceback")
    fold = Fold([dashes, opening, *traceback_rows(3), log_row(7, "-" * 40, kind="traceback")])
    assert plain(log_line(fold, 44)).rstrip() == "  ▸ traceback, 7 lines: ValueError: bad"


def test_the_width_is_that_of_what_is_shown() -> None:
    assert text_width(log_row(1, "2026-11-29 14:48:18,123 - INFO - 漢")) == len("14:48:18 INFO ") + 2
