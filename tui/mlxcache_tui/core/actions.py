"""One action of the screen, as the key table, the footer, the palette and the help show it."""

import msgspec


class ActionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a person can do.

    `id` is unique and may be remapped; `key` is the default key as Textual names it (several, with commas between them:
    the first is shown); `label` is one or two words; `help` is one sentence; `scope` is where it works (`anywhere`,
    `requests` …).
    """

    id: str
    key: str
    label: str
    help: str
    scope: str


NAMED_KEYS = {
    "question_mark": "?",
    "equals_sign": "=",
    "slash": "/",
    "escape": "esc",
    "enter": "enter",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "full_stop": ".",
    "comma": ",",
    "plus": "+",
    "minus": "-",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "pageup": "pgup",
    "pagedown": "pgdn",
}


def key_label(key: str) -> str:
    """The keys as a person reads them: `ctrl+s,f5` is `^s f5`."""
    return " ".join(_one(part.strip()) for part in key.split(",") if part.strip())


def _one(key: str) -> str:
    held, _, last = key.rpartition("+")
    label = NAMED_KEYS.get(last, last)
    if held == "ctrl":
        return f"^{label}"
    return f"{held}+{label}" if held else label
