"""Engines on real servers, the program in a terminal of its own, and the server processes that they leave or do not."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psutil

from mlxcache_tui.core.commands import AttachServer, CancelRequest, Draft, SendRequest, ServerSpec
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.state import RequestState, SessionState
from mlxcache_tui.engine.engine import Engine
from mlxcache_tui.engine.setup import open_engine

PATIENCE_S = 120.0
MAIN = [sys.executable, "-m", "mlxcache_tui.cli.main"]
# In a session of its own with the terminal as its controlling one, as a shell starts a program.
IN_TERMINAL = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
TINY = ServerSpec(model="demo:tiny", port=0, python=os.environ.get("MLXCACHE_SERVER_PYTHON"))


@asynccontextmanager
async def running(start: ServerSpec | AttachServer | None = TINY) -> AsyncIterator[Engine]:
    """An engine that was told to start or attach."""
    async with open_engine(Settings(start=start)) as engine:
        yield engine


async def until(engine: Engine, holds: Callable[[SessionState], bool], limit_s: float = PATIENCE_S) -> SessionState:
    """Wait until the state is as wanted; fails with what the server said."""
    state = engine.state
    assert await engine.until(holds, limit_s), (state.server, [row.text for row in state.log.rows][-20:])
    return state


async def phase(engine: Engine, *wanted: str, limit_s: float = PATIENCE_S) -> str:
    """Wait for one of these phases; returns the line that goes with it."""
    return (await until(engine, lambda state: state.server.phase in wanted, limit_s)).server.text


async def ask(engine: Engine, user: str, policy: str = "", **more: object) -> RequestState:
    """Send one request and wait for its end."""
    key = send(engine, user, policy, **more)
    await until(engine, lambda state: key in state.requests and state.requests[key].outcome is not None)
    return engine.state.requests[key]


def send(engine: Engine, user: str, policy: str = "", **more: object) -> str:
    """Send one request; returns its key."""
    key = engine.new_key()
    fields = {"max_tokens": 4, **more}
    engine.submit(SendRequest(key=key, draft=Draft(user=user, policy_text=policy, **fields)))  # type: ignore[arg-type]
    return key


def cancel(engine: Engine, key: str) -> None:
    """Close the connection of a request."""
    engine.submit(CancelRequest(key=key))


def notices(engine: Engine) -> str:
    """Everything that was told, a line each."""
    return "\n".join(notice.text for notice in engine.state.notices)


def runtime_files() -> list[str]:
    """What lies in the runtime folder: sockets and logs."""
    return sorted(path.name for path in Path(os.environ["MLXCACHE_RUNTIME_DIR"]).iterdir())


def servers() -> list[psutil.Process]:
    """The server processes of this test: their command line names its runtime folder."""
    folder = os.environ["MLXCACHE_RUNTIME_DIR"]
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(word.startswith(folder) for word in process.cmdline()) and "--socket" in process.cmdline():
                found.append(process)
    return found


def all_gone() -> bool:
    """Wait until no server of this test runs any more; False if one still does after a long while."""
    deadline = time.monotonic() + PATIENCE_S
    while servers():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def no_server_left() -> Iterator[None]:
    """Whatever a test does, it leaves no server behind; and what it made is looked at first."""
    try:
        yield
    finally:
        for process in servers():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
                process.wait(10)


class Terminal:
    """The program in a pseudo-terminal of 120×40, with what it draws read and thrown away."""

    def __init__(self, *words: str, session: Path) -> None:
        self.session = session
        self._master, slave = pty.openpty()
        command = [sys.executable, "-c", IN_TERMINAL, *MAIN, *words, "--save", str(session)]
        env = os.environ | {"LINES": "40", "COLUMNS": "120"}
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env)
        os.close(slave)
        self.drawn = bytearray()
        self._hung_up = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Read until the program is gone or we hang up; this thread alone closes the terminal, while nobody reads."""
        with contextlib.suppress(OSError):
            while not self._hung_up:
                readable, _, _ = select.select([self._master], [], [], 0.05)
                if readable:
                    self.drawn += os.read(self._master, 65_536)
        os.close(self._master)

    def await_ready(self) -> None:
        """Wait until the session file says that the server is ready."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.session.exists() and '"phase":"ready"' in self.session.read_text("utf-8", "replace"):
                return
            assert self.process.poll() is None, bytes(self.drawn[-2000:])
            time.sleep(0.05)
        raise AssertionError(f"not ready: {bytes(self.drawn[-2000:])!r}")

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def hang_up(self) -> None:
        """The terminal is gone, as when an SSH connection drops."""
        self._hung_up = True
        self._reader.join()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.hang_up()


@contextmanager
def terminal(*words: str, session: Path) -> Iterator[Terminal]:
    """The program on a terminal; killed at the end if it still runs."""
    opened = Terminal(*words, session=session)
    try:
        yield opened
    finally:
        opened.close()
