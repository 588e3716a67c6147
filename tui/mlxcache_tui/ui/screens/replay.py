"""The monitor over a recording: the same panes, the replay's line instead of the composer."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from mlxcache_tui.core.playback import PlaybackView
from mlxcache_tui.ui.keys import replay_bindings
from mlxcache_tui.ui.screens.monitor import MonitorScreen
from mlxcache_tui.ui.widgets.composer import Composer
from mlxcache_tui.ui.widgets.replay_bar import ReplayBar


class ReplayScreen(MonitorScreen):
    """Its keys are those of the replay; a text field that has the focus takes them first."""

    BINDINGS: ClassVar[list[BindingType]] = replay_bindings()

    def compose_foot(self) -> ComposeResult:
        """The place in the recording."""
        yield ReplayBar(id="replay")

    def __init__(self) -> None:
        super().__init__(classes="-replay")

    def on_mount(self) -> None:
        """The table has the focus: there is nothing to write."""
        self.query_one(Composer).disabled = True
        self.call_after_refresh(self.pick, "requests")

    def pick(self, pane: str) -> None:
        """As on the monitor; what has nothing to show here gives way to the log."""
        super().pick("log" if pane in ("composer", "scenario") else pane)

    def show_place(self, view: PlaybackView) -> None:
        """Draw where the recording stands."""
        self.query_one(ReplayBar).show(view)
