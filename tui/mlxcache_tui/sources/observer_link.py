"""The viewer's end of the observer's socket: lines of events in, events out."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from mlxcache_tui.core.codec import decode_event
from mlxcache_tui.core.events import AnyEvent, ObserverLost

RETRY_S = 0.1
LINE_LIMIT = 64 * 1024 * 1024
"""Bytes: the longest line that is read, far above a prompt of a million tokens."""


async def follow(
    path: Path, emit: Callable[[AnyEvent], None], clock: Callable[[], int], *, wait: Callable[[], bool]
) -> bool:
    """Connect and pass on every event until the observer closes; then say `ObserverLost`.

    `wait()` tells whether it is worth trying again while nobody listens. Returns whether there ever was a connection.
    Lines that this version does not know are passed over: a newer observer may say more.
    """
    reader, writer = None, None
    while reader is None or writer is None:
        try:
            reader, writer = await asyncio.open_unix_connection(str(path), limit=LINE_LIMIT)
        except OSError:
            if not wait():
                return False
            await asyncio.sleep(RETRY_S)
    try:
        while line := await reader.readline():
            try:
                emit(decode_event(line))
            except msgspec.DecodeError:
                continue
    except (OSError, ValueError) as error:
        emit(ObserverLost(at_ns=clock(), origin="process", text=str(error)))
        return True
    finally:
        writer.close()
    emit(ObserverLost(at_ns=clock(), origin="process"))
    return True
