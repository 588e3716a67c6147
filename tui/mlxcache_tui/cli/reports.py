"""The files that the screen saves: those of `run` and of `compare`, made by the same reports."""

from collections.abc import Sequence

from mlxcache_tui.core.compare import Comparison
from mlxcache_tui.core.results import RunResult


def run_reports(runs: Sequence[RunResult], several: bool) -> tuple[tuple[str, str], ...]:
    """What a scenario's results are saved as: file ending and text. `several`: the JSON is a list of runs."""
    from mlxcache_tui.report.json import to_json
    from mlxcache_tui.report.markdown import to_markdown

    return ("md", to_markdown(runs)), ("json", to_json(runs, several=several))


def comparison_reports(comparison: Comparison, names: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """What a comparison of two sides, each by its name, is saved as."""
    from mlxcache_tui.report.compare import comparison_json, comparison_markdown

    return ("md", comparison_markdown(comparison, names)), ("json", comparison_json(comparison))
