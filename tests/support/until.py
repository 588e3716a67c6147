"""Waiting for a condition in a pilot test, with a deadline instead of a guess."""

import asyncio
from collections.abc import Callable
from typing import Any

from textual.pilot import Pilot


async def until(pilot: Pilot[Any], condition: Callable[[], object], limit_s: float = 10.0) -> None:
    """Let the app work until the condition holds; fails after `limit_s` seconds."""
    async with asyncio.timeout(limit_s):
        while not condition():
            await pilot.pause()
