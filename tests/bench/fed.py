"""The real screen on the real engine, fed with events made here instead of a server's. Run in a terminal:

    python fed.py FEED SESSION MARKS

Appends a line (name, monotonic ns) to MARKS when the feed reaches a point that the benchmark measures from or to.
"""

import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from bench import traffic
from mlxcache_tui.core.commands import AttachServer
from mlxcache_tui.core.events import AnyEvent, LogLine, LogRead
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.engine import setup
from mlxcache_tui.engine.engine import Engine
from mlxcache_tui.store.recorder import Recorder
from mlxcache_tui.ui.app import MonitorApp

STREAM_S = 12
SETTLE_S = 2.0
"""For what came before to be drawn."""
REQUESTS, LOG_LINES, LINES_A_READ = 10_000, 1_000_000, 250
Emit = Callable[[AnyEvent], None]
Mark = Callable[[str], None]


def still(emit: Emit, mark: Mark) -> None:
    """Twenty requests, then nothing."""
    _begin(emit)
    mark("still")


def streaming(emit: Emit, mark: Mark) -> None:
    """One answer at 40 tokens a second, told ten times a second; memory once a second."""
    clock = _begin(emit)
    time.sleep(SETTLE_S)
    number = 21
    for event in (*traffic.asked(clock, number), *traffic.prefilled(clock, number)):
        emit(event)
    time.sleep(SETTLE_S)
    mark("begin")
    for tenth in range(STREAM_S * 10):
        time.sleep(0.1)
        clock.now_ns = time.monotonic_ns()
        emit(traffic.written(clock, number, 4))
        if tenth % 10 == 0:
            emit(traffic.memory(clock, 3_000_000_000 + tenth * 100_000))
    mark("end")


def long(emit: Emit, mark: Mark) -> None:
    """10,000 requests and a million log lines, a hundred lines to a request."""
    clock = _begin(emit)
    mark("begin")
    reads = LOG_LINES // LINES_A_READ
    for read in range(reads):
        first = read * LINES_A_READ
        lines = tuple(
            LogLine(text=traffic.PROGRESS.format(n, LOG_LINES), kind="progress", level="INFO")
            for n in range(first, first + LINES_A_READ)
        )
        emit(LogRead(at_ns=clock.tick(), origin="log", lines=lines))
        for number in range(21 + read * REQUESTS // reads, 21 + (read + 1) * REQUESTS // reads):
            for event in traffic.whole(clock, number):
                emit(event)
        emit(traffic.memory(clock, 3_000_000_000 + read * 1_000))
        time.sleep(0.01)
    mark("end")


FEEDS: dict[str, Callable[[Emit, Mark], None]] = {"still": still, "streaming": streaming, "long": long}


def _begin(emit: Emit) -> traffic.Clock:
    """A server, and twenty requests to it."""
    clock = traffic.Clock(time.monotonic_ns())
    for event in traffic.opening(clock):
        emit(event)
    for number in range(1, 21):
        for event in traffic.whole(clock, number):
            emit(event)
    return clock


def main(feed: str, session: Path, marks: Path) -> None:
    """Open the screen; the feed begins once the engine is there."""

    def mark(name: str) -> None:
        with marks.open("a") as file:
            file.write(f"{name} {time.monotonic_ns()}\n")

    @asynccontextmanager
    async def fed_engine(settings: Settings) -> AsyncIterator[Engine]:
        async with Engine(Recorder(Path(settings.save_path or ""))) as engine:
            threading.Thread(target=FEEDS[feed], args=(engine.emit, mark), daemon=True).start()
            yield engine

    setup.open_engine = fed_engine
    MonitorApp(Settings(start=AttachServer(url="http://127.0.0.1:9"), save_path=str(session))).run()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
