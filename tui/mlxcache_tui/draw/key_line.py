"""The line of keys: which of them stand in a given width."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mlxcache_tui.core.text import cell_width


class Key(NamedTuple):
    """A key as the footer shows it, and what it does."""

    action: str
    key: str
    label: str

    @property
    def cells(self) -> int:
        """What it takes: a blank on both sides of the key, one behind the label."""
        return cell_width(self.key) + cell_width(self.label) + 3


def fitting_keys(keys: Iterable[Key], order: Sequence[str], width: int) -> tuple[Key, ...]:
    """The most important keys that stand whole in `width` cells, by importance.

    `order` names actions from the most important on, some twice: the first place counts. What it does not name comes
    last, as it stands in `keys`.
    """
    places: dict[str, int] = {}
    for action in order:
        places.setdefault(action, len(places))
    kept: list[Key] = []
    for key in sorted(keys, key=lambda key: places.get(key.action, len(places))):
        if key.cells <= width:
            kept.append(key)
            width -= key.cells
    return tuple(kept)
