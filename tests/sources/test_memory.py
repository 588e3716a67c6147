"""Memory of a process from outside: each system's reader on made-up answers, and the sampler on a real process."""

import asyncio
import ctypes
import errno
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from mlxcache_tui.core.events import AnyEvent, MemorySampled
from mlxcache_tui.sources import memory
from mlxcache_tui.sources.memory import darwin, fallback, linux
from mlxcache_tui.sources.memory.base import ProcessGoneError, Reading

GONE = 2**22 + 1
"""A pid above what Linux gives out."""


# --- Linux ---


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "7").mkdir(parents=True)
    cgroups.mkdir()
    return proc, cgroups


ROLLUP = """55d0c7e4c000-7ffd5b1e6000 ---p 00000000 00:00 0                          [rollup]
Rss:              210000 kB
Pss:              200000 kB
Pss_Dirty:        190000 kB
Shared_Clean:       5000 kB
Swap:               1300 kB
SwapPss:            1200 kB
"""


def test_linux_counts_pss_and_its_part_in_swap(roots: tuple[Path, Path]) -> None:
    (roots[0] / "7" / "smaps_rollup").write_text(ROLLUP)
    assert linux.read(7, *roots) == Reading("pss", 201_200 * 1024)


def test_linux_falls_back_to_resident_size_with_its_peak(
    roots: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (roots[0] / "7" / "status").write_text("Name:\tpython\nVmHWM:\t   3000 kB\nVmRSS:\t   2000 kB\n")
    monkeypatch.setattr(fallback, "read", lambda _: Reading("rss", 5))
    assert linux.read(7, *roots) == Reading("rss", 5, peak=3000 * 1024)


@pytest.mark.parametrize(
    ("group", "limits", "limit"),
    [
        ("0::/a/b\n", {"a": "500", "a/b": "max"}, 500),
        ("0::/a/b\n", {"a": "500", "a/b": "300\n"}, 300),
        ("0::/\n", {"": "800"}, 800),
        ("0::/\n", {"": "max"}, None),
        ("0::/a\n", {}, None),
        ("0::/../other\n", {"": "800"}, None),
        ("4:memory:/a\n", {"a": "500"}, None),
    ],
)
def test_linux_takes_the_lowest_limit_on_the_way_up(
    group: str, limits: dict[str, str], limit: int | None, roots: tuple[Path, Path]
) -> None:
    proc, cgroups = roots
    (proc / "7" / "cgroup").write_text(group)
    (cgroups.parent / "memory.max").write_text("1")
    for folder, text in limits.items():
        (cgroups / folder).mkdir(parents=True, exist_ok=True)
        (cgroups / folder / "memory.max").write_text(text)
    assert linux.container_limit(7, proc, cgroups) == limit


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_linux_reads_this_process() -> None:
    reading = linux.read(os.getpid())
    assert reading.source == "pss"
    assert reading.bytes is not None
    assert 1e6 < reading.bytes < 1e10
    with pytest.raises(ProcessGoneError):
        linux.read(GONE)


# --- macOS ---


class FakeLibrary:
    """Answers like the C library of macOS."""

    def __init__(self, *, rusage: bytes | None, error: int = 0, sysctls: dict[str, bytes] | None = None) -> None:
        self._rusage, self._error, self._sysctls = rusage, error, sysctls or {}
        self.asked: list[tuple[int, int]] = []

    def proc_pid_rusage(self, pid: Any, flavor: Any, buffer: Any) -> int:
        self.asked.append((pid.value, flavor.value))
        if self._rusage is None:
            ctypes.set_errno(self._error)
            return -1
        ctypes.memmove(buffer, self._rusage, len(self._rusage))
        return 0

    def sysctlbyname(self, name: bytes, value: Any, size: Any, *_: Any) -> int:
        found = self._sysctls.get(name.decode())
        if found is None:
            return -1
        ctypes.memmove(value, found, len(found))
        size._obj.value = len(found)
        return 0


def rusage(footprint: int, peak: int) -> bytes:
    """A `rusage_info_v4` in which each other field is its own number."""
    fields = list(range(1000, 1035))
    fields[7], fields[28] = footprint, peak
    return bytes(range(16)) + struct.pack("=35Q", *fields)


def test_darwin_reads_footprint_peak_limit_and_pressure() -> None:
    assert len(rusage(1, 2)) == darwin.SIZE_V4
    library = FakeLibrary(
        rusage=rusage(3_100_000_000, 3_600_000_000),
        sysctls={
            "iogpu.wired_limit_mb": struct.pack("=i", 12_000),
            "kern.memorystatus_vm_pressure_level": struct.pack("=i", 2),
        },
    )
    assert darwin.read(42, library) == Reading(
        "footprint", 3_100_000_000, peak=3_600_000_000, limit=12_000 * 2**20, pressure="warning"
    )
    assert library.asked == [(42, darwin.RUSAGE_INFO_V4)]


@pytest.mark.parametrize("level", [0, 3, 99])
def test_darwin_default_limit_and_unheard_of_pressure_are_unknown(level: int) -> None:
    sysctls = {"iogpu.wired_limit_mb": bytes(4), "kern.memorystatus_vm_pressure_level": struct.pack("=q", level)}
    reading = darwin.read(42, FakeLibrary(rusage=rusage(5, 0), sysctls=sysctls))
    assert reading == Reading("footprint", 5)


def test_darwin_on_a_mac_without_these_names() -> None:
    assert darwin.read(42, FakeLibrary(rusage=rusage(5, 6))) == Reading("footprint", 5, peak=6)


def test_darwin_where_the_process_is_gone_or_another_users(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProcessGoneError):
        darwin.read(42, FakeLibrary(rusage=None, error=errno.ESRCH))
    monkeypatch.setattr(fallback, "read", lambda _: Reading("rss", 7))
    assert darwin.read(42, FakeLibrary(rusage=None, error=errno.EPERM)) == Reading("rss", 7)


# --- anywhere else ---


def test_fallback_reads_the_resident_size() -> None:
    reading = fallback.read(os.getpid())
    assert reading.source == "rss"
    assert reading.bytes is not None
    assert reading.bytes > 1e6
    with pytest.raises(ProcessGoneError):
        fallback.read(GONE)


def test_fallback_does_not_know_what_it_may_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(pid: int) -> Any:
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr(psutil, "Process", refused)
    assert fallback.read(1) == Reading("rss", None)


def test_a_process_that_ended_and_was_not_waited_for_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        read = linux.read if sys.platform == "linux" else fallback.read
        with pytest.raises(ProcessGoneError):
            read(process.pid)


# --- the sampler ---


class Script:
    """A reader that gives one reading after the other, then says that the process is gone."""

    def __init__(self, *readings: Reading, step_s: float = 1.0) -> None:
        self._readings = list(readings)
        self._step_ns = int(step_s * 1e9)
        self.now = 0

    def clock(self) -> int:
        return self.now

    def read(self, _pid: int) -> Reading:
        self.now += self._step_ns
        if not self._readings:
            raise ProcessGoneError("gone")
        return self._readings.pop(0)


async def sampled(script: Script, monkeypatch: pytest.MonkeyPatch) -> list[MemorySampled]:
    monkeypatch.setattr(memory, "_READERS", {sys.platform: script.read})
    found: list[AnyEvent] = []
    await memory.sample(7, found.append, script.clock, period_s=0)
    return [event for event in found if isinstance(event, MemorySampled)]


def pss(count: int | None, **others: Any) -> Reading:
    return Reading("pss", count, **others)


async def test_only_changes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(pss(100_000), pss(100_050), pss(100_150), pss(100_150), pss(None), pss(None), pss(5))
    events = await sampled(script, monkeypatch)
    assert [event.bytes for event in events] == [100_000, 100_150, None, 5, None]
    assert all(event.origin == "memory" and event.pid == 7 and event.source == "pss" for event in events)
    assert events[0].system_total == psutil.virtual_memory().total
    assert events[0].system_available is not None


async def test_the_same_again_is_told_every_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    events = await sampled(Script(*[pss(100)] * 12), monkeypatch)
    assert [event.at_ns // 10**9 for event in events] == [1, 6, 11, 13]


@pytest.mark.parametrize("change", [{"limit": 5}, {"pressure": "critical"}, {"peak": 200}])
async def test_any_figure_counts_as_a_change(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    events = await sampled(Script(pss(100), pss(100, **change)), monkeypatch)
    assert len(events) == 3


async def test_a_process_that_is_not_there_is_one_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    (event,) = await sampled(Script(), monkeypatch)
    assert (event.bytes, event.source, event.system_total) == (None, "rss", None)


async def test_a_real_process_until_it_ends() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
    events: list[AnyEvent] = []

    def emit(event: AnyEvent) -> None:
        events.append(event)
        if len(events) == 1:
            process.kill()

    async with asyncio.timeout(60):
        await memory.sample(process.pid, emit, time.monotonic_ns, period_s=0.01)
        await process.wait()
    first, *_, last = [event for event in events if isinstance(event, MemorySampled)]
    assert first.bytes is not None
    assert last.bytes is None
    assert last.source == first.source
