"""The rules by hand; `tests/live/test_cachemodel_live.py` holds the model to the released class itself."""

import pytest

from mlxcache_tui.core.cachemodel import CacheModel, Change, next_victim, rule_of
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


def kept(model: CacheModel) -> list[tuple[EntryType, object]]:
    return [(entry.type, entry.sequence) for entry in model.stored]


def what(changes: list[Change]) -> list[tuple[str, int]]:
    return [(change.what, change.kept.entry) for change in changes]


@pytest.mark.parametrize(
    ("version", "rule"),
    [
        ("0.32.2", "three queues"),
        ("0.31.2", "three queues"),
        ("0.31.1", "two queues"),
        ("0.30.7", "one queue"),
        ("0.31", None),
        ("dev", None),
        (None, None),
    ],
)
def test_the_rule_of_a_version(version: str | None, rule: str | None) -> None:
    assert rule_of(version) == rule


def test_a_longer_entry_swallows_its_beginnings_where_layers_can_be_cut_back() -> None:
    model = CacheModel("three queues", 10)
    model.insert(S, (1,))
    assert what(model.insert(A, (1, 2))) == [("inserted", 2), ("swallowed", 1)]
    assert what(model.insert(S, (1,), trimmable=False)) == [("inserted", 3)]
    assert what(model.insert(A, (1, 2, 3), trimmable=False)) == [("inserted", 4)]
    assert kept(model) == [(A, (1, 2)), (S, (1,)), (A, (1, 2, 3))]


def test_bytes_are_thrown_out_to_the_last_but_with_two_queues_one_stays() -> None:
    for rule, left in (("three queues", 0), ("two queues", 1)):
        model = CacheModel(rule, 10, 5)  # type: ignore[arg-type]
        changes = model.insert(A, (1,), 9)
        assert len(model.stored) == left
        assert [change.rule for change in changes if change.what == "evicted"] == ["bytes"] * (1 - left)
    assert what(model.trim_to(0)) == [("evicted", 1)]


def test_the_same_again_is_the_newest_and_of_the_older_rules_keeps_its_first_size() -> None:
    for rule, size in (("three queues", 7), ("two queues", 5)):
        model = CacheModel(rule, 10)  # type: ignore[arg-type]
        model.insert(A, (1,), 5)
        model.insert(A, (2,), 1)
        assert what(model.insert(A, (1,), 7)) == [("inserted", 3), ("replaced", 1)]
        assert [(entry.entry, entry.size) for entry in model.stored] == [(2, 1), (3, size)]


def test_in_one_queue_a_hit_takes_the_entry_out() -> None:
    model = CacheModel("one queue", 2)
    assert model.victim() is None
    for sequence in ((1, 2), (1, 2), (3,)):
        model.insert(A, sequence)
    assert what(model.take((1, 2, 9))) == [], "it was stored twice"
    assert what(model.take((1, 2, 9))) == [("taken", 2)]
    assert what(model.take((3, 4))) == [], "a single token is not seen as a beginning"
    model.insert(A, (5, 6))
    assert model.victim() == 3
    assert what(model.insert(A, (7, 8)))[-1] == ("evicted", 3)
    assert CacheModel("three queues", 2).take((1,)) == []
