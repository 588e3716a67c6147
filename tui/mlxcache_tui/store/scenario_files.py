"""Scenario files on disk: those that ship, those that a person names, and the policies beside them."""

from pathlib import Path

from mlxcache_tui.core.expect import nearest
from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_check import Mistake, PolicyFileError, ScenarioError, check
from mlxcache_tui.store.files import TextFileError, read_text
from mlxcache_tui.store.paths import named_path, scenarios_dir
from mlxcache_tui.store.policies import read_policy


def shipped_names() -> tuple[str, ...]:
    """Names of the scenarios that ship, sorted."""
    return tuple(sorted(path.stem for path in scenarios_dir().glob("*.toml")))


def load_scenario(wanted: str) -> Scenario:
    """Read and check a scenario: a file, or the name of one that ships.

    Raises:
        ScenarioError: with every mistake; also when there is no such file.
    """
    path = _find(wanted)
    source = str(path) if path != scenarios_dir() / f"{wanted}.toml" else path.name
    try:
        text = read_text(path)
    except TextFileError as error:
        raise ScenarioError([Mistake(source=source, line=0, key="", text=str(error))]) from error
    return check(text, source=source, name=path.stem, read_policy=lambda file: _read_policy(path.parent / file))


def _find(wanted: str) -> Path:
    try:
        path = named_path(wanted)
        if path.is_file() or path.suffix == ".toml" or "/" in wanted:
            return path
    except OSError as error:
        text = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise ScenarioError([Mistake(source=wanted, line=0, key="", text=text)]) from error
    names = shipped_names()
    if wanted in names:
        return scenarios_dir() / f"{wanted}.toml"
    text = f"no file and no shipped scenario of this name{nearest(wanted, names)}"
    raise ScenarioError([Mistake(source=wanted, line=0, key="", text=text)])


def _read_policy(path: Path) -> str:
    try:
        return read_policy(path)
    except TextFileError as error:
        raise PolicyFileError(f"{path}: {error}") from error
