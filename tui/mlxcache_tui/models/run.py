"""Runs a helper program that can be stopped, and lets one process at a time do a piece of work."""

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import IO

import msgspec

from mlxcache_tui.core.text import clean

POLL_S = 0.1
KILL_AFTER_S = 3.0


class StoppedError(Exception):
    """The caller's cancel event was set."""


class Finished(msgspec.Struct, frozen=True):
    """How a program ended: its exit status (negative: the signal) and its standard error."""

    status: int
    errors: str


def run(
    argv: list[str],
    *,
    cancel: Event,
    on_line: Callable[[str], None] | None = None,
    on_tick: Callable[[], None] | None = None,
    env: dict[str, str] | None = None,
) -> Finished:
    """Run to the end; `on_line` gets each line of standard output, `on_tick` is called about ten times a second.

    Output goes through files, not pipes: nothing blocks, whatever the program writes.

    Raises:
        StoppedError: `cancel` was set; the program has ended.
        OSError: it cannot be started.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, env=env)
        lines = _Lines(out, on_line)
        try:
            while process.poll() is None:
                if cancel.wait(POLL_S):
                    raise StoppedError
                lines.read()
                if on_tick:
                    on_tick()
        finally:
            _end(process)
        lines.read()
        size = os.fstat(errors.fileno()).st_size
        return Finished(process.returncode, os.pread(errors.fileno(), size, 0).decode(errors="replace"))


class _Lines:
    """Whole lines of a growing file; read by position, since the program shares the file's own offset."""

    def __init__(self, file: IO[bytes], on_line: Callable[[str], None] | None) -> None:
        self._file = file
        self._on_line = on_line
        self._at = 0

    def read(self) -> None:
        if self._on_line is None:
            return
        size = os.fstat(self._file.fileno()).st_size
        piece = os.pread(self._file.fileno(), size - self._at, self._at)
        whole = piece[: piece.rfind(b"\n") + 1]
        self._at += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            self._on_line(line)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(KILL_AFTER_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(errors: str, limit: int = 160) -> str:
    """The last line that says something, cleaned, for a one-line message."""
    lines = [clean(line).strip() for line in errors.splitlines()]
    said = [line for line in lines if line]
    if not said:
        return "it said nothing"
    return said[-1] if len(said[-1]) <= limit else said[-1][: limit - 1] + "…"


@contextmanager
def lock(path: Path, cancel: Event, *, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock on a file; the system gives it back when a process ends, however it ends.

    Raises:
        StoppedError: `cancel` was set while waiting.
    """
    with path.open("a") as file:
        told = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    on_wait()
                    told = True
            if cancel.wait(POLL_S):
                raise StoppedError
        yield
