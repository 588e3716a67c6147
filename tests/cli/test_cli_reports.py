"""What the screen saves is what the commands write."""

from mlxcache_tui.cli.reports import comparison_reports, run_reports
from mlxcache_tui.core.compare import compare
from mlxcache_tui.core.run_file import run_of as compared_run
from mlxcache_tui.report.compare import comparison_json, comparison_markdown
from mlxcache_tui.report.json import to_json
from mlxcache_tui.report.markdown import to_markdown
from support.scenario_runs import run_of


def test_a_run_is_saved_as_run_writes_it() -> None:
    result = run_of()[0]
    assert run_reports([result], False) == (("md", to_markdown([result])), ("json", to_json([result], several=False)))
    assert run_reports([result], True)[1] == ("json", to_json([result], several=True))


def test_a_comparison_is_saved_as_compare_writes_it() -> None:
    run = compared_run(run_of()[0])
    comparison, names = compare([run], [run]), ("before", "after")
    expected = (("md", comparison_markdown(comparison, names)), ("json", comparison_json(comparison)))
    assert comparison_reports(comparison, names) == expected
