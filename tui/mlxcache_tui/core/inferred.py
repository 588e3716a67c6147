"""The prompt cache of a server without the observer, as far as it can be made out; `infer` alone changes it."""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from mlxcache_tui.core.cachemodel import CacheModel
from mlxcache_tui.core.events import EntryType

EVICTED_ENTRIES = 5
"""Entries that went last and are still shown."""


@dataclass(slots=True)
class InferredEntry:
    """An entry that the rule says is stored, or was; numbers of the model, not of the server.

    `gone_by`: the request of ours that pushed it out; None where it was found to be gone.
    """

    entry: int
    type: EntryType
    tokens: int | None
    key: str
    made_by: int
    policy: str
    inserted_ns: int
    gone: Literal["evicted", "swallowed"] | None = None
    gone_ns: int | None = None
    gone_by: str | None = None
    missed_by: int | None = None
    """Number of the request that should have reused it and did not."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A request of ours reused less than an entry holds that the rule says is stored: it is not."""

    number: int
    cached: int
    expected: int
    policy: str
    made_by: int


@dataclass(slots=True)
class Others:
    """Requests of other clients, as far as the log's access lines tell of them."""

    posts: int = 0
    """Completions that the log tells of, of this server process."""
    own: int = 0
    """Those of them that are ours, or will be: their lines come a moment later."""
    count: int = 0
    """All the others."""
    since: int = 0
    """Number of our last request before the first of them."""
    mark: int = 0
    """The latest entry when the last of them was seen: it and the older ones may have been pushed out since."""


@dataclass(slots=True)
class InferredCache:
    """The prompt cache as `infer` makes it out, without an observer; no model until the version is known."""

    model: CacheModel | None = None
    entries: dict[int, InferredEntry] = field(default_factory=dict)
    evicted: deque[InferredEntry] = field(default_factory=lambda: deque(maxlen=EVICTED_ENTRIES))
    counts: list[int] = field(default_factory=list)
    """How many it held when each request was sent, since the server last printed its counters."""
    disagreement: tuple[int, int] | None = None
    """How many it held before the last request and how many the server counted, where these do not go together."""
    others: Others = field(default_factory=Others)
    missed: Missed | None = None
    """Of the last request of ours that was answered."""
    off: bool = False
    """This process is or was observed: what it holds was known, and is not to be guessed from a part of its life."""
