"""What each key may hold."""

from typing import Any

import pytest

from mlxcache_tui.core.scenario_keys import DEFAULT_KEYS, FLAG_KEYS, LINE, SIZE, STEP_KEYS


@pytest.mark.parametrize("value", [0, 512, "512MB", "8GiB", "1.5gb"])
def test_sizes(value: Any) -> None:
    assert SIZE.accepts(value)


@pytest.mark.parametrize("value", [-1, True, 1.5, "-1", "8 gigs", "", [], None])
def test_no_sizes(value: Any) -> None:
    assert not SIZE.accepts(value)


@pytest.mark.parametrize(("value", "fits"), [("返品 規定", True), ("a\tb", False), ("a\u202eb", False), ("", False)])
def test_lines(value: str, fits: bool) -> None:
    assert LINE.accepts(value) is fits


def test_every_default_is_a_step_key() -> None:
    assert set(DEFAULT_KEYS) <= set(STEP_KEYS)


def test_every_key_says_what_it_expects() -> None:
    assert all(key.expected for key in (*STEP_KEYS.values(), *FLAG_KEYS.values()))
