"""Waiting for a condition in a pilot test, with a deadline instead of a guess."""

import asyncio
from collections.abc import Callable
from typing import Any

from textual._wait import wait_for_idle
from textual.pilot import Pilot

QUIET_TURNS = 3
MOST_TURNS = 10_000


async def until(pilot: Pilot[Any], condition: Callable[[], object], limit_s: float = 60.0) -> None:
    """Let the app work until the condition holds; fails after `limit_s` seconds."""
    async with asyncio.timeout(limit_s):
        while not condition():
            await pilot.pause()


async def until_idle(*_: float) -> None:
    """Wait until nothing is left to do on this loop but what waits for a time or for somebody else.

    Textual looks at the processor time that was used in 20 ms; on a busy machine that is none, whatever is to be done.
    """
    await wait_for_idle(0)
    loop = asyncio.get_running_loop()
    quiet = 0
    for _turn in range(MOST_TURNS):
        await asyncio.sleep(0)
        quiet = 0 if loop._ready else quiet + 1  # type: ignore[attr-defined]
        if quiet == QUIET_TURNS:
            break
