"""Rows of the request table."""

from typing import Any

import pytest

from mlxcache_tui.draw.columns import head_line
from mlxcache_tui.draw.request_lines import clock, digits_of, request_layout, request_line, short_duration
from mlxcache_tui.draw.spans import line_width, plain
from support.views import all_kinds_of_rows, request_row


def cell(name: str, width: int = 200, **fields: Any) -> str:
    layout = request_layout(width)
    line = plain(request_line(request_row(**fields), layout))
    start = 0
    for column in layout.columns:
        if column.name == name:
            return line[start : start + column.width].strip()
        start += column.width + layout.gap
    raise AssertionError(f"{name} is not shown at {width}")


@pytest.mark.parametrize("width", [10, 20, 39, 60, 77, 99, 118, 160, 198])
def test_every_line_has_the_width(width: int) -> None:
    layout = request_layout(width)
    assert line_width(head_line(layout)) == width
    for row in all_kinds_of_rows():
        assert line_width(request_line(row, layout)) == width, row


def test_columns_leave_in_a_fixed_order() -> None:
    assert " ".join(request_layout(77).names) == "number policy state prompt percent ttft tps why"
    assert " ".join(request_layout(50).names) == "number policy state percent why"
    assert {"wait", "prefill"}.isdisjoint(request_layout(117).names)
    assert len(request_layout(198).names) == 13


@pytest.mark.parametrize(("width", "least"), [(77, 30), (98, 34), (109, 34), (117, 40), (198, 40)])
def test_the_reason_has_room_before_rates_and_waits(width: int, least: int) -> None:
    layout = request_layout(width)
    assert layout.columns[-1].width >= least
    assert width < 98 or "out" in layout.names


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"phase": "queued"}, "◌ queued"),
        ({"phase": "prefill"}, "▷ prefill"),
        ({"phase": "prefill", "prefill_done": 62, "prefill_total": 100, "eta_s": 3.2}, "▷ prefill 62% 0:03"),
        ({"phase": "prefill", "prefill_done": None, "prefill_total": 100}, "▷ prefill 0%"),
        ({"phase": "done", "finish_reason": "stop"}, "✓ done"),
        ({"phase": "done", "finish_reason": "length"}, "✓ done length"),
        ({"phase": "cut"}, "╱ cut"),
        ({"phase": "failed"}, "✗ failed"),
    ],
)
def test_the_state_in_words(fields: dict[str, Any], shown: str) -> None:
    assert cell("state", **fields) == shown


def test_a_middle_state_says_the_time_left_instead_of_the_word() -> None:
    fields: dict[str, Any] = {"phase": "prefill", "prefill_done": 62, "prefill_total": 100}
    assert cell("state", 117, **fields) == "▷ prefill 62%"
    assert cell("state", 117, eta_s=3.2, **fields) == "▷ 62% 0:03"
    assert cell("state", 117, phase="done", finish_reason="tool_calls") == "✓ done"


@pytest.mark.parametrize(
    ("fields", "state", "why"),
    [
        ({"phase": "done", "finish_reason": "length", "reason": "first"}, "✓", "○ first"),
        ({"phase": "queued"}, "◌", "queued"),
        ({"phase": "prefill", "prefill_done": 62, "prefill_total": 100, "eta_s": 3.2}, "▷ 62%", "prefill"),
        ({"phase": "answering", "reason": "hit", "why": "hit: 14770 tokens of #5"}, "◆",
         "answering ● 14770 tokens of #5"),
        ({"phase": "thinking", "reason": "diverged", "why": "differs from #2 at message 1, char 1034"}, "◇",
         "≠ #2 at message 1, char 1034"),
        ({"phase": "failed", "why": "the server said 404"}, "✗", "the server said 404"),
    ],
)  # fmt: skip
def test_a_narrow_state_is_its_sign_and_why_says_the_word_of_what_is_not_done(
    fields: dict[str, Any], state: str, why: str
) -> None:
    assert cell("state", 77, **fields) == state
    assert cell("why", 77, **fields) == why


def test_unknown_is_a_dash_and_nothing_is_nothing() -> None:
    for name in ("prompt", "cached", "percent", "wait", "ttft", "prefill", "out", "tps", "total"):
        assert cell(name) == "—"
    assert cell("cached", cached_tokens=0) == "0"
    assert cell("percent", cached_ratio=0.0) == "0%"
    assert cell("why") == ""


def test_figures() -> None:
    assert cell("percent", cached_ratio=0.918) == "92%"
    assert cell("percent", cached_ratio=0.001, cached_source="derived") == "≈<1%"
    assert cell("prefill", prefill_tps=820.4) == "820/s"
    assert cell("tps", decode_tps=41.23) == "41.2"
    assert cell("wait", wait_s=0.0021) == "2 ms"
    assert cell("total", e2e_s=200.0) == "3:20"
    assert short_duration(59.2) == "59 s"
    assert clock(3725) == "1h02m"


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"reason": "hit", "why": "hit: 112 tokens of #1"}, "● hit: 112 tokens of #1"),
        ({"reason": "evicted", "why": "evicted by #3", "inferred": True}, "✂≈ evicted by #3"),
        ({"reason": "first"}, "○ first"),
        ({"phase": "failed", "why": "the server said 404"}, "the server said 404"),
    ],
)
def test_why_in_words(fields: dict[str, Any], shown: str) -> None:
    assert cell("why", **fields) == shown


@pytest.mark.parametrize(
    ("width", "reason", "why", "shown"),
    [
        (77, "hit", "hit: 14770 tokens of the warm-up", "● 14770 tokens of the warm-up"),
        (77, "first", "first · → threw out warranty (#1)", "○ first → threw out warranty"),
        (77, "evicted", "evicted by #3 (count 2) · → threw out returns (#1)", "✂ by #3 (count 2) → ✂ returns"),
        (117, "hit", "hit: 1477 tokens of #5 · → threw out returns (#1)", "● 1477 of #5 · → threw out returns (#1)"),
    ],
)
def test_where_it_is_narrow_the_reason_says_the_same_in_fewer_words(
    width: int, reason: str, why: str, shown: str
) -> None:
    assert cell("why", width, reason=reason, why=why) == shown


def test_a_warm_up_is_dim_and_has_no_number() -> None:
    line = request_line(request_row(0, warmup=True, reason="hit", cached_ratio=1.0), request_layout(118))
    assert {span.look for span in line} == {"dim"}
    assert cell("number", number=0, warmup=True) == "–"
    assert cell("number", number=3, warmup=True).strip() == "3", "others refer to it by its number"


def test_a_row_of_an_earlier_server_process_is_dim() -> None:
    line = request_line(request_row(1, earlier=True, reason="hit", cached_ratio=1.0), request_layout(118))
    assert {span.look for span in line} == {"dim"}


def test_another_clients_request_is_marked() -> None:
    assert cell("policy", ours=False) == "› returns"


def test_the_number_column_grows() -> None:
    assert digits_of(()) == 1
    assert digits_of((request_row(9), request_row(12345))) == 5
    assert request_layout(118, 5).columns[0].width == 5
