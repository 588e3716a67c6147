"""The start form as the app opens it: also before the engine is there, and while a server is being started."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.widgets import Static

from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.flags import Flag, ServerHelp
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.state import ServerState
from mlxcache_tui.engine import face
from mlxcache_tui.ui.app import MonitorApp
from mlxcache_tui.ui.screens.start_form import StartForm
from mlxcache_tui.ui.servers import running_spec
from support.until import until

HELP = ServerHelp(mlx_lm="0.32.2", flags=(Flag(name="prompt_cache_size", takes_value=True),))


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_a_form_that_was_opened_before_the_engine_gets_the_flags_and_the_taken_port(
    taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(_: str) -> ServerHelp:
        return HELP

    monkeypatch.setattr(face, "read_server_help", answer)
    start = ServerSpec(model="some/model", port=taken)
    app = MonitorApp(Settings(start=start, save_path=str(tmp_path / "session.jsonl")))
    async with app.run_test(size=(80, 24)) as pilot:
        app.servers.open_form()
        form = app.screen
        assert isinstance(form, StartForm)
        await until(pilot, lambda: bool(form.query("#flag-prompt_cache_size")))
        line = form.query_one("#port-error", Static)
        await until(pilot, lambda: line.display)
        assert f"port {taken} is taken by" in str(line.content)
        assert form.query_one("#port-choices").display
        assert app.screen is form


def test_the_form_shows_the_flags_that_the_server_runs_with() -> None:
    """A scenario starts it with others than the person did."""
    server = ServerState(
        phase="ready",
        mode="launched",
        model="demo:tiny",
        port=8123,
        command=(
            "python",
            "observe.py",
            "--leash",
            "--",
            "--model",
            "/m",
            "--port",
            "8123",
            "--prompt-cache-size",
            "2",
        ),
    )
    typed = ServerSpec(model="demo:tiny", port=8080, flags={"prompt_cache_size": 10, "temp": "0.2"})
    assert running_spec(typed, server) == ServerSpec(model="demo:tiny", port=8080, flags={"prompt_cache_size": "2"})
    assert running_spec(None, server) == ServerSpec(model="demo:tiny", port=8123, flags={"prompt_cache_size": "2"})
