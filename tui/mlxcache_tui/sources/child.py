"""The server process that we started: spawn, watch, stop. It never outlives us unless it is told to.

Its standard input is a leash: a pipe that only we hold the other end of. However we end (kill -9 too) the pipe closes,
and the observer inside the server ends the process. Its output goes to a file, so that nobody's slowness ever blocks it
and its last words survive it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

STOP_PATIENCE_S = 5.0


class Child:
    """One server process."""

    def __init__(self, command: Sequence[str], *, log_path: Path, env: Mapping[str, str], leash: bool) -> None:
        """Start it.

        Raises:
            OSError: the program or the log file cannot be opened; the text names which.
        """
        log_path.unlink(missing_ok=True)
        descriptor = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o600)
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE if leash else subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **env},
                start_new_session=True,
            )
        finally:
            os.close(descriptor)
        self._log_path = log_path
        self.pid = self._process.pid
        self.stopping = False

    def poll(self) -> int | None:
        """The exit status (negative: the signal), None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Ask it to end (SIGTERM ends mlx_lm.server at once)."""
        self.stopping = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)

    def release(self) -> None:
        """Close our end of the leash, if there is one."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def last_lines(self, count: int = 20) -> tuple[str, ...]:
        """The end of its output, at most 16 KB of it."""
        try:
            with self._log_path.open("rb") as file:
                file.seek(max(0, self._log_path.stat().st_size - 16_384))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return ()
        return tuple(line for line in text.splitlines() if line.strip())[-count:]


def exit_of(status: int) -> tuple[int | None, str | None]:
    """An exit status as (code, signal name): one of them is None."""
    if status >= 0:
        return status, None
    try:
        return None, signal.Signals(-status).name
    except ValueError:
        return None, str(-status)


def server_python(python: str | None) -> str:
    """The interpreter for the server: the one named, else ours."""
    return python or sys.executable
