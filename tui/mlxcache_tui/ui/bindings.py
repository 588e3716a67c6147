"""The key table as Textual bindings, and the few keys that are no actions of the table."""

from textual.binding import Binding, BindingType

from mlxcache_tui.core.actions import key_label
from mlxcache_tui.ui.keys import ACTIONS, COMPARE_FOOTER, FOOTER, REPLAY_FOOTER

_SHOWN_AS = {"leave": ("esc 3 4 5", "panes")}
"""Key and label in the footer where they are not the table's: while typing the keys of the panes need `esc` first."""
_ELSEWHERE = ("requests", "scenario", "cache", "replay", "compare")
"""Scopes whose keys a widget or a screen binds; listed for the help. So is the palette's key, which Textual binds."""
HELP_KEY = Binding("question_mark", "app.help", "help", key_display="?")
"""For the screens above the monitor: the app's own keys of signs do not get there."""
FIELD_KEYS: tuple[BindingType, ...] = (
    Binding("tab", "app.focus_next", "next field", show=False, priority=True),
    Binding("shift+tab", "app.focus_previous", "field before", show=False, priority=True),
)
"""For what has several fields. By Textual's own, what arrives with the key still goes to the field that is left."""
FORM_KEYS: tuple[BindingType, ...] = (*FIELD_KEYS, HELP_KEY)


def replay_bindings() -> list[BindingType]:
    """The replay's keys, for its screens. None of them works while typing."""
    return _of_scope("replay", "app.", REPLAY_FOOTER)


def compare_bindings() -> list[BindingType]:
    """The keys of the comparison's screen."""
    return [*_of_scope("compare", "", COMPARE_FOOTER), HELP_KEY]


def _of_scope(scope: str, target: str, footer: tuple[str, ...]) -> list[BindingType]:
    made: list[BindingType] = []
    for info in ACTIONS:
        wish = info.id.partition("('")[2].rstrip("')")
        if info.scope == scope:
            made.append(
                Binding(
                    info.key,
                    f"{target}{info.id}",
                    info.label,
                    show=wish in footer,
                    key_display=key_label(info.key.split(",")[0]),
                    priority=info.key in ("left", "right"),  # else they would scroll
                    tooltip=info.help,
                )
            )
    return made


def bindings() -> list[BindingType]:
    """The table as Textual bindings. Control and function keys work while typing, plain ones do not.

    Those that go to another pane come before what arrives with them: that is for the pane they go to.
    """
    made: list[BindingType] = []
    for info in ACTIONS:
        if info.scope in _ELSEWHERE or info.id == "palette":
            continue
        for index, key in enumerate(filter(None, info.key.split(","))):
            shown, label = _SHOWN_AS.get(info.id, (key_label(key), info.label))
            made.append(
                Binding(
                    key,
                    info.id,
                    label,
                    show=index == 0 and info.id in FOOTER,
                    key_display=shown,
                    priority=info.scope == "not typing"
                    or (len(key) > 1 and key not in ("escape", "question_mark", "equals_sign")),
                    tooltip=info.help,
                )
            )
    return made
