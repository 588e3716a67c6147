"""Putting a session together: policies, recorder, engine, and the server that the person asked for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from mlxcache_tui.core.commands import AttachServer, Command, ServerSpec, StartServer
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.engine.engine import Engine
from mlxcache_tui.store.paths import PathsError, session_path
from mlxcache_tui.store.policies import load_policies
from mlxcache_tui.store.recorder import Recorder


def start_command(start: ServerSpec | AttachServer) -> Command:
    """The command that watches what was asked for: start a server, or attach to one."""
    return StartServer(spec=start) if isinstance(start, ServerSpec) else start


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """An engine that records and was told what to watch; when the block ends, a server of ours is stopped."""
    policies, problems = load_policies()
    recorder, trouble = _recorder(settings)
    engine = Engine(recorder, policies, bounded=settings.bounded)
    if recorder is not None:
        recorder.on_failure = engine.warn
    async with engine:
        for problem in (*trouble, *problems):
            engine.warn(problem)
        if settings.start is not None:
            engine.submit(start_command(settings.start))
        yield engine


def _recorder(settings: Settings) -> tuple[Recorder | None, tuple[str, ...]]:
    """The session file; None and a line where it has no place to be: the session goes on unrecorded."""
    try:
        path = (
            Path(settings.save_path).expanduser() if settings.save_path else session_path(datetime.now().astimezone())
        )
    except PathsError as error:
        return None, (f"the session is not recorded: {error}",)
    return Recorder(path), ()
