"""Budgets: each figure is judged against design.md §7 and told at the end, with what else the machine was doing."""

import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

HERE = Path(__file__).parent
NOISY_CORES = 0.3
"""Cores that others used on average, above which a budget that does not hold says nothing about the program."""
_LINES: list[str] = []


@dataclass(frozen=True)
class Figure:
    """One measured figure and its budget; `note` is shown beside it.

    `exact`: a count that a busy machine does not change.
    """

    what: str
    value: float
    limit: float
    unit: str = ""
    at_least: bool = False
    exact: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self) -> str:
        sign = "≥" if self.at_least else "≤"
        verdict = "ok" if self.holds else "OVER"
        measured, budget = f"{_shown(self.value)}{self.unit}", f"(budget {sign} {_shown(self.limit)}{self.unit})"
        return f"{verdict:<4} {self.what:<44} {measured:>14} {budget:<26} {self.note}"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


class Budget:
    """Judges the figures of one test."""

    def __init__(self) -> None:
        self._began, self._busy, self._own = time.monotonic(), _busy_s(), _own_s()

    def others(self) -> float:
        """Cores that other programs used since the test began, on average."""
        took = max(1e-3, time.monotonic() - self._began)
        return max(0.0, (_busy_s() - self._busy) - (_own_s() - self._own)) / took

    def judge(self, *figures: Figure) -> None:
        """Tell the figures. Over budget fails, unless the machine was too busy to judge: that is inconclusive."""
        others = self.others()
        _LINES.extend(figure.line() for figure in figures)
        _LINES.append(f"     {f'others used {others:.2f} cores meanwhile':<44}")
        over = [figure.line() for figure in figures if not figure.holds]
        certain = any(figure.exact for figure in figures if not figure.holds)
        if over and others > NOISY_CORES and not certain:
            _LINES.append("     inconclusive: run it again on a quiet machine")
            pytest.skip(f"inconclusive, others used {others:.2f} cores: {'; '.join(over)}")
        assert not over, "\n".join(over)


def _busy_s() -> float:
    times = psutil.cpu_times()
    return float(sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "steal")))


def _own_s() -> float:
    """CPU of this process and all it started, the ended ones too."""
    us = psutil.Process()
    total = 0.0
    for process in (us, *us.children(recursive=True)):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue
    return total


@pytest.fixture
def budget() -> Budget:
    """Takes the test's figures; what others use of the machine is counted from here on."""
    return Budget()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that is in this folder is a benchmark, and may take its time."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("bench")
            item.add_marker(pytest.mark.timeout(1_200))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The figures, whether they hold or not."""
    if _LINES:
        terminalreporter.section("budgets")
        for line in _LINES:
            terminalreporter.line(line.rstrip())
