"""Tiny models and observed servers for the tests against the real mlx_lm.server."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mlxcache_tui.models.fetch import Kind, ensure_demo_model
from support.live_server import SERVER_PYTHON, Server, Start, Viewer, observed_server
from support.lived import lived_as_recorded


@pytest.fixture(scope="session")
def tiny_model() -> Callable[[Kind], Path]:
    """The folder of a tiny model of random weights, made the first time."""
    return lambda kind: ensure_demo_model(kind, python=Path(SERVER_PYTHON), report=lambda _: None)


@pytest.fixture(scope="module")
def short_folder() -> Iterator[Path]:
    """A private folder for a whole module, with a path short enough for a socket on macOS."""
    with tempfile.TemporaryDirectory(prefix="mlxc-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def observed(short_folder: Path, tiny_model: Callable[[Kind], Path]) -> Iterator[Server]:
    """One observed server with the flags as they are, shared by a module; each test uses keys and texts of its own."""
    with observed_server(tiny_model("tiny"), short_folder) as server:
        yield server


@pytest.fixture
def start(tiny_model: Callable[[Kind], Path]) -> Iterator[Start]:
    """Start an observed server with flags of the test's own; stopped after it."""
    with ExitStack() as stack:

        def run(kind: Kind = "tiny", *, leash: int | None = None, **flags: Any) -> Server:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mlxc-", dir="/tmp")))
            return stack.enter_context(observed_server(tiny_model(kind), folder, leash=leash, **flags))

        yield run


@pytest.fixture
def viewer(observed: Server) -> Iterator[Viewer]:
    """A viewer of the shared server that has read its greeting."""
    with Viewer(observed.socket) as connected:
        connected.greeted()
        yield connected


@pytest.fixture(autouse=True)
def lived(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Of each session that these tests record, the file folds to what was live; the numbers of events compared."""
    with lived_as_recorded(monkeypatch) as compared:
        yield compared
