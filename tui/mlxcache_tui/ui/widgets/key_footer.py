"""The line of keys at the bottom: only whole ones, the way to help and out first, then what the focus can do."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.widgets import Footer, Input, TextArea

from mlxcache_tui.draw.key_line import Key, fitting_keys
from mlxcache_tui.ui.keys import ACTIONS, FOOTER
from mlxcache_tui.ui.widgets.line_view import LineView

FIRST = ("quit", "help")
_OF_APP = frozenset(info.id for info in ACTIONS)


class KeyFooter(Footer):
    """Textual's footer in our order: `first`, then the keys of the focus itself, then those of the whole program."""

    def __init__(self, first: Sequence[str] = FIRST) -> None:
        super().__init__(show_command_palette=False)
        self._first = tuple(first)
        self._labels: dict[str, str | None] = {}
        self._room = 0

    def relabel(self, action: str, label: str | None) -> None:
        """Call an action by another word while its key does something else; None: by its own again."""
        if self._labels.get(action) != label:
            self._labels[action] = label
            self.refresh(recompose=True)

    def on_resize(self) -> None:
        """Choose the keys for another width."""
        if self.screen.size.width != self._room:
            self.refresh(recompose=True)

    def compose(self) -> ComposeResult:
        """A key for each action that can be done now, as many as have room."""
        self._room = self.screen.size.width
        made = {getattr(widget, "action", ""): widget for widget in super().compose()}
        keys: list[Key] = []
        for action in filter(self._is_useful, made):
            widget = made[action]
            label = str(self._labels.get(action) or getattr(widget, "description", ""))
            widget.description = label  # type: ignore[attr-defined]
            keys.append(Key(action, getattr(widget, "key_display", ""), label))
        own = [key.action for key in keys if key.action not in _OF_APP]
        for key in fitting_keys(keys, (*self._first, *own, *FOOTER), self._room):
            yield made[key.action]

    def _is_useful(self, action: str) -> bool:
        """Keys that write a letter are none while typing, and without that there is no need to leave.

        The key that sends only says why it does not where a scenario stands in the composer's place.
        """
        if action == "send" and self.screen.has_class("-scenario"):
            return False
        focused = self.screen.focused
        if isinstance(focused, TextArea | Input):
            return not action.startswith("pane(")
        if isinstance(focused, LineView) and (action in focused.idle_actions or action == f"pane('{focused.id}')"):
            return False
        return action != "leave"
