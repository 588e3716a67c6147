"""What was asked on the command line, handed down as one frozen value."""

import msgspec

from mlxcache_tui.core.commands import AttachServer, ServerSpec

API_KEY_VARIABLE = "MLXCACHE_API_KEY"
"""Where the key for a server that wants one is taken from: never a flag (others see those), never a file of ours. The
processes that we start do not get it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a session begins. `start` None: nothing to watch yet (the start form opens)."""

    start: ServerSpec | AttachServer | None = None
    save_path: str | None = None
    """Where the session is recorded; None: the user's state folder."""
    bounded: bool = True
    """Let the oldest requests of a long session go, but in the file; a run that is reported on keeps all."""
