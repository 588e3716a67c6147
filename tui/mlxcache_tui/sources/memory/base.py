"""What each system's reader gives: the memory of one process, in bytes."""

from dataclasses import dataclass
from typing import Literal

Source = Literal["footprint", "pss", "rss"]
Pressure = Literal["normal", "warning", "critical"]


class ProcessGoneError(Exception):
    """There is no such process any more."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a process; bytes, None is unknown. `peak` is since the process began, as the system keeps it."""

    source: Source
    bytes: int | None
    peak: int | None = None
    limit: int | None = None
    pressure: Pressure | None = None
