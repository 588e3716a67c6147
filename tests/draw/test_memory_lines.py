"""The memory pane's lines."""

import pytest

from mlxcache_tui.core.views import MemoryMark
from mlxcache_tui.draw.memory_lines import memory_lines
from mlxcache_tui.draw.spans import line_width, plain
from support.views import GB, MB, SECOND, memory


def drawn(width: int, height: int, *values: int | None, **fields: object) -> list[str]:
    return [plain(line).rstrip() for line in memory_lines(memory(*values, **fields), width, height)]


@pytest.mark.parametrize("width", [1, 9, 30, 46, 118])
@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 8, 9, 20])
def test_every_size_is_filled(width: int, height: int) -> None:
    for view in (memory(), memory(None), memory(source=None, points=()), memory(limit=4 * GB)):
        lines = memory_lines(view, width, height)
        assert [line_width(line) for line in lines] == [width] * height


def test_graph_axis_and_figures() -> None:
    assert drawn(50, 6, *(i * 100 * MB for i in range(1, 30)), now=2900 * MB, limit=None, pressure=None) == [
        "footprint 2.9 GB · peak 3.6 GB",
        "   3 GB           ⢀⣠⣤⣶⡇",
        "             ⢀⣠⣤⣶⣿⣿⣿⣿⣿⡇",
        "    0 B ⣀⣠⣤⣶⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⡇",
        "    <1m ──────────────────────────────────────────",
        "weights 2.26 GB · cache 328 MB · pool 210 MB",
    ]


def test_marks_stand_under_their_moment() -> None:
    marks = (
        MemoryMark(at_ns=10 * SECOND, kind="eviction"),
        MemoryMark(at_ns=20 * SECOND, kind="restart"),
        MemoryMark(at_ns=21 * SECOND, kind="eviction"),
        MemoryMark(at_ns=-5 * SECOND, kind="eviction"),
    )
    axis = drawn(30, 4, *([GB] * 30), marks=marks)[2]
    assert axis == "    <1m ─────✂────↻───────────"


def test_the_limit_is_drawn_once_it_is_near() -> None:
    near = drawn(50, 8, *([3 * GB] * 10), limit=4 * GB)
    assert any("╌" in line and line.endswith("limit") for line in near)
    assert not any("╌" in line for line in drawn(50, 8, *([GB] * 10), limit=12 * GB))


def test_the_limit_crosses_the_gaps_of_the_graph() -> None:
    line = next(line for line in drawn(30, 6, 5 * GB, 5 * GB, None, None, 5 * GB, limit=4 * GB) if "╌" in line)
    assert line[8:12] == "⣿╌⡇╌"


def test_unknown_is_a_dash() -> None:
    lines = drawn(80, 6, GB, now=None, peak=None, weights=None, other=None)
    assert lines[0].startswith("footprint — · peak —")
    assert lines[-1].startswith("weights — · cache 328 MB · pool 210 MB · other —")


def test_the_source_names_the_figure_and_pressure_is_a_word() -> None:
    head = drawn(90, 6, GB, source="pss", pressure="critical")[0]
    assert head == "PSS 3 GB · peak 3.6 GB · wired limit 12 GB · pressure critical"


def test_a_low_pane_begins_with_the_figure() -> None:
    assert drawn(40, 1, GB)[0] == "footprint 3 GB · weights 2.26 GB"


def test_nothing_known_yet_is_said() -> None:
    assert "not known yet" in " ".join(drawn(60, 3, source=None, points=()))
