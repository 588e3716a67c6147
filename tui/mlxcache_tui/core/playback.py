"""The course of a recorded session: where in time each event lies, and the places that one wants to go to.

A position is a number of events from the start: at 0 nothing has happened yet.
"""

from bisect import bisect_left, bisect_right
from typing import Literal

import msgspec

from mlxcache_tui.core import events as ev

Landmark = Literal["request", "eviction"]
SPEEDS: tuple[float | None, ...] = (1, 2, 5, 10, 50, None)
"""Times as fast as it was; None is as fast as it goes."""


class PlaybackView(msgspec.Struct, frozen=True, kw_only=True):
    """What the replay's line shows. Times are monotonic ns; `wall_ns` minus `start_ns` is since the epoch at the start.

    `state`: `playing`, `paused`, `following` (at the end of a file that grows) or `reading` (the file is being read).
    `note`: why the last key led nowhere.
    """

    state: Literal["playing", "paused", "following", "reading"]
    speed: float | None
    position: int
    count: int
    start_ns: int
    at_ns: int
    end_ns: int
    wall_ns: int | None
    request: int
    requests: int
    marks: tuple[tuple[int, Literal["eviction", "restart"]], ...]
    damage: str | None
    note: str = ""


MARK_NS = 200_000_000
"""Marks of one kind nearer to each other than this are one: they lie in one cell of the time line."""
_LANDMARKS = frozenset(
    {
        ev.ObserverLost,
        ev.ServerExited,
        ev.RequestComposed,
        ev.ServerLaunched,
        ev.ObserverConnected,
        ev.EntryEvicted,
        ev.SessionStarted,
    }
)


class Track:
    """Times and landmarks of the events that were added, in the file's order.

    The events of a file are in the order in which they were learned, not quite of their stamps (a viewer that comes
    late is told the past): what was learned at a time cannot be shown before it, so that the time never runs back.
    """

    def __init__(self) -> None:
        self.times: list[int] = []
        self.requests: list[int] = []
        self.evictions: list[int] = []
        self.marks: list[tuple[int, Literal["eviction", "restart"]]] = []
        self.wall_ns: int | None = None
        self.closing: int | None = None
        """Where our own stopping of the server begins, if nothing came after it: the last look is the one before."""
        self._lost: int | None = None
        self._keys: set[str] = set()
        self._launched = False

    def add(self, event: ev.AnyEvent) -> None:
        """The next event."""
        at_ns, times = event.at_ns, self.times
        times.append(at_ns if not times or at_ns > times[-1] else times[-1])
        if type(event) in _LANDMARKS:  # nearly all of them are not
            self._add_landmark(event, len(times) - 1)

    def _add_landmark(self, event: ev.AnyEvent, position: int) -> None:
        match event:
            case ev.ObserverLost():
                self._lost = position
            case ev.ServerExited(asked=True) if self.closing is None:
                self.closing = self._lost if self._lost is not None else position
            case ev.RequestComposed() | ev.ServerLaunched() | ev.ObserverConnected():
                self._lost = self.closing = None
        match event:
            case ev.RequestComposed(key=key, purpose=purpose) if purpose != "readiness" and key not in self._keys:
                self._keys.add(key)
                self.requests.append(position)
            case ev.EntryEvicted():
                self.evictions.append(position)
                self._mark("eviction")
            case ev.ServerLaunched():
                if self._launched:
                    self._mark("restart")
                self._launched = True
            case ev.SessionStarted(wall_ns=wall_ns) if self.wall_ns is None:
                self.wall_ns = wall_ns

    def _mark(self, kind: Literal["eviction", "restart"]) -> None:
        """Marks that would lie on top of each other are one."""
        mark = self.times[-1], kind
        if not self.marks or self.marks[-1][1] != kind or mark[0] - self.marks[-1][0] >= MARK_NS:
            self.marks.append(mark)

    def time_at(self, position: int) -> int:
        """The time that a position shows: of its last event; before the first one, that one's own."""
        return self.times[max(0, position - 1)] if self.times else 0

    def position_at(self, time_ns: int) -> int:
        """How many events were known at a time."""
        return bisect_right(self.times, time_ns)

    def next(self, kind: Landmark, position: int) -> int:
        """The position to go to for the next landmark; the end if there is none.

        For an eviction right behind it. For a request right before the next one is composed, so that all that one did
        is there.
        """
        if kind == "eviction":
            at = bisect_left(self.evictions, position)
            return self.evictions[at] + 1 if at < len(self.evictions) else len(self.times)
        at = bisect_right(self.requests, position)
        return self.requests[at] if at < len(self.requests) else len(self.times)

    def previous(self, kind: Landmark, position: int) -> int:
        """The same backwards; the start if there is none."""
        if kind == "eviction":
            at = bisect_left(self.evictions, position - 1) - 1
            return self.evictions[at] + 1 if at >= 0 else 0
        at = bisect_left(self.requests, position) - 1
        return self.requests[at] if at >= 0 else 0

    def requests_before(self, position: int) -> int:
        """How many requests were composed before a position."""
        return bisect_left(self.requests, position)
