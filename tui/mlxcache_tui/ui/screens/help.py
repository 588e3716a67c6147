"""The help: every action with its key, and the field's words in a sentence each."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from mlxcache_tui.core.actions import ActionInfo, key_label
from mlxcache_tui.core.glossary import GLOSSARY, MARKS, REASONS, REQUEST_STATES
from mlxcache_tui.draw.signs import MARK_SIGNS, REASON_SIGNS, REQUEST_SIGNS, Sign
from mlxcache_tui.ui.screens.compare_picker import ComparePicker
from mlxcache_tui.ui.screens.detail import DetailScreen
from mlxcache_tui.ui.screens.once import Once
from mlxcache_tui.ui.widgets.log_pane import LogPane
from mlxcache_tui.ui.widgets.prefix_lens import PrefixLens
from mlxcache_tui.ui.widgets.request_table import RequestTable
from mlxcache_tui.ui.widgets.text_flow import Block, TextFlow

PANE_KEYS: dict[str, Sequence[BindingType]] = {
    "requests": RequestTable.BINDINGS,
    "log": LogPane.BINDINGS,
    "detail": DetailScreen.BINDINGS,
    "the list to compare from": ComparePicker.BINDINGS,
    "prefix, in the detail": PrefixLens.BINDINGS,
}
"""The keys that panes bind themselves, under the name of the place."""


class HelpScreen(Once, ModalScreen[None]):
    """Scrolls over all actions, grouped by where they work, then over the glossary."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1", "close", "close")]
    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        & > #help {
            width: 100%;
            max-width: 110;
            height: 100%;
            max-height: 60;
            border: round $accent;
            border-title-color: $text-accent;
            border-subtitle-color: $text-muted;
            background: $surface;
        }
    }
    """

    def __init__(self, actions: Sequence[ActionInfo]) -> None:
        super().__init__()
        self._actions = tuple(actions)

    def compose(self) -> ComposeResult:
        """One scrolling text."""
        with Vertical(id="help") as box:
            box.border_title = "Help"
            box.border_subtitle = "↑ ↓ pgup pgdn scroll · esc close"
            yield TextFlow(id="help-text")

    def on_mount(self) -> None:
        """Fill it; the text has the focus so that the arrow keys scroll."""
        flow = self.query_one("#help-text", TextFlow)
        flow.show(help_blocks(self._actions))
        flow.focus()

    def action_close(self) -> None:
        """Back to where we came from."""
        self.dismiss(None)


def _pane_keys(place: str, bound: Sequence[BindingType]) -> list[Block]:
    keys = [(b.key_display or key_label(b.key), b.tooltip) for b in bound if isinstance(b, Binding) and b.tooltip]
    widest = max(len(key) for key, _ in keys) + 2
    lines = [Block("plain", f"{key:<{widest}}{text}", widest) for key, text in keys]
    return [Block("heading", f"Keys in {place}"), *lines, Block("plain", "")]


def _signs(title: str, signs: Iterable[Sign], meanings: Mapping[str, str]) -> list[Block]:
    shown = [sign for sign in signs if sign.word in meanings]
    widest = max(len(sign.word) for sign in shown) + 5
    lines = [Block("plain", f"{f'{sign.sign}  {sign.word}':<{widest}}{meanings[sign.word]}", widest) for sign in shown]
    return [Block("heading", title), *lines, Block("plain", "")]


def help_blocks(actions: Sequence[ActionInfo]) -> tuple[Block, ...]:
    """The actions by scope, in the table's order, then the signs and the words."""
    scopes: dict[str, list[ActionInfo]] = {}
    for action in actions:
        scopes.setdefault(action.scope, []).append(action)
    widest = max((len(key_label(action.key)) for action in actions), default=0)
    blocks: list[Block] = []
    for scope, members in scopes.items():
        blocks.append(Block("heading", f"Keys: {scope}"))
        for action in members:
            text = action.help if action.label in action.help else f"{action.label}: {action.help}"
            blocks.append(Block("plain", f"{key_label(action.key):<{widest}}  {text}", widest + 2))
        blocks.append(Block("plain", ""))
    for place, bound in PANE_KEYS.items():
        blocks += _pane_keys(place, bound)
    reasons = {REASON_SIGNS[kind].word: meaning for kind, meaning in REASONS.items()}
    blocks += _signs("Signs: the state of a request", REQUEST_SIGNS.values(), REQUEST_STATES)
    blocks += _signs("Signs: why it was reused, or was not", REASON_SIGNS.values(), reasons)
    blocks += _signs("Signs: marks on rows and entries", MARK_SIGNS, MARKS)
    blocks.append(Block("heading", "Words"))
    longest = max(len(word) for word, _ in GLOSSARY) + 2
    blocks.extend(Block("plain", f"{word:<{longest}}{meaning}", longest) for word, meaning in GLOSSARY)
    return tuple(blocks)
