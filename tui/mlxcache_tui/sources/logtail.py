"""Follows a log file: one that is made later, cut, or replaced by a new one under the same name."""

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

from mlxcache_tui.core.events import AnyEvent, Noticed
from mlxcache_tui.core.loglines import LogEvent, LogReader
from mlxcache_tui.core.text import clean
from mlxcache_tui.core.units import human_bytes

CHUNK_BYTES = 32_768
"""Read at a time: parsing it takes about a millisecond, for which nothing else on this loop is stamped."""
HISTORY_BYTES = 8_000_000
"""Read of what a log already holds; a server may have written gigabytes before we came."""
PARTIAL_PATIENCE_S = 2.0
"""Seconds after which a last line without an end is shown as it is."""
QUIET_LOOKS, QUIET_TIMES = 20, 2.5
"""After so many looks that found nothing the next ones are so many times as far apart: each wakes the processor."""

Emit = Callable[[AnyEvent], None]
Clock = Callable[[], int]


async def tail(path: Path, emit: Emit, clock: Clock, *, from_start: bool, poll_s: float = 0.1) -> None:
    """Emit what is written to `path`, until cancelled: `LogRead`, `CacheCounted`, `ModelFetchProgressed`.

    Looks every `poll_s` seconds, less often while nothing is written. `from_start` tells whether what is in the file
    already is read (at most the last 8 MB). A file that cannot be read becomes one `Noticed`, and is tried again. What
    was written before the cancellation is read to its end.
    """
    follower = _Follower(path, emit, clock, from_start=from_start)
    quiet = 0
    try:
        while True:
            quiet = 0 if follower.step() else quiet + 1
            await asyncio.sleep(0 if not quiet else poll_s if quiet < QUIET_LOOKS else QUIET_TIMES * poll_s)
    finally:
        follower.finish()


class _Follower:
    def __init__(self, path: Path, emit: Emit, clock: Clock, *, from_start: bool) -> None:
        self._path, self._emit, self._clock = path, emit, clock
        self._from_start = from_start
        self._first = True
        self._file: BinaryIO | None = None
        self._identity: tuple[int, int] | None = None
        self._position = 0
        self._reader = LogReader()
        self._read_at = 0
        self._told: str | None = None

    def finish(self) -> None:
        """Read what is left (bounded: somebody may go on writing), and give back the file."""
        for _ in range(HISTORY_BYTES // CHUNK_BYTES):
            if not self.step():
                break
        self._say(self._reader.flush(self._clock()))
        self.close()

    def close(self) -> None:
        """Give back the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def step(self) -> bool:
        """Read one chunk; False if there was nothing to read."""
        try:
            if self._file is None and not self._open():
                return False
            return self._read() or self._turn()
        except OSError as error:
            self._tell("warning", f"the log {self._path} cannot be read: {(error.strerror or str(error)).lower()}")
            self.close()
            return False

    def _open(self) -> bool:
        first, self._first = self._first, False
        try:
            # Not blocking: a pipe that nobody writes to would hold up everything on this loop.
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            self._tell("info", f"there is no log at {self._path} yet: it is read as soon as there is")
            return False
        self._file = os.fdopen(descriptor, "rb", buffering=0)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            self._tell("warning", f"the log {self._path} is not a file: give the file that the server's output goes to")
            return False
        self._told = None
        self._identity = (status.st_dev, status.st_ino)
        self._reader = LogReader()
        self._position = self._start(status.st_size) if first else 0
        self._file.seek(self._position)
        return True

    def _start(self, size: int) -> int:
        """Where to begin in a file that was there before us: at the start of a line."""
        if not self._from_start:
            return size
        if size <= HISTORY_BYTES or self._file is None:
            return 0
        start = size - HISTORY_BYTES
        self._file.seek(start)
        start += self._file.read(CHUNK_BYTES).find(b"\n") + 1
        self._tell("info", f"the first {human_bytes(start)} of the log were passed over")
        return start

    def _read(self) -> bool:
        assert self._file is not None
        data = self._file.read(CHUNK_BYTES)
        now = self._clock()
        if data:
            self._position += len(data)
            self._read_at = now
            self._say(self._reader.feed(data, now))
            return True
        if self._reader.waiting and now - self._read_at > PARTIAL_PATIENCE_S * 1e9:
            self._say(self._reader.flush(now))
        return False

    def _turn(self) -> bool:
        """At the end of what there is: whether the file was cut or replaced, so that there is more to read."""
        assert self._file is not None
        if os.fstat(self._file.fileno()).st_size < self._position:
            self._say(self._reader.flush(self._clock()))
            self._reader = LogReader()
            self._position = 0
            self._file.seek(0)
            return True
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return False
        if (status.st_dev, status.st_ino) == self._identity:
            return False
        self._say(self._reader.flush(self._clock()))
        self.close()
        return True

    def _say(self, events: list[LogEvent]) -> None:
        for event in events:
            self._emit(event)

    def _tell(self, level: Literal["info", "warning"], text: str) -> None:
        if text != self._told:
            self._told = text
            self._emit(Noticed(at_ns=self._clock(), origin="log", level=level, pane="log", text=clean(text)))
