"""The list of sessions drawn in a width."""

import pytest

from mlxcache_tui.draw.session_lines import session_head, session_line
from mlxcache_tui.draw.spans import line_width, plain
from support.comparisons import session_row


@pytest.mark.parametrize("width", [20, 40, 75, 115, 195])
def test_every_line_has_the_width(width: int) -> None:
    unknown = session_row(when=None, server=None, model=None, limits=(), reuse=None, evictions=None)
    lines = [session_line(row, "A", width) for row in (session_row(model="返品" * 20), unknown)]
    assert {line_width(line) for line in (session_head(width), *lines)} == {width}


def test_what_is_told_of_a_session() -> None:
    line = plain(session_line(session_row(), "B", 115))
    assert " ".join(line.split()) == "B 2026-11-29 20:10:33 m 10 8 41 % 0 310 kB 127.0.0.1:8080"
    assert plain(session_line(session_row(here=True, recording=True), "", 75)).rstrip().endswith("this one")
    assert plain(session_line(session_row(recording=True), "", 75)).rstrip().endswith("recording")
