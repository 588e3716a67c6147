"""The screens over a recording: the same as live, with the replay's line and its keys."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from mlxcache_tui.core.playback import PlaybackView
from mlxcache_tui.core.views import DetailView
from mlxcache_tui.ui.bindings import replay_bindings
from mlxcache_tui.ui.keys import REPLAY_FOOTER
from mlxcache_tui.ui.screens.detail import DetailScreen
from mlxcache_tui.ui.screens.monitor import MonitorScreen
from mlxcache_tui.ui.widgets.composer import Composer
from mlxcache_tui.ui.widgets.key_footer import KeyFooter
from mlxcache_tui.ui.widgets.replay_bar import ReplayBar
from mlxcache_tui.ui.widgets.request_table import RequestTable

_PLAY = "app.replay('play')"
_READING = "reading the recording …"
_BEFORE_ALL = "nothing was sent yet: space plays, ] goes on to the next request"


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
        self.query_one(RequestTable).say_when_empty(_READING)
        self.call_after_refresh(self.pick, "requests")

    def pick(self, pane: str) -> None:
        """As on the monitor; what has nothing to show here gives way to the log."""
        super().pick("log" if pane in ("composer", "scenario") else pane)

    def show_place(self, view: PlaybackView) -> None:
        """Draw where the recording stands."""
        _show_place(self, view)
        self.query_one(RequestTable).say_when_empty(_READING if view.state == "reading" else _BEFORE_ALL)


class ReplayDetail(DetailScreen):
    """One request at the moment where the recording stands. In the prompt's section [ and ] are the lens's."""

    BINDINGS: ClassVar[list[BindingType]] = replay_bindings()

    def __init__(self, view: DetailView, place: PlaybackView) -> None:
        super().__init__(view)
        self._place = place

    def compose_foot(self) -> ComposeResult:
        """The place in the recording; of the keys those come first that move it."""
        yield ReplayBar(id="replay")
        yield KeyFooter(first=("close", *(f"app.replay('{wish}')" for wish in REPLAY_FOOTER)))

    def on_mount(self) -> None:
        """The place is there at once."""
        self.show_place(self._place)

    def show_place(self, view: PlaybackView) -> None:
        """Draw where the recording stands."""
        _show_place(self, view)


def _show_place(screen: ReplayScreen | ReplayDetail, view: PlaybackView) -> None:
    screen.query_one(ReplayBar).show(view)
    screen.query_one(KeyFooter).relabel(_PLAY, "pause" if view.state == "playing" else None)
