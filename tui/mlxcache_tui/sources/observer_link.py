"""The viewer's end of the observer's socket: lines of events in, events out."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from mlxcache_tui.core.events import AnyEvent, ObserverLost
from mlxcache_tui.core.foreign import decode_clean

LINE_LIMIT = 64 * 1024 * 1024
"""Bytes: the longest line that is read, far above a prompt of a million tokens."""


async def follow(path: Path, emit: Callable[[AnyEvent], None], clock: Callable[[], int], *, retry_s: float) -> None:
    """Connect, pass on every event until the observer closes, say `ObserverLost`; and again, until cancelled.

    While nobody listens at `path` it is tried every `retry_s` seconds. Texts are cleaned. Lines that this version does
    not know are passed over: a newer observer may say more.
    """
    while True:
        try:
            reader, writer = await asyncio.open_unix_connection(str(path), limit=LINE_LIMIT)
        except OSError:
            await asyncio.sleep(retry_s)
            continue
        text = await _read(reader, writer, emit)
        emit(ObserverLost(at_ns=clock(), origin="process", text=text))
        await asyncio.sleep(retry_s)


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, emit: Callable[[AnyEvent], None]) -> str:
    """Pass on every line until the end; returns what broke the connection, empty if the observer closed it."""
    try:
        while line := await reader.readline():
            try:
                emit(decode_clean(line))
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
    except ValueError:
        return f"a line of more than {LINE_LIMIT} bytes came"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    finally:
        writer.transport.abort()
    return ""
