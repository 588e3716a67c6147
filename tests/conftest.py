"""What holds for every test: its own folders, a fixed terminal, and `--update-golden`."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["TEXTUAL_ANIMATIONS"] = "none"  # read once, when Textual is imported
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a job in the background of a script. What the tests start is to be interrupted as from a terminal.
    signal.signal(signal.SIGINT, signal.default_int_handler)

from support.until import until_idle

# How long an example takes says something of the machine, and of what else it does, not of the program.
IS_GATE = bool(os.environ.get("CI"))
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=IS_GATE
)
settings.load_profile("any machine")
if IS_GATE:
    # A change is judged by the same examples as the one before it; everybody else's run draws new ones.
    os.environ.setdefault("MLXCACHE_TRUTH_SEED", "1")


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
def pauses_that_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of a pilot ends when the app has nothing to do, not when the machine has no time for it."""
    for place in ("app", "pilot"):
        monkeypatch.setattr(f"textual.{place}.wait_for_idle", until_idle)


@pytest.fixture(autouse=True)
def fixed_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same terminal everywhere: true colour, no size, no settings and no key of the person's."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TEXTUAL_THEME", "MLXCACHE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
