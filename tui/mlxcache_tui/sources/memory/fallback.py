"""Resident size by psutil: what is left where nothing better can be read.

It counts clean file pages and misses what is compressed or swapped, so it is named `rss` wherever it is shown.
"""

import psutil

from mlxcache_tui.sources.memory.base import ProcessGoneError, Reading


def read(pid: int) -> Reading:
    """The resident size of a process.

    Raises:
        ProcessGoneError: it has ended.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            raise ProcessGoneError(f"process {pid} has ended")
        return Reading("rss", int(process.memory_info().rss))
    except psutil.AccessDenied:
        return Reading("rss", None)
    except psutil.NoSuchProcess as error:
        raise ProcessGoneError(f"process {pid} has ended") from error
