"""Memory: of the process from outside, of MLX from inside."""

from typing import Literal

from mlxcache_tui.core.events.base import Event


class MlxMemorySampled(Event, frozen=True, kw_only=True):
    """MLX's own counters, bytes. Active leaves out the pool; peak is since the process began."""

    active: int
    pool: int
    peak: int


class MemorySampled(Event, frozen=True, kw_only=True):
    """The server process seen from outside, bytes; None is unknown (drawn as a gap).

    `source` names the figure: `footprint` (macOS), `pss` (Linux: smaps_rollup Pss + SwapPss) or `rss`. `limit` is the
    wired or working-set limit on macOS, the container's on Linux. `pressure` is what the system itself calls it.
    """

    pid: int
    source: Literal["footprint", "pss", "rss"]
    bytes: int | None
    peak: int | None = None
    system_total: int | None = None
    system_available: int | None = None
    limit: int | None = None
    pressure: Literal["normal", "warning", "critical"] | None = None
