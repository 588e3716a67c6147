"""Texts that a person names, and private files that a person asked for."""

import contextlib
import os
import stat
import sys
import tempfile
from pathlib import Path

from mlxcache_tui.store.paths import named_path, state_dir

MAX_TEXT_BYTES = 4_000_000
"""No scenario and no policy is longer: a bigger file is another kind of file, named by mistake."""


class OutputClosedError(Exception):
    """Whoever read standard output does so no more. No OSError: there is nothing that a person should be told."""


class TextFileError(Exception):
    """A file cannot be used as a text; the message goes on after its name: `is not a file; …`."""


def read_text(path: Path) -> str:
    """The text of a file of at most `MAX_TEXT_BYTES`, in UTF-8.

    Raises:
        TextFileError: it is something else, or it cannot be read.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise TextFileError("is not a file; expected a text file")
        if status.st_size > MAX_TEXT_BYTES:
            size, limit = status.st_size / 1e6, MAX_TEXT_BYTES / 1e6
            raise TextFileError(f"is {size:.1f} MB; expected a text of at most {limit:.0f} MB")
        content = path.read_bytes()
    except OSError as error:
        raise TextFileError(f"cannot be read: {(error.strerror or str(error)).lower()}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{content[error.start]:02x} in line {line}"
        raise TextFileError(f"is not UTF-8 ({found}); save it as UTF-8") from error


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
        OutputClosedError: nobody reads standard output any more.
    """
    if target == "-":
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise OutputClosedError from error
        return
    path = named_path(target)
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
