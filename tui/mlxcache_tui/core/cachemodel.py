"""The rules by which mlx_lm's prompt cache keeps and throws out, without mlx.

Source: `LRUPromptCache` of the released packages. It is first in, first out, whatever its name says: a hit refreshes
nothing, only storing the identical sequence again does.

- 0.31.2 to 0.32.2: three queues, assistant, user, system. A queue gives up its oldest if it holds something and is at
  least as long as the next one; else the next one is asked by the same rule; the last gives up its own. What is stored
  and can be cut back swallows its own prefixes.
- 0.31.0 and 0.31.1: the same with two queues, assistant and user.
- up to 0.30.7: one queue of 10; a hit on a stored prefix takes the entry out, nothing is swallowed, no byte limit.

`tests/live/test_cachemodel_live.py` holds the model to the class of each version.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from mlxcache_tui.core.events import EntryType

ORDER: tuple[EntryType, ...] = ("assistant", "user", "system")
Sequence = tuple[Hashable, ...] | str
"""Tokens, or whatever tells prompts apart and begins alike where they do."""
Rule = Literal["three queues", "two queues", "one queue"]


def next_victim(entries: Iterable[tuple[int, EntryType]]) -> int | None:
    """The entry that would be thrown out next, of (entry, type) pairs in order of insertion; None when empty."""
    queues: dict[EntryType, list[int]] = {kind: [] for kind in ORDER}
    for entry, kind in entries:
        queues[kind].append(entry)
    for kind, following in pairwise(ORDER):
        if queues[kind] and len(queues[kind]) >= len(queues[following]):
            return queues[kind][0]
    last = queues[ORDER[-1]]
    return last[0] if last else None


def rule_of(version: str | None) -> Rule | None:
    """The rule of an mlx-lm version such as `0.31.3`; None if it is unknown."""
    parts = (version or "").split(".")
    if len(parts) < 3 or not all(part.isdecimal() for part in parts[:3]):
        return None
    numbers = tuple(int(part) for part in parts[:3])
    if numbers >= (0, 31, 2):
        return "three queues"
    return "two queues" if numbers >= (0, 31, 0) else "one queue"


@dataclass(slots=True)
class Kept:
    """One stored entry: its number, its sequence (of tokens, or of whatever tells sequences apart) and bytes."""

    entry: int
    type: EntryType
    sequence: Sequence
    size: int
    times: int = 1
    """How often it was stored (one queue: a hit takes one of them out)."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of an entry. `by`: the entry whose storing did it, None where something else did."""

    what: Literal["inserted", "replaced", "swallowed", "evicted", "taken"]
    kept: Kept
    by: int | None = None
    rule: Literal["count", "bytes"] | None = None


@dataclass(slots=True)
class CacheModel:
    """A prompt cache that holds names instead of keys and values. `stored` is in order of insertion, types mixed."""

    rule: Rule
    max_count: int
    max_bytes: int | None = None
    stored: list[Kept] = field(default_factory=list)
    inserted: int = 0
    """How many entries there ever were: the number of the latest."""

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return sum(kept.size for kept in self.stored)

    def victim(self) -> int | None:
        """The entry that would be thrown out next; None when empty."""
        if self.rule == "one queue":
            return self.stored[0].entry if self.stored else None
        return next_victim((kept.entry, kept.type) for kept in self.stored)

    def insert(self, kind: EntryType, sequence: Sequence, size: int = 0, *, trimmable: bool = True) -> list[Change]:
        """Store a sequence; returns all that changed, in order."""
        self.inserted += 1
        kept = Kept(self.inserted, kind, sequence, size)
        changes = [Change("inserted", kept)]
        for other in list(self.stored):
            if other.sequence == sequence:
                self.stored.remove(other)
                changes.append(Change("replaced", other, kept.entry))
                if self.rule != "three queues":
                    # The older object stays where it is; only its place in the queue is new.
                    kept.size, kept.times = other.size, other.times + 1
            elif self.rule != "one queue" and trimmable and starts_with(sequence, other.sequence):
                self.stored.remove(other)
                changes.append(Change("swallowed", other, kept.entry))
        self.stored.append(kept)
        if len(self.stored) > self.max_count:
            changes.append(self._evict("count", kept.entry))
        least = 1 if self.rule == "two queues" else 0
        while self.max_bytes is not None and self.size > self.max_bytes and len(self.stored) > least:
            changes.append(self._evict("bytes", kept.entry))
        return changes

    def trim_to(self, max_bytes: int) -> list[Change]:
        """Throw out until at most so many bytes are left."""
        changes = []
        while self.size > max(0, max_bytes) and self.stored:
            changes.append(self._evict("bytes", None))
        return changes

    def take(self, sequence: Sequence) -> list[Change]:
        """Look a prompt up: in one queue, a hit on the prompt itself or on its longest stored prefix takes it out."""
        if self.rule != "one queue":
            return []
        # The class does not see an entry of a single token as a prefix.
        fits = [
            k
            for k in self.stored
            if k.sequence == sequence or (len(k.sequence) > 1 and starts_with(sequence, k.sequence))
        ]
        if not fits:
            return []
        hit = max(fits, key=lambda kept: len(kept.sequence))
        if hit.times > 1:
            hit.times -= 1
            return []
        self.stored.remove(hit)
        return [Change("taken", hit)]

    def _evict(self, rule: Literal["count", "bytes"], by: int | None) -> Change:
        victim = self.victim()
        place = next(place for place, kept in enumerate(self.stored) if kept.entry == victim)
        return Change("evicted", self.stored.pop(place), by, rule)


def starts_with(sequence: Sequence, prefix: Sequence) -> bool:
    """Whether a sequence goes on where the other ends; one that is equal does not."""
    return len(prefix) < len(sequence) and sequence[: len(prefix)] == prefix
