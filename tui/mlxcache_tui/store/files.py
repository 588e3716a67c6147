"""Private files that a person asked for."""

import contextlib
import os
import stat
import sys
import tempfile
from pathlib import Path

from mlxcache_tui.store.paths import state_dir


def save_text(name: str, text: str) -> Path:
    """Write a text into the folder of saved files (0600), beside what is there; returns its path.

    Raises:
        OSError: it cannot be written.
        PathsError: the folder cannot be made.
    """
    folder = state_dir() / "saved"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / name
    count = 1
    while path.exists():
        count += 1
        path = folder / f"{Path(name).stem}-{count}{Path(name).suffix}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def write_report(target: str, text: str) -> None:
    """Write a report: all of it or nothing, readable by its owner only (it holds prompts and answers). `-`: stdout.

    Raises:
        OSError: it cannot be written.
    """
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    path = Path(target).expanduser()
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        path.write_text(text, encoding="utf-8")  # a pipe or /dev/null: nothing to rename onto
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
