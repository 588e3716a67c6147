"""The observed server, whose hooks one request can do without: the same process, observed and plain by turns.

Run as `observe.py` is. A request with `PLAIN_HEADER` is served by the server's own functions; the next one without it
has the hooks again.
"""

import logging
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tui"))

from mlxcache_tui.observer import observe

PLAIN_HEADER = "X-Bench-Plain"
UNKNOWN_ENTRY = 0
"""What the observer finds on an entry that was stored while it was away."""


class SwitchedHooks(observe.Hooks):
    """Hooks that can be taken out and put back."""

    def __init__(self, hub: observe.Hub) -> None:
        super().__init__(hub)
        self._places: list[tuple[Any, str, Any, Any]] = []
        self._factories = (logging.getLogRecordFactory(), logging.getLogRecordFactory())
        self._hooked = True

    def _set(self, owner: Any, label: str, *args: Any, **named: Any) -> bool:
        name = label.partition(".")[2]
        own = getattr(owner, name, None)
        done = super()._set(owner, label, *args, **named)
        if done:
            self._places.append((owner, name, own, getattr(owner, name)))
        return done

    def install(self, server: Any, cache: Any) -> None:
        """Set the hooks, and one in front of them that looks for the header before the request is served."""
        own = logging.getLogRecordFactory()
        super().install(server, cache)
        self._factories = (own, logging.getLogRecordFactory())
        setattr(server.LRUPromptCache.CacheEntry, observe.ENTRY_ATTRIBUTE, UNKNOWN_ENTRY)
        parse = server.APIHandler.parse_request

        def parse_request(handler: Any) -> bool:
            parsed = bool(parse(handler))
            if parsed:
                self._switch(PLAIN_HEADER not in handler.headers)
            return parsed

        server.APIHandler.parse_request = parse_request

    def _switch(self, hooked: bool) -> None:
        if hooked != self._hooked:
            self._hooked = hooked
            for owner, name, own, hook in self._places:
                setattr(owner, name, hook if hooked else own)
            logging.setLogRecordFactory(self._factories[hooked])


if __name__ == "__main__":
    observe.Hooks = SwitchedHooks  # type: ignore[misc]
    observe.main()
