"""What the person does with requests, on an engine that only notes what it is asked for."""

import pytest

from mlxcache_tui.core.commands import SendRequest
from mlxcache_tui.core.events import ServerPhase
from support.noting import NotingApp
from support.until import until


@pytest.mark.parametrize(("phase", "sent"), [("starting", 0), ("loading", 1), ("ready", 1)])
async def test_nothing_is_sent_to_a_server_that_does_not_listen_yet(phase: ServerPhase, sent: int) -> None:
    app = NotingApp(phase)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.engine is not None and app.focused is not None)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.told or app.noting.commands)
        assert sum(isinstance(command, SendRequest) for command in app.noting.commands) == sent
        assert app.told == ([] if sent else ["not sent: the server is still starting"])
