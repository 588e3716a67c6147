"""A session without what people wrote: prompts, policies and answers become lengths and hashes, all figures stay.

Works on events, so that whatever is made of them (tables, reports, a session file to replay) is free of them too. Only
what is known to be harmless is kept: events of kinds that are not listed here, token ids, and log lines other than the
server's counters, progress and access lines do not get through.
"""

import hashlib
import re
from typing import Any, TypeVar

import msgspec

from mlxcache_tui.core import events as ev

S = TypeVar("S", bound=msgspec.Struct)
_KEPT = (
    ev.SessionStarted,
    ev.EventsLost,
    ev.ModelFetchProgressed,
    ev.RequestSent,
    ev.RequestAdmitted,
    ev.PrefillProgressed,
    ev.FirstTokenArrived,
    ev.FinishArrived,
    ev.UsageReported,
    ev.EntrySwallowed,
    ev.EntryEvicted,
    ev.CacheCounted,
    ev.MlxMemorySampled,
    ev.MemorySampled,
    ev.ObserverLost,
    ev.ServerIdentified,
    ev.ServerTargeted,
    ev.ModelLoadStarted,
    ev.ModelLoaded,
)
"""Kinds without anything of a prompt or an answer; of their texts only home folders are taken out."""
_TEXTS = ("error", "text", "model", "adapter", "draft", "url", "log_path")
_HARMLESS_RECORDS = re.compile(
    r"Starting httpd at [\w.:\[\]-]+ on port \d+\.*"
    r"|(?:Prompt processing progress|Prompt Cache|KV Caches|- (?:assistant|user|system)):"
    r"(?:[ ,\d./]|seq|sequences|GB|latest|user|cache|tokens)*"
)
_ACCESS = re.compile(r'([\w.:]+ - - \[[\w/: ]+\] "[A-Z]+ /[\w/.-]*)(?:[?#]\S*)?( HTTP/[\d.]+" [\d-]+ [\d-]+)')
"""An access line in two parts, without the query."""
_TELLING = ": "
"""What stands behind it in a line of ours may be somebody else's words."""
_RECORD = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - [A-Z]+ - )(.*)", re.DOTALL)
_HOME = re.compile(r"(?<![\w.])/(?:home|Users)/[^/\s\"']+|(?<![\w.])/root(?=/)")
_ERROR_HEAD = re.compile(r"HTTP \d{3}: |the server reported: |[\w.]*(?:Error|Exception): ")
"""How a line begins whose rest is somebody else's words: the status, or the kind of a failure."""
_OUR_ERRORS = (
    "the stream ended ",
    "the server's answer is longer than ",
    "the server sent a stream event that is too long",
    "no server yet",
    "nothing answers at ",
    "the connection to ",
    "no connection to ",
)
"""How the lines begin that are all our own."""
_PATH = re.compile(r"(?<![\w:/])/(?!/)\S+(?: \S+)*?\.\w+|(?<![\w:/])/(?!/)\S+")
_NAMED_STRINGS = ("model", "draft_model", "host", "log_level")
"""Parameters and flags whose words may be shown."""


class Redactor:
    """Takes events in order. `salt` makes its hashes its own: equal texts can be told within one export only."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._labels: dict[str, str] = {}
        self._pieces: dict[tuple[str, ev.Origin, ev.TextKind], list[str]] = {}

    def take(self, event: ev.AnyEvent) -> list[ev.AnyEvent]:
        """What of an event may be shown: none, one, or several events."""
        match event:
            case ev.TextArrived(key=key, origin=origin, kind=kind, text=text):
                self._pieces.setdefault((key, origin, kind), []).append(text)
                return [_with(event, text="")]
            case ev.RequestEnded(key=key, origin=origin, error=error):
                return [*self._texts_of(key, origin, event.at_ns), _with(event, error=self._error(error))]
            case ev.CacheSnapshot(entries=entries):
                named = (_with(entry, model=_without_home(entry.model)) for entry in entries)
                return [_with(event, entries=tuple(named))]
            case ev.ServerPhaseChanged(text=text) | ev.Noticed(text=text):
                return [_with(event, text=self._head(text))]
            case ev.ModelLoadFailed(error=error) | ev.SourceFailed(error=error):
                return [_with(event, error=self._error(error))]
            case ev.LookedUp() | ev.EntryInserted():
                return [_with(event, tokens=_with(event.tokens, new=()), model=_without_home(event.model))]
            case ev.LogRead(lines=lines):
                return [_with(event, lines=tuple(map(self._line, lines)))]
            case _ if isinstance(event, _KEPT):
                shown: dict[str, Any] = {
                    name: _without_home(getattr(event, name)) for name in _TEXTS if hasattr(event, name)
                }
                if flags := getattr(event, "flags", None):
                    shown["flags"] = self._values(flags)
                return [_with(event, **shown)]
            case _:
                return self._written(event)

    def _written(self, event: ev.AnyEvent) -> list[ev.AnyEvent]:
        """Events with texts that somebody wrote. What is not known here is left out."""
        match event:
            case ev.TextKept(text_id=text_id, text=text):
                return [_with(event, text_id=self._hash(text_id), text=self.mark(text))]
            case ev.PolicyKnown(label=label, text=text):
                return [_with(event, label=self._label(label), text=self.mark(text))]
            case ev.RequestComposed():
                return [self._composed(event)]
            case ev.LogOwned(text=text):
                return [_with(event, text=self._message(text))]
            case ev.WorkerDied(error=error):
                return [_with(event, error=error.partition(":")[0])]
            case ev.ServerExited(tail=tail):
                return [_with(event, tail=tuple(self._line(ev.LogLine(text=line)).text for line in tail))]
            case ev.ServerLaunched(flags=flags):
                return [_with(event, command=(), flags=self._values(flags))]
            case ev.ObserverConnected(flags=flags, log_path=log_path):
                return [_with(event, flags=self._values(flags), log_path=_without_home(log_path))]
        return []

    def _composed(self, event: ev.RequestComposed) -> ev.RequestComposed:
        return _with(
            event,
            messages=tuple((role, self._hash(text_id)) for role, text_id in event.messages),
            params=self._values(event.params),
            policy=self._label(event.policy) if event.policy is not None else None,
            before=self.mark(event.before),
            after=self.mark(event.after),
        )

    def _label(self, label: str) -> str:
        """A policy's label is the name that somebody gave its file."""
        return self._labels.setdefault(label, f"policy {len(self._labels) + 1}")

    def _texts_of(self, key: str, origin: ev.Origin, at_ns: int) -> list[ev.AnyEvent]:
        """Each text of a request as one mark, where the request ends."""
        found = [name for name in self._pieces if name[:2] == (key, origin)]
        return [
            ev.TextArrived(at_ns=at_ns, origin=origin, key=key, kind=name[2], text=self.mark("".join(pieces)))
            for name in found
            if (pieces := self._pieces.pop(name))
        ]

    def _line(self, line: ev.LogLine) -> ev.LogLine:
        if line.kind == "bar":
            return line  # how far the fetching of files is
        match = _RECORD.match(line.text)
        head, message = match.groups() if match else ("", line.text)
        return _with(line, text=head + self._message(message))

    def _message(self, text: str) -> str:
        if access := _ACCESS.fullmatch(text):
            return "".join(access.groups())
        return text if _HARMLESS_RECORDS.fullmatch(text) else self.mark(text)

    def _head(self, text: str) -> str:
        """A line of ours up to where it may go on in somebody else's words."""
        head, telling, rest = text.partition(_TELLING)
        return f"{_PATH.sub('[a path]', head)}{telling}{self.mark(rest)}"

    def _error(self, error: str | None) -> str | None:
        """A server's own words on a failure may repeat what it was sent."""
        if not error or error.startswith(_OUR_ERRORS):
            return _without_home(error)
        match = _ERROR_HEAD.match(error)
        head = match.group() if match else ""
        return head + self.mark(error.removeprefix(head))

    def _values(self, values: dict[str, Any]) -> dict[str, Any]:
        """Parameters: numbers and switches as they are, words and lists as marks but for a few names."""
        return {name: self._value(name, value) for name, value in values.items()}

    def _value(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, dict) and name == "chat_template_kwargs":
            return self._values(value)
        if isinstance(value, str):
            return _without_home(value) if name in _NAMED_STRINGS else self.mark(value)
        return self.mark(str(value))

    def mark(self, text: str) -> str:
        """What stands for a text: `[512 characters, a1b2c3d4e5f6]`; an empty one stays empty."""
        return f"[{len(text)} characters, {self._hash(text)}]" if text else ""

    def _hash(self, text: str) -> str:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=6).hexdigest()


def _with(value: S, **changes: Any) -> S:
    return msgspec.structs.replace(value, **changes)


def _without_home(text: str | None) -> str | None:
    return _HOME.sub("~", text) if text else text
