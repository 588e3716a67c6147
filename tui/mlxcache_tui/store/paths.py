"""Where our files lie: shipped scenarios, sessions, settings, models, sockets and server logs.

Folders of ours are made on first use and belong to the user alone (0700), since prompts are in them.
"""

import errno
import os
import secrets
import stat
from datetime import datetime
from pathlib import Path

import platformdirs

_NAME = "mlxcache-tui"


class PathsError(Exception):
    """A folder of ours cannot be used; the text is one line for the person, with what to do."""


def named_path(name: str) -> Path:
    """The path that a person typed, where `~` and `~user` stand for homes.

    Raises:
        OSError: there is no such home; its text is as that of a file that is not there.
    """
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, f"no home is known for {Path(name).parts[0]}", name) from error


def loose_path(name: str) -> Path:
    """The same; as it was typed where there is no such home: whoever opens it tells that nothing is there."""
    try:
        return named_path(name)
    except OSError:
        return Path(name)


def scenarios_dir() -> Path:
    """The shipped scenarios: inside the installed package, else at the top of the checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "scenarios"
    return inside if inside.is_dir() else package.parents[1] / "scenarios"


def state_dir() -> Path:
    """Sessions and what else is written as we go (`MLXCACHE_STATE_DIR` moves it).

    Raises:
        PathsError: it cannot be made or written.
    """
    return _own("MLXCACHE_STATE_DIR", platformdirs.user_state_path(_NAME, appauthor=False))


def config_dir() -> Path:
    """What the person sets: settings, keys, their own policies (`MLXCACHE_CONFIG_DIR` moves it).

    Raises:
        PathsError: it cannot be made or written.
    """
    return _own("MLXCACHE_CONFIG_DIR", platformdirs.user_config_path(_NAME, appauthor=False))


def cache_dir() -> Path:
    """What can be made again: demo models (`MLXCACHE_CACHE_DIR` moves it).

    Raises:
        PathsError: it cannot be made or written.
    """
    return _own("MLXCACHE_CACHE_DIR", platformdirs.user_cache_path(_NAME, appauthor=False))


def runtime_dir() -> Path:
    """Sockets and logs of running servers (`MLXCACHE_RUNTIME_DIR` moves it).

    Its path is short, as macOS allows 104 bytes for a socket's. It lies in a folder that everybody writes to, so a
    link, somebody else's folder or one that others may enter is refused.

    Raises:
        PathsError: it cannot be made, or it is not safely ours.
    """
    variable = "MLXCACHE_RUNTIME_DIR"
    named = os.environ.get(variable)
    path = Path(named).expanduser() if named else Path(f"/tmp/mlxcache-tui-{os.getuid()}")
    remedy = f"remove it, or set {variable} to a folder of yours"
    try:
        path.mkdir(mode=0o700, parents=bool(named), exist_ok=True)
        status = path.lstat()
    except FileExistsError as error:
        raise PathsError(f"{path} is not a folder: {remedy}") from error
    except OSError as error:
        raise PathsError(f"cannot make the folder {path} ({error.strerror}): set {variable} to another") from error
    if stat.S_ISLNK(status.st_mode):
        raise PathsError(f"{path} is a link, not a folder: {remedy}")
    if status.st_uid != os.getuid():
        raise PathsError(f"{path} belongs to another user: set {variable} to a folder of yours")
    if status.st_mode & 0o077:
        raise PathsError(f"{path} is open to other users: chmod 700 {path}, or set {variable} to a folder of yours")
    return path


def socket_path(port: int) -> Path:
    """The observer's socket of the server on this port.

    Raises:
        PathsError: see `runtime_dir`.
    """
    return runtime_dir() / f"{port}.sock"


def server_log_path(port: int) -> Path:
    """The output of a server that we started on this port.

    Raises:
        PathsError: see `runtime_dir`.
    """
    return runtime_dir() / f"{port}.log"


def sessions_dir() -> Path:
    """The folder of session files.

    Raises:
        PathsError: it cannot be made or written.
    """
    return _made(state_dir() / "sessions", "MLXCACHE_STATE_DIR")


def session_path(started: datetime) -> Path:
    """A new session file's path: its start as the person's clock had it, and four hex digits against a clash.

    Raises:
        PathsError: the folder cannot be made or written.
    """
    return sessions_dir() / f"{started:%Y-%m-%dT%H-%M-%S}-{secrets.token_hex(2)}.jsonl"


def _own(variable: str, usual: Path) -> Path:
    named = os.environ.get(variable)
    return _made(Path(named).expanduser() if named else usual, variable)


def _made(path: Path, variable: str) -> Path:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise PathsError(f"cannot make the folder {path} ({error.strerror}): set {variable} to another") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise PathsError(f"the folder {path} is not writable: set {variable} to another")
    return path


def time_since(mtime: float) -> float:
    """Seconds since a file time."""
    return datetime.now().astimezone().timestamp() - mtime
