"""Reasons made shorter until they fit."""

import pytest

from mlxcache_tui.draw.reason_words import fitting_reason

LOST = "hit: 186 tokens of #2 · 152 more lost: #1 evicted by #3 (count 2)"


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
        (
            "hit: 186 tokens of #2 · 152 more lost: #1 evicted by #3 (count 2)",
            51,
            "186 of #2 · 152 lost: #1 evicted by #3 (count 2)",
        ),
        (
            "hit: 186 tokens of #2 · 152 more lost: #1 evicted by #3 (count 2)",
            40,
            "186 of #2 · 152 lost: #1 evicted by #3",
        ),
        (LOST, 34, "186 of #2 · 152 lost: #1 ✂ by #3"),
        ("#1 was still in flight: begun 4 ms before, stored 1.2 s after", 30, "#1 was still in flight"),
        ("#1 was still in flight: begun 4 ms before · → threw out a (#2)", 34, "#1 was still in flight → ✂ a"),
    ],
)
def test_what_matters_stays(text: str, room: int, shown: str) -> None:
    assert fitting_reason(text, room) == shown
