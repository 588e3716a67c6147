"""Plays a session file: stands where the engine stands, and folds recorded events instead of new ones.

It opens at the end, so that all that happened is there to look at, unless a speed was asked for: then it plays from the
start. A file that still grows is followed while nobody has gone elsewhere in it. Going back folds anew from the start.
Reading and folding are done in slices, so that the screen stays alive over a long file.
"""

import asyncio
import contextlib
import gc
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.commands import Command
from mlxcache_tui.core.playback import SPEEDS, Landmark, PlaybackView, Track
from mlxcache_tui.core.reduce import Part, apply
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.engine.face import Face
from mlxcache_tui.store.replay import SessionReader

TICK_S = 0.1
"""Seconds between two folds while it plays: at most ten a second, as live."""
SLICE_S = 0.08
"""Seconds of reading and folding at a stretch: a key that is pressed meanwhile waits no longer."""
TELL_S = 0.5
"""Seconds between two looks at how far it is, while a long way is folded; the panes are drawn when it is done."""
LOOK_S = 0.5
"""Seconds between two looks at whether the file grew."""
FRESH_S = 5.0
"""Seconds since the last write within which a file is taken to be growing: memory is sampled every second."""
LINES = 500
"""Lines that are read before the clock is looked at."""
AHEAD = 100
"""Events that are read but not folded while more are to be read: how it ended decides about the last ones."""
ALL: frozenset[Part] = frozenset({"server", "requests", "cache", "memory", "log", "notices"})


class Player(Face):
    """One session file. `speed`: None opens at the end; a number, or infinity for as fast as it goes, plays at once."""

    def __init__(self, path: Path, speed: float | None = None, clock: Callable[[], int] = time.monotonic_ns) -> None:
        super().__init__()
        self.state.replayed = True
        self.track = Track()
        self.rewinds = 0
        """How often the state was made anew: what was kept of the one before is worth nothing."""
        self.playing = speed is not None
        self.speed: float | None = 1.0 if speed is None else (None if math.isinf(speed) else speed)
        self._clock = clock
        self._reader = SessionReader(path)
        self._events: list[ev.AnyEvent] = []
        self._position = 0
        self._goal: int | None = None if speed is None else 0
        """Where to go; None is the end, wherever that will be."""
        self._opening = speed is None
        """Go to the last look: before the server was stopped, if that is how it ended."""
        self._note = ""
        self._anchor = (0, 0)
        self._growing = False
        self._looked_ns = self._told_ns = 0
        self._seen: tuple[object, ...] = ()
        self._untold: set[Part] = set(ALL)
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()

    async def __aenter__(self) -> "Player":
        """Begin, and go on by itself.

        Raises:
            OSError: the file cannot be read.
        """
        self.begin()
        self._task = asyncio.get_running_loop().create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def begin(self) -> None:
        """Take the file in; the recording's clock runs from now on if it is to play.

        Raises:
            OSError: the file cannot be read.
        """
        self._reader.look()
        self._looked_ns = self._clock()
        self._read(LINES)
        self._set_anchor()

    # --- what a face asks of an engine ---

    @property
    def recording(self) -> Path:
        """The file that is played."""
        return self._reader.path

    def submit(self, command: Command) -> None:
        """Nothing is sent."""

    def new_key(self) -> str:
        """A key under which nothing will come."""
        return "recorded"

    def emit(self, event: ev.AnyEvent) -> None:
        """Nothing is added to a recording."""

    # --- what the replay's keys ask ---

    @property
    def view(self) -> PlaybackView:
        """Where it stands."""
        track, count = self.track, len(self._events)
        return PlaybackView(
            state=self._standing(),
            speed=self.speed,
            position=self._position,
            count=count + self._reader.left,
            start_ns=track.time_at(0),
            at_ns=track.time_at(self._position),
            end_ns=track.time_at(count),
            wall_ns=track.wall_ns,
            request=track.requests_before(self._position),
            requests=len(track.requests),
            marks=tuple(track.marks),
            damage=self._unread(),
            note=self._note,
        )

    def _unread(self) -> str | None:
        """What of the file is not shown."""
        damage, unknown = self._reader.damage(growing=self._growing), self._reader.unknown
        if damage is not None:
            return f"damaged: {damage}"
        return f"{unknown} events of kinds that a newer version writes are not shown" if unknown else None

    def _standing(self) -> Literal["playing", "paused", "following", "reading"]:
        if self.playing:
            return "playing"
        if self._reader.left or self._position < self._target():
            return "reading"
        return "following" if self._goal is None and self._growing else "paused"

    def toggle(self) -> None:
        """Play or pause; at the end of a finished file, or where it opened, play from the start."""
        self._note = ""
        self.playing = not self.playing
        opened = self._opening and self._goal is None
        if not self.playing:
            self._goal = self._position
        elif self._position >= (self._last_look() if opened else len(self._events)) and not self._reader.left:
            self._go(0)
        self._set_anchor()
        self._changed()

    def change_speed(self, by: int) -> None:
        """The next faster or slower speed of those offered."""
        now = math.inf if self.speed is None else self.speed
        offered = [math.inf if speed is None else speed for speed in SPEEDS]
        others = [speed for speed in offered if (speed > now if by > 0 else speed < now)]
        if others:
            chosen = min(others) if by > 0 else max(others)
            self.speed = None if math.isinf(chosen) else chosen
        self._set_anchor()
        self._changed()

    def step(self, by: int) -> None:
        """One event on or back."""
        self._move("event", self._bound_for + by)

    def jump(self, kind: Landmark, by: int) -> None:
        """To the next request or eviction, or the one before."""
        at = self._bound_for
        self._move(kind, self.track.next(kind, at) if by > 0 else self.track.previous(kind, at))

    def _move(self, kind: str, position: int) -> None:
        """Go there; where it stands at that end already it says so."""
        at, end = self._bound_for, len(self._events)
        last = end if kind == "event" else self._last_look()  # behind it only the server's end is left
        if last <= at and end <= position and not self._reader.left:
            self._note = f"no further {kind}; < to the start"
        elif position <= 0 == at:
            self._note = f"no {kind} before this; > to the end"
        else:
            self._halt_at(position)
            return
        self._changed()

    def seek(self, share: float) -> None:
        """To a place on the time line: 0 is the start, 1 the end."""
        start, end = self.track.time_at(0), self.track.time_at(len(self._events))
        self._halt_at(self.track.position_at(start + int((end - start) * share)))

    def to_start(self) -> None:
        """Before the first event."""
        self._halt_at(0)

    def to_end(self) -> None:
        """Behind the last event; a file that grows is followed again."""
        self.playing, self._goal, self._opening, self._note = False, None, False, ""
        self._changed()

    def _last_look(self) -> int:
        count = len(self._events)
        if self._reader.left:
            return max(0, count - AHEAD)
        return count if self._growing or self.track.closing is None else self.track.closing

    @property
    def _bound_for(self) -> int:
        """Where it stands, or the place it is on its way to: keys that come faster than it folds all count."""
        return self._position if self.playing or self._goal is None else self._goal

    def _halt_at(self, position: int) -> None:
        self.playing, self._note = False, ""
        self._go(max(0, min(position, len(self._events))))
        self._changed()

    def _go(self, position: int) -> None:
        if position < self._position:
            self.state = SessionState(replayed=True)
            self.rewinds += 1
            self._position = 0
            self._untold |= ALL
        self._goal = position

    def _set_anchor(self) -> None:
        """From here and now on the recording's clock runs at the speed."""
        self._anchor = (self._clock(), self.track.time_at(self._position))

    def _changed(self) -> None:
        self._wake.set()

    # --- the work ---

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            if self._clock() - self._looked_ns >= LOOK_S * 1e9:
                await self._look()
            busy = self._work_slice()
            try:
                async with asyncio.timeout(0 if busy else TICK_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _work_slice(self) -> bool:
        """Read and fold for a moment, and tell if it is time to; whether there is more to do at once."""
        self._untold |= self.work(SLICE_S)
        busy = bool(self._reader.left) or self._position < self._target()
        seen = (self._position, len(self._events), self.playing, self.speed, self._growing, self._note)
        due = self._clock() - self._told_ns >= TELL_S * 1e9
        if seen != self._seen and (due or not busy):
            self._seen, self._told_ns = seen, self._clock()
            changed: frozenset[Part] = frozenset() if busy else frozenset(self._untold)
            self._untold -= changed
            self.tell(changed)
        return busy

    async def _look(self) -> None:
        """See whether the file has grown; one that cannot be read any more has ended."""
        self._looked_ns = self._clock()
        try:
            self._growing = await asyncio.to_thread(self._reader.look) or self._is_fresh()
        except OSError:
            self._growing = False

    def _is_fresh(self) -> bool:
        age = time.clock_gettime(time.CLOCK_REALTIME) - self._reader.path.stat().st_mtime
        return age < FRESH_S

    def work(self, limit_s: float = math.inf) -> frozenset[Part]:
        """Read and fold towards the goal for so long; returns the parts that changed."""
        deadline = self._clock() + limit_s * 1e9
        parts: set[Part] = set()
        collecting = gc.isenabled()
        read = len(self._events)
        gc.disable()  # hundreds of thousands of events, all of which stay: nothing among them can be collected
        try:
            while self._clock() < deadline:
                self._read(LINES)
                parts |= self._fold(LINES)
                if not self._reader.left and self._position >= self._target():
                    break
        finally:
            if len(self._events) - read >= LINES:
                gc.freeze()
            if collecting:
                gc.enable()
        if self.playing and self._position >= len(self._events) and not self._reader.left:
            self.playing, self._goal, self._opening = False, None, False
        return frozenset(parts)

    def _read(self, most: int) -> None:
        events = self._reader.read(most)
        self._events += events
        for event in events:
            self.track.add(event)

    def _fold(self, most: int) -> set[Part]:
        target = min(self._target(), self._position + most)
        if target > self._position:
            self._note = ""
        parts: set[Part] = set()
        for event in self._events[self._position : target]:
            parts |= apply(self.state, event)
        self._position = max(self._position, target)
        return parts

    def _target(self) -> int:
        """How many events should be folded by now."""
        if not self.playing:
            end = self._last_look() if self._opening else len(self._events)
            return end if self._goal is None else self._goal
        if self.speed is None:
            return len(self._events)
        clock, track = self._anchor
        return self.track.position_at(track + int((self._clock() - clock) * self.speed))
