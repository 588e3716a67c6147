"""An app with one pane in it; and what of it is painted again."""

from typing import Any

from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.widget import Widget


class PaneApp(App[None]):
    """Shows one widget on the whole screen."""

    AUTO_FOCUS = None

    def __init__(self, pane: Widget) -> None:
        super().__init__()
        self.pane = pane

    def compose(self) -> ComposeResult:
        yield self.pane


class Paints:
    """The regions of a widget that are asked to be painted from now on."""

    def __init__(self, widget: Widget, monkeypatch: Any) -> None:
        self.regions: list[Region | None] = []
        refresh = widget.refresh

        def noted(*regions: Region, **options: Any) -> Widget:
            # Textual's own request after a layout paints nothing by itself.
            if options.get("repaint", True):
                self.regions.extend(regions or (None,))
            return refresh(*regions, **options)

        monkeypatch.setattr(widget, "refresh", noted)

    @property
    def cells(self) -> int | None:
        """Cells to be painted; None if that is the whole widget."""
        if None in self.regions:
            return None
        return sum(region.area for region in self.regions if region is not None)
