"""The bars of a request's phases."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.text import cell_width
from mlxcache_tui.core.views import Phase
from mlxcache_tui.draw.timeline import draw_timeline

PHASES = (
    Phase(name="connect", start_s=-0.1, end_s=0.0),
    Phase(name="wait", start_s=0.0, end_s=0.0),
    Phase(name="prefill", start_s=0.0, end_s=0.4),
    Phase(name="answer", start_s=0.4, end_s=0.9),
)


def test_bars_stand_where_and_as_long_as_their_phase() -> None:
    assert draw_timeline(PHASES, 40) == [
        "connect   ██                      100 ms",
        "wait        ▏                       0 ms",
        "prefill     ████████              400 ms",
        "answer              ██████████    500 ms",
        "          0──────────────────┤     1.0 s",
    ]


def test_nothing_sent_is_said() -> None:
    assert draw_timeline((), 40) == ["nothing was sent yet"]


@given(
    cuts=st.lists(st.floats(0, 1000), min_size=2, max_size=6).map(sorted),
    width=st.integers(1, 200),
)
def test_no_line_is_wider_than_the_room_and_no_bar_is_empty(cuts: list[float], width: int) -> None:
    phases = tuple(Phase(name="wait", start_s=a, end_s=b) for a, b in itertools.pairwise(cuts))
    lines = draw_timeline(phases, width)
    assert all(cell_width(line) <= width for line in lines)
    if width >= 40:
        assert all(any(sign in line for sign in "▏▎▍▌▋▊▉█") for line in lines[:-1])
