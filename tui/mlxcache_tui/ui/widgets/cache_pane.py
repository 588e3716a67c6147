"""The prompt cache: the two limits as bars, every stored entry, the ones that just went."""

from typing import ClassVar

import msgspec
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from mlxcache_tui.core.views import CacheView, WarningView
from mlxcache_tui.draw.cache_lines import cache_lines, coarse_age
from mlxcache_tui.draw.policy_lines import policy_lines
from mlxcache_tui.draw.spans import Line
from mlxcache_tui.ui.widgets.line_view import LineView


class CachePane(LineView):
    """Limits and column heads stand still at the top, the entries scroll below them."""

    DEFAULT_CSS = """
    CachePane { scrollbar-gutter: stable; }
    """
    BORDER_TITLE = "Cache"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "toggle_view", "by policy"),
        Binding("x", "dismiss", "seen"),
        Binding("w", "warm_again", "warm again"),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._view: CacheView | None = None
        self._now_ns = 0
        self._ages: tuple[str, ...] = ()
        self._by_policy = False
        self._refusal = ""
        """Why the last key did nothing; told until something else changes."""
        self._dismissed: set[str] = set()
        """Names of the warnings that were seen; they do not come back."""
        self._top: list[Line] = []
        self._entries: list[Line] = []

    @property
    def idle_actions(self) -> frozenset[str]:
        """Without a warning nothing is seen, without what was warm before nothing is warmed again."""
        view = self._view
        idle = set() if self._warning() else {"dismiss"}
        if view is None or view.known != "observer":
            idle.add("toggle_view")
        if view is None or not any(row.warm_before for row in view.policies):
            idle.add("warm_again")
        return frozenset(idle)

    def show(self, view: CacheView, now_ns: int) -> None:
        """Draw the view as of `now_ns` (monotonic, for the ages); only the cells that changed are repainted."""
        hits = [row.last_hit_ns for row in view.policies if row.last_hit_ns is not None]
        stamps = hits if self._by_policy else [entry.inserted_ns for entry in view.entries]
        ages = tuple(coarse_age(now_ns - stamp) for stamp in stamps)
        if view == self._view and ages == self._ages:
            return
        idle = self.idle_actions
        self._view, self._now_ns, self._ages, self._refusal = view, now_ns, ages, ""
        if self.idle_actions != idle:
            self.refresh_bindings()
        old_top, old = self._top, self._entries
        self._draw()
        if len(old_top) != len(self._top) or not old_top:
            self.refresh()
            return
        for y, (before, after) in enumerate(zip(old_top, self._top, strict=True)):
            self._refresh_changed(y, before, after)
        offset = len(self._top) - self.scroll_offset.y
        for index in range(max(len(old), len(self._entries))):
            y = index + offset
            if not len(self._top) <= y < self.size.height:
                continue
            before = old[index] if index < len(old) else ()
            after = self._entries[index] if index < len(self._entries) else ()
            self._refresh_changed(y, before, after)

    def _refresh_changed(self, y: int, before: Line, after: Line) -> None:
        if before is after or before == after:
            return
        if before and after:
            self.refresh_changes(y, before, after)
        else:
            self.refresh_line(y + self.scroll_offset.y)

    def on_resize(self) -> None:
        """Draw for the new width."""
        if self._view is not None:
            self._draw()
            self.refresh()

    def _draw(self) -> None:
        if self._view is None or not self.size:
            return
        warning = self._warning()
        note = self._refusal or (f"{warning.text} (x: seen)" if warning else "") or self._view.note
        view = msgspec.structs.replace(self._view, note=note)
        lines = policy_lines if self._by_policy and view.known == "observer" else cache_lines
        self._top, self._entries = lines(view, self._now_ns, self.columns, self.size.height)
        # Never less than the pane, so that nothing is repainted as long as all lines fit.
        self.virtual_size = Size(self.size.width, max(len(self._top) + len(self._entries), self.size.height))

    def _warning(self) -> WarningView | None:
        """The gravest warning that was not seen yet."""
        warnings = self._view.warnings if self._view is not None else ()
        return next((warning for warning in warnings if warning.name not in self._dismissed), None)

    def action_toggle_view(self) -> None:
        """Entries, or a line for each policy."""
        self._by_policy = not self._by_policy
        self.border_title = "Cache by policy" if self._by_policy else "Cache"
        self.scroll_home(animate=False)
        self._draw()
        self.refresh()

    def action_dismiss(self) -> None:
        """The warning was seen: the next one takes its place."""
        if (warning := self._warning()) is not None:
            self._dismissed.add(warning.name)
            self.refresh_bindings()
            self._draw()
            self.refresh()
        else:
            self._refuse("there is no warning to put away")

    def action_warm_again(self) -> None:
        """Ask for what was warm before the restart."""
        if "warm_again" in self.idle_actions:
            self._refuse("nothing was warm before a restart that is not warm now")
        else:
            self.post_message(self.WarmWanted())

    def _refuse(self, why: str) -> None:
        self._refusal = why
        self._draw()
        self.refresh()

    class WarmWanted(Message):
        """What was warm before the server was restarted is to be read again."""

    def render_line(self, y: int) -> Strip:
        """A line of the top, or an entry."""
        if y < len(self._top):
            return self.strip(self._top[y])
        index = y - len(self._top) + self.scroll_offset.y
        if index < len(self._entries):
            return self.strip(self._entries[index])
        return Strip.blank(self.columns, self.rich_style)
