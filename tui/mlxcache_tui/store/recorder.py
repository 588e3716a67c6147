"""The session file: every event as one line of JSON, appended as it comes.

A kill -9 loses at most the last 200 ms; a full disk ends the recording, never the program.
"""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from mlxcache_tui.core.codec import encode_event
from mlxcache_tui.core.events import Event
from mlxcache_tui.store.paths import named_path, time_since

FLUSH_S = 0.2
"""Seconds that a line waits at most before it is handed to the operating system."""
RECENT_S = 5.0
"""Seconds: memory is sampled, and written down, every second."""
_SMALL_HEAP = 64_000


def save_problem(target: str) -> str | None:
    """Why no session can be recorded at `target`, in one line, told before anything is started; None if it can."""
    try:
        return _problem(target, named_path(target))
    except OSError as error:
        return f"{target}: cannot be written: {(error.strerror or str(error)).lower()}"


def _problem(target: str, path: Path) -> str | None:
    if path.is_file():
        return f"{target} is there already: a session is one file; choose another name, or delete it"
    if path.is_fifo():
        return f"{target} is a pipe, which waits for a reader; expected the name of a new file"
    if path.is_dir():
        return f"{target} is a folder; expected the name of a new file"
    if not path.parent.is_dir():
        return f"{target}: there is no folder {path.parent}"
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return f"{target}: cannot be written: permission denied"
    return None


def _open(path: Path) -> int:
    """A new file that is nobody else's; what is no file (/dev/null) is written as it is."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    if path.exists() and not path.is_file():
        return os.open(path, flags)
    descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks records all the same
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def is_recording(path: Path) -> bool:
    """Whether a program is recording into this file: it holds a lock on it, which ends with it however it ends.

    Where the file system knows no locks, a file counts that was written in the last `RECENT_S`.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return time_since(os.fstat(file.fileno()).st_mtime) < RECENT_S
    return False


class Recorder:
    """Appends events to a new file, from any thread; `on_failure` is told once, in one line, when that ends early."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.on_failure: Callable[[str], None] | None = None
        self.failed = False
        """It ended early, or never began: the file at `path` is not the whole session, and may be somebody else's."""
        self._lock = threading.Lock()
        self._pending = bytearray()
        self._descriptor: int | None = None
        self._timer: threading.Timer | None = None
        self._flushed_at = float("-inf")
        self._over = False

    def append(self, event: Event) -> None:
        """Take in an event. The first one makes the file (0600)."""
        try:
            line = encode_event(event)
        except UnicodeEncodeError:
            # Half a surrogate pair in a text that somebody typed: no JSON can hold it. The rest of the session can.
            return
        with self._lock:
            if self._over:
                return
            self._pending += line
            failure = None
            if len(self._pending) > _SMALL_HEAP or time.monotonic() - self._flushed_at >= FLUSH_S:
                failure = self._flush()
            elif self._timer is None:
                self._timer = threading.Timer(FLUSH_S, self._flush_late)
                self._timer.daemon = True
                self._timer.start()
        self._tell(failure)

    def close(self) -> None:
        """Write what is left. Later events are let go."""
        with self._lock:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            timer.join()
        with self._lock:
            failure = None if self._over else self._flush()
            self._end()
        self._tell(failure)

    def _flush_late(self) -> None:
        with self._lock:
            self._timer = None
            failure = None if self._over else self._flush()
        self._tell(failure)

    def _flush(self) -> str | None:
        """Hand the pending lines over; the failure in one line if that does not go."""
        if not self._pending:
            return None
        try:
            if self._descriptor is None:
                self._descriptor = _open(self.path)
            while self._pending:
                del self._pending[: os.write(self._descriptor, self._pending)]
        except OSError as error:
            self._end()
            return f"the session is no longer recorded: {self.path}: {(error.strerror or str(error)).lower()}"
        self._flushed_at = time.monotonic()
        return None

    def _end(self) -> None:
        self._over = True
        self._pending.clear()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _tell(self, failure: str | None) -> None:
        if failure is not None:
            self.failed = True
            # Outside the lock: whoever is told may append an event.
            if self.on_failure is not None:
                self.on_failure(failure)
