"""A screen that is closed once, however often the key for it was pressed."""

from typing import Any

from textual.await_complete import AwaitComplete
from textual.command import CommandPalette


class Once:
    """In front of a screen's own base. A second key of the same burst would close what lies below it, or the app.

    No widget itself: Textual takes styles and keys from the first base that is one.
    """

    is_active: Any

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close it, if it is on top."""
        if not self.is_active:
            return AwaitComplete()
        closing: AwaitComplete = super().dismiss(result)  # type: ignore[misc]
        return closing


class Palette(Once, CommandPalette):
    """Textual's own, closed once."""
