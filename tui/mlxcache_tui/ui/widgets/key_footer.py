"""The line of keys at the bottom: the way to help and out comes first, so that no width cuts it off."""

from collections.abc import Collection

from textual.app import ComposeResult
from textual.widgets import Footer

FIRST = ("quit", "help")
SPARE = ("scenarios", "server", "compare")
"""Actions that a narrow screen leaves to the palette and the help."""


class KeyFooter(Footer):
    """Textual's footer in our order: `first` are the actions that come first."""

    def __init__(self, first: Collection[str] = FIRST) -> None:
        super().__init__(show_command_palette=False)
        self._first = first

    def compose(self) -> ComposeResult:
        """A key for each action that can be done now."""
        keys = list(super().compose())
        places = [getattr(key, "action", "") for key in keys]
        for place, key in sorted(zip(places, keys, strict=True), key=lambda pair: pair[0] not in self._first):
            yield key.set_class(place in SPARE, "-spare")
