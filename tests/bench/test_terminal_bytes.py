"""Budget: bytes written to a terminal of 120×40 when nothing changes (0) and while one request streams (2 KB/s)."""

import time
from pathlib import Path

from bench.conftest import Budget, Figure
from bench.feeding import fed

REST_S, WATCH_S = 2.0, 5.0


def test_nothing_changes(tmp_path: Path, budget: Budget) -> None:
    with fed("still", tmp_path) as screen:
        screen.program.shown_ns("policy 0", "20")
        first = screen.mark("still") + int(REST_S * 1e9)
        last = first + int(WATCH_S * 1e9)
        time.sleep(max(0.0, (last - time.monotonic_ns()) / 1e9))
        written = screen.program.bytes_between(first, last)
        pieces = [data for at_ns, data in screen.program.reads if first <= at_ns < last]
    note = f"in {WATCH_S:.0f} s" + (f": {b''.join(pieces)[:80]!r}" if pieces else "")
    budget.judge(Figure("bytes when nothing changes", written, 0, " B", exact=True, note=note))


def test_one_streaming_request(tmp_path: Path, budget: Budget) -> None:
    with fed("streaming", tmp_path) as screen:
        first, last = screen.mark("begin"), screen.mark("end")
        seconds = (last - first) / 1e9
        rate = screen.program.bytes_between(first, last) / seconds
    note = f"{seconds:.0f} s, 40 tokens/s"
    budget.judge(Figure("bytes a second, one streaming request", rate, 2_000, " B/s", exact=True, note=note))
