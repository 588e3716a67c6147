"""Budget: a recording of 10,000 requests (310,000 events, 46 MB) opens within 2 s and scrolls without lag."""

import os
import time
from pathlib import Path

import pytest

from bench.conftest import Budget, Figure
from mlxcache_tui.core import events as ev
from mlxcache_tui.core.codec import encode_event
from mlxcache_tui.ui.replay import ReplayApp
from mlxcache_tui.ui.widgets.request_table import RequestTable
from support.story import Story
from support.until import until

REQUESTS = 10_000
OPEN_S = 2.0
"""From the start of the app until all rows are there and drawn."""
PAGE_MS = 50
"""Of the processor, at the median."""
LINE = "2026-11-29 14:48:18,123 - INFO - Prompt processing progress: {}/300"


def a_request(story: Story, number: int) -> None:
    """What is told of one request that a viewer of ours sends to an observed server."""
    key, policy, early = f"s.{number}", f"p{number % 7}", number - 7
    for origin in ("client", "observer"):
        story.compose(key, user=f"question {number}", system=f"{policy} " * 100, policy=policy, origin=origin)
    seen = {"cached": 100, "base": f"s.{early}", "shared": 200, "entry": early} if early > 0 else {}
    story.look_up(key, prompt=300, **seen)  # type: ignore[arg-type]
    for done in (100, 200, 300):
        for origin in ("client", "observer"):
            story.tell(ev.PrefillProgressed(at_ns=story.tick(), origin=origin, key=key, done=done, total=300))  # type: ignore[arg-type]
    lines = tuple(ev.LogLine(text=LINE.format(done), kind="progress", level="INFO") for done in (100, 200, 300))
    story.tell(ev.LogRead(at_ns=story.tick(), origin="log", lines=lines))
    story.store(number, key, 303)
    if number > 4:
        story.evict(number - 4, key, limit=4)
    story.answer(key, prompt=300, cached=100)
    story.answer(key, prompt=300, cached=100, origin="observer")
    story.tell(ev.MemorySampled(at_ns=story.tick(), origin="memory", pid=10, source="pss", bytes=100_000_000))


@pytest.fixture(scope="module")
def long_session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    story = Story()
    story.server(prompt_cache_size=4)
    for number in range(1, REQUESTS + 1):
        a_request(story, number)
    path = tmp_path_factory.mktemp("bench") / "long.jsonl"
    path.write_bytes(b"".join(map(encode_event, story.events)))
    os.utime(path, (0, 0))
    return path


async def test_it_opens_and_scrolls(long_session: Path, budget: Budget) -> None:
    wall, cpu = time.monotonic(), time.process_time()
    app = ReplayApp(long_session)
    async with app.run_test(size=(120, 40)) as pilot:
        table = app.monitor.query_one(RequestTable)
        await until(pilot, lambda: len(table.rows) == REQUESTS, 60)
        await pilot.pause()
        wall, cpu = time.monotonic() - wall, time.process_time() - cpu
        table.focus()
        took = []
        for key in ["pageup"] * 40 + ["home", "end"] * 5:
            began = time.process_time()
            await pilot.press(key)
            took.append(time.process_time() - began)
        page = sorted(took)[len(took) // 2]
    budget.judge(
        Figure("a session of 10,000 requests opened", wall, OPEN_S, " s", note=f"{cpu:.2f} s of the processor"),
        Figure("a page of its table", page * 1000, PAGE_MS, " ms"),
    )
