"""The base of the panes: a scroll view that draws lines of spans and repaints only the cells that changed."""

from collections.abc import Iterator
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mlxcache_tui.draw.spans import Line, common_edges, line_width
from mlxcache_tui.ui.theme import CURSOR, PREFIX, component_css, component_names

_INKED = frozenset({"gone", "match"})
"""Looks that can be seen on blanks."""


class LineView(ScrollView, can_focus=True):
    """Turns lines of spans into strips. Text is taken as it is: no markup, no highlighting."""

    DEFAULT_CSS = """
    LineView {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
    }
    """ + component_css("LineView")
    COMPONENT_CLASSES: ClassVar[set[str]] = component_names()

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id, classes=classes)
        self._looks: dict[tuple[str, str], Style] = {}

    @property
    def idle_actions(self) -> frozenset[str]:
        """Actions of the pane that would be refused now: the footer leaves them out."""
        return frozenset()

    @property
    def columns(self) -> int:
        """Cells that a line may take."""
        return self.scrollable_content_region.width

    def notify_style_update(self) -> None:
        """Forget the looks: the theme or the focus may be another."""
        super().notify_style_update()
        self._looks.clear()

    def strip(self, line: Line, ground: str = "") -> Strip:
        """The line as the terminal gets it. `ground`: `CURSOR` or `CURSOR_BLURRED` to lay it on a cursor."""
        segments = [Segment(text, self._look(look, ground)) for text, look in _runs(line)]
        return Strip(segments, line_width(line))

    def refresh_changes(self, y: int, old: Line, new: Line) -> None:
        """Repaint the cells of content line `y` (0 is the top of the pane) in which two lines of one width differ."""
        width = self.size.width
        start, end = common_edges(old, new)
        if start + end < width:
            self.refresh(Region(start, y, width - start - end, 1))

    def _look(self, look: str, ground: str) -> Style:
        style = self._looks.get((look, ground))
        if style is None:
            style = self.get_component_rich_style(PREFIX + look)
            if ground:
                below = self.get_component_rich_style(PREFIX + ground)
                # The colours of the looks are made for the pane's own background; on the cursor one reads better.
                keeps_colour = ground != CURSOR and look != "plain"
                colours = Style(color=None if keeps_colour else below.color, bgcolor=below.bgcolor)
                style += colours + Style(
                    bold=below.bold or style.bold, reverse=below.reverse or None, underline=below.underline or None
                )
            self._looks[look, ground] = style
        return style


def _runs(line: Line) -> Iterator[tuple[str, str]]:
    """Neighbours of one look put together, blanks with either: each run costs some 40 bytes of colours on the wire."""
    text, look = "", "plain"
    for span in line:
        if span.look == look or (span.text.isspace() and look not in _INKED):
            text += span.text
        elif not text or (text.isspace() and span.look not in _INKED):
            text, look = text + span.text, span.look
        else:
            yield text, look
            text, look = span
    if text:
        yield text, look
