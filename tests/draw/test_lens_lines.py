"""The lens as lines: both prompts aligned up to the first difference, every part named by a sign."""

import pytest

from mlxcache_tui.core.text import cell_width
from mlxcache_tui.core.views import LensPart, LensView
from mlxcache_tui.draw.lens_lines import Row, head_lines, lens_rows, row_line
from mlxcache_tui.draw.spans import line_width, plain
from support.views import lens


def part(text: str, *, reused: bool | None = False, same: bool | None = True) -> LensPart:
    return LensPart(text=text, tokens=len(text), reused=reused, same=same)


def signs(view: LensView, width: int = 40) -> tuple[list[str], list[str]]:
    rows = lens_rows(view, width)
    return [plain(row_line(row, width))[0] for row in rows.ours], [
        plain(row_line(row, width))[0] for row in rows.theirs
    ]


def test_both_stand_beside_each_other_up_to_the_difference() -> None:
    rows = lens_rows(lens(), 40)
    assert rows.difference is not None
    assert rows.reuse_end == rows.difference - 1
    assert [row.text for row in rows.ours[: rows.reuse_end]] == [row.text for row in rows.theirs[: rows.reuse_end]]
    assert rows.ours[rows.difference] == Row("difference", "≠ first difference from #1: token 9")
    assert rows.ours[rows.difference + 1].kind == "differs"
    assert rows.theirs[rows.difference + 1] == Row("differs", "and that")


@pytest.mark.parametrize(
    ("parts", "other", "ours", "theirs"),
    [
        ((part("ab", reused=True), part("c", same=False)), (part("x", same=False),), "●──≠", "│──≠"),
        ((part("ab", reused=True), part("c"), part("d", same=False)), (), "●─○─≠", "│─│─"),
        ((part("ab", reused=True), part("c", reused=True, same=False), part("d", same=False)), (), "●─●─≠", "│─"),
        ((part("ab", reused=True), part("c")), (), "●─○", "│─│─"),
        ((part("ab", reused=True),), (part("x", same=False),), "●─", "│─≠"),
        ((part("ab", same=False),), (part("x", same=False),), "≠", "─≠"),
        ((part("ab", reused=None), part("c", reused=None, same=False)), (), "│─≠", "│─"),
    ],
)
def test_each_part_has_its_sign(
    parts: tuple[LensPart, ...], other: tuple[LensPart, ...], ours: str, theirs: str
) -> None:
    view = lens(parts=parts, other_parts=other, here="" if not other and parts[-1].same else "“c”")
    assert signs(view) == (list(ours), list(theirs))


def test_without_another_request_only_what_was_reused_is_marked() -> None:
    view = lens(
        parts=(part("ab", reused=True, same=None), part("c", same=None)),
        other_key=None,
        other_number=None,
        other_parts=(),
        here="",
        there="",
    )
    assert signs(view) == (["●", "─", "○"], [])
    assert "compared with none" in plain(head_lines(view, 80)[1])


@pytest.mark.parametrize("width", [1, 8, 31, 80])
def test_wide_characters_never_push_a_line_out_of_its_cells(width: int) -> None:
    view = lens(parts=(part("返品ポリシー 🎁 規則 " * 9, reused=True), part("次\n" * 3, same=False)))
    rows = lens_rows(view, width)
    for row in (*rows.ours, *rows.theirs, None):
        if width >= 4 or row is None or row.kind in ("rule", "difference"):
            assert line_width(row_line(row, width)) == width
    for line in head_lines(view, width):
        assert line_width(line) == width


def test_the_heads_say_it_in_words() -> None:
    first, second = (plain(line).rstrip() for line in head_lines(lens(), 90))
    assert first == "● 9 reused  ○ 3 read anew  of 12 tokens  · beside #1 returns (1 of 2)"
    assert second == "≠ token 9: “and this” here, “and that” in #1"
    seeded = head_lines(lens(parameters=("seed: 3 here, none in #1",)), 90)
    assert plain(seeded[2]).rstrip() == "≠ seed: 3 here, none in #1"
    same = lens(here="", there="")
    assert plain(head_lines(same, 90)[1]).startswith("= the same text as #1")
    sent = lens(exact=False, shared=None, tokens=None, cached=None, note="not observed: the messages as sent")
    assert [plain(line)[0] for line in head_lines(sent, 90)] == ["—", "≠", "≈"]
    warm = lens(other_number=0, other_policy="warm-up")
    assert "beside the warm-up (1 of 2)" in plain(head_lines(warm, 90)[0])


def test_a_part_that_ends_its_line_leaves_no_empty_one() -> None:
    rows = lens_rows(lens(parts=(part("a\n", reused=True), part("b\n"))), 40)
    assert [row.text for row in rows.ours if row.kind in ("reused", "anew")] == ["a", "b", ""]
    assert cell_width(rows.ours[0].text) == 1
