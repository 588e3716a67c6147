"""Reasons made shorter until they fit."""

import pytest

from mlxcache_tui.draw.reason_words import fitting_reason


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("hit: 1477 tokens of #5", 22, "hit: 1477 tokens of #5"),
        ("hit: 1477 tokens of #5", 17, "1477 tokens of #5"),
        ("hit: 1477 tokens of #5", 16, "1477 of #5"),
        ("hit: 1477 tokens of #5 · → threw out returns (#1)", 35, "1477 of #5 → threw out returns (#1)"),
        ("evicted by #3 (count 2)", 18, "by #3 (count 2)"),
        ("first · → threw out warranty (#12)", 32, "first → threw out warranty (#12)"),
        ("first · → threw out warranty (#12)", 28, "first → threw out warranty"),
        ("first · → ≈ threw out warranty (#12)", 20, "first → ≈ ✂ warranty"),
        ("differs from #2 at message 1, char 1034", 28, "#2 at message 1, char 1034"),
        ("hit: 9 tokens of an entry made before we watched", 28, "9 of an earlier entry"),
        ("#3 was cancelled before it was stored", 28, "#3 was cancelled"),
        ("evicted by #3 (count 2)", 3, "by #3 (count 2)"),
    ],
)
def test_what_matters_stays(text: str, room: int, shown: str) -> None:
    assert fitting_reason(text, room) == shown
