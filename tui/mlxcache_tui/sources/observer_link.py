"""The viewer's end of the observer's socket: lines of events in, events out."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.events import AnyEvent, ObserverLost
from mlxcache_tui.core.foreign import decode_clean

LINE_LIMIT = 64 * 1024 * 1024
"""Bytes: the longest line that is read, far above a prompt of a million tokens."""


class Heard:
    """How far each observer was heard: it tells its history to whoever comes, also to one who was there before."""

    _STATE = (
        ev.ObserverConnected,
        ev.CacheSnapshot,
        ev.ModelLoadStarted,
        ev.ModelLoaded,
        ev.ModelLoadFailed,
        ev.WorkerDied,
        ev.MlxMemorySampled,
    )
    """What says how things are, not what happened: it may be told again."""

    def __init__(self) -> None:
        self._until: dict[tuple[int, int | None], int] = {}
        self._who: tuple[int, int | None] = (0, None)
        self._before = -1

    def is_news(self, event: AnyEvent) -> bool:
        """Whether an event was not taken before; by its stamp, which is of this machine's one monotonic clock."""
        if isinstance(event, ev.ObserverConnected):
            self._who = (event.pid, event.started_ns)
            self._before = self._until.get(self._who, -1)
            return True
        if isinstance(event, self._STATE):
            return True
        self._until[self._who] = max(event.at_ns, self._until.get(self._who, -1))
        return event.at_ns > self._before


async def follow(
    path: Path,
    emit: Callable[[AnyEvent], None],
    clock: Callable[[], int],
    *,
    retry_s: float,
    heard: Heard,
) -> None:
    """Connect, pass on every event until the observer closes, say `ObserverLost`; and again, until cancelled.

    While nobody listens at `path` it is tried every `retry_s` seconds. What `heard` knows already is left out. Texts
    are cleaned. Lines that this version does not know are passed over: a newer observer may say more.
    """
    while True:
        try:
            reader, writer = await asyncio.open_unix_connection(str(path), limit=LINE_LIMIT)
        except OSError:
            await asyncio.sleep(retry_s)
            continue
        text = await _read(reader, writer, lambda event: emit(event) if heard.is_news(event) else None)
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
