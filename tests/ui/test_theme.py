"""Looks."""

import re
from pathlib import Path
from typing import get_args

import pytest
from rich.cells import cell_len
from textual.color import Color

from mlxcache_tui.draw.spans import Look
from mlxcache_tui.ui.replay import ReplayApp
from mlxcache_tui.ui.theme import CURSOR, LOOKS, PREFIX, component_names
from mlxcache_tui.ui.widgets.request_table import RequestTable
from support.golden import screen_lines
from support.pane import PaneApp
from support.sessions import told, write
from support.until import until
from support.views import all_kinds_of_rows


def test_every_look_has_a_rule() -> None:
    assert set(LOOKS) == set(get_args(Look))
    assert {PREFIX + look for look in LOOKS} < component_names()


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "nord", "gruvbox"])
async def test_every_look_is_readable(theme: str) -> None:
    app = PaneApp(table := RequestTable())
    app.theme = theme
    async with app.run_test(size=(80, 5)):
        for look in LOOKS:
            style = table.get_component_rich_style(PREFIX + look)
            assert style.color is not None
            assert style.bgcolor is not None
            ink, ground = (Color.from_rich_color(colour).brightness for colour in (style.color, style.bgcolor))
            assert abs(ink - ground) > 0.15, (look, style)


async def test_columns_are_as_wide_as_the_screen_draws_them() -> None:
    app = PaneApp(table := RequestTable())
    async with app.run_test(size=(118, 13)) as pilot:
        table.show(all_kinds_of_rows())
        await pilot.pause()
        why = screen_lines(app)[0].index("why")
        for line in screen_lines(app)[3:6]:
            sign = next(index for index, char in enumerate(line) if char in "●≠✂")
            assert cell_len(line[:sign]) == why


async def test_without_colour_the_terminals_own_ink_is_drawn_on_its_own_ground(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    story = told()
    app = ReplayApp(write(tmp_path / "s.jsonl", story))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.player is not None and app.player.view.position == len(story.events))
        await pilot.pause()
        picture = app.export_screenshot()
    assert app.native_ansi_color, "else Textual makes greys of the colours, and of the ground black"
    grounds = set(re.findall(r'<rect fill="(#\w+)" x', picture))
    assert grounds <= {"#c5c8c6"}, "only what is reversed has a ground"


async def test_without_colour_cursor_and_dim_text_are_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = PaneApp(table := RequestTable())
    async with app.run_test(size=(80, 5)) as pilot:
        assert table.get_component_rich_style(PREFIX + "dim").dim
        assert table.get_component_rich_style(PREFIX + CURSOR).reverse
        table.show(all_kinds_of_rows())
        table.focus()
        await pilot.pause()
        assert any(segment.style and segment.style.reverse for segment in table.render_line(4))


def test_nothing_moves_by_itself() -> None:
    assert ReplayApp(Path("s.jsonl")).animation_level == "none"
