"""The cache pane's lines."""

import pytest

from mlxcache_tui.draw.cache_lines import cache_lines, coarse_age
from mlxcache_tui.draw.spans import line_width, plain
from support.views import MINUTE, SECOND, cache, entry


def drawn(width: int = 70, height: int = 9, now_ns: int = 8 * MINUTE, **fields: object) -> list[str]:
    top, entries = cache_lines(cache(**fields), now_ns, width, height)
    return [plain(line).rstrip() for line in (*top, *entries)]


@pytest.mark.parametrize("width", [12, 30, 46, 57, 78, 118])
def test_every_line_has_the_width(width: int) -> None:
    for fields in ({}, {"note": "over the byte limit"}, {"known": "unknown"}, {"entries": ()}, {"max_bytes": None}):
        top, entries = cache_lines(cache(**fields), 0, width, 9)
        assert {line_width(line) for line in (*top, *entries)} == {width}


def test_limits_entries_and_what_went() -> None:
    assert drawn() == [
        "3 of 4 █████████████████▎─────  346 MB of 1 GB ████████───────────────",
        "type policy           tokens   bytes  age  made used",
        "asst returns             195   18 MB   8m    #2 #1 #2         next out",
        "asst 返品ポリシー       4012  310 MB   3m    #3 –",
        "sys  warranty            195   18 MB   8m  warm #4 #5 #6 #117",
        "asst a-very-long-pol…    195   18 MB ✂ evicted by #7 · count 2",
        "user returns             195   18 MB ⊂ in a longer entry of #3",
    ]


def test_what_went_is_struck_out_up_to_its_sign() -> None:
    _, entries = cache_lines(cache(entries=(entry(1, gone="evicted", gone_text="by #7"),)), 0, 70, 9)
    looks = [(span.look, "✂" in span.text) for span in entries[0] if span.text.strip()]
    assert looks == [("gone", False)] * 4 + [("bad", True)]


def test_limits_that_are_not_known() -> None:
    assert drawn(max_bytes=None)[0].endswith("  346 MB, no byte limit")
    assert drawn(max_count=None, max_bytes=None)[0] == "3 stored  346 MB, no byte limit"
    assert drawn(known="counted", max_bytes=None)[0].endswith("346 MB, no byte limit known")
    assert drawn(count=None, bytes=None)[0] == "— of 4 ────────────────────────  — of 1 GB ────────────────────────"


def test_over_a_limit_the_bar_is_full_and_red() -> None:
    top, _ = cache_lines(cache(bytes=2 * 10**9), 0, 70, 9)
    assert [span.look for span in top[0] if "█" in span.text] == ["bar", "bad"]


def test_a_note_comes_below_the_limits() -> None:
    assert drawn(note="over the byte limit")[1] == "! over the byte limit"


def test_counted_figures_are_inferred() -> None:
    lines = drawn(known="counted", entries=(), counted_text="log, before the last request: 2 sequences", note="")
    assert lines[0].startswith("≈3 of 4")
    assert lines[1] == "log, before the last request: 2 sequences"


def test_an_unknown_cache_says_why_in_the_middle() -> None:
    lines = drawn(known="unknown", entries=(), note="not observed: start the server with mlxcache-tui", height=5)
    assert [line.strip() for line in lines] == ["", "", "not observed: start the server with mlxcache-tui", "", ""]


def test_an_empty_cache_says_so() -> None:
    assert "nothing is stored yet" in "".join(drawn(entries=(), count=0, bytes=0))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "<1m"), (59, "<1m"), (60, "1m"), (3599, "59m"), (3600, "1h"), (47 * 3600, "47h"), (48 * 3600, "2d")],
)
def test_ages_are_coarse(seconds: int, shown: str) -> None:
    assert coarse_age(seconds * SECOND) == shown


def test_how_an_entry_went_is_told_on_a_slim_terminal_too() -> None:
    evicted, swallowed = drawn(width=38)[-2:]
    assert evicted == "asst a-very-l…    195 ✂ evicted by #7…"
    assert swallowed == "user returns      195 ⊂ in a longer e…"


def test_an_entry_in_doubt_says_so() -> None:
    lines = drawn(entries=(entry(1, doubtful=True), entry(2)), known="inferred")
    assert [line.endswith("gone?") for line in lines[-2:]] == [True, False]
