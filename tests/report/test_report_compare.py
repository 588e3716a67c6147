"""A comparison is told with its differences first, and its JSON has the documented keys."""

import json

import msgspec
import pytest

from mlxcache_tui.core.compare import compare
from mlxcache_tui.core.run_file import Run, parse_runs
from mlxcache_tui.core.text import cell_width
from mlxcache_tui.report.compare import comparison_json, comparison_lines, comparison_markdown
from mlxcache_tui.report.json import to_json
from support.fake_engine import FakeEngine
from support.scenario_runs import run_of

NAMES = ("a.json", "b.json")


def runs(cache: int) -> tuple[Run, ...]:
    result, _ = run_of(engine=FakeEngine(cache=cache), combination={"prompt_cache_size": cache})
    (run,) = parse_runs(to_json([result], several=False).encode())
    return (Run(**{name: getattr(run, name) for name in run.__struct_fields__} | {"sweep": {}}),)


def test_the_json_has_the_documented_keys() -> None:
    whole = json.loads(comparison_json(compare(runs(10), runs(1))))
    assert whole["schema"] == 1
    assert whole["refused"] is None
    assert whole["differences"] == {"prompt_cache_size": [10, 1]}
    assert whole["verdict"] == "worse"
    first = whole["metrics"][0]
    assert set(first) == {"metric", "step", "a", "b", "ratio", "low", "high", "n", "verdict", "overall"}
    assert (first["metric"], first["step"], first["overall"]) == ("ttft_s", "all", True)


def test_a_step_called_all_is_told_from_all_steps() -> None:
    (run,) = runs(10)
    named = msgspec.structs.replace(run, requests=(msgspec.structs.replace(run.requests[-1], step="all"),))
    metrics = json.loads(comparison_json(compare([named], [named])))["metrics"]
    assert [(metric["step"], metric["overall"]) for metric in metrics[:2]] == [("all", True), ("all", False)]


def test_the_table_begins_with_what_differs_and_ends_with_the_verdict() -> None:
    lines = comparison_lines(compare(runs(10), runs(1)), NAMES)
    assert lines[:3] == ["A  a.json", "B  b.json", "differs: prompt_cache_size: 10 → 1"]
    assert lines[-1] == "▼ B is worse than A"
    assert any(line.startswith("first question") for line in lines)
    assert any(line.startswith("evictions") and "▼ worse" in line for line in lines)


def test_a_refusal_is_told_with_its_reason_and_no_table() -> None:
    lines = comparison_lines(compare(runs(10), ()), NAMES)
    assert lines[-1].startswith("not compared: ")
    assert "**Not compared:**" in comparison_markdown(compare(runs(10), ()), NAMES)


def test_the_report_takes_no_marks_from_answers() -> None:
    text = comparison_markdown(compare(runs(10), runs(10)), NAMES)
    assert "# a.json against b.json" in text
    assert "- no flag or version differs" in text
    assert "| second \\| question |" in text
    assert "## Steps" in text
    assert "**B is no worse than A**" in text or "**inconclusive" in text


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_it_is_as_wide_as_that(width: int) -> None:
    lines = comparison_lines(compare(runs(10), runs(1)), NAMES, width)
    assert max(map(cell_width, lines)) <= width
    steps = next(line for line in lines if line.startswith("step, A → B"))
    assert ("TTFT" in steps, "decode" in steps) == (True, width == 120)
