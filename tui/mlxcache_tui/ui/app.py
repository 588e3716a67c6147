"""The Textual app: opens the engine, hands views to widgets, turns their messages into commands."""

import asyncio
import importlib
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from textual import on
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver

from mlxcache_tui.core import commands as cmd
from mlxcache_tui.core.present import Presenter
from mlxcache_tui.core.reduce import Part
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.core.views import DetailView
from mlxcache_tui.ui.acting import ActingApp
from mlxcache_tui.ui.comparisons import ComparisonReporter, Comparisons
from mlxcache_tui.ui.driver import TerminalDriver
from mlxcache_tui.ui.messages import StateChanged
from mlxcache_tui.ui.requests import Requests
from mlxcache_tui.ui.scenarios import Reporter, Scenarios
from mlxcache_tui.ui.screens.compare import CompareScreen
from mlxcache_tui.ui.screens.compare_picker import ComparePicker
from mlxcache_tui.ui.screens.detail import DetailScreen
from mlxcache_tui.ui.screens.monitor import MonitorScreen
from mlxcache_tui.ui.screens.scenario_picker import ScenarioPicker
from mlxcache_tui.ui.servers import Servers
from mlxcache_tui.ui.widgets.cache_pane import CachePane
from mlxcache_tui.ui.widgets.composer import Composer
from mlxcache_tui.ui.widgets.log_pane import LogPane
from mlxcache_tui.ui.widgets.request_table import RequestTable
from mlxcache_tui.ui.widgets.scenario_pane import ScenarioPane

if TYPE_CHECKING:
    from mlxcache_tui.engine.face import Face

ALL_PARTS: frozenset[Part] = frozenset({"server", "requests", "cache", "memory", "log", "notices"})
NOTICE_S = 10.0


class MonitorApp(ActingApp):
    """One session on the screen."""

    TITLE = "mlxcache-tui"
    CSS_PATH = "screens/monitor.tcss"
    ENABLE_COMMAND_PALETTE = True
    NOTIFICATION_TIMEOUT = NOTICE_S

    def __init__(
        self,
        settings: Settings,
        reporter: Reporter | None = None,
        comparison_reporter: ComparisonReporter | None = None,
        opened: Callable[[], None] | None = None,
    ) -> None:
        """The reporters make the files saved of results and comparisons; `opened` is called when all is there."""
        # Without colours Textual leaves greys; only with the terminal's own colours it sends none but the attributes.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.animation_level = "none"  # what moves by itself is sent again and again
        self._opened = opened
        self.settings = settings
        self.reporter = reporter
        self.comparison_reporter = comparison_reporter
        self.engine: Face | None = None
        self.presenter = Presenter()
        self.monitor = MonitorScreen()
        self.requests = Requests(self)
        self.servers = Servers(self)
        self.scenarios = Scenarios(self)
        self.comparisons = Comparisons(self)
        self._changed: set[Part] = set()
        self._stack = AsyncExitStack()
        self.notices_seen = 0
        self.farewell: tuple[str, ...] = ()
        """Lines for the terminal once the screen is gone."""

    def get_default_screen(self) -> MonitorScreen:
        """The monitor itself, so that the first paint already has all panes."""
        return self.monitor

    async def on_mount(self) -> None:
        """Paint first; what takes long to import comes after."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.exit)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        self.call_after_refresh(self._open)

    def get_driver_class(self) -> type[Driver]:
        """Textual's choice, with ours in place of the one for a terminal."""
        chosen = super().get_driver_class()
        return TerminalDriver if chosen is LinuxDriver else chosen

    def _hang_up(self) -> None:
        TerminalDriver.hang_up()
        self.exit()

    async def on_unmount(self) -> None:
        """A server of ours stops with us; what was measured is on disk."""
        try:
            await self.servers.close()
            await self.scenarios.close()
        finally:
            await self._stack.aclose()
        self.farewell = (*self.scenarios.farewell, *(self.engine.farewell() if self.engine else ()))

    async def _open(self) -> None:
        if (expected := self.servers.expected()) is not None:
            self.monitor.expect(expected)
        await self.monitor.query_one(Composer).fill()
        setup = await asyncio.to_thread(importlib.import_module, "mlxcache_tui.engine.setup")
        engine: Face = await self._stack.enter_async_context(setup.open_engine(self.settings))
        self.engine = engine
        self.servers.engine_opened()
        engine.listen(self._folded)
        self.monitor.query_one(Composer).set_policies(tuple((p.label, p.text) for p in engine.policies))
        self._folded(ALL_PARTS)
        if self.settings.start is None:
            self.servers.open_form()
        if self._opened is not None:
            self._opened()

    # --- from the engine to the screen ---

    def _folded(self, parts: frozenset[Part]) -> None:
        self._changed |= parts
        self.post_message(StateChanged())

    @on(StateChanged)
    def _redraw(self) -> None:
        # While the program ends its panes are gone, and the server's last words still come.
        if self.engine is None or not self.is_running or not self.monitor.query(Composer):
            return
        parts, self._changed = self._changed, set()
        self.before_redraw()
        state = self.engine.state
        self.monitor.show(state, self.presenter, parts)
        if "requests" in parts and isinstance(self.screen, DetailScreen):
            self.requests.refresh_detail(self.screen)
        self.heed(state, parts)

    def make_detail(self, view: DetailView) -> DetailScreen:
        """The screen for one request."""
        return DetailScreen(view)

    def before_redraw(self) -> None:
        """Nothing is kept that would have to be let go."""

    def heed(self, state: SessionState, parts: set[Part]) -> None:
        """What a change means beyond the panes: another forecast, a server that is lost, a line for the person."""
        if parts & {"requests", "cache"}:
            self.requests.forecast()
        if "server" in parts:
            self.servers.heed(state)
            self.watch_only(state.server.watch_only)
        if "notices" in parts:
            self.tell_notices()

    def tell_notices(self) -> None:
        """Show the lines that were not shown yet."""
        assert self.engine is not None
        severity: dict[str, Any] = {"info": "information", "warning": "warning", "error": "error"}
        for notice in self.engine.state.notices:
            if notice.seq > self.notices_seen:
                self.notices_seen = notice.seq
                self.notify(notice.text, title=notice.pane, severity=severity[notice.level], markup=False)

    # --- from the widgets ---

    @on(Composer.SendRequested)
    def _send_wanted(self, event: Composer.SendRequested) -> None:
        self.requests.send(event.count)

    @on(Composer.Changed)
    def _draft_changed(self) -> None:
        self.requests.forecast()

    @on(RequestTable.RequestSelected)
    def _row_selected(self, event: RequestTable.RequestSelected) -> None:
        number = self.engine.state.number_of(event.key) if self.engine else None
        for log in self.monitor.query(LogPane):  # none any more once the program ends
            log.highlight(number)

    @on(RequestTable.RequestOpened)
    def _row_opened(self, event: RequestTable.RequestOpened) -> None:
        self.requests.open_detail(event.key)

    @on(CachePane.WarmWanted)
    def _warm_wanted(self) -> None:
        self.requests.warm_again()

    @on(DetailScreen.Moved)
    def _detail_moved(self, event: DetailScreen.Moved) -> None:
        self.requests.move_detail(event.by)

    @on(DetailScreen.LensWanted)
    def _lens_wanted(self, event: DetailScreen.LensWanted) -> None:
        self.requests.show_lens(event.key, event.against)

    @on(DetailScreen.CurlCopied)
    def _curl_copied(self, event: DetailScreen.CurlCopied) -> None:
        self.requests.copied(event.text)

    @on(DetailScreen.SaveRequested)
    def _save_wanted(self, event: DetailScreen.SaveRequested) -> None:
        self.requests.save(event.view)

    @on(ScenarioPane.Asked)
    def _scenario_asked(self, event: ScenarioPane.Asked) -> None:
        self.scenarios.heed(event)

    @on(ScenarioPicker.FileNamed)
    def _file_named(self, event: ScenarioPicker.FileNamed) -> None:
        self.scenarios.open_file(event.picker, event.path)

    @on(ComparePicker.Wanted)
    def _comparison_wanted(self, event: ComparePicker.Wanted) -> None:
        self.comparisons.read(event.picker, event.a, event.b)

    @on(CompareScreen.Wished)
    def _comparison_wished(self, event: CompareScreen.Wished) -> None:
        self.comparisons.heed(event)

    @on(CompareScreen.SaveWanted)
    def _comparison_kept(self) -> None:
        self.comparisons.save()

    def submit(self, command: cmd.Command) -> None:
        """Hand a command to the engine, once there is one."""
        if self.engine is not None:
            self.engine.submit(command)
