"""The rule by which mlx_lm's prompt cache chooses what to throw out (mlx-lm 0.31.2 to 0.32.2).

Source: `LRUPromptCache.CacheOrder.pop` in the released packages. Three queues, assistant, user, system, each first in
first out. A queue gives up its oldest if it holds something and is at least as long as the next one; else the next one
is asked by the same rule; the last gives up its own. A hit refreshes nothing, whatever the class is called.
"""

from collections.abc import Iterable
from itertools import pairwise

from mlxcache_tui.core.events import EntryType

ORDER: tuple[EntryType, ...] = ("assistant", "user", "system")


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
