"""The command palette: our key table by name, then what Textual brings of its own."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand
from textual.screen import Screen

from mlxcache_tui.core.actions import key_label
from mlxcache_tui.ui.keys import ACTIONS

if TYPE_CHECKING:
    from mlxcache_tui.ui.acting import ActingApp

TWICE = ("Quit", "Keys", "Maximize", "Minimize", "Screenshot")
"""Commands of Textual's own that others in our table stand for."""
ANYWHERE = ("quit", "command_palette", "help", "picture")
"""Actions that do not need the monitor on top."""


def palette_commands(app: "ActingApp", screen: Screen[Any], own: Iterable[SystemCommand]) -> Iterator[SystemCommand]:
    """What can be done on `screen`; `own`: Textual's commands."""
    for info in ACTIONS:
        name, _, argument = info.id.partition("(")
        if info.id in ("detail", "palette") or info.scope == "compare" or not app.offers(info):
            continue
        if screen is not app.monitor and name not in ANYWHERE:
            continue
        keys = f" ({key_label(info.key.split(',')[0])})" if info.key else ""
        call = getattr(app, f"action_{name}")
        argument = argument.strip("')")
        yield SystemCommand(f"{info.label}{keys}", info.help, (lambda c=call, a=argument: c(a)) if argument else call)
    yield from (command for command in own if command.title not in TWICE)
