"""The help: every action with its key, and the field's words in a sentence each."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from mlxcache_tui.core.actions import ActionInfo, key_label
from mlxcache_tui.core.glossary import GLOSSARY
from mlxcache_tui.ui.widgets.text_flow import Block, TextFlow


class HelpScreen(ModalScreen[None]):
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


def help_blocks(actions: Sequence[ActionInfo]) -> tuple[Block, ...]:
    """The actions by scope, in the table's order, then the words."""
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
    blocks.append(Block("heading", "Words"))
    longest = max(len(word) for word, _ in GLOSSARY) + 2
    blocks.extend(Block("plain", f"{word:<{longest}}{meaning}", longest) for word, meaning in GLOSSARY)
    return tuple(blocks)
