"""Progress lines and the table at the end."""

from mlxcache_tui.report.text import progress_lines, run_lines, sweep_lines
from support.fake_engine import FakeEngine
from support.scenario_runs import run_of


def test_one_line_for_each_finished_request() -> None:
    _, told = run_of()
    lines = [line for progress in told for line in progress_lines(progress)]
    assert "▸ warm (warm-up)" in lines
    assert "  #3 returns  263 of 276 cached (95 %)  TTFT 17 ms  total 28 ms  5 out  hit: 263 tokens of #2" in lines
    assert "  ✓ cached_ratio >= 0.5: 96 %" in lines
    assert "  ✗ ttft_s < 0.01 * first.ttft_s: 43 ms, 40 ms too much" in lines


def test_the_end_has_a_row_for_each_step_and_the_verdict() -> None:
    lines = run_lines(run_of()[0])
    assert lines[0] == "two-questions: Same policy, other question"
    assert lines[-1] == "  1 of 2 expectations held"
    assert any("hit ×3" in line for line in lines)


def test_a_sweep_names_its_limits() -> None:
    lines = run_lines(run_of(combination={"prompt_cache_size": 2})[0])
    assert lines[0].endswith("prompt_cache_size=2")


def test_the_end_of_a_sweep_has_a_row_for_each_limit() -> None:
    runs = [run_of(engine=FakeEngine(cache=size), combination={"prompt_cache_size": size})[0] for size in (1, 9)]
    lines = sweep_lines(runs)
    assert lines[:2] == [
        "two-questions: one row a limit",
        "  prompt_cache_size  cached   TTFT  evicted    wall  peak memory  why",
    ]
    assert [line.split()[0] for line in lines[2:4]] == ["1", "9"]
    assert lines[4].startswith("  reuse is the same under every limit")
    assert sweep_lines(runs[:1]) == []


def test_failures_are_named() -> None:
    run, told = run_of(engine=FakeEngine(fails_at=2))
    assert "  #2 returns  failed: HTTP 500: it broke" in [line for one in told for line in progress_lines(one)]
    assert "  ✗ #2 of first question failed: HTTP 500: it broke" in run_lines(run)


def test_a_lost_server_shows_its_last_lines() -> None:
    lines = run_lines(run_of(engine=FakeEngine(dies_at=2))[0])
    assert any(line.startswith("  server lost: ") and "SIGKILL" in line for line in lines)
    assert "    last" in lines
