"""Server-sent events: bytes in, records out, whatever the cuts.

Libraries for this format drop comment lines; mlx_lm tells its prefill progress in them, so they are records here. A
record is given out as soon as its last byte is known (a comment at its line end, data at the blank line behind it).
"""

import re
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

MAX_BYTES = 4 << 20
"""Longest line, and longest data of one event, that is kept: above it the record is `Oversized`."""


class Comment(NamedTuple):
    """A line that starts with a colon, without it and one following space."""

    text: str


class Data(NamedTuple):
    """The `data` lines of one event, joined by newlines, not decoded."""

    payload: bytes


class Oversized(NamedTuple):
    """A line or an event was longer than the decoder keeps; its content is dropped, the stream goes on behind it."""


Record = Comment | Data | Oversized


class SseDecoder:
    """Incremental decoder of one stream; `feed` bytes as they come, `close` at the end."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max = max_bytes
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._after_cr = False
        self._first_line = True

    def feed(self, chunk: bytes) -> list[Record]:
        """The records completed by these bytes, in order."""
        if not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]  # second half of a CRLF that was cut in two
        self._after_cr = chunk.endswith(b"\r")
        records: list[Record] = []
        start = 0
        for end in _LINE_END.finditer(chunk):
            self._keep(chunk[start : end.start()])
            self._end_line(records)
            start = end.end()
        self._keep(chunk[start:])
        return records

    def close(self) -> list[Record]:
        """What was still open when the stream ended: a last line or event without its line end, possibly torn."""
        records: list[Record] = []
        if self._line_bytes:
            self._end_line(records)
        self._end_event(records)
        return records

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._line_bytes += len(piece)
        if self._line_bytes <= self._max:
            self._line.append(piece)
        else:
            self._line.clear()

    def _end_line(self, records: list[Record]) -> None:
        line, size = b"".join(self._line), self._line_bytes
        self._line, self._line_bytes = [], 0
        if self._first_line:
            self._first_line = False
            if line.startswith(_BYTE_ORDER_MARK):
                line = line.removeprefix(_BYTE_ORDER_MARK)
                size = len(line)
        if size > self._max:
            records.append(Oversized())
        elif not line:
            self._end_event(records)
        elif line.startswith(b":"):
            records.append(Comment(line[1:].removeprefix(b" ").decode("utf-8", "replace")))
        else:
            # `event`, `id` and `retry` say nothing that a completion stream needs.
            name, _, value = line.partition(b":")
            if name == b"data":
                value = value.removeprefix(b" ")
                self._data_bytes += len(value) + 1
                if self._data_bytes <= self._max + 1:
                    self._data.append(value)
                else:
                    self._data.clear()

    def _end_event(self, records: list[Record]) -> None:
        data, size = self._data, self._data_bytes
        self._data, self._data_bytes = [], 0
        if size > self._max + 1:
            records.append(Oversized())
        elif size:
            records.append(Data(b"\n".join(data)))
