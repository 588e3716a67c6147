"""Budget: resident memory of the viewer after 10,000 requests and a million log lines, 120 MB."""

from pathlib import Path

from bench.conftest import Budget, Figure
from bench.feeding import fed
from bench.program import wait_for

LIMIT_S = 600.0
LAST = ("10020", "999999/1000")
"""Number of the last request and the last log line (its end is cut off), on the screen when all is folded and drawn."""


def test_memory_after_a_long_session(tmp_path: Path, budget: Budget) -> None:
    with fed("long", tmp_path) as screen:
        screen.mark("begin")
        before = screen.program.psutil.memory_info().rss
        screen.mark("end", LIMIT_S)
        wait_for(lambda: all(text in "\n".join(screen.program.screen()) for text in LAST), "last line on the screen")
        after = screen.program.psutil.memory_info().rss
    note = f"{before / 1e6:.0f} MB at the start"
    budget.judge(Figure("memory after 10,000 requests, 1 M lines", after / 1e6, 120, " MB", exact=True, note=note))
