"""Linux: Pss and SwapPss of `/proc/PID/smaps_rollup`; the limit is the container's (cgroup v2).

Pss counts a page shared by n processes as a part of n, so that mapped libraries are not the server's alone. Reading it
walks the process's page tables (milliseconds for some gigabytes): call it from a thread of its own.
"""

import re
from pathlib import Path

from mlxcache_tui.sources.memory import fallback
from mlxcache_tui.sources.memory.base import ProcessGoneError, Reading

_FIELD = re.compile(r"^(Pss|SwapPss): +(\d+) kB$", re.MULTILINE)
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_CGROUP = re.compile(r"^0::(/.*)$", re.MULTILINE)


def read(pid: int, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> Reading:
    """The memory of a process, by Pss where it may be read (same user), else by resident size.

    Raises:
        ProcessGoneError: it has ended.
    """
    limit = container_limit(pid, proc, cgroups)
    try:
        fields = dict(_FIELD.findall((proc / str(pid) / "smaps_rollup").read_text()))
    except ProcessLookupError as error:
        # Also what the kernel says of a process that has ended and was not waited for.
        raise ProcessGoneError(f"process {pid} has ended") from error
    except OSError:
        fields = {}
    if "Pss" not in fields:
        resident = fallback.read(pid)
        return Reading("rss", resident.bytes, peak=_resident_peak(pid, proc), limit=limit)
    return Reading("pss", (int(fields["Pss"]) + int(fields.get("SwapPss", 0))) * 1024, limit=limit)


def container_limit(pid: int, proc: Path, cgroups: Path) -> int | None:
    """The lowest `memory.max` of the process's cgroup and those above it, bytes; None: no limit, or not cgroup v2."""
    try:
        match = _CGROUP.search((proc / str(pid) / "cgroup").read_text())
    except OSError:
        return None
    if match is None or ".." in match.group(1):
        return None
    folder = cgroups / match.group(1).lstrip("/")
    limits = [_number(level / "memory.max") for level in (folder, *folder.parents) if level.is_relative_to(cgroups)]
    return min((limit for limit in limits if limit is not None), default=None)


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _resident_peak(pid: int, proc: Path) -> int | None:
    try:
        match = _PEAK.search((proc / str(pid) / "status").read_text())
    except OSError:
        return None
    return int(match.group(1)) * 1024 if match else None
