"""Budgets: CPU of the viewer idle at 1 Hz sampling (1 % of a core) and at 2,000 log lines a second (5 %, 8 KB/s).

One run of the program on a real server; none of the lines may be lost or out of order.
"""

import time
from pathlib import Path

from bench.conftest import Budget, Figure
from bench.live import BusyLog, Live, live
from bench.program import wait_for

SETTLE_S, IDLE_S, BUSY_S = 3.0, 20.0, 20.0
RATE = 2_000


def load(running: Live, seconds: float) -> tuple[float, float]:
    """CPU in per cent of a core and bytes a second over so many seconds."""
    first_ns, cpu_s = time.monotonic_ns(), running.program.cpu_s()
    time.sleep(seconds)
    last_ns, used_s = time.monotonic_ns(), running.program.cpu_s() - cpu_s
    took_s = (last_ns - first_ns) / 1e9
    return 100 * used_s / took_s, running.program.bytes_between(first_ns, last_ns) / took_s


def test_idle_and_busy(tmp_path: Path, budget: Budget) -> None:
    with live(tmp_path) as running:
        time.sleep(SETTLE_S)
        idle_cpu, idle_bytes = load(running, IDLE_S)
        with BusyLog(running.log, RATE) as log:
            time.sleep(SETTLE_S)
            busy_cpu, busy_bytes = load(running, BUSY_S)
        last = f"line {log.count - 1:08d}"
        running.program.shown_ns(last)
        wait_for(lambda: len(running.numbers()) >= log.count, "line in the session file")
        numbers = running.numbers()
    wrong = sum(number != place for place, number in enumerate(numbers)) + abs(len(numbers) - log.count)
    budget.judge(
        Figure("CPU idle, sampling at 1 Hz", idle_cpu, 1.0, " %", note=f"{idle_bytes:.0f} B/s"),
        Figure("CPU at 2,000 log lines a second", busy_cpu, 5.0, " %"),
        Figure("bytes a second at 2,000 log lines a second", busy_bytes, 8_000, " B/s"),
        Figure("of them lost or out of order", wrong, 0, exact=True, note=f"of {log.count:,}"),
    )
