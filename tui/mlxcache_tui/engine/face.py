"""The side of a session that screens and runs deal with, the same for one that is live and one that is played back."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlxcache_tui.core.body import as_curl
from mlxcache_tui.core.commands import Command
from mlxcache_tui.core.flags import ServerHelp
from mlxcache_tui.core.present_detail import detail_view, request_markdown
from mlxcache_tui.core.reduce import Part
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.core.views import DetailView
from mlxcache_tui.sources.child import server_python
from mlxcache_tui.sources.server_help import read_server_help
from mlxcache_tui.store.files import save_text
from mlxcache_tui.store.paths import PathsError
from mlxcache_tui.store.policies import Policy

Listener = Callable[[frozenset[Part]], None]


class Face(ABC):
    """The state, who listens to its changes, and what can be asked. Create and use it on one asyncio loop."""

    def __init__(self, policies: tuple[Policy, ...] = (), *, bounded: bool = True) -> None:
        self.state = SessionState(bounded=bounded)
        self.policies = policies
        self.listeners: list[Listener] = []
        self._waiters: set[asyncio.Event] = set()

    @abstractmethod
    def submit(self, command: Command) -> None:
        """Ask for something; what comes of it arrives as events."""

    @abstractmethod
    def new_key(self) -> str:
        """A key for a request, unique among all viewers of a server."""

    def farewell(self) -> tuple[str, ...]:
        """What the person should know once the session is over, a line each."""
        return ()

    @property
    def recording(self) -> Path | None:
        """The session's file; None if it is not recorded."""
        return None

    def listen(self, listener: Listener) -> None:
        """Call this after each fold with the parts that changed."""
        self.listeners.append(listener)

    def tell(self, changed: frozenset[Part]) -> None:
        """The state changed: wake who waits, tell who listens."""
        for waiter in self._waiters:
            waiter.set()
        for listener in self.listeners:
            listener(changed)

    async def until(self, done: Callable[[SessionState], bool], timeout_s: float | None = None) -> bool:
        """Wait until `done(state)` holds; False if the time ran out first."""
        folded = asyncio.Event()
        self._waiters.add(folded)
        try:
            async with asyncio.timeout(timeout_s):
                while not done(self.state):
                    await folded.wait()
                    folded.clear()
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(folded)
        return True

    def detail(self, key: str) -> DetailView | None:
        """Everything about one request, with the command that sends it again."""
        request = self.state.requests.get(key)
        if request is None:
            return None
        texts = [(role, self.state.message_text(text_id)) for role, text_id in request.messages]
        if request.path.endswith("chat/completions"):
            body: dict[str, Any] = {"messages": [{"role": role, "content": text} for role, text in texts]}
        else:
            body = {"prompt": texts[0][1] if texts else ""}
        curl = as_curl(self.state.server.url or "http://127.0.0.1:8080", request.path, {**body, **request.params})
        return detail_view(self.state, key, curl)

    def save_detail(self, view: DetailView) -> tuple[bool, str]:
        """Write a request to a private file; returns whether it worked, and the line that says so."""
        return self.save(f"request-{view.row.number}.md", request_markdown(view))

    def save(self, name: str, text: str) -> tuple[bool, str]:
        """Write a text to a private file; returns whether it worked, and the line that says so."""
        try:
            path = save_text(name, text)
        except PathsError as error:
            return False, f"not saved: {error}"
        except OSError as error:
            return False, f"not saved: {error.strerror or error}"
        return True, f"saved to {path}"

    async def server_help(self, python: str | None) -> ServerHelp:
        """The flags that the installed `mlx_lm.server` has."""
        return await read_server_help(server_python(python))
