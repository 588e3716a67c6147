"""What holds for every test: its own folders, a fixed terminal, and `--update-golden`."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ["TEXTUAL_ANIMATIONS"] = "none"  # read once, when Textual is imported


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that rewrites the golden files."""
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/*.txt from what is drawn now")


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Demo models and the like, made once for all tests; or where the person says that they lie already."""
    return os.environ.get("MLXCACHE_CACHE_DIR") or str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, shared_cache: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is read from or written to the folders of the person who runs the tests."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MLXCACHE_CACHE_DIR", shared_cache)
    for name in ("STATE", "CONFIG"):
        monkeypatch.setenv(f"MLXCACHE_{name}_DIR", str(home / name.lower()))
    # A socket's path may be no longer than 104 bytes on macOS: the test's own folder is too deep for it.
    with tempfile.TemporaryDirectory(prefix="mlxc-", dir="/tmp") as runtime:
        monkeypatch.setenv("MLXCACHE_RUNTIME_DIR", runtime)
        yield


@pytest.fixture(autouse=True)
def fixed_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same terminal everywhere: true colour, no size, no settings and no key of the person's."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TEXTUAL_THEME", "MLXCACHE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
