"""The server's output: bytes in, cut anywhere, and out come log lines and the facts in them.

Most lines are of Python's logging (`time - LEVEL - text`). Between them stand access lines of `http.server`,
tracebacks, and progress bars, which rewrite their line by carriage returns: of a bar only its last state is kept. A bar
that still moves is shown at once; its next state then comes with `replace_last`.
"""

import re

from mlxcache_tui.core.events import CacheCounted, LogKind, LogLine, LogRead, ModelFetchProgressed
from mlxcache_tui.core.log_facts import Bar, CacheCounter, FetchFollower, parse_bar
from mlxcache_tui.core.text import LINE_LIMIT, bounded, clean

LogEvent = LogRead | CacheCounted | ModelFetchProgressed
"""What a log tells."""
MAX_PARTIAL = 65_536
"""Bytes that are kept of a line without an end."""

_RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - ([A-Z]+) - (.*)", re.DOTALL)
_ACCESS = re.compile(r"\S+ - - \[\d\d/[A-Za-z]{3}/\d{4} \d\d:\d\d:\d\d\] ")
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = "-" * 40
_FRAME_OPENS = ("Exception occurred during processing of request", "Exception happened during processing of request")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")


class LogReader:
    """Reads one log from its start, or from the start of a line."""

    def __init__(self) -> None:
        self._partial = b""
        self._dropped = 0
        self._lines: list[LogLine] = []
        self._facts: list[CacheCounted | ModelFetchProgressed] = []
        self._replace_last = False
        self._bar: Bar | None = None
        self._bar_ended = False
        self._tracebacks = _Tracebacks()
        self._counter = CacheCounter()
        self._fetch = FetchFollower()
        self._at_ns = 0

    def feed(self, data: bytes, at_ns: int) -> list[LogEvent]:
        """Take in bytes read at `at_ns`: a `LogRead` if lines came of them, then the facts in those lines."""
        self._at_ns = at_ns
        end = data.rfind(b"\n")
        if end >= 0:
            first = data.find(b"\n")
            self._keep(data[:first])
            self._end_partial()
            if end > first:
                for text in data[first + 1 : end].decode("utf-8", "replace").split("\n"):
                    self._line(text, 0)
        self._keep(data[end + 1 :])
        self._show_moving()
        return self._take()

    def flush(self, at_ns: int) -> list[LogEvent]:
        """Give out a last line that has no end: the file was replaced, or nothing came for a while."""
        self._at_ns = at_ns
        if self._partial.strip():
            self._end_partial()
        return self._take()

    @property
    def waiting(self) -> bool:
        """Whether the beginning of a line was read and not shown."""
        return bool(self._partial.strip()) and (self._bar is None or self._bar_ended)

    def _keep(self, data: bytes) -> None:
        room = max(0, MAX_PARTIAL - len(self._partial))
        self._partial += data[:room]
        self._dropped += max(0, len(data) - room)

    def _end_partial(self) -> None:
        text, dropped = self._partial.decode("utf-8", "replace"), self._dropped
        self._partial, self._dropped = b"", 0
        self._line(text, dropped)

    def _take(self) -> list[LogEvent]:
        events: list[LogEvent] = []
        if self._lines:
            lines = tuple(self._lines)
            events.append(LogRead(at_ns=self._at_ns, origin="log", lines=lines, replace_last=self._replace_last))
        events += self._facts
        self._lines, self._facts, self._replace_last = [], [], False
        return events

    def _line(self, text: str, dropped: int) -> None:
        """A line that has its end; `dropped` bytes of it were not kept."""
        if "\r" not in text and "[" not in text:
            self._plain(text, dropped)
            return
        parts = [part for part in text.split("\r") if part.strip()]
        bars = [_bar_of(part) for part in parts]
        if not any(bars) and (parts or self._bar is None or self._bar_ended):
            # No bar: a carriage return in it is not obeyed, or a line could hide another.
            self._plain(text.rstrip("\r"), dropped)
            return
        for part, bar in zip(parts, bars, strict=True):
            if bar is None:
                self._plain(part, 0)
                continue
            self._draw(bar)
            if bar.behind:
                # Another thread wrote a line behind the bar, which had not ended its own.
                self._plain(bar.behind, dropped)
        self._bar_ended = True

    def _show_moving(self) -> None:
        """Show the last state of a bar whose line has no end yet."""
        if b"[" not in self._partial:
            return
        parts = self._partial.split(b"\r")
        filled = [index for index, part in enumerate(parts) if part.strip()]
        bars = [_bar_of(parts[index].decode("utf-8", "ignore")) for index in filled]
        moving = [bar for bar in bars if bar is not None]
        if not moving or None in bars[:-1] or any(bar.behind for bar in moving):
            # Also text behind the last one: it is the beginning of a line, which is read when it has its end.
            return
        for bar in moving:
            self._draw(bar)
        # The last state stays in front of what follows: a newline on its own is then no empty line.
        self._partial = b"\r".join(parts[filled[len(moving) - 1] :])
        self._dropped = 0

    def _draw(self, bar: Bar) -> None:
        """Show a bar's state, in the place of the one before if that is the same bar or one that moves beside it."""
        before, ended = self._bar, self._bar_ended
        follows = before is not None and not (ended and before.full and before.label != bar.label)
        self._bar, self._bar_ended = bar, False
        if before is not None and follows and before.text == bar.text:
            return
        if (fact := self._fetch.fact(bar, self._at_ns)) is not None:
            self._facts = [old for old in self._facts if not isinstance(old, ModelFetchProgressed)]
            self._facts.append(fact)
        if follows and self._lines:
            self._lines.pop()
        elif follows:
            self._replace_last = True
        self._lines.append(LogLine(text=bar.text, kind="bar"))

    def _plain(self, text: str, dropped: int) -> None:
        """A line that is no bar."""
        self._bar = None
        kind: LogKind = "other"
        level: str | None = None
        if (record := _RECORD.match(text)) is not None:
            level, message = record.groups()
            kind = self._record(message)
        elif _ACCESS.match(text):
            kind = "access"
        elif self._tracebacks.takes(text):
            kind = "traceback"
        shown = clean(text)
        if dropped:
            shown = f"{shown[: LINE_LIMIT - 40]}… (+{len(shown) + dropped - LINE_LIMIT} characters)"
        elif len(shown) > LINE_LIMIT:
            shown = bounded(shown)
        self._lines.append(LogLine(text=shown, kind=kind, level=level))

    def _record(self, message: str) -> LogKind:
        self._tracebacks.interrupted()
        counted = self._counter.take(message, self._at_ns)
        if counted is not None:
            self._facts += counted
            return "cache"
        self._facts += self._counter.over()
        return "progress" if message.startswith("Prompt processing progress: ") else "record"


def _bar_of(text: str) -> Bar | None:
    bar = parse_bar(text)
    return None if bar is None or _RECORD.match(text) or _ACCESS.match(text) else bar


class _Tracebacks:
    """Tells which lines belong to a traceback: framed by dashes as socketserver prints them, or behind a log record."""

    def __init__(self) -> None:
        self._framed = False
        self._stage: str | None = None

    def takes(self, text: str) -> bool:
        """Whether the next line that is neither a record nor an access line belongs to one."""
        text = text.rstrip("\r")
        if text == _FRAME:
            self._framed, self._stage = False, None
            return True
        if text.startswith(_FRAME_OPENS):
            self._framed = True
            return True
        if text.rstrip().endswith(_TRACEBACK):
            self._stage = "frames"
            return True
        if self._framed:
            return True
        if self._stage == "frames":
            if text and not text[0].isspace():
                # The exception's own line; a chained traceback may follow.
                self._stage = "after"
            return True
        if self._stage == "after" and (not text.strip() or text.startswith(_CHAINED)):
            return True
        self._stage = None
        return False

    def interrupted(self) -> None:
        """A log record came: a traceback without a frame is over."""
        self._stage = None
