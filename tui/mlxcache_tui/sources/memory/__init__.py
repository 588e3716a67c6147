"""The server process's memory, sampled from outside, without privileges."""

import asyncio
import sys
from collections.abc import Callable

import psutil

from mlxcache_tui.core.events import AnyEvent, MemorySampled
from mlxcache_tui.sources.memory import darwin, fallback, linux
from mlxcache_tui.sources.memory.base import ProcessGoneError, Reading

STALE_S = 5.0
"""Seconds after which a sample is emitted though nothing changed: a line that ends would look like a gap."""
TOLERANCE = 0.001

_READERS: dict[str, Callable[[int], Reading]] = {"darwin": darwin.read, "linux": linux.read}


async def sample(pid: int, emit: Callable[[AnyEvent], None], clock: Callable[[], int], period_s: float = 1.0) -> None:
    """Emit `MemorySampled` every `period_s` seconds where a figure changed by more than 0.1 %, else every 5 s.

    Returns when the process is gone, after one sample that is unknown.
    """
    read = _READERS.get(sys.platform, fallback.read)
    last: MemorySampled | None = None
    while True:
        try:
            now = await asyncio.to_thread(_look, read, pid, clock)
        except ProcessGoneError:
            source = last.source if last else "rss"
            emit(MemorySampled(at_ns=clock(), origin="memory", pid=pid, source=source, bytes=None))
            return
        if last is None or now.at_ns - last.at_ns >= STALE_S * 1e9 or _differs(last, now):
            emit(now)
            last = now
        await asyncio.sleep(period_s)


def _look(read: Callable[[int], Reading], pid: int, clock: Callable[[], int]) -> MemorySampled:
    reading = read(pid)
    system = psutil.virtual_memory()
    return MemorySampled(
        at_ns=clock(),
        origin="memory",
        pid=pid,
        source=reading.source,
        bytes=reading.bytes,
        peak=reading.peak,
        system_total=int(system.total),
        system_available=int(system.available),
        limit=reading.limit,
        pressure=reading.pressure,
    )


def _differs(a: MemorySampled, b: MemorySampled) -> bool:
    if (a.source, a.limit, a.pressure) != (b.source, b.limit, b.pressure):
        return True
    pairs = ((a.bytes, b.bytes), (a.peak, b.peak))
    return any(_changed(old, new) for old, new in pairs)


def _changed(old: int | None, new: int | None) -> bool:
    if old is None or new is None:
        return old is not new
    return abs(new - old) > TOLERANCE * old
