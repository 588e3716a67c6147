"""Following an observer's socket: what comes, what breaks, and trying again."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from mlxcache_tui.core.codec import encode_event
from mlxcache_tui.core.events import (
    AnyEvent,
    EntryEvicted,
    MlxMemorySampled,
    ObserverConnected,
    ObserverLost,
    WorkerDied,
)
from mlxcache_tui.sources import observer_link
from mlxcache_tui.sources.observer_link import Heard, follow

SAMPLE = MlxMemorySampled(at_ns=1, origin="observer", active=1, pool=2, peak=3)


class Events(list[AnyEvent]):
    """Events as they come, with a way to wait for so many of them."""

    def __init__(self) -> None:
        super().__init__()
        self._more = asyncio.Event()

    def take(self, event: AnyEvent) -> None:
        self.append(event)
        self._more.set()

    async def at_least(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self) < count:
                self._more.clear()
                await self._more.wait()


@asynccontextmanager
async def followed(path: Path) -> AsyncIterator[Events]:
    events = Events()
    task = asyncio.ensure_future(follow(path, events.take, lambda: 7, retry_s=0.01, heard=Heard()))
    try:
        yield events
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def observer(path: Path, *lines: bytes, close: bool) -> AsyncIterator[None]:
    """Writes the lines to each viewer, then closes the connection or leaves it open."""

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(lines))
        if close:
            writer.close()
        else:
            open_writers.append(writer)

    open_writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_unix_server(greet, str(path))
    async with server:
        yield
        for writer in open_writers:
            writer.close()


@pytest.fixture
def path() -> Iterator[Path]:
    """Short, as macOS wants a socket's path."""
    with TemporaryDirectory(prefix="mlxc-", dir="/tmp") as folder:
        yield Path(folder) / "s"


async def test_events_come_as_soon_as_somebody_listens(path: Path) -> None:
    async with followed(path) as events:
        await asyncio.sleep(0.03)
        async with observer(path, encode_event(SAMPLE), close=False):
            await events.at_least(1)
    assert events == [SAMPLE]


async def test_the_end_is_told_and_it_is_tried_again(path: Path) -> None:
    async with followed(path) as events, observer(path, encode_event(SAMPLE), close=True):
        await events.at_least(4)
    lost = ObserverLost(at_ns=7, origin="process")
    assert events[:4] == [SAMPLE, lost, SAMPLE, lost]


async def test_lines_that_are_not_known_are_passed_over(path: Path) -> None:
    lines = (b"no json\n", b'{"t":"Newer","at_ns":1,"origin":"observer"}\n', b'"\xff"\n', encode_event(SAMPLE))
    async with followed(path) as events, observer(path, *lines, close=False):
        await events.at_least(1)
    assert events == [SAMPLE]


async def test_half_a_line_at_the_end_is_dropped(path: Path) -> None:
    line = encode_event(SAMPLE)
    async with followed(path) as events, observer(path, line, line[:-9], close=True):
        await events.at_least(2)
    assert events[1] == ObserverLost(at_ns=7, origin="process")


async def test_texts_are_cleaned(path: Path) -> None:
    line = encode_event(WorkerDied(at_ns=1, origin="observer", error="\x1b[2Jboom"))
    async with followed(path) as events, observer(path, line, close=False):
        await events.at_least(1)
    assert events == [WorkerDied(at_ns=1, origin="observer", error="boom")]


async def test_a_line_without_end_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer_link, "LINE_LIMIT", 1000)
    async with followed(path) as events, observer(path, b"x" * 5000, close=False):
        await events.at_least(1)
    assert isinstance(events[0], ObserverLost)
    assert events[0].text == "a line of more than 1000 bytes came"


def test_history_that_is_told_again_is_no_news() -> None:
    heard = Heard()
    hello = ObserverConnected(at_ns=50, origin="observer", protocol=1, pid=1, mlx_lm="1", mlx="1", python="3", hooks=())
    old, newer = (EntryEvicted(at_ns=at, origin="observer", entry=1, rule="count", limit=1) for at in (10, 20))
    assert [heard.is_news(event) for event in (hello, old, SAMPLE)] == [True, True, True]
    assert [heard.is_news(event) for event in (hello, old, SAMPLE, newer)] == [True, False, True, True]
    other = msgspec.structs.replace(hello, started_ns=3)
    assert [heard.is_news(event) for event in (other, old)] == [True, True]
    assert [heard.is_news(event) for event in (hello, newer)] == [True, False]
