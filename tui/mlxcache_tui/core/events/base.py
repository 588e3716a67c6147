"""What every event is, and the words that several of them use."""

from typing import Literal

import msgspec

PROTOCOL = 1
"""Version of the event format, in the observer's first message and in each session file."""

Origin = Literal["client", "observer", "http", "process", "log", "memory", "user", "program"]
Outcome = Literal["done", "cut", "failed", "cancelled"]
EntryType = Literal["system", "user", "assistant"]
TextKind = Literal["answer", "reasoning", "tool"]
LogKind = Literal["record", "access", "progress", "cache", "bar", "traceback", "other"]
Purpose = Literal["send", "scenario", "readiness", "warm", "foreign"]
ServerPhase = Literal[
    "none",
    "starting",
    "fetching",
    "loading",
    "ready",
    "not_answering",
    "worker_dead",
    "exited",
    "unreachable",
]


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag=True, omit_defaults=True):
    """A fact: when it happened (monotonic ns) and who says so."""

    at_ns: int
    origin: Origin
