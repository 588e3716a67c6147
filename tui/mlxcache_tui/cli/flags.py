"""Flags for the server that stand behind `--`, checked before a server is started with them."""

import asyncio
import shlex
from collections.abc import Sequence
from typing import Any

from mlxcache_tui.core.flags import ServerHelp, are_sure, check_flags, split_flags


def server_flags(words: Sequence[str], python: str | None) -> tuple[dict[str, Any], list[str]]:
    """The flags ready for a launch, and a line for each that the installed server would refuse.

    `python`: the interpreter that has mlx_lm (None: ours).
    """
    values, error = split_flags(shlex.join(words))
    if error:
        return {}, [error]
    flags, errors = check_flags(values, help_for(values, python))
    return flags, list(errors.values())


def help_for(names: Sequence[str] | dict[str, Any], python: str | None) -> ServerHelp:
    """What the installed server says of its flags; it is asked (seconds) only if some of these may be unknown to it."""
    if are_sure(names):
        return ServerHelp()
    from mlxcache_tui.sources.child import server_python
    from mlxcache_tui.sources.server_help import read_server_help

    return asyncio.run(read_server_help(server_python(python)))
