"""The victim rule against the released class itself would need mlx; here its table, by hand from the rule's text."""

import pytest

from mlxcache_tui.core.cachemodel import next_victim
from mlxcache_tui.core.events import EntryType

A: EntryType = "assistant"
U: EntryType = "user"
S: EntryType = "system"


@pytest.mark.parametrize(
    ("entries", "victim"),
    [
        ([], None),
        ([(1, A)], 1),
        ([(1, S)], 1),
        ([(1, A), (2, A)], 1),
        ([(2, A), (1, U)], 2),
        ([(1, U), (2, U), (3, A)], 1),
        ([(1, S), (2, U), (3, A)], 3),
        ([(1, S), (2, S), (3, U), (4, A)], 4),
        ([(1, S), (2, S), (3, U)], 1),
        ([(1, S), (2, U), (3, U)], 2),
    ],
)
def test_the_next_victim(entries: list[tuple[int, EntryType]], victim: int | None) -> None:
    assert next_victim(entries) == victim
