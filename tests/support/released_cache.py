"""Drive the prompt cache class of the installed mlx_lm with operations from standard input, and say what it holds.

    PYTHON released_cache.py < operations.json

Run by the server's Python: standard library and mlx_lm only. Operations: a list of cases, each `{"max_count",
"max_bytes", "trimmable", "steps": [["insert", type, tokens, bytes] | ["trim", bytes] | ["fetch", tokens], …]}`. Out
come, for each step, the queues: type to a list of [tokens, bytes], oldest first, or the class's own error as text.
"""

import importlib
import json
import sys
from typing import Any


class Layer:
    """A layer's cache that is nothing but a size."""

    def __init__(self, size: int, *, trimmable: bool) -> None:
        self.nbytes, self._trimmable = size, trimmable

    def is_trimmable(self) -> bool:
        return self._trimmable

    def trim(self, count: int) -> int:
        return count


def queues(cache: Any) -> dict[str, Any]:
    order = cache._lru
    if hasattr(order, "_lrus"):
        return dict(order._lrus)
    if hasattr(order, "_lru_checkpoints"):
        return {"assistant": order._lru, "user": order._lru_checkpoints}
    return {"assistant": order}


def held(cache: Any) -> dict[str, list[Any]]:
    get = cache._trie.get if hasattr(cache, "_trie") else cache._get
    sized = {
        name: [[tokens, getattr(get(model, tokens), "nbytes", 0)] for model, tokens in queue]
        for name, queue in queues(cache).items()
    }
    return {name: entries for name, entries in sized.items() if entries}


def step(cache: Any, what: list[Any], *, trimmable: bool) -> None:
    if what[0] == "trim":
        cache.trim_to(n_bytes=what[1])
    elif what[0] == "fetch":
        cache.fetch_nearest_cache("m", what[1])
    else:
        _, kind, tokens, size = what
        named: dict[str, Any] = {}
        if hasattr(cache, "_trie"):
            named["cache_type"] = kind
        elif hasattr(cache._lru, "_lru_checkpoints"):
            named["checkpoint"] = kind == "user"
        cache.insert_cache("m", tokens, [Layer(size, trimmable=trimmable)], **named)


def main() -> None:
    """See the module's first lines."""
    kind = importlib.import_module("mlx_lm.server").LRUPromptCache
    told = []
    for case in json.load(sys.stdin):
        limit = case["max_bytes"]
        try:
            cache = kind(case["max_count"], limit if limit is not None else 1 << 63)
        except TypeError:
            cache = kind(case["max_count"])
        after: list[Any] = []
        for what in case["steps"]:
            try:
                step(cache, what, trimmable=case["trimmable"])
            except (TypeError, ValueError, KeyError) as error:
                after.append(f"{type(error).__name__}: {error}")
                break
            after.append(held(cache))
        told.append(after)
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
