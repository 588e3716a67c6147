"""Run the observer as it is, and say on a second socket what the server's own prompt cache object holds and did.

    PYTHON truth_server.py --socket FOLDER/s … (all as for observe.py)

Run by the server's Python: standard library and mlx_lm only. It wraps the class *under* the observer's hooks and reads
the object itself, so that nothing of the observer's own bookkeeping goes into what it says. `FOLDER/truth` answers each
connection with one JSON object: the entries by queue, oldest first, [tokens' SHA-1, count, bytes]; the sum that the
object keeps; what its own rule would pop next; and all that was inserted and popped so far, in order.
"""

import copy
import hashlib
import importlib
import importlib.util
import json
import socket
import sys
import threading
from array import array
from pathlib import Path
from typing import Any

OBSERVE = Path(__file__).parents[2] / "tui" / "mlxcache_tui" / "observer" / "observe.py"


def sha(tokens: Any) -> str:
    """The name of a token sequence."""
    return hashlib.sha1(array("q", tokens).tobytes(), usedforsecurity=False).hexdigest()[:16]


class Spy:
    """Wraps the class and remembers its one object."""

    def __init__(self, kind: Any) -> None:
        self.cache: Any = None
        self.operations: list[list[Any]] = []
        self._pop = kind.CacheOrder.pop
        make, insert, operations = kind.__init__, kind.insert_cache, self.operations
        pop = self._pop

        def made(cache: Any, *args: Any, **kwargs: Any) -> None:
            make(cache, *args, **kwargs)
            self.cache = cache

        def inserted(cache: Any, model: Any, tokens: Any, layers: Any, *args: Any, **kwargs: Any) -> Any:
            queue = kwargs.get("cache_type") or ("user" if kwargs.get("checkpoint") else "assistant")
            operations.append(["insert", queue, sha(tokens)])
            return insert(cache, model, tokens, layers, *args, **kwargs)

        def popped(order: Any) -> Any:
            gone = pop(order)
            operations.append(["pop", sha(gone[1])])
            return gone

        kind.__init__, kind.insert_cache, kind.CacheOrder.pop = made, inserted, popped

    def queues(self) -> dict[str, Any]:
        """The queues of this version, by type."""
        order = self.cache._lru
        if hasattr(order, "_lrus"):
            return dict(order._lrus)
        return {"assistant": order._lru, "user": order._lru_checkpoints}

    def size_of(self, model: Any, tokens: Any) -> int:
        """Bytes of the entry that is stored under these tokens."""
        if hasattr(self.cache, "_trie"):
            return int(self.cache._trie.get(model, tokens).nbytes)
        return int(self.cache._get(model, tokens).nbytes)

    def told(self) -> dict[str, Any]:
        """The whole truth at this moment."""
        count = len(self.operations)
        entries = {
            name: [[sha(tokens), len(tokens), self.size_of(model, tokens)] for model, tokens in queue]
            for name, queue in self.queues().items()
        }
        following = sha(self._pop(copy.deepcopy(self.cache._lru))[1]) if len(self.cache) else None
        return {
            "entries": entries,
            "bytes": int(self.cache.nbytes),
            "next": following,
            "operations": self.operations[:count],
        }


def answer(listener: socket.socket, spy: Spy) -> None:
    """Serve for ever; a moment at which the cache was just being changed is asked for again."""
    while True:
        connection, _ = listener.accept()
        with connection:
            while True:
                try:
                    told = spy.told()
                except (RuntimeError, KeyError):
                    continue
                break
            connection.sendall(json.dumps(told).encode())


def main() -> None:
    """See the module's first lines."""
    server = importlib.import_module("mlx_lm.server")
    spy = Spy(server.LRUPromptCache)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(Path(sys.argv[sys.argv.index("--socket") + 1]).with_name("truth")))
    listener.listen(4)
    threading.Thread(target=answer, args=(listener, spy), daemon=True).start()
    spec = importlib.util.spec_from_file_location("observe", OBSERVE)
    assert spec is not None
    assert spec.loader is not None
    observe = importlib.util.module_from_spec(spec)
    sys.modules["observe"] = observe
    spec.loader.exec_module(observe)
    observe.main()


if __name__ == "__main__":
    main()
