"""Scenario files on disk: those that ship, those that a person names, and the policies beside them."""

import stat
from pathlib import Path

from mlxcache_tui.core.expect import nearest
from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_check import Mistake, PolicyFileError, ScenarioError, check

MAX_BYTES = 4_000_000
"""No scenario and no policy is longer: a bigger file is another kind of file, named by mistake."""


class _FileError(Exception):
    """The file cannot be used; the message says why in one line."""


def shipped_folder() -> Path:
    """The folder of the scenarios that ship: inside the installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "scenarios"
    return inside if inside.is_dir() else package.parents[1] / "scenarios"


def shipped_names() -> tuple[str, ...]:
    """Names of the scenarios that ship, sorted."""
    return tuple(sorted(path.stem for path in shipped_folder().glob("*.toml")))


def load_scenario(wanted: str) -> Scenario:
    """Read and check a scenario: a file, or the name of one that ships.

    Raises:
        ScenarioError: with every mistake; also when there is no such file.
    """
    path = _find(wanted)
    source = str(path) if path != shipped_folder() / f"{wanted}.toml" else path.name
    try:
        text = _read(path)
    except _FileError as error:
        raise ScenarioError([Mistake(source=source, line=0, key="", text=str(error))]) from error
    return check(text, source=source, name=path.stem, read_policy=lambda file: _read_policy(path.parent / file))


def _find(wanted: str) -> Path:
    path = Path(wanted).expanduser()
    if path.is_file() or path.suffix == ".toml" or "/" in wanted:
        return path
    names = shipped_names()
    if wanted in names:
        return shipped_folder() / f"{wanted}.toml"
    text = f"no file and no shipped scenario of this name{nearest(wanted, names)}"
    raise ScenarioError([Mistake(source=wanted, line=0, key="", text=text)])


def _read_policy(path: Path) -> str:
    try:
        return _read(path)
    except _FileError as error:
        raise PolicyFileError(f"{path}: {error}") from error


def _read(path: Path) -> str:
    """The text of a file of at most `MAX_BYTES`, in UTF-8."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _FileError("is not a file; expected a text file")
        if status.st_size > MAX_BYTES:
            size, limit = status.st_size / 1e6, MAX_BYTES / 1e6
            raise _FileError(f"is {size:.1f} MB; expected a text of at most {limit:.0f} MB")
        content = path.read_bytes()
    except OSError as error:
        raise _FileError(f"cannot be read: {(error.strerror or str(error)).lower()}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{content[error.start]:02x} in line {line}"
        raise _FileError(f"is not UTF-8 ({found}); save it as UTF-8") from error
