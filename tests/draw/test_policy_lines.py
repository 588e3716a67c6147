"""The cache by policy, drawn."""

import pytest

from mlxcache_tui.core.views import PolicyRow
from mlxcache_tui.draw.policy_lines import policy_lines
from mlxcache_tui.draw.spans import line_width, plain
from support.views import MINUTE, cache

ROWS = (
    PolicyRow(
        policy="返品ポリシー", requests=4, reuse_last=0.97, reuse_session=0.64, last_hit_ns=MINUTE, evicted=2,
        entries=3, bytes=310_000_000, share=0.9,
    ),
    PolicyRow(
        policy="warranty", requests=0, reuse_last=None, reuse_session=None, last_hit_ns=None, evicted=0, entries=0,
        bytes=0, share=0.0, warm_before=True,
    ),
)  # fmt: skip


def test_figures_stand_in_columns_and_what_is_unknown_is_a_dash() -> None:
    top, rows = policy_lines(cache(policies=ROWS), 6 * MINUTE, 100, 10)
    assert [plain(line).split() for line in rows] == [
        ["返品ポリシー", "4", "97", "%", "64", "%", "5m", "2", "3", "310", "MB", "90", "%"],
        ["warranty", "0", "—", "—", "–", "0", "0", "0", "B", "0", "%", "↻", "cold"],
    ]
    assert "by policy" in plain(top[-1])
    assert plain(top[0]).startswith("3 of 4")


@pytest.mark.parametrize("width", [20, 40, 57, 78, 118])
def test_every_line_takes_its_width(width: int) -> None:
    top, rows = policy_lines(cache(policies=ROWS, note="one"), 0, width, 10)
    assert {line_width(line) for line in (*top, *rows)} == {width}
    assert "returns" in plain(rows[0]) or "返" in plain(rows[0])


@pytest.mark.parametrize("width", [30, 57])
def test_a_long_note_is_broken_once(width: int) -> None:
    note = "a cold request takes 3 of the 10 places: this model's entries cannot be cut back (x: seen)"
    top, _ = policy_lines(cache(policies=ROWS, note=note), 0, width, 10)
    assert plain(top[1]).startswith("! a cold request")
    assert plain(top[2]).startswith("  ")
    assert plain(top[2]).rstrip().endswith("(x: seen)" if width == 57 else "…")
    assert len(top) == 4


def test_nothing_sent_yet_is_said() -> None:
    _, rows = policy_lines(cache(policies=()), 0, 60, 6)
    assert any("nothing was sent yet" in plain(line) for line in rows)
