"""What sending the draft would do, or why it cannot be sent."""

from textual.content import Content
from textual.widgets import Static

from mlxcache_tui.core.text import wrap_cells
from mlxcache_tui.core.views import ForecastView

WATCHING = "watching only (--watch): nothing can be sent"


class ForecastLine(Static):
    """One line; below it what would be thrown out, and traps. What hinders sending stands in place of all.

    Its height is the screen's to choose and does not follow what it says, since each change would lay out all anew.
    """

    DEFAULT_CSS = """
    ForecastLine {
        height: 3;
        color: $text-muted;
        text-wrap: nowrap;
        text-overflow: ellipsis;
        &.-problem { color: $text-error; text-style: bold; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__("", id=id, markup=False)
        self._view = ForecastView(text="")
        self._watching = False
        self._problem = ""

    def show(self, view: ForecastView) -> None:
        """What would happen if the draft were sent now."""
        if view != self._view:
            self._view, self._problem = view, ""
            self._draw()

    def set_watch_only(self, watching: bool) -> None:
        """Whether nothing can be sent from here at all."""
        if watching != self._watching:
            self._watching = watching
            self._draw()

    def refuse(self, problem: str) -> None:
        """Say why the draft is not sent; empty: it can be again."""
        self._problem = problem
        self._draw()

    def on_resize(self) -> None:
        """Divide what is said among the lines there are."""
        self._draw()

    def _draw(self) -> None:
        problem = WATCHING if self._watching else self._problem
        lines = [
            (problem or self._view.text, ""),
            *((line, "$text-warning") for line in self._view.more if not problem),
        ]
        room = max(1, self.size.height)
        wrapped = [(row, look) for line, look in lines for row in wrap_cells(line, self.size.width)]
        rows = [Content.styled(row, look) for row, look in (wrapped if len(wrapped) <= room else lines)]
        if len(rows) > room:
            rows[room - 1 :] = [Content(" · ").join(rows[room - 1 :])]
        self.update(Content("\n").join(rows), layout=False)
        self.set_class(bool(problem), "-problem")
