"""Driving the whole app in a test: wait for what the state says, never for a time."""

import asyncio
from collections.abc import Callable

from textual.pilot import Pilot

from mlxcache_tui.core.state import RequestState, SessionState
from mlxcache_tui.ui.app import MonitorApp

PATIENCE_S = 120.0


async def until(app: MonitorApp, pilot: Pilot[int], holds: Callable[[SessionState], bool]) -> SessionState:
    """Wait until the app's state is as wanted and drawn; fails after two minutes with what the server said."""
    async with asyncio.timeout(PATIENCE_S):
        while app.engine is None:
            await pilot.pause(0.02)
    assert await app.engine.until(holds, PATIENCE_S), (app.engine.state.server, list(app.engine.state.log.rows)[-5:])
    await pilot.pause()
    return app.engine.state


async def ready(app: MonitorApp, pilot: Pilot[int]) -> SessionState:
    """Wait until the server answers requests."""
    return await until(app, pilot, lambda state: state.server.phase == "ready")


async def answered(app: MonitorApp, pilot: Pilot[int], count: int) -> list[RequestState]:
    """Wait until this many requests (warm-ups left out) are over, with their reasons; returns them."""

    def over(state: SessionState) -> bool:
        ended = [r for r in state.requests.values() if r.number and r.outcome and (r.reason or r.outcome != "done")]
        return len(ended) >= count

    state = await until(app, pilot, over)
    return [request for request in state.requests.values() if request.number]
