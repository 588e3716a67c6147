"""One request's reply as it comes in: bytes and their stamps in, events out. Knows no socket and no clock.

The caller stamps bytes when they arrive and hands them over; a stamp is therefore never late by what parsing costs.
"""

from collections.abc import Iterable

from mlxcache_tui.core import reply, sse
from mlxcache_tui.core.events import (
    AnyEvent,
    FinishArrived,
    FirstTokenArrived,
    Outcome,
    PrefillProgressed,
    RequestAdmitted,
    RequestEnded,
    RequestSent,
    ServerIdentified,
    TextArrived,
    TextKind,
    UsageReported,
)

FLUSH_NS = 50_000_000
"""Text is given out at most this often, nanoseconds: more is not seen, and each event costs."""
MAX_ERROR_BYTES = 64 << 10
MAX_BODY_BYTES = 64 << 20


class Exchange:
    """Turns one reply into events (origin `client`), in order; its last event is always one `RequestEnded`.

    `streamed` is what was asked for; what comes is told by its content type. `known` are the server identities told
    before, so that each is told once. After `ended` nothing more comes.
    """

    def __init__(self, key: str, *, streamed: bool, known: set[reply.Identity]) -> None:
        self.ended = False
        self._key = key
        self._streamed = streamed
        self._known = known
        self._status: int | None = None
        self._mode = "none"
        self._location = ""
        self._content_type = ""
        self._decoder = sse.SseDecoder()
        self._reader = reply.ReplyReader()
        self._texts = _Texts(key)
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._last_ns: int | None = None
        self._usage: UsageReported | None = None
        self._finished = False
        self._failure: str | None = None
        self._closing = False

    @property
    def answered(self) -> bool:
        """Whether the headers of an answer came."""
        return self._status is not None

    # --- what happens to the connection ---

    def sent(self, at_ns: int, connect_ns: int | None) -> list[AnyEvent]:
        """The first byte was written at `at_ns`; told again if the server never took the connection and we try anew."""
        return [RequestSent(at_ns=at_ns, origin="client", key=self._key, connect_ns=connect_ns)]

    def admitted(self, status: int, content_type: str, location: str, now: int) -> list[AnyEvent]:
        """The response's headers are here."""
        self._status, self._content_type, self._location = status, content_type.lower(), location
        if status != 200:
            self._mode = "error"
        elif "event-stream" in self._content_type or (self._streamed and not self._is_document()):
            self._mode = "stream"
        else:
            self._mode = "body"
        return [RequestAdmitted(at_ns=now, origin="client", key=self._key, status=status)]

    def received(self, chunk: bytes, now: int) -> list[AnyEvent]:
        """Bytes of the reply, stamped `now` when they arrived."""
        if self.ended or not chunk:
            return []
        self._last_ns = now
        if self._mode == "stream":
            return self._records(self._decoder.feed(chunk), now)
        self._body_bytes += len(chunk)
        self._body.append(chunk)
        if self._mode == "error" and self._body_bytes > MAX_ERROR_BYTES:
            return self.closed(now)
        if self._body_bytes > MAX_BODY_BYTES:
            return self._end("failed", f"the server's answer is longer than {MAX_BODY_BYTES >> 20} MiB", now)
        return []

    def closed(self, now: int) -> list[AnyEvent]:
        """The reply ended by itself."""
        if self.ended:
            return []
        if self._mode == "error":
            return self._end("failed", self._error_line(), now)
        if self._mode == "body":
            return self._whole_body(now)
        self._closing = True
        events = self._records(self._decoder.close(), now)
        if self.ended:
            return events
        line = "the stream ended " + ("without [DONE]" if self._last_ns is not None else "before anything came")
        return events + self._end("failed" if self._failure else "cut", self._failure or line, now)

    def broke(self, line: str, now: int) -> list[AnyEvent]:
        """The connection failed, told in one line: cut in mid-answer, or never answered."""
        if self.ended:
            return []
        if self._mode == "error":
            return self.closed(now)  # what came of the error's body still tells it
        return self._end("failed" if self._mode == "none" else "cut", line, now)

    def cancelled(self, now: int) -> list[AnyEvent]:
        """We closed the connection."""
        return [] if self.ended else self._end("cancelled", None, now)

    # --- text held back to be merged ---

    @property
    def flush_at_ns(self) -> int | None:
        """When `flush` is due; None while no text waits."""
        return self._texts.flush_at_ns

    def flush(self, now: int) -> list[AnyEvent]:
        """The text that waits."""
        return self._texts.flush(now)

    # --- reading ---

    def _is_document(self) -> bool:
        return "json" in self._content_type or "html" in self._content_type

    def _records(self, records: Iterable[sse.Record], now: int) -> list[AnyEvent]:
        events: list[AnyEvent] = []
        for record in records:
            if isinstance(record, sse.Data):
                events += self._data(record.payload, now)
            elif isinstance(record, sse.Oversized):
                self._failure = self._failure or "the server sent a stream event that is too long to read"
            elif (progress := reply.progress_of(record.text)) is not None:
                events.append(
                    PrefillProgressed(
                        at_ns=now, origin="client", key=self._key, done=progress.done, total=progress.total
                    )
                )
            if self.ended:
                return events
        flush_at = self._texts.flush_at_ns
        return events + self._texts.flush(now) if flush_at is not None and flush_at <= now else events

    def _data(self, payload: bytes, now: int) -> list[AnyEvent]:
        facts = self._reader.read_data(payload)
        done = any(isinstance(fact, reply.Done) for fact in facts)
        events: list[AnyEvent] = []
        if not done and any(isinstance(fact, reply.Text | reply.Held) for fact in facts):
            self._texts.event_came(now)
        for fact in facts:
            events += self._fact(fact, now)
        return events + self._complete(now) if done else events

    def _whole_body(self, now: int) -> list[AnyEvent]:
        at = now if self._last_ns is None else self._last_ns
        if "html" in self._content_type:
            return self._end("failed", self._error_line(), now)
        self._texts.timed = False
        events: list[AnyEvent] = []
        for fact in self._reader.read_body(b"".join(self._body)):
            events += self._fact(fact, at)
        if self._failure is None:
            events += self._finish(None, at)
        return events + self._complete(now)

    def _fact(self, fact: reply.Fact, now: int) -> list[AnyEvent]:
        match fact:
            case reply.Text():
                return self._texts.add(fact.kind, fact.text, now)
            case reply.Held():
                self._texts.hold(now)
            case reply.Finish():
                return self._finish(fact.reason, now)
            case reply.Failure() | reply.Unreadable():
                # The last event of a stream that ended without [DONE] may be torn in two: no error of its own.
                if isinstance(fact, reply.Failure) or not self._closing:
                    self._failure = self._failure or fact.text
            case reply.Identity() if fact not in self._known:
                self._known.add(fact)
                return [ServerIdentified(at_ns=now, origin="client", software="mlx_lm", **fact._asdict())]
            case reply.Usage():
                self._usage = UsageReported(
                    at_ns=now,
                    origin="client",
                    key=self._key,
                    prompt_tokens=fact.prompt,
                    output_tokens=fact.output,
                    cached_tokens=fact.cached,
                )
                return self._report_usage() if self._finished else []
        return []

    def _finish(self, reason: str | None, now: int) -> list[AnyEvent]:
        if self._finished:
            return []
        self._finished = True
        finish = FinishArrived(at_ns=now, origin="client", key=self._key, finish_reason=reason)
        return [*self._texts.flush(now), finish]

    def _report_usage(self) -> list[AnyEvent]:
        """Once for each report: some servers count along in every event, and only the last of those matters."""
        usage, self._usage = self._usage, None
        return [usage] if usage is not None else []

    def _complete(self, now: int) -> list[AnyEvent]:
        events: list[AnyEvent] = []
        if self._texts.last_ns is not None:
            # No finish reason in a complete stream: the last text is then the best account of when it finished.
            events = self._finish(None, self._texts.last_ns)
        return events + self._end("failed" if self._failure else "done", self._failure, now)

    def _error_line(self) -> str:
        assert self._status is not None
        if 300 <= self._status < 400 and self._location:
            return f"HTTP {self._status}: the server redirects to {reply.one_line(self._location)}; use that URL"
        body = b"".join(self._body)[:MAX_ERROR_BYTES]
        return reply.http_error_line(self._status, self._content_type, body)

    def _end(self, outcome: Outcome, error: str | None, now: int) -> list[AnyEvent]:
        events: list[AnyEvent] = []
        for fact in self._reader.close():
            events += self._fact(fact, now)
        self.ended = True
        ended = RequestEnded(
            at_ns=now, origin="client", key=self._key, outcome=outcome, status=self._status, error=error
        )
        return [*events, *self._texts.flush(now), *self._report_usage(), ended]


class _Texts:
    """Merges text of one kind until it is due, and keeps the times between the events that carried text."""

    def __init__(self, key: str) -> None:
        self.timed = True
        self.last_ns: int | None = None
        self._key = key
        self._kind: TextKind = "answer"
        self._parts: list[str] = []
        self._gaps: list[int] = []
        self._new_gaps: list[int] = []
        self._held_ns: int | None = None
        self._flushed_ns: int | None = None
        self._came_ns = 0
        self._first_kinds: set[TextKind] = set()

    @property
    def flush_at_ns(self) -> int | None:
        if not self._parts and not self._gaps:
            return None
        return self._came_ns if self._flushed_ns is None else self._flushed_ns + FLUSH_NS

    def event_came(self, now: int) -> None:
        """A stream event with text of any kind is being read; one gap for it, however many pieces it has."""
        if self.last_ns is not None:
            self._new_gaps.append(now - self.last_ns)
        self.last_ns = now

    def hold(self, now: int) -> None:
        """Text came whose kind is not known yet: the first token of whatever it will be came now."""
        if self._held_ns is None:
            self._held_ns = now

    def add(self, kind: TextKind, text: str, now: int) -> list[AnyEvent]:
        came_ns, self._held_ns = self._held_ns if self._held_ns is not None else now, None
        events: list[AnyEvent] = []
        if kind != self._kind:
            events += self.flush(now)
            self._kind = kind
        if self.timed and kind not in self._first_kinds:
            self._first_kinds.add(kind)
            events.append(FirstTokenArrived(at_ns=came_ns, origin="client", key=self._key, kind=kind))
        self._came_ns = now
        if text:
            self._parts.append(text)
        self._gaps += self._new_gaps
        self._new_gaps.clear()
        return events

    def flush(self, now: int) -> list[AnyEvent]:
        if self.flush_at_ns is None:
            return []
        arrived = TextArrived(
            at_ns=self._came_ns,
            origin="client",
            key=self._key,
            kind=self._kind,
            text="".join(self._parts),
            gaps_ns=tuple(self._gaps),
        )
        self._flushed_ns = now
        self._parts.clear()
        self._gaps.clear()
        return [arrived]
