"""The program on a real server, in a terminal, with a log as busy as wanted and its session file read as it grows."""

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.program import MAIN, Program, running, wait_for
from mlxcache_tui.core.codec import decode_event
from mlxcache_tui.core.events import AnyEvent, LogRead, ServerPhaseChanged, ServerTargeted

LINE = "2026-11-29 14:48:18,{:03d} - INFO - line {:08d} of a busy log, {:d} of 4012 tokens read so far\n"
TOKEN = " of a busy log"


def numbers_in(texts: Iterable[str]) -> list[int]:
    """The numbers of the lines made by `LINE` among these, in order."""
    return [int(text.split(" line ", 1)[1][:8]) for text in texts if TOKEN in text]


class Session:
    """The events of a session file, read on as it grows; those of other kinds than asked for are not decoded."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def new(self, *kinds: type[AnyEvent]) -> list[AnyEvent]:
        """Events of these kinds since the last look."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        tags = tuple(f'"t":"{kind.__name__}"'.encode() for kind in kinds)
        return [decode_event(line) for line in lines if any(tag in line[:60] for tag in tags)]

    def all(self, *kinds: type[AnyEvent]) -> list[AnyEvent]:
        """Events of these kinds from the start."""
        return Session(self._path).new(*kinds)


class Live:
    """The program, its session and its server's log."""

    def __init__(self, program: Program, path: Path) -> None:
        self.program = program
        self.session = Session(path)
        events: list[AnyEvent] = []

        def ready() -> bool:
            events.extend(self.session.new(ServerTargeted, ServerPhaseChanged))
            return any(isinstance(event, ServerPhaseChanged) and event.phase == "ready" for event in events)

        wait_for(ready, "server that is ready")
        paths = [event.log_path for event in events if isinstance(event, ServerTargeted)]
        assert paths[-1] is not None
        self.log = Path(paths[-1])

    def numbers(self) -> list[int]:
        """The numbers of the busy log's lines, in the order in which they were taken in."""
        reads = [event for event in self.session.all(LogRead) if isinstance(event, LogRead)]
        return numbers_in(line.text for read in reads for line in read.lines)


@contextmanager
def live(folder: Path) -> Iterator[Live]:
    """The program on a tiny model's server, once that is ready."""
    path = folder / "session.jsonl"
    with running(*MAIN, "--demo", "tiny", "--port", "0", "--save", str(path)) as program:
        yield Live(program, path)


class BusyLog:
    """Appends lines to a log at a steady rate, until it is stopped."""

    def __init__(self, path: Path, rate: int) -> None:
        self._path, self._rate = path, rate
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.count = 0

    def __enter__(self) -> "BusyLog":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _write(self) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        began = time.monotonic()
        try:
            while not self._stopped.wait(0.01):
                due = int((time.monotonic() - began) * self._rate)
                lines = [LINE.format(n % 1000, n, n % 4012) for n in range(self.count, due)]
                os.write(descriptor, "".join(lines).encode())
                self.count = due
        finally:
            os.close(descriptor)
