"""The app on an engine that only notes what it is asked for."""

from pathlib import Path
from typing import Any

import mlxcache_tui.ui
from mlxcache_tui.core.commands import Command
from mlxcache_tui.core.events import ServerPhase
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.state import ServerState
from mlxcache_tui.engine.face import Face
from mlxcache_tui.ui.app import MonitorApp
from mlxcache_tui.ui.widgets.composer import Composer


class Noting(Face):
    """Keeps the commands."""

    def __init__(self, phase: ServerPhase = "ready") -> None:
        super().__init__()
        self.state.server = ServerState(phase=phase, mode="launched")
        self.commands: list[Command] = []

    def submit(self, command: Command) -> None:
        self.commands.append(command)

    def new_key(self) -> str:
        return f"k{len(self.commands)}"


class NotingApp(MonitorApp):
    """The app on such an engine, and the lines that it told."""

    CSS_PATH = str(Path(mlxcache_tui.ui.__file__).parent / "screens" / "monitor.tcss")

    def __init__(self, phase: ServerPhase = "ready") -> None:
        super().__init__(Settings())
        self.noting = Noting(phase)
        self.told: list[str] = []

    async def _open(self) -> None:
        self.engine = self.noting
        await self.monitor.query_one(Composer).fill()

    def notify(self, message: str, **_: Any) -> None:
        self.told.append(message)
