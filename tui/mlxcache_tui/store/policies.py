"""The policies that the composer and the scenarios choose from: those that ship, and the person's own."""

from pathlib import Path

import msgspec

from mlxcache_tui.core.text import clean, clean_block
from mlxcache_tui.store.paths import PathsError, config_dir, scenarios_dir

MAX_BYTES = 4_000_000
FIRST = "returns"
"""The policy that the composer opens with."""


class Policy(msgspec.Struct, frozen=True):
    """A policy text: its label is the file's name without ending."""

    label: str
    text: str
    path: Path


class _UnusableError(Exception):
    """A file cannot be a policy; the text says why."""


def load_policies() -> tuple[tuple[Policy, ...], tuple[str, ...]]:
    """All policies, `returns` first, the others by label, and one line for each file that had to be left out.

    A file in the person's own folder (`policies` beside the settings) replaces a shipped one of the same name.
    """
    found: dict[str, Policy] = {}
    problems: list[str] = []
    folders = [scenarios_dir() / "policies"]
    try:
        folders.append(config_dir() / "policies")
    except PathsError as error:
        problems.append(str(error))
    for folder in folders:
        try:
            files = sorted(path for path in folder.iterdir() if path.suffix in (".md", ".txt"))
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"policies in {folder} left out: {(error.strerror or str(error)).lower()}")
            continue
        for path in files:
            try:
                label = clean(path.stem)
                found[label] = Policy(label, _read(path), path)
            except _UnusableError as error:
                problems.append(clean(f"policy {path} left out: {error}"))
    ordered = sorted(found.values(), key=lambda policy: (policy.label != FIRST, policy.label))
    return tuple(ordered), tuple(problems)


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise _UnusableError("it is not a file")
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise _UnusableError(f"it has {size / 1e6:.1f} MB, a policy at most {MAX_BYTES / 1e6:.0f} MB")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise _UnusableError((error.strerror or str(error)).lower()) from error
    except UnicodeDecodeError as error:
        raise _UnusableError("it is not UTF-8; save it as UTF-8") from error
    return clean_block(text).strip()
