"""The app over a recording: what is played comes from a file, nothing is sent, and time can be moved through."""

import asyncio
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from mlxcache_tui.core.actions import ActionInfo
from mlxcache_tui.core.present import Presenter
from mlxcache_tui.core.reduce import Part
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.core.views import DetailView
from mlxcache_tui.ui.app import ALL_PARTS, MonitorApp
from mlxcache_tui.ui.comparisons import ComparisonReporter
from mlxcache_tui.ui.keys import OF_LIVE
from mlxcache_tui.ui.screens.detail import DetailScreen
from mlxcache_tui.ui.screens.replay import ReplayDetail, ReplayScreen
from mlxcache_tui.ui.widgets.replay_bar import ReplayBar

if TYPE_CHECKING:
    from mlxcache_tui.engine.player import Player

NOTICES_UP_TO = 5.0
"""Speed up to which what was told then is told again: faster, the lines would cover the screen."""


class ReplayApp(MonitorApp):
    """One recording on the screen. `speed`: see `Player`; `comparison_reporter`: see `MonitorApp`."""

    def __init__(
        self, path: Path, speed: float | None = None, comparison_reporter: ComparisonReporter | None = None
    ) -> None:
        super().__init__(Settings(), comparison_reporter=comparison_reporter)
        self.path = path
        self.speed = speed
        self.player: Player | None = None
        self.monitor: ReplayScreen = ReplayScreen()
        self._rewinds = 0

    async def _open(self) -> None:
        module = await asyncio.to_thread(importlib.import_module, "mlxcache_tui.engine.player")
        self.engine = self.player = await self._stack.enter_async_context(module.Player(self.path, self.speed))
        assert self.player is not None
        self.player.listen(self._moved)
        self._folded(ALL_PARTS)

    def _moved(self, parts: frozenset[Part]) -> None:
        """Draw what changed; while a long file is read that is the place alone."""
        if parts:
            self._folded(parts)
        else:
            self._show_place()

    def _show_place(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, ReplayScreen | ReplayDetail) and screen.is_mounted and self.player is not None:
                screen.show_place(self.player.view)

    def heed(self, state: SessionState, parts: set[Part]) -> None:
        """Show the place; tell again what was told, where it plays slowly enough to be read."""
        player = self.player
        assert player is not None
        self._show_place()
        slow = player.playing and player.speed is not None and player.speed <= NOTICES_UP_TO
        if slow and "notices" in parts:
            self.tell_notices()
        else:
            self.notices_seen = state.notice_count

    def before_redraw(self) -> None:
        """After a way back nothing that was kept of the rows holds."""
        assert self.player is not None
        if self.player.rewinds != self._rewinds:
            self._rewinds = self.player.rewinds
            self.presenter = Presenter()
            self.notices_seen = 0

    def make_detail(self, view: DetailView) -> DetailScreen:
        """The screen for one request, at the moment where the recording stands."""
        assert self.player is not None
        return ReplayDetail(view, self.player.view)

    def offers(self, info: ActionInfo) -> bool:
        """Everything but what needs a server."""
        return info.id not in OF_LIVE

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What needs a server is off; the replay's keys work over the detail as well."""
        if action == "replay" and isinstance(self.screen, ReplayDetail):
            return True
        called = f"{action}('{parameters[0]}')" if parameters else action
        return False if action in OF_LIVE or called in OF_LIVE else super().check_action(action, parameters)

    def action_replay(self, wish: str) -> None:
        """Do what a key of the replay asks."""
        player = self.player
        if player is None:
            return
        match wish:
            case "play":
                player.toggle()
            case "event" | "event_back":
                player.step(1 if wish == "event" else -1)
            case "request" | "request_back":
                player.jump("request", 1 if wish == "request" else -1)
            case "eviction" | "eviction_back":
                player.jump("eviction", 1 if wish == "eviction" else -1)
            case "faster" | "slower":
                player.change_speed(1 if wish == "faster" else -1)
            case "start":
                player.to_start()
            case "end":
                player.to_end()

    @on(ReplayBar.Sought)
    def _sought(self, event: ReplayBar.Sought) -> None:
        if self.player is not None:
            self.player.seek(event.share)
