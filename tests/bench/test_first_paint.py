"""Budget: the first paint comes at most 1.6 times as late as that of a bare Textual app in the same run."""

import sys
from pathlib import Path
from statistics import median, quantiles

from bench.conftest import Budget, Figure
from bench.program import MAIN, running

BARE = (sys.executable, str(Path(__file__).with_name("bare_app.py")))
PAIRS = 9
PANES = ("Requests", "Cache", "Memory", "Composer", "Server log")


def paint_s(command: tuple[str, ...], *texts: str) -> float:
    """Seconds from the start of the process to the first screen that has all these texts."""
    with running(*command) as program:
        return (program.shown_ns(*texts) - program.began_ns) / 1e9


def test_first_paint(tmp_path: Path, budget: Budget) -> None:
    command = (*MAIN, "--url", "http://127.0.0.1:9", "--save", str(tmp_path / "session.jsonl"))
    paint_s(BARE, "a bare app")  # the files are in the system's cache from here on
    paint_s(command, *PANES)
    pairs = [(paint_s(BARE, "a bare app"), paint_s(command, *PANES)) for _ in range(PAIRS)]
    ratios = sorted(ours / bare for bare, ours in pairs)
    low, _, high = quantiles(ratios, n=4)
    bare, ours = (median(column) for column in zip(*pairs, strict=True))
    note = f"{ours:.2f} s against {bare:.2f} s, quartiles {low:.2f}–{high:.2f}, {PAIRS} pairs"
    budget.judge(Figure("first paint against a bare app", median(ratios), 1.6, "×", note=note))
