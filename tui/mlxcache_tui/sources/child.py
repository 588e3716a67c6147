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

import psutil

from mlxcache_tui.core.settings import API_KEY_VARIABLE
from mlxcache_tui.core.text import bounded, clean

LAST_BYTES = 16_384


class Child:
    """One server process."""

    def __init__(self, command: Sequence[str], *, log_path: Path, env: Mapping[str, str], leash: bool) -> None:
        """Start it.

        Raises:
            OSError: the program or the log file cannot be opened; the text names which. Nothing is left behind.
        """
        log_path.unlink(missing_ok=True)
        descriptor = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o600)
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE if leash else subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                env={**_environment(), "PYTHONUNBUFFERED": "1", **env},
                start_new_session=True,
            )
        except OSError:
            log_path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        self._log_path = log_path
        self.pid = self._process.pid
        self.stopping = False

    def poll(self) -> int | None:
        """The exit status (negative: the signal), None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Ask it to end (SIGTERM ends mlx_lm.server at once, also one that was stopped by a signal)."""
        # One that ended by itself was not stopped by us: how it ended is still told, and its log kept.
        self.stopping = self.poll() is None
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)

    def release(self) -> None:
        """Close our end of the leash, if there is one: a process that still hangs on it ends."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def let_go(self) -> None:
        """Leave it running, for good: it has no leash."""
        # Popen warns about a process that nobody waited for; nobody will, and the system takes it over when we end.
        self._process.returncode = self._process.poll() or 0

    def last_lines(self, count: int = 20) -> tuple[str, ...]:
        """The end of its output, cleaned, at most 16 KB of it."""
        try:
            with self._log_path.open("rb") as file:
                file.seek(max(0, self._log_path.stat().st_size - LAST_BYTES))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return ()
        return tuple(bounded(clean(line)) for line in text.splitlines() if line.strip())[-count:]


def _environment() -> dict[str, str]:
    """Ours, without the key: whatever a server loads could read it."""
    return {name: value for name, value in os.environ.items() if name != API_KEY_VARIABLE}


def is_held(pid: int) -> bool:
    """Whether a process is stopped by a signal (SIGSTOP, ctrl+z) and waits to be continued."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def command_of(pid: int) -> list[str]:
    """The command line of a process, word by word; empty if it may not be read."""
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


def model_of(words: list[str]) -> str | None:
    """The model that a server's command line names; None if it names none."""
    for word, following in zip(words, (*words[1:], ""), strict=False):
        if word.startswith("--model="):
            return clean(word.removeprefix("--model="))
        if word == "--model" and following:
            return clean(following)
    return None


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
