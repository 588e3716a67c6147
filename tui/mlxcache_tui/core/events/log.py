"""The server's output, and sources that failed."""

import msgspec

from mlxcache_tui.core.events.base import Event, LogKind


class LogLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cleaned line of the server's output; `level` as printed, `kind` by its form."""

    text: str
    kind: LogKind = "other"
    level: str | None = None


class LogRead(Event, frozen=True, kw_only=True):
    """Lines read in one go, in order; `replace_last`: the first of them overwrites an unfinished bar drawn before."""

    lines: tuple[LogLine, ...]
    replace_last: bool = False


class LogOwned(Event, frozen=True, kw_only=True):
    """The observer's word that a log line with this text belongs to request `key`."""

    key: str
    text: str


class SourceFailed(Event, frozen=True, kw_only=True):
    """A source of events stopped with an error; the rest goes on."""

    source: str
    error: str
