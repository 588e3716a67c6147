"""What the keys do: the key table's actions on the monitor and on what stands above it."""

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Input, OptionList, TextArea

from mlxcache_tui.core.actions import ActionInfo
from mlxcache_tui.ui.bindings import bindings
from mlxcache_tui.ui.comparisons import Comparisons
from mlxcache_tui.ui.keys import ACTIONS, NOT_TYPING, OF_COMPOSER, OF_SENDING
from mlxcache_tui.ui.palette import ANYWHERE, palette_commands
from mlxcache_tui.ui.requests import Requests
from mlxcache_tui.ui.scenarios import Scenarios
from mlxcache_tui.ui.screens.help import HelpScreen
from mlxcache_tui.ui.screens.monitor import MonitorScreen
from mlxcache_tui.ui.screens.once import Palette
from mlxcache_tui.ui.servers import Servers
from mlxcache_tui.ui.widgets.cache_pane import CachePane
from mlxcache_tui.ui.widgets.composer import Composer
from mlxcache_tui.ui.widgets.log_pane import LogPane
from mlxcache_tui.ui.widgets.scenario_pane import Wish

NO_COMPOSER = "not sent: a scenario stands in the composer's place; 2 brings the composer back, then ^s sends"


class ActingApp(App[int]):
    """An app with the monitor at the bottom. Its actions, and which of them are off now."""

    BINDINGS: ClassVar[list[BindingType]] = bindings()

    monitor: MonitorScreen
    requests: Requests
    servers: Servers
    scenarios: Scenarios
    comparisons: Comparisons
    _watching = False

    def watch_only(self, watching: bool) -> None:
        """Whether nothing can be sent: then the keys for it are off, and the table has the focus."""
        if watching == self._watching:
            return
        self._watching = watching
        if watching and self.monitor.focused_pane() == "composer":
            self.monitor.pick("cache")
            self.monitor.pick("requests")
        self.refresh_bindings()

    def action_send(self) -> None:
        if self.monitor.has_class("-scenario"):
            self.notify(NO_COMPOSER, severity="warning", markup=False)
            return
        # The keys typed in front of this one may still wait in the field that has the focus.
        (self.focused or self).call_later(self.monitor.query_one(Composer).request_send)

    def action_send_again(self) -> None:
        self.requests.send_again()

    def action_alternate(self) -> None:
        if self.requests.sent_any:  # else A comes first: what the composer shows
            self.monitor.query_one(Composer).alternate_policy()
        self.monitor.query_one(Composer).request_send()

    def action_next_policy(self) -> None:
        self.monitor.query_one(Composer).next_policy()

    def action_next_question(self) -> None:
        self.monitor.query_one(Composer).next_question()

    def action_cancel(self) -> None:
        self.requests.cancel()

    def action_warm(self) -> None:
        self.requests.warm()

    def action_warm_again(self) -> None:
        self.requests.warm_again()

    def action_toggle_policies(self) -> None:
        self.monitor.query_one(CachePane).action_toggle_view()

    def action_dismiss_warning(self) -> None:
        self.monitor.query_one(CachePane).action_dismiss()

    def action_toggle_thinking(self) -> None:
        self.monitor.query_one(Composer).toggle_thinking()

    def action_toggle_stream(self) -> None:
        self.monitor.query_one(Composer).toggle_stream()

    def action_toggle_seed(self) -> None:
        self.monitor.query_one(Composer).toggle_seed()

    def action_cycle_count(self) -> None:
        self.monitor.query_one(Composer).cycle_count()

    def action_scenarios(self) -> None:
        self.scenarios.open_picker()

    def action_scenario(self, wish: Wish) -> None:
        self.scenarios.pane.action_ask(wish)

    def action_compare(self) -> None:
        self.comparisons.open_picker()

    def action_server(self) -> None:
        self.servers.open_form()

    def action_restart(self) -> None:
        self.servers.restart()

    def action_stop_server(self) -> None:
        self.servers.stop()

    def action_zoom(self) -> None:
        self.monitor.toggle_zoom()

    def action_pane(self, name: str) -> None:
        self.monitor.pick(name)

    def action_leave(self) -> None:
        if self.monitor.has_class("-zoomed"):
            self.monitor.end_zoom()
        else:
            self.monitor.pick("requests")

    def action_search_log(self) -> None:
        self.monitor.pick("log")
        self.monitor.query_one(LogPane).start_search()

    def action_picture(self) -> None:
        self.call_after_refresh(self.requests.save_picture)  # the palette is gone then

    async def action_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            await self.push_screen(HelpScreen([info for info in ACTIONS if self.offers(info)]))

    def offers(self, info: ActionInfo) -> bool:
        """Whether an action is one of this app's: live there is no time to move through, a watcher sends nothing."""
        return info.scope != "replay" and not (self._watching and info.id in OF_SENDING)

    def action_command_palette(self) -> None:
        """Textual's palette, closed once."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    async def action_quit(self) -> None:
        self.exit(0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The monitor's keys are for the monitor: a form or the detail above it has its own."""
        ours = {info.id.partition("(")[0] for info in ACTIONS}
        if action in ours and action not in ANYWHERE and self.screen is not self.monitor:
            return False
        called = f"{action}('{parameters[0]}')" if parameters else action
        if called in NOT_TYPING and isinstance(self.focused, TextArea | Input | OptionList):
            return False
        if self._watching and called in OF_SENDING:
            return False
        if action in OF_COMPOSER and action != "send" and self.monitor.has_class("-scenario"):
            return False
        return super().check_action(action, parameters)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette's commands."""
        return palette_commands(self, screen, super().get_system_commands(screen))
