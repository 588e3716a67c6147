"""The log pane's lines: what is shown of the rows, folded and filtered, kept up to date without starting over."""

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from mlxcache_tui.core.views import LogRow

LogFilter = Literal["all", "warnings", "quiet"]
HELD_LINES = 20_000
_STAMP = re.compile(r"^\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d)(?:,\d+)? - ([A-Z]+) - ")
_SERIOUS = frozenset({"WARNING", "ERROR", "CRITICAL"})
_CHATTER = frozenset({"progress", "access", "bar"})


@dataclass(slots=True, eq=False)
class Fold:
    """A traceback: one line as long as it is folded."""

    rows: list[LogRow]
    open: bool = False

    @property
    def seq(self) -> int:
        """That of its first row."""
        return self.rows[0].seq


Shown = LogRow | Fold
"""One line of the pane: a row, or the head of a traceback (whose rows follow it while it is open)."""


class Change(NamedTuple):
    """What an update did to the lines: `dropped` at the top; from line `first` on (counted after that) all are new."""

    dropped: int
    first: int
    added: int


def shown_text(row: LogRow) -> str:
    """The line without the date and the milliseconds, which all lines share: `14:48:18 INFO Prompt Cache: …`."""
    return _STAMP.sub(r"\1 \2 ", row.text)


def keeps(row: LogRow, wanted: LogFilter) -> bool:
    """Whether a row is shown. Our own marks and tracebacks always are."""
    if wanted == "all" or row.kind in ("mark", "traceback"):
        return True
    if wanted == "warnings":
        return row.level in _SERIOUS
    return row.kind not in _CHATTER


@dataclass(slots=True)
class LogBuffer:
    """Shown lines of the log. `rows` of one update to the next share all rows that did not change (`is`)."""

    wanted: LogFilter = "all"
    lines: list[Shown] = field(default_factory=list)
    _rows: tuple[LogRow, ...] = ()
    _last: Fold | None = None
    """The traceback that the latest row belongs to: the next row may go on with it."""
    _open: set[int] = field(default_factory=set)

    def update(self, rows: tuple[LogRow, ...], *, hold: bool = False) -> Change:
        """Take in the present rows. The work is that of the rows that came, went or changed.

        With `hold` somebody reads further up: lines that the log itself no longer keeps stay, up to `HELD_LINES`.
        """
        old, self._rows = self._rows, rows
        if not rows or not old or rows[0].seq < old[0].seq or rows[0].seq > old[-1].seq:
            return self._rebuild()
        gone = bisect_left(old, rows[0].seq, key=lambda row: row.seq)
        common = _common(old, rows, gone)
        dropped = 0 if hold and len(self.lines) < HELD_LINES else self._drop_front(rows[0].seq)
        before = len(self.lines)
        start = self._cut(old[gone + common].seq, rows) if gone + common < len(old) else common
        growing, size = self._last, len(self._last.rows) if self._last else 0
        first = len(self.lines)
        self._extend(rows[start:])
        if growing is not None and len(growing.rows) > size:
            first = self._head_of(first - 1)
        return Change(dropped, first, max(0, len(self.lines) - before))

    def filter(self, wanted: LogFilter) -> None:
        """Show other rows from now on."""
        self.wanted = wanted
        self._rebuild()

    def toggle(self, index: int) -> int | None:
        """Fold or unfold the traceback that a line belongs to. Returns the line of its head; None if there is none."""
        if not 0 <= index < len(self.lines) or not _in_traceback(self.lines[index]):
            return None
        head = self._head_of(index)
        fold = self.lines[head]
        if isinstance(fold, Fold):
            if fold.open:
                del self.lines[head + 1 : head + 1 + len(fold.rows)]
                self._open.discard(fold.seq)
            else:
                self.lines[head + 1 : head + 1] = fold.rows
                self._open.add(fold.seq)
            fold.open = not fold.open
        return head

    def toggle_if_folded(self, index: int) -> bool:
        """Unfold a traceback that is folded at this line."""
        line = self.lines[index]
        return isinstance(line, Fold) and not line.open and self.toggle(index) is not None

    def find(self, text: str, start: int, step: Literal[1, -1]) -> int | None:
        """The next line that holds the text (case does not matter), from line `start` on, going round at the ends.

        A folded traceback holds all of its rows' text.
        """
        needle = text.casefold()
        count = len(self.lines)
        for offset in range(count):
            index = (start + step * offset) % count
            if _holds(self.lines[index], needle):
                return index
        return None

    def places(self, text: str) -> list[int]:
        """`seq` of each row that holds the text (case does not matter), also of those in folded tracebacks."""
        needle = text.casefold()
        found: list[int] = []
        for line in self.lines:
            folded = line.rows if isinstance(line, Fold) and not line.open else ()
            rows = folded if isinstance(line, Fold) else (line,)
            found += [row.seq for row in rows if needle in shown_text(row).casefold()]
        return found

    def _head_of(self, index: int) -> int:
        """The line of the head of the traceback that a line belongs to."""
        while index > 0 and not isinstance(self.lines[index], Fold):
            index -= 1
        return index

    def _rebuild(self) -> Change:
        self.lines.clear()
        self._last = None
        self._extend(self._rows)
        return Change(0, 0, len(self.lines))

    def _drop_front(self, first_seq: int) -> int:
        """Remove lines of rows that are no longer kept. Returns how many."""
        count = 0
        while count < len(self.lines) and _last_seq(self.lines[count]) < first_seq:
            line = self.lines[count]
            if isinstance(line, Fold):
                self._open.discard(line.seq)
                if line is self._last:
                    self._last = None
            count += 1
        del self.lines[:count]
        return count

    def _cut(self, seq: int, rows: tuple[LogRow, ...]) -> int:
        """Remove the lines from row `seq` on, and a traceback before it, which may go on. Returns where to go on."""
        while self.lines and (_last_seq(self.lines[-1]) >= seq or _in_traceback(self.lines[-1])):
            seq = min(seq, self.lines.pop().seq)
        self._last = None
        return bisect_left(rows, seq, key=lambda row: row.seq)

    def _extend(self, rows: tuple[LogRow, ...]) -> None:
        for row in rows:
            if row.kind == "traceback":
                self._add_to_fold(row)
                continue
            self._last = None
            if keeps(row, self.wanted):
                self.lines.append(row)

    def _add_to_fold(self, row: LogRow) -> None:
        if self._last is None:
            self._last = Fold([row], row.seq in self._open)
            self.lines.append(self._last)
        else:
            self._last.rows.append(row)
        if self._last.open:
            self.lines.append(row)


def _last_seq(line: Shown) -> int:
    return line.rows[-1].seq if isinstance(line, Fold) else line.seq


def _in_traceback(line: Shown) -> bool:
    return isinstance(line, Fold) or line.kind == "traceback"


def _holds(line: Shown, needle: str) -> bool:
    if isinstance(line, Fold):
        return not line.open and any(needle in shown_text(row).casefold() for row in line.rows)
    return needle in shown_text(line).casefold()


def _common(old: tuple[LogRow, ...], new: tuple[LogRow, ...], gone: int) -> int:
    """How many rows at the start of `new` are those of `old` after its first `gone`."""
    size = min(len(old) - gone, len(new))
    # One comparison in C settles nearly every update; equal rows are the same objects.
    if old[gone : gone + size] == new[:size]:
        return size
    return next(index for index in range(size) if old[gone + index] is not new[index])
