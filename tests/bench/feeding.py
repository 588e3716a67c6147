"""Runs `fed.py` in a terminal and waits for its marks."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.program import PATIENCE_S, Program, running, wait_for

FED = Path(__file__).with_name("fed.py")


class Fed:
    """The fed screen."""

    def __init__(self, program: Program, marks: Path) -> None:
        self.program = program
        self._marks = marks

    def mark(self, name: str, limit_s: float = PATIENCE_S) -> int:
        """When the feed reached this point (monotonic ns); waits for it."""
        wait_for(lambda: name in self._read(), f"mark {name}", limit_s)
        return self._read()[name]

    def _read(self) -> dict[str, int]:
        if not self._marks.exists():
            return {}
        return {name: int(at_ns) for name, at_ns in map(str.split, self._marks.read_text().splitlines())}


@contextmanager
def fed(feed: str, folder: Path) -> Iterator[Fed]:
    """The screen with one of the feeds of `fed.py`."""
    marks = folder / "marks"
    tests = str(FED.parents[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH")))))
        with running(sys.executable, str(FED), feed, str(folder / "session.jsonl"), str(marks)) as program:
            yield Fed(program, marks)
