"""Reads a session file back, up to its last whole line or to what is damaged; one that is being written as it grows."""

from collections import deque
from pathlib import Path

import msgspec

from mlxcache_tui.core.events import AnyEvent
from mlxcache_tui.core.foreign import decode_all_clean, decode_clean


class SessionFile(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a file, in order.

    `damage`: None, or one line that says what could not be read and where. `unknown` counts lines of a kind that this
    version does not know; they are passed over.
    """

    events: tuple[AnyEvent, ...]
    damage: str | None = None
    unknown: int = 0


class _Kind(msgspec.Struct):
    t: str


_kinds = msgspec.json.Decoder(_Kind)
_KNOWN = frozenset(kind.__name__ for kind in AnyEvent.__args__)


class SessionReader:
    """Reads a session file piece by piece. Texts are cleaned as they were at their source: the file may be anyone's.

    It ends at the first line that cannot be read: what stands behind a gap would be told as if nothing were missing,
    with requests that never end and entries that were never stored. A last line without its end is kept back: it is
    being written, or its write was interrupted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unknown = 0
        self._damage: tuple[int, str] | None = None
        """Number of the line that cannot be read, and why not."""
        self._left_out = 0
        self._lines: deque[bytes] = deque()
        self._number = 0
        self._offset = 0
        self._rest = b""

    def look(self) -> bool:
        """Take in what was written since the last look; whether there is something to read.

        Raises:
            OSError: the file cannot be read.
        """
        with self.path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._damage is None:
            self._lines.extend(lines)
        else:
            self._left_out += len(lines)
        return bool(self._lines)

    def read(self, most: int | None = None) -> list[AnyEvent]:
        """The events of the next `most` lines (None: all) of those that were taken in."""
        count = len(self._lines) if most is None else min(most, len(self._lines))
        lines = [self._lines.popleft() for _ in range(count)]
        try:
            events = decode_all_clean(lines)
        except msgspec.DecodeError:
            return self._read_each(lines)
        self._number += count
        return events

    def _read_each(self, lines: list[bytes]) -> list[AnyEvent]:
        """One by one, since something among them cannot be read."""
        events: list[AnyEvent] = []
        for place, line in enumerate(lines):
            self._number += 1
            try:
                events.append(decode_clean(line))
            except msgspec.DecodeError as error:
                if _is_unknown(line):
                    self.unknown += 1
                elif line.strip():
                    self._damage = self._number, str(error)
                    self._left_out = len(lines) - place + len(self._lines)
                    self._lines.clear()
                    break
        return events

    @property
    def left(self) -> int:
        """Lines that were taken in and not read yet."""
        return len(self._lines)

    @property
    def is_cut(self) -> bool:
        """Whether the last line has no end."""
        return bool(self._rest.strip())

    def damage(self, *, growing: bool = False) -> str | None:
        """One line on what could not be read, or None. In a file that grows, a last line without an end is none."""
        if self._damage is not None:
            number, why = self._damage
            count = f"{self._left_out} line{'s' * (self._left_out != 1)}"
            return f"line {number}: left out from here on ({count}): {why}"
        if self.is_cut and not growing:
            return f"line {self._number + len(self._lines) + 1} has no end: the recording was interrupted"
        return None


def read_session(path: Path) -> SessionFile:
    """Read a whole session file. A last line without its end is a write that was interrupted: it is left out.

    Raises:
        OSError: the file cannot be read.
    """
    reader = SessionReader(path)
    reader.look()
    events = tuple(reader.read())
    return SessionFile(events=events, damage=reader.damage(), unknown=reader.unknown)


def _is_unknown(line: bytes) -> bool:
    """Whether this is an event of a kind that this version does not have."""
    try:
        return _kinds.decode(line).t not in _KNOWN
    except (msgspec.DecodeError, RecursionError):
        return False
