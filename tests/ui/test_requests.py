"""What the person does with requests, on an engine that only notes what it is asked for."""

from pathlib import Path
from typing import Any

import pytest

import mlxcache_tui.ui
from mlxcache_tui.core.commands import Command, SendRequest
from mlxcache_tui.core.events import ServerPhase
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.state import ServerState
from mlxcache_tui.engine.face import Face
from mlxcache_tui.ui.app import MonitorApp
from mlxcache_tui.ui.widgets.composer import Composer
from support.until import until


class Noting(Face):
    """Keeps the commands."""

    def __init__(self, phase: ServerPhase) -> None:
        super().__init__()
        self.state.server = ServerState(phase=phase, mode="launched")
        self.commands: list[Command] = []

    def submit(self, command: Command) -> None:
        self.commands.append(command)

    def new_key(self) -> str:
        return f"k{len(self.commands)}"


class NotingApp(MonitorApp):
    """The app on such an engine, and the lines that it told."""

    CSS_PATH = Path(mlxcache_tui.ui.__file__).parent / "screens" / "monitor.tcss"

    def __init__(self, phase: ServerPhase) -> None:
        super().__init__(Settings())
        self.noting = Noting(phase)
        self.told: list[str] = []

    async def _open(self) -> None:
        self.engine = self.noting
        await self.monitor.query_one(Composer).fill()

    def notify(self, message: str, **_: Any) -> None:
        self.told.append(message)


@pytest.mark.parametrize(("phase", "sent"), [("starting", 0), ("loading", 1), ("ready", 1)])
async def test_nothing_is_sent_to_a_server_that_does_not_listen_yet(phase: ServerPhase, sent: int) -> None:
    app = NotingApp(phase)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.engine is not None and app.focused is not None)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.told or app.noting.commands)
        assert sum(isinstance(command, SendRequest) for command in app.noting.commands) == sent
        assert app.told == ([] if sent else ["not sent: the server is still starting"])
