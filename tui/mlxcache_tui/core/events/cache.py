"""The prompt cache, as the observer sees it; the counters, as the log prints them."""

from typing import Literal

import msgspec

from mlxcache_tui.core.events.base import EntryType, Event


class TokenRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token sequence: the first `shared` tokens of request `base`'s prompt, then `new`; `count` tokens in all."""

    count: int
    base: str | None = None
    shared: int = 0
    new: tuple[int, ...] = ()


class LookedUp(Event, frozen=True, kw_only=True):
    """The server searched its cache for a request.

    `tokens` is the prompt against the earlier request that it shares most with (its `base`: the evidence for a miss).
    `how`: `exact`, `extended` (a stored prefix), `trimmed` (a longer entry cut back) or `none`.
    """

    key: str
    tokens: TokenRun
    cached_tokens: int
    how: Literal["exact", "extended", "trimmed", "none"]
    entry: int | None = None
    path: Literal["batched", "sequential"]
    model: str | None = None


class TokensNamed(Event, frozen=True, kw_only=True):
    """What tokens say, once for each: (id, bytes as hex). Bytes, since a piece may be a part of a character.

    `model` is the one whose tokenizer gave them, as in `LookedUp`: another one has other ids.
    """

    pairs: tuple[tuple[int, str], ...]
    model: str | None = None


class EntryInserted(Event, frozen=True, kw_only=True):
    """An entry was stored. `replaced`: the older entry of the identical tokens that it took the place of."""

    entry: int
    type: EntryType
    tokens: TokenRun
    bytes: int
    key: str | None = None
    model: str | None = None
    trimmable: bool | None = None
    replaced: int | None = None


class EntrySwallowed(Event, frozen=True, kw_only=True):
    """An entry was dropped since `by` (a longer one that starts with it) was stored. Not an eviction."""

    entry: int
    by: int
    key: str | None = None


class EntryEvicted(Event, frozen=True, kw_only=True):
    """The limit threw an entry out: `rule` and the `limit` in force; `key` is the request being served, if known."""

    entry: int
    rule: Literal["count", "bytes"]
    limit: int
    key: str | None = None


class EntryState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One stored entry in a `CacheSnapshot`."""

    entry: int
    type: EntryType
    tokens: int
    bytes: int
    inserted_ns: int
    key: str | None = None
    model: str | None = None
    trimmable: bool | None = None


class CacheSnapshot(Event, frozen=True, kw_only=True):
    """All that is stored now, oldest insertion first in each type; sent to a viewer that connects."""

    entries: tuple[EntryState, ...]
    max_count: int
    max_bytes: int | None
    bytes: int


class CacheCounted(Event, frozen=True, kw_only=True):
    """The counters that the server printed: the state *before* the request that it was looking up."""

    count: int
    gigabytes: float
    by_type: dict[str, int] = msgspec.field(default_factory=dict)
