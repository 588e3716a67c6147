"""A comparison drawn in a width: nothing is wider than it, and no verdict is told by colour alone."""

import pytest

from mlxcache_tui.core.compare_view import Side, compare_view
from mlxcache_tui.core.text import cell_width
from mlxcache_tui.draw.compare_lines import answer_lines, overview_rows, side_lines, step_rows
from mlxcache_tui.draw.spans import line_width, plain
from support.comparisons import compared, request, run, side

WIDE = "返品は三十日以内に限ります。" * 6


def overview(width: int = 115, **fields: object) -> list[str]:
    return [plain(row.line).rstrip() for row in overview_rows(compared(**fields), width)]  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [1, 20, 36, 56, 75, 115, 195])
def test_every_line_has_the_width(width: int) -> None:
    for view in (compared(answer=WIDE), compared(top_p=0.5)):
        rows = overview_rows(view, width)
        rows += [row for index in range(len(view.steps)) for row in step_rows(view, index, width)]
        lines = [*side_lines(view, width, 40), *side_lines(view, width, 20), *(row.line for row in rows)]
        assert {line_width(line) for line in lines} == {width}


def test_differences_come_first_then_the_verdict_then_the_table() -> None:
    lines = overview()
    assert lines[0] == "≠  prompt_cache_size  10 → 1"
    assert lines[2] == "▼  B is worse than A"
    assert lines[4].split() == ["over", "all", "steps", "A", "B", "B", "÷", "A", "90", "%", "interval", "n", "verdict"]
    assert overview(size=10)[0] == "=  no flag or version differs"


@pytest.mark.parametrize(("width", "shown"), [(75, True), (115, True), (50, False)])
def test_at_80_columns_interval_n_and_verdict_are_there(width: int, shown: bool) -> None:
    head = next(line for line in overview(width) if line.startswith("over all steps"))
    assert ("90 % interval" in head) is shown
    row = next(line for line in overview(width) if line.startswith("cached"))
    assert row.endswith("▼ worse")


def test_a_verdict_is_a_sign_and_a_word() -> None:
    told = {line.split()[0]: line for line in overview() if line}
    assert told["cached"].endswith("▼ worse")
    assert told["failed"].endswith("= same")
    assert told["TTFT"].endswith("? inconclusive")
    back = compare_view(side("a", run(request(cached=0))), side("b", run(request(cached=90))))
    assert any(plain(row.line).rstrip().endswith("▲ better") for row in overview_rows(back, 75))


def test_a_line_for_each_step_opens_it() -> None:
    rows = overview_rows(compared(), 115)
    opened = {row.step: plain(row.line) for row in rows if row.step is not None}
    assert list(opened) == [0, 1]
    assert "90 % → 0 % ▼" in opened[1]
    assert "100 ms → 1.00 s ?" in opened[1]


def test_a_refusal_is_one_line_and_says_how_to_lift_it() -> None:
    lines = overview(top_p=0.5)
    told = "prompt_cache_size, top_p differ: what changed cannot be told apart (m: that was meant)"
    assert lines[-1] == f"✗  not compared: {told}"
    assert not any("TTFT" in line for line in lines)
    nothing = compare_view(side("a", run(request("a"))), side("b", run(request("b"))))
    assert "✗  not compared: the two have no step in common" in plain(overview_rows(nothing, 115)[-1].line)


def test_what_could_not_be_read_is_told_of_its_side() -> None:
    whole, cut = side("a", run(request())), side("b", run(request()), note="line 9 has no end")
    lines = [plain(row.line).rstrip() for row in overview_rows(compare_view(whole, cut), 75)]
    assert lines[1] == "!  B: line 9 has no end"


def test_answers_stand_side_by_side_from_where_they_part() -> None:
    step = compared(answer=f"yes {WIDE}").steps[1]
    lines = [plain(line) for line in answer_lines(step, 43)]
    assert lines[0].rstrip() == "answers  ≠ they differ"
    assert lines[1].split() == ["A", "│", "B"]
    assert lines[2].split() == ["yes", "│", "yes"]
    assert {cell_width(line.partition("│")[0]) for line in lines[1:]} == {21}
    assert all("│ ≠ " in line for line in lines[3:])


def test_a_common_start_is_not_marked() -> None:
    text = "the same words at the start of both answers "
    a, b = run(request(text=f"{text}one")), run(request(text=f"{text}two"))
    step = compare_view(side("a", a), side("b", b)).steps[0]
    marks = [plain(line)[0] for line in answer_lines(step, 43)[2:]]
    assert marks == [" ", " ", "≠"]


def test_the_same_answer_is_told_once_and_none_is_told_too() -> None:
    lines = [plain(line).rstrip() for line in answer_lines(compared(answer="yes").steps[1], 75)]
    assert lines == ["answers  = the same on both sides", "yes"]
    both = [plain(line) for line in answer_lines(compared(answer="").steps[1], 75)]
    assert "(no text)" in both[2]


def test_of_a_side_there_is_what_the_height_has_room_for() -> None:
    tall, middle, low = ([plain(line).rstrip() for line in side_lines(compared(), 40, rows)] for rows in (40, 20, 8))
    assert low == [middle[0], middle[2]]
    assert middle[1].endswith("…")
    assert not any(line.endswith("…") for line in tall[1:] if line.startswith("   "))


def test_a_session_that_is_named_by_its_time_is_told_it_once() -> None:
    view = compare_view(
        Side(name="2026-11-29T20-10-33-ab12", runs=(run(request()),), when="2026-11-29 20:10:33"),
        Side(name="after", runs=(run(request()),), when="2026-11-29 20:12:01"),
    )
    first, *_, last = (plain(line) for line in side_lines(view, 60, 8))
    assert first.startswith("A  2026-11-29T20-10-33-ab12 · ")
    assert last.startswith("B  2026-11-29 20:12:01 · after · ")
