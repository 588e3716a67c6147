"""The scenario pane's lines."""

from typing import Any

import pytest

from mlxcache_tui.core.scenario_view import (
    ExpectView,
    ScenarioView,
    VerdictLine,
)
from mlxcache_tui.core.sweep import SweepPoint
from mlxcache_tui.draw.scenario_lines import STATUS_SIGNS, Key, body_rows, scenario_layout, top_lines
from mlxcache_tui.draw.spans import line_width, plain
from support.scenario_views import figures, run_view, scenario_pane_view, step_view


def drawn(view: ScenarioView, width: int = 60, shown: int = 0) -> list[str]:
    lines = [*top_lines(view, width), *(row.line for row in body_rows(view, shown, width))]
    return [plain(line).rstrip() for line in lines]


@pytest.mark.parametrize("width", [1, 12, 30, 49, 56, 76, 118])
@pytest.mark.parametrize("has_before", [False, True])
def test_every_line_has_the_width(width: int, has_before: bool) -> None:
    view = scenario_pane_view(
        has_before=has_before, phase="over", verdict=(VerdictLine(tone="bad", text="long " * 30),)
    )
    rows = body_rows(view, 0, width)
    assert {line_width(line) for line in (*top_lines(view, width), *(row.line for row in rows))} == {width}


def test_underway() -> None:
    assert drawn(scenario_pane_view()) == [
        "▷ running · step 2 of 3 · 1 of 3 requests   █████▍──────────",
        "  step                       sent cached   TTFT evict   wall",
        "✓ first                       1/1   92 %  48 ms     0  1.2 s",
        "    ✓ cached_ratio >= 0.5  92 %",
        "▷ second                      0/1",
        "    ↻ server restarted first",
        "    · evictions == 1",
        "· third                       0/1",
    ]


def test_the_verdict_stands_first_and_is_broken_into_lines() -> None:
    text = "second: cached_ratio >= 0.5: 2 %, 48 points too low, and some more words"
    head = VerdictLine(tone="bad", text="1 of 2 expectations failed")
    lines = drawn(scenario_pane_view(phase="over", head=head, verdict=(VerdictLine(tone="bad", text=text),)), 50)
    assert lines[:4] == [
        "✗ 1 of 2 expectations failed",
        "✗ second: cached_ratio >= 0.5: 2 %, 48 points too",
        "  low, and some more words",
        "  step             sent cached   TTFT evict   wall",
    ]


def test_the_last_result_stands_beside_where_there_is_room() -> None:
    step = step_view("first", status="done", before=figures(ttft_s=0.31, wall_s=312.4))
    view = scenario_pane_view(has_before=True, changed=("repeat 1 → 3",), runs=(run_view(step),))
    assert drawn(view, 76)[1:4] == [
        "beside the last result; changed: repeat 1 → 3",
        "  step                    cached   was   TTFT    was evict was   wall    was",
        "✓ first                     92 %  92 %  48 ms 310 ms     0   0  1.2 s  312 s",
    ]
    assert "was" not in drawn(view, 60)[2]
    assert drawn(scenario_pane_view(has_before=True), 76)[1] == "beside the last run"


def test_a_sweep_has_a_row_for_each_run_and_the_steps_of_one() -> None:
    runs = tuple(run_view(step_view("a", status="done"), label=f"prompt_cache_size {n}", values=str(n)) for n in (1, 2))
    view = scenario_pane_view(runs=runs, limits="prompt_cache_size", current=1)
    assert drawn(view, 60, shown=1)[1:] == [
        "  prompt_cache_size          sent cached   TTFT evict   wall",
        "✓ 1                           1/1   92 %  48 ms     0  1.2 s",
        "✓ 2                           1/1   92 %  48 ms     0  1.2 s",
        "  step, limit 2              sent cached   TTFT evict   wall",
        "✓ a                           1/1   92 %  48 ms     0  1.2 s",
    ]
    keys = [row.key for row in body_rows(view, 1, 60)]
    assert keys == [None, Key("run", 0), Key("run", 1), None, Key("step", 1, "a")]


def test_the_plots_of_a_sweep_stand_at_its_end_and_cannot_be_chosen() -> None:
    runs = tuple(run_view(step_view("a", status="done"), label=f"prompt_cache_size {n}", values=str(n)) for n in (1, 2))
    points = tuple(SweepPoint(label=str(n), reuse=n / 2, ttfts=(0.3,), peak_bytes=10**9) for n in (1, 2))
    view = scenario_pane_view(phase="over", runs=runs, limits="prompt_cache_size", points=points)
    rows = body_rows(view, 0, 80)
    lines = [plain(row.line).rstrip() for row in rows]
    assert lines[5:7] == ["", "over prompt_cache_size"]
    assert "reuse of prompt tokens" in lines[7]
    assert all(row.key is None for row in rows[5:])
    assert len(body_rows(view, 0, 30)) == 5


def test_unknown_figures_are_no_zeros() -> None:
    step = step_view("a", status="done", figures=figures(ttft_s=None, cached_ratio=None, evictions=None, wall_s=None))
    assert drawn(scenario_pane_view(runs=(run_view(step),)))[-1].split() == ["✓", "a", "1/1", "—", "—", "—", "—"]


def test_a_failed_expectation_says_by_how_much() -> None:
    expect = ExpectView(text="evictions == 1", held=False, detail="3, 2 too many")
    step = step_view("a", status="failed", expects=(expect,))
    lines = drawn(scenario_pane_view(runs=(run_view(step),)))
    assert lines[-1] == "    ✗ evictions == 1  3, 2 too many"
    assert lines[-2].startswith("✗ a")


@pytest.mark.parametrize("phase", ["running", "paused", "stopping"])
def test_each_phase_has_a_sign_and_its_word(phase: Any) -> None:
    head = VerdictLine(tone="plain", text=phase)
    line = plain(top_lines(scenario_pane_view(phase=phase, head=head), 60)[0])
    assert line[0] in "▷‖⊘"
    assert line[2:].startswith(phase)


def test_no_state_is_told_by_colour_alone() -> None:
    signs = [(sign.sign, sign.word) for sign in STATUS_SIGNS.values()]
    assert len(set(signs)) == len(signs)


def test_narrow_layouts_keep_the_name_and_what_is_reused() -> None:
    assert scenario_layout(30, False).names == ("sign", "name", "cached", "ttft")
    assert scenario_layout(76, True).names[-1] == "wall_before"
    assert "n" in scenario_layout(100, True).names
