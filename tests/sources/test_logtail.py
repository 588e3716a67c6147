"""A log followed through all that happens to log files."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mlxcache_tui.core.events import AnyEvent, CacheCounted, LogRead, ModelFetchProgressed, Noticed
from mlxcache_tui.sources import logtail
from mlxcache_tui.sources.logtail import tail

POLL_S = 0.005


class Watch:
    """A running `tail` and what it said."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.now = 0
        self._changed = asyncio.Event()

    def emit(self, event: AnyEvent) -> None:
        self.events.append(event)
        self._changed.set()

    def clock(self) -> int:
        self.now += 1
        return self.now

    @property
    def texts(self) -> list[str]:
        return [line.text for event in self.events if isinstance(event, LogRead) for line in event.lines]

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Noticed)]

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not done():
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), POLL_S)

    async def looks(self, count: int) -> None:
        """Wait until the file was looked at that many times more; each look reads the clock."""
        start = self.now
        await self.until(lambda: self.now >= start + count)

    async def until_texts(self, *texts: str) -> None:
        await self.until(lambda: len(self.texts) >= len(texts))
        assert self.texts == list(texts)


@asynccontextmanager
async def following(path: Path, *, from_start: bool = True) -> AsyncIterator[Watch]:
    watch = Watch()
    task = asyncio.ensure_future(tail(path, watch.emit, watch.clock, from_start=from_start, poll_s=POLL_S))
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


def remove(path: Path) -> None:
    path.rmdir() if path.is_dir() else path.unlink()


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


async def test_what_is_there_and_what_comes(path: Path) -> None:
    append(path, "one\ntwo\n")
    async with following(path) as watch:
        await watch.until_texts("one", "two")
        append(path, "thr")
        append(path, "ee\nfour\n")
        await watch.until_texts("one", "two", "three", "four")
    assert watch.notices == []
    assert all(event.origin == "log" for event in watch.events)


async def test_only_what_comes(path: Path) -> None:
    append(path, "old\n")
    async with following(path, from_start=False) as watch:
        await asyncio.sleep(0)
        append(path, "new\n")
        await watch.until_texts("new")


async def test_a_file_that_is_made_later_is_read_from_its_start(path: Path) -> None:
    async with following(path, from_start=False) as watch:
        await watch.until(lambda: bool(watch.notices))
        append(path, "first\n")
        await watch.until_texts("first")
    assert watch.notices == [f"there is no log at {path} yet: it is read as soon as there is"]


async def test_facts_follow_their_lines(path: Path) -> None:
    stamp = "2026-11-29 14:48:18,123 - INFO - "
    append(path, f"{stamp}KV Caches: 4 seq, 1.25 GB, latest user cache 310 tokens\n")
    append(path, "\rmodel.safetensors:  12%|█▏ | 270M/2.26G [00:05<00:40, 49.9MB/s]")
    async with following(path) as watch:
        await watch.until(lambda: len(watch.events) >= 3)
    assert [type(event) for event in watch.events] == [LogRead, CacheCounted, ModelFetchProgressed]


async def test_a_file_cut_to_nothing_is_read_again(path: Path) -> None:
    append(path, "before, and more of it\nhalf a line")
    async with following(path) as watch:
        await watch.until_texts("before, and more of it")
        os.truncate(path, 0)
        await watch.until_texts("before, and more of it", "half a line")
        append(path, "after\n")
        await watch.until_texts("before, and more of it", "half a line", "after")


async def test_a_file_replaced_by_another_is_read_to_its_end_first(path: Path) -> None:
    append(path, "one\n")
    async with following(path) as watch:
        await watch.until_texts("one")
        old = path.with_suffix(".1")
        os.rename(path, old)  # noqa: PTH104
        append(old, "late\n")
        append(path, "new file\n")
        await watch.until_texts("one", "late", "new file")
        remove(path)
        append(path, "newer\n")
        await watch.until_texts("one", "late", "new file", "newer")
    assert watch.notices == []


async def test_a_removed_file_is_let_go_quietly(path: Path) -> None:
    append(path, "one\n")
    async with following(path) as watch:
        await watch.until_texts("one")
        remove(path)
        await watch.looks(3)
        append(path, "two\n")
        await watch.until_texts("one", "two")


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The attempts to open a log."""
    found: list[Path] = []
    opened = os.open

    def counted(path: Path, *args: Any, **kwargs: Any) -> int:
        found.append(path)
        return opened(path, *args, **kwargs)

    monkeypatch.setattr("mlxcache_tui.sources.logtail.os.open", counted)
    return found


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
async def test_what_is_no_file_is_told_once(make: Callable[[Path], None], path: Path, tries: list[Path]) -> None:
    make(path)
    async with following(path) as watch:
        await watch.until(lambda: len(tries) > 4)
        remove(path)
        append(path, "a file at last\n")
        await watch.until_texts("a file at last")
    (line,) = watch.notices
    assert str(path) in line
    assert "\n" not in line


async def test_a_file_that_may_not_be_read_is_told_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(path, "secret\n")
    tries: list[Path] = []

    def refused(name: Path, flags: int) -> int:
        tries.append(name)
        raise PermissionError(13, "Permission denied")

    async with following(path) as watch:
        with monkeypatch.context() as patched:
            patched.setattr("mlxcache_tui.sources.logtail.os.open", refused)
            await watch.until(lambda: len(tries) > 4)
        await watch.until_texts("secret")
    (notice,) = [event for event in watch.events if isinstance(event, Noticed)]
    assert (notice.pane, notice.level) == ("log", "warning")
    assert notice.text == f"the log {path} cannot be read: permission denied"


async def test_of_a_huge_old_log_only_the_end_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logtail, "HISTORY_BYTES", 1000)
    append(path, "".join(f"line {number}\n" for number in range(1000)))
    async with following(path) as watch:
        await watch.until(lambda: "line 999" in watch.texts)
    first = int(watch.texts[0].removeprefix("line "))
    assert watch.texts == [f"line {number}" for number in range(first, 1000)]
    assert 850 < first < 950
    assert watch.notices[0].startswith("the first 7.89 kB of the log were passed over")


async def test_a_last_line_without_end_is_shown_after_a_while(path: Path) -> None:
    append(path, "terminate called")
    async with following(path) as watch:
        await watch.looks(3)
        assert watch.texts == []
        watch.now += int(logtail.PARTIAL_PATIENCE_S * 2e9)
        await watch.until_texts("terminate called")


async def test_many_lines_arrive_whole_in_order_and_in_batches(path: Path) -> None:
    count = 20_000
    async with following(path) as watch:
        with path.open("w") as file:
            for number in range(count):
                file.write(f"line {number} {'x' * (number % 100)}\n")
        await watch.until(lambda: len(watch.texts) >= count)
    assert [int(text.split()[1]) for text in watch.texts] == list(range(count))
    assert len(watch.events) < count / 50


async def test_what_was_written_just_before_the_end_is_read(path: Path) -> None:
    append(path, "one\n")
    async with following(path) as watch:
        await watch.until_texts("one")
        append(path, "two\nlast words")
    assert watch.texts == ["one", "two", "last words"]
