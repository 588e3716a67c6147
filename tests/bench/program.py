"""A program in a pseudo-terminal of 120×40: what it writes and when, what then stands on the screen, what it costs."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil
import pyte

COLUMNS, LINES = 120, 40
PATIENCE_S = 60.0
_LEFT_OUT = ("LINES", "COLUMNS", "PYTHONDONTWRITEBYTECODE")
"""Of the environment. A program that compiles all its modules at each start is nobody's."""
MAIN = (sys.executable, "-m", "mlxcache_tui.cli.main")


class Program:
    """Runs from the first moment on; each piece that it writes is kept with the time (monotonic ns) of its reading."""

    def __init__(self, *command: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.reads: list[tuple[int, bytes]] = []
        # Named in full: what readline puts into the environment behind Python's back (LINES, COLUMNS) is left out.
        env = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
        self.began_ns = time.monotonic_ns()
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)
        self.psutil = psutil.Process(self.process.pid)
        self._over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # the other end is closed: the program is gone
            while not self._over:
                if select.select([self._master], [], [], 0.05)[0]:
                    self.reads.append((time.monotonic_ns(), os.read(self._master, 65_536)))

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._master, keys)

    def close(self) -> None:
        """End it, by SIGTERM first, so that it stops its server."""
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._over = True
        self._reader.join()
        os.close(self._master)

    def cpu_s(self) -> float:
        """Seconds of CPU that the program itself took so far."""
        times = self.psutil.cpu_times()
        return float(times.user + times.system)

    def bytes_between(self, first_ns: int, last_ns: int) -> int:
        """Bytes written to the terminal in a span of time."""
        return sum(len(data) for at_ns, data in self.reads if first_ns <= at_ns < last_ns)

    def screen(self) -> list[str]:
        """The lines that stand on the screen now."""
        drawn = pyte.Screen(COLUMNS, LINES)
        pyte.ByteStream(drawn).feed(b"".join(data for _, data in list(self.reads)))
        return list(drawn.display)

    def shown_ns(self, *texts: str, limit_s: float = PATIENCE_S) -> int:
        """When all of these texts stood on the screen together for the first time; waits for it."""
        drawn = pyte.Screen(COLUMNS, LINES)
        stream = pyte.ByteStream(drawn)
        index = 0
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            while index < len(self.reads):
                at_ns, data = self.reads[index]
                index += 1
                stream.feed(data)
                shown = "\n".join(drawn.display)
                if all(text in shown for text in texts):
                    return at_ns
            assert self.process.poll() is None, "\n".join(drawn.display)
            time.sleep(0.005)
        raise AssertionError(f"{texts} not shown within {limit_s:g} s:\n" + "\n".join(drawn.display))


@contextmanager
def running(*command: str) -> Iterator[Program]:
    """A program that is ended with the block."""
    program = Program(*command)
    try:
        yield program
    finally:
        program.close()


def wait_for(holds: Callable[[], bool], what: str, limit_s: float = PATIENCE_S) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, f"no {what} within {limit_s:g} s"
        time.sleep(0.02)
