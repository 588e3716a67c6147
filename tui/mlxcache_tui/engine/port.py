"""What a scenario's run needs of the engine."""

from collections.abc import Callable
from typing import Protocol

from mlxcache_tui.core.commands import Command
from mlxcache_tui.core.events import AnyEvent
from mlxcache_tui.core.state import SessionState


class EnginePort(Protocol):
    """The engine as a run uses it."""

    state: SessionState

    def submit(self, command: Command) -> None:
        """Ask for something; events answer."""

    def new_key(self) -> str:
        """A key for a new request."""

    def emit(self, event: AnyEvent) -> None:
        """Add a fact of ours to the stream."""

    async def until(self, done: Callable[[SessionState], bool], timeout_s: float | None = None) -> bool:
        """Wait until `done` holds; false when the time is over first."""
