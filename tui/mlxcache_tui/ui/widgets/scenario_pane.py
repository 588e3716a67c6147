"""The scenario pane: steps with their state, expectations and figures, beside the live table."""

from typing import ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from mlxcache_tui.core.scenario_view import ScenarioView
from mlxcache_tui.draw.scenario_lines import Key, Row, body_rows, top_lines
from mlxcache_tui.draw.spans import Line, Span, note_lines
from mlxcache_tui.ui.theme import CURSOR, CURSOR_BLURRED
from mlxcache_tui.ui.widgets.line_view import LineView

Wish = Literal["pause", "stop", "again", "values", "report", "compare", "close"]
_HERE = Span("▸", "strong")
_EMPTY = "no scenario is open: ^l picks one"


class ScenarioPane(LineView):
    """Shows a `ScenarioView`. The cursor is for choosing a run of a sweep, or a step to run again.

    While nothing is chosen the pane follows the step that runs, and the verdict at the end; what was chosen stays.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move_cursor(-1)", "Up", show=False),
        Binding("down,j", "move_cursor(1)", "Down", show=False),
        Binding("pageup", "move_page(-1)", "Page up", show=False),
        Binding("pagedown", "move_page(1)", "Page down", show=False),
        Binding("home,g", "move_end(-1)", "First", show=False),
        Binding("end,G", "move_end(1)", "Last", show=False),
        Binding("space", "ask('pause')", "pause", key_display="space"),
        Binding("x", "ask('stop')", "stop"),
        Binding("r", "ask('again')", "step again"),
        Binding("v", "ask('values')", "values"),
        Binding("w", "ask('report')", "report"),
        Binding("equals_sign", "ask('compare')", "compare", key_display="="),
        Binding("c", "ask('close')", "close"),
    ]
    DEFAULT_CSS = "ScenarioPane { scrollbar-gutter: stable; }"
    BORDER_TITLE = "Scenario"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._view: ScenarioView | None = None
        self._top: list[Line] = []
        self._rows: list[Row] = []
        self._key: Key | None = None

    @property
    def idle_actions(self) -> frozenset[str]:
        """What has its time while a scenario runs, or only when it is over."""
        view = self._view
        over = view is not None and view.phase == "over"
        idle: set[Wish] = (
            {"pause", "stop"} if view is None or over else {"again", "values", "report", "compare", "close"}
        )
        if view is None:
            idle |= {"again", "values", "report"}
        elif not view.has_before:
            idle.add("compare")
        return frozenset(f"ask('{wish}')" for wish in idle)

    @property
    def view(self) -> ScenarioView | None:
        """What is shown."""
        return self._view

    @property
    def chosen_step(self) -> str | None:
        """The step under the cursor."""
        return self._key.step if self._key is not None and self._key.kind == "step" else None

    @property
    def shown_run(self) -> int:
        """The run whose steps are shown: the chosen one, else the one that goes on or was last."""
        if self._view is None:
            return 0
        return self._key.run if self._key is not None else self._view.current

    def show(self, view: ScenarioView | None) -> None:
        """Draw the view; None: no scenario is open."""
        if view == self._view:
            return
        idle = self.idle_actions
        old, self._view = self._view, view
        if self.idle_actions != idle:
            self.refresh_bindings()
        over = view is not None and view.phase == "over" and (old is None or old.phase != "over")
        if view is None or old is None or view.name != old.name or len(view.runs) != len(old.runs):
            self._key = None
        self.border_title = f"Scenario: {view.title}" if view else "Scenario"
        before = self._shown_lines()
        self._draw()
        self._refresh_changed(before)
        if self._key is not None:
            self._reveal(self._index(self._key))
        elif over:
            self.scroll_home(animate=False, force=True)
        elif view is not None:
            self._follow()

    def _draw(self) -> None:
        width = self.columns
        if self._view is None or width <= 0:
            self._top, self._rows = [], []
        else:
            self._top = top_lines(self._view, width)
            self._rows = body_rows(self._view, self.shown_run, width)
        # Never less than the pane, so that nothing is repainted as long as all lines fit.
        self.virtual_size = Size(self.size.width, max(len(self._top) + len(self._rows), self.size.height))

    def _shown_lines(self) -> list[Line]:
        """The lines of the pane as they stand now, from its top down."""
        start = self.scroll_offset.y
        rows = self._rows[start : start + max(0, self.size.height - len(self._top))]
        return [*self._top, *(row.line for row in rows)]

    def _refresh_changed(self, before: list[Line]) -> None:
        """Repaint the cells that are other ones than before."""
        now = self._shown_lines()
        if len(now) != len(before) or not now:
            self.refresh()
            return
        for y, (old, new) in enumerate(zip(before, now, strict=True)):
            if old != new:
                self.refresh_changes(y, old, new)

    def on_resize(self) -> None:
        """Draw for the new width."""
        self._draw()
        self.refresh()

    def on_focus(self) -> None:
        """Show the cursor as the one that the keys move."""
        self.refresh()

    def on_blur(self) -> None:
        """Show the cursor as one at rest."""
        self.refresh()

    # --- the cursor ---------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Bring the step that runs into sight, and the run it belongs to if both fit."""
        assert self._view is not None
        run = self._view.runs[self._view.current]
        running = next((step.id for step in run.steps if step.status == "running"), None)
        if running is not None:
            self._reveal(self._index(Key("step", self._view.current, running)))

    def _index(self, key: Key | None) -> int:
        return next((index for index, row in enumerate(self._rows) if row.key is not None and row.key == key), -1)

    def _reveal(self, index: int) -> None:
        """Scroll so that the row and what belongs to it can be seen."""
        if index < 0:
            return
        page = max(1, self.size.height - len(self._top))
        last = index
        while last + 1 < len(self._rows) and self._rows[last + 1].key is None and last - index < page - 1:
            last += 1
        top = self.scroll_offset.y
        wanted = min(max(top, last - page + 1), index)
        if index <= 1 and last < page:
            wanted = 0
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, force=True)

    def _choose(self, index: int) -> None:
        keys = [row.key for row in self._rows if row.key is not None]
        if not keys:
            return
        self._key = keys[max(0, min(index, len(keys) - 1))]
        self._draw()
        self.refresh()
        self._reveal(self._index(self._key))

    def action_move_cursor(self, step: int) -> None:
        """Move by rows that can be chosen; the first press goes to the step that runs, or to the first failed one."""
        keys = [row.key for row in self._rows if row.key is not None]
        if self._key in keys:
            self._choose(keys.index(self._key) + step)
        else:
            self._choose(self._first_of_interest(keys))

    def _first_of_interest(self, keys: list[Key]) -> int:
        assert self._view is not None
        steps = self._view.runs[self.shown_run].steps
        for status in ("running", "failed"):
            for step in steps:
                key = Key("step", self.shown_run, step.id)
                if step.status == status and key in keys:
                    return keys.index(key)
        return 0

    def action_move_page(self, step: int) -> None:
        """Scroll by pages, the cursor aside."""
        page = max(1, self.size.height - len(self._top) - 1)
        self.scroll_to(y=self.scroll_offset.y + step * page, animate=False, force=True)

    def action_move_end(self, step: int) -> None:
        """Scroll to the verdict or to the last step."""
        if step < 0:
            self.scroll_home(animate=False, force=True)
        else:
            self.scroll_end(animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the row."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y < len(self._top):
            return
        index = offset.y - len(self._top) + self.scroll_offset.y
        if index < len(self._rows) and self._rows[index].key is not None:
            self._key = self._rows[index].key
            self._draw()
            self.refresh()

    def action_ask(self, wish: Wish) -> None:
        """Ask for something; what becomes of it is the app's."""
        self.post_message(self.Asked(wish, self.chosen_step, self.shown_run))

    # --- drawing ------------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """A line of the top, or a row."""
        if self._view is None:
            return self.strip(note_lines(_EMPTY, self.columns, self.size.height)[y])
        if y < len(self._top):
            return self.strip(self._top[y])
        index = y - len(self._top) + self.scroll_offset.y
        if index >= len(self._rows):
            return Strip.blank(self.columns, self.rich_style)
        row = self._rows[index]
        here = self._key is not None and row.key == self._key
        line = (row.line[0], _HERE, *row.line[2:]) if here else row.line  # in place of the blank behind the sign
        return self.strip(line, "" if not here else CURSOR if self.has_focus else CURSOR_BLURRED)

    class Asked(Message):
        """Something is wanted of the scenario; `step` is the one under the cursor, `run` the one shown."""

        def __init__(self, wish: Wish, step: str | None, run: int) -> None:
            super().__init__()
            self.wish = wish
            self.step = step
            self.run = run
