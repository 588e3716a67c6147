"""Looks of drawn spans as style rules of the screen's theme.

The names are those of `draw.spans.Look`. Whatever a colour says is said by a sign or a word too (`draw.signs`), so that
NO_COLOR, 16 colours and eyes that do not tell red from green lose nothing.
"""

from mlxcache_tui.draw.spans import Look

PREFIX = "line-view--"
LOOKS: dict[Look, str] = {
    "plain": "",
    "dim": "color: $text-muted;",
    "strong": "text-style: bold;",
    "good": "color: $success;",
    "warn": "color: $text-warning;",
    "bad": "color: $error-lighten-2; text-style: bold;",
    "info": "color: $primary-lighten-2;",
    "accent": "color: $text-accent;",
    "head": "color: $text-muted; text-style: bold;",
    "gone": "color: $text-muted; text-style: strike;",
    "mark": "color: $secondary-lighten-3; text-style: bold;",
    "bar": "color: $primary-lighten-2;",
    "rest": "color: $text-disabled;",
    "match": "text-style: reverse bold;",
}
_ON_LIGHT: dict[Look, str] = {
    "good": "color: $text-success;",
    "bad": "color: $text-error;",
    "info": "color: $text-primary;",
    "mark": "color: $text-secondary;",
    "bar": "color: $text-primary;",
}
"""On a light ground. Those above are no paler than they must be: with 16 colours pale ones would all be white."""
_ON_NO_COLOUR: dict[str, str] = {
    "dim": "text-style: dim;",
    "gone": "text-style: dim strike;",
    "rest": "text-style: dim;",
    "cursor": "text-style: reverse;",
    "cursor-blurred": "text-style: underline;",
}
"""With NO_COLOR: what colours say besides the signs is said by attributes alone."""
CURSOR = "cursor"
CURSOR_BLURRED = "cursor-blurred"
_GROUNDS = {
    CURSOR: (
        "color: $block-cursor-foreground; background: $block-cursor-background; text-style: $block-cursor-text-style;"
    ),
    CURSOR_BLURRED: "background: $block-cursor-blurred-background;",
}


def component_names() -> set[str]:
    """Component classes of a widget that draws spans."""
    return {PREFIX + name for name in (*LOOKS, *_GROUNDS)}


def component_css(widget: str) -> str:
    """Default rules of these classes for a widget class and those made from it."""
    rules: list[tuple[str, str]] = [*LOOKS.items(), *_GROUNDS.items()]
    dark = [f"{widget} > .{PREFIX}{name} {{ {rule} }}" for name, rule in rules]
    light = [f"{widget}:light > .{PREFIX}{name} {{ {rule} }}" for name, rule in _ON_LIGHT.items()]
    none = [f"{widget}:nocolor > .{PREFIX}{name} {{ {rule} }}" for name, rule in _ON_NO_COLOUR.items()]
    return "\n".join(dark + light + none)
