"""The policies that the composer and the scenarios choose from: those that ship, and the person's own."""

from pathlib import Path

import msgspec

from mlxcache_tui.core.text import clean, clean_block
from mlxcache_tui.store.files import TextFileError, read_text
from mlxcache_tui.store.paths import PathsError, config_dir, scenarios_dir

FIRST = ("returns", "warranty", "shipping", "privacy")
"""The policies that come first: one short English one after the other, before the long and the Japanese ones."""

MOST_NAMED = 5
"""Files left out that are told by name: a notice leaves most of the screen free."""


class Policy(msgspec.Struct, frozen=True):
    """A policy text: its label is the file's name without ending."""

    label: str
    text: str
    path: Path


def load_policies() -> tuple[tuple[Policy, ...], tuple[str, ...]]:
    """All policies, those of `FIRST` first, the others by label, and what is wrong, a line for each folder.

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
        left_out: list[str] = []
        for path in files:
            try:
                label, text = clean(path.stem), read_policy(path)
                if not text:
                    raise TextFileError("is empty")
                found[label] = Policy(label, text, path)
            except TextFileError as error:
                left_out.append(f"{path.name} {error}")
        if left_out:
            problems.append(_told(left_out, folder))
    places = {label: place for place, label in enumerate(FIRST)}
    ordered = sorted(found.values(), key=lambda policy: (places.get(policy.label, len(places)), policy.label))
    return tuple(ordered), tuple(problems)


def _told(left_out: list[str], folder: Path) -> str:
    count = f"{len(left_out)} policies" if len(left_out) > 1 else "policy"
    more = f"; and {len(left_out) - MOST_NAMED} more" if len(left_out) > MOST_NAMED else ""
    return clean(f"{count} left out: {'; '.join(left_out[:MOST_NAMED])}{more} (in {folder})")


def read_policy(path: Path) -> str:
    """The text of a policy as it is sent, whoever sends it: cleaned, without blank ends.

    Raises:
        TextFileError: the file cannot be used.
    """
    return clean_block(read_text(path)).strip()
