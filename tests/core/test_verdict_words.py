"""Verdicts in words."""

import pytest

from mlxcache_tui.core.expect import Verdict
from mlxcache_tui.core.verdict_words import measured_text, shortfall


@pytest.mark.parametrize(
    ("text", "measured", "wanted", "said"),
    [
        ("cached_ratio >= 0.5", 0.02, 0.5, "2 %, 48 points too low"),
        ("cached_ratio < 0.5", 0.755, 0.5, "76 %, 25.5 points too high"),
        ("max.ttft_s < 0.1", 0.31, 0.1, "310 ms, 210 ms too much"),
        ("a.evictions == 2", 0.0, 2.0, "0, 2 too few"),
        ("evictions == 0", 3.0, 0.0, "3, 3 too many"),
        ("system_tps > 40", 30.0, 40.0, "30, 10 too little"),
        ("peak_bytes < 1000000", 3e6, 1e6, "3 MB, 2 MB too much"),
        ("ttft_s < a.ttft_s", 0.1, 0.1, "100 ms, as much as the limit"),
        ("reason == 'hit'", "first", "hit", "measured 'first', expected == 'hit'"),
        (
            "text contains 'damaged'",
            "jum hashes " * 20,
            "damaged",
            "measured 'jum hashes jum hashes jum hashes jum hashes jum hash…', expected contains 'damaged'",
        ),
        ("text == 'x'", "y" * 90, "x" * 90, f"measured '{'y' * 19}…', expected == '{'x' * 59}…'"),
        ("cached_ratio >= 0.5", None, 0.5, "why it failed"),
    ],
)
def test_by_how_much(text: str, measured: float | str | None, wanted: float | str, said: str) -> None:
    verdict = Verdict(step="a", text=text, held=False, measured=measured, wanted=wanted, why="why it failed")
    assert shortfall(verdict) == said


@pytest.mark.parametrize(
    ("text", "measured", "wanted", "said"),
    [
        ("cached_ratio >= 0.5", 0.95, 0.5, "95 %"),
        ("ttft_s < 0.5 * a.ttft_s", 0.048, 0.155, "48 ms < 155 ms"),
        ("evictions == 1", 1.0, 1.0, "1"),
        ("reason == 'hit'", "hit", "hit", "hit"),
        ("reason == 'hit'", None, "hit", ""),
    ],
)
def test_what_was_measured(text: str, measured: float | str | None, wanted: float | str, said: str) -> None:
    verdict = Verdict(step="a", text=text, held=True, measured=measured, wanted=wanted, why="")
    assert measured_text(verdict) == said
