"""macOS: the footprint that Activity Monitor shows, by `proc_pid_rusage`; no privilege needed for one's own processes.

Layout of `struct rusage_info_v4` (Apple, sys/resource.h): 16 bytes of uuid, then 35 unsigned 64-bit fields.
`ri_phys_footprint` is the eighth of them in every version (byte 72), `ri_lifetime_max_phys_footprint` the 29th (240).
"""

import ctypes
import errno
import struct
from typing import Any

from mlxcache_tui.sources.memory import fallback
from mlxcache_tui.sources.memory.base import Pressure, ProcessGoneError, Reading

RUSAGE_INFO_V4 = 4
SIZE_V4 = 296
FOOTPRINT_OFFSET = 72
LIFETIME_MAX_OFFSET = 240
_PRESSURES: dict[int, Pressure] = {1: "normal", 2: "warning", 4: "critical"}


def parse_rusage(data: bytes) -> tuple[int, int]:
    """Footprint and its lifetime maximum, bytes, of a `rusage_info_v4`."""
    return (
        struct.unpack_from("=Q", data, FOOTPRINT_OFFSET)[0],
        struct.unpack_from("=Q", data, LIFETIME_MAX_OFFSET)[0],
    )


def read(pid: int, library: Any = None) -> Reading:
    """The footprint of a process, its peak, the wired limit for Metal and the pressure the system is under.

    `library` is the C library with `proc_pid_rusage` and `sysctlbyname`. Where the kernel refuses, the resident size.

    Raises:
        ProcessGoneError: it has ended.
    """
    library = library or ctypes.CDLL(None, use_errno=True)
    megabytes = sysctl(library, "iogpu.wired_limit_mb")
    limit = megabytes * 1024 * 1024 if megabytes else None
    pressure = _PRESSURES.get(sysctl(library, "kern.memorystatus_vm_pressure_level") or 0)
    buffer = ctypes.create_string_buffer(SIZE_V4)
    if library.proc_pid_rusage(ctypes.c_int(pid), ctypes.c_int(RUSAGE_INFO_V4), buffer) != 0:
        if ctypes.get_errno() == errno.ESRCH:
            raise ProcessGoneError(f"process {pid} has ended")
        return Reading("rss", fallback.read(pid).bytes, limit=limit, pressure=pressure)
    footprint, peak = parse_rusage(buffer.raw)
    return Reading("footprint", footprint, peak=peak or None, limit=limit, pressure=pressure)


def sysctl(library: Any, name: str) -> int | None:
    """An integer that the kernel tells under a name (4 or 8 bytes long); None if it has no such name."""
    value = ctypes.create_string_buffer(8)
    size = ctypes.c_size_t(8)
    if library.sysctlbyname(name.encode(), value, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        return None
    return int.from_bytes(value.raw[: size.value], "little") if size.value in (4, 8) else None
