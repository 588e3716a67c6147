"""The main screen: status line, requests, cache, memory, composer, log; or two of them on a small terminal."""

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen

from mlxcache_tui.core.present import Presenter, cache_view, log_view, memory_view, status_view
from mlxcache_tui.core.reduce import Part
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.core.views import StatusView
from mlxcache_tui.ui.widgets.cache_pane import CachePane
from mlxcache_tui.ui.widgets.composer import Composer
from mlxcache_tui.ui.widgets.key_footer import KeyFooter
from mlxcache_tui.ui.widgets.log_pane import LogPane
from mlxcache_tui.ui.widgets.memory_graph import MemoryGraph
from mlxcache_tui.ui.widgets.request_table import RequestTable
from mlxcache_tui.ui.widgets.scenario_pane import ScenarioPane
from mlxcache_tui.ui.widgets.status_bar import StatusBar

PANES = ("requests", "composer", "scenario", "cache", "memory", "log")


class MonitorScreen(Screen[None]):
    """Lays the panes out and gives them focus; what they show is handed to them by the app."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (16, "-short"), (34, "-tall")]  # noqa: RUF012
    AUTO_FOCUS = ""
    _expecting = False

    def compose(self) -> ComposeResult:
        yield StatusBar(id="status")
        yield RequestTable(id="requests")
        with Horizontal(id="middle"):
            yield CachePane(id="cache")
            yield MemoryGraph(id="memory")
        with Horizontal(id="bottom"):
            yield Composer(id="composer", late=True)
            yield ScenarioPane(id="scenario")
            yield LogPane(id="log")
        yield from self.compose_foot()
        yield KeyFooter()

    def compose_foot(self) -> ComposeResult:
        """What stands between the panes and the keys: nothing, live."""
        yield from ()

    def on_mount(self) -> None:
        self.pick("composer")

    def expect(self, view: StatusView) -> None:
        """Show this until something is heard of the server that was asked for."""
        self._expecting = True
        self.query_one(StatusBar).show(view)

    def show(self, state: SessionState, presenter: Presenter, parts: set[Part]) -> None:
        """Hand each pane its view."""
        status = status_view(state)
        if status.phase != "none" or not self._expecting:
            self._expecting = False
            self.query_one(StatusBar).show(status)
        if "requests" in parts:
            self.query_one(RequestTable).show(presenter.rows(state), state.let_go)
        if "log" in parts or "server" in parts:
            self.query_one(LogPane).show(log_view(state))
        self.query_one(CachePane).show(cache_view(state), state.now_ns)
        self.query_one(MemoryGraph).show(memory_view(state), state.now_ns)

    def pick(self, pane: str) -> None:
        """Show a pane (on a small terminal it takes the place of another) and give it the focus."""
        self.set_class(pane == "requests", "-at-requests")
        if pane != "requests":
            for name in PANES:
                self.set_class(name == pane, f"-show-{name}")
        if pane in ("composer", "scenario"):
            self.set_class(pane == "scenario", "-scenario")
        if self.has_class("-zoomed"):
            self._zoom_to(pane)
        # At once: what was typed behind the key is for this pane.
        if pane == "composer":
            self.query_one(Composer).focus_user()
        elif pane == "log":
            self.query_one(LogPane).focus()
        else:
            self.set_focus(self.query_one(f"#{pane}"))

    def focused_pane(self) -> str:
        """The pane that holds the focus."""
        node = self.focused
        while node is not None and node is not self:
            if node.id in PANES:
                return node.id
            parent = node.parent
            node = parent if hasattr(parent, "id") else None  # type: ignore[assignment]
        return "requests"

    def toggle_zoom(self) -> None:
        """The pane in focus alone on the screen, or all again."""
        if self.has_class("-zoomed"):
            self.end_zoom()
        else:
            self.add_class("-zoomed")
            self._zoom_to(self.focused_pane())

    def end_zoom(self) -> None:
        """All panes again."""
        self.remove_class("-zoomed", *(f"-zoom-{name}" for name in PANES))

    def _zoom_to(self, pane: str) -> None:
        for name in PANES:
            self.set_class(name == pane, f"-zoom-{name}")
