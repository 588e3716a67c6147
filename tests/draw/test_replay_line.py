"""The replay's line fits any width, and its marks lie where things happened."""

from typing import Any

import pytest

from mlxcache_tui.core.playback import PlaybackView
from mlxcache_tui.draw.replay_line import bar_cells, damage_line, replay_line
from mlxcache_tui.draw.spans import line_width, plain

S = 10**9


def view(**more: Any) -> PlaybackView:
    fields: dict[str, Any] = {
        "state": "playing", "speed": 2.0, "position": 50, "count": 100, "start_ns": 5 * S, "at_ns": 35 * S,
        "end_ns": 65 * S, "wall_ns": 1_795_960_083 * S, "request": 2, "requests": 4, "damage": None,
        "marks": ((5 * S, "restart"), (65 * S, "eviction")),
    }  # fmt: skip
    return PlaybackView(**(fields | more))


def test_all_of_it_at_100_columns() -> None:
    text = plain(replay_line(view(), 100))
    assert text.startswith(" ▶ 2×  ")
    assert ":03:" in text or ":33" in text
    assert "0:30 ↻━" in text
    assert "✂ 1:00  #2 of 4  event 50 of 100" in text
    assert "━●─" in text


@pytest.mark.parametrize("width", range(1, 160))
def test_it_fits(width: int) -> None:
    for state in ("playing", "paused", "following", "reading"):
        assert line_width(replay_line(view(state=state, speed=None), width)) == width
    assert line_width(replay_line(view(note="no further event"), width)) == width
    assert line_width(damage_line("line 3: x", width)) == width


def test_the_place_is_in_the_middle_of_the_time_line() -> None:
    cells = bar_cells(view(), 100)
    assert cells is not None
    start, size = cells
    assert plain(replay_line(view(), 100))[start + (size - 1) // 2] == "●"
    assert bar_cells(view(), 15) is None


def test_hours_and_states() -> None:
    long = view(at_ns=5 * S + 3_723 * S, end_ns=5 * S + 7_200 * S, marks=())
    assert "1:02:03" in plain(replay_line(long, 100))
    assert "‖ paused" in plain(replay_line(view(state="paused"), 100))
    assert "● following" in plain(replay_line(view(state="following"), 100))
    assert "as fast as it goes" in plain(replay_line(view(speed=None), 100))


def test_a_recording_without_time_or_start() -> None:
    empty = view(start_ns=0, at_ns=0, end_ns=0, wall_ns=None, marks=(), position=0, count=0)
    assert "0:00" in plain(replay_line(empty, 60))
