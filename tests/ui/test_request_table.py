"""The request table in an app: cursor, following, keys, mouse, and how little is painted."""

import msgspec
import pytest
from textual import on

from mlxcache_tui.core.views import RequestRow
from mlxcache_tui.ui.widgets.request_table import RequestTable
from support.golden import check_golden, screen_lines
from support.pane import Paints, PaneApp
from support.until import until
from support.views import all_kinds_of_rows, request_row


class TableApp(PaneApp):
    """A table whose messages are kept."""

    def __init__(self) -> None:
        self.table = RequestTable()
        super().__init__(self.table)
        self.selected: list[str] = []
        self.opened: list[str] = []

    @on(RequestTable.RequestSelected)
    def keep_selected(self, event: RequestTable.RequestSelected) -> None:
        self.selected.append(event.key)

    @on(RequestTable.RequestOpened)
    def keep_opened(self, event: RequestTable.RequestOpened) -> None:
        self.opened.append(event.key)


def rows(count: int) -> tuple[RequestRow, ...]:
    return tuple(request_row(number) for number in range(1, count + 1))


@pytest.mark.parametrize("width", [78, 118, 198])
async def test_what_it_looks_like(width: int, request: pytest.FixtureRequest) -> None:
    app = TableApp()
    async with app.run_test(size=(width, 13)) as pilot:
        app.table.show(all_kinds_of_rows())
        await pilot.pause()
        check_golden(request, f"request-table-{width}", screen_lines(app))


async def test_an_empty_table_says_what_to_do() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 8)):
        assert "no request yet: write one below and press ^s" in "\n".join(screen_lines(app))


async def test_an_empty_table_of_who_only_watches_invites_to_nothing() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 8)) as pilot:
        app.table.set_watch_only(True)
        await pilot.pause()
        assert "watching only: requests of others appear here" in "\n".join(screen_lines(app))


async def test_rows_of_an_earlier_server_process_bear_its_sign() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 8)) as pilot:
        app.table.show((request_row(1, earlier=True), request_row(2)))
        await pilot.pause()
        assert [line[:4] for line in screen_lines(app)[1:3]] == ["↻  1", "▸  2"]


async def test_the_cursor_follows_the_end_until_it_is_moved_away() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 8)) as pilot:
        app.table.focus()
        app.table.show(rows(20))
        assert app.table.cursor_key == "k20"
        app.table.show(rows(25))
        assert app.table.cursor_key == "k25"
        await pilot.pause()
        assert "▸ 25 returns" in screen_lines(app)[7]
        await pilot.press("up")
        app.table.show(rows(30))
        assert app.table.cursor_key == "k24"
        await pilot.press("end")
        assert app.table.cursor_key == "k30"
        await until(pilot, lambda: app.selected == ["k20", "k25", "k24", "k30"])


async def test_rows_that_are_let_go_leave_what_is_looked_at_where_it_is() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 8)) as pilot:
        app.table.focus()
        app.table.show(rows(30))
        await pilot.press("home", *["down"] * 11)
        seen = [line[:40] for line in screen_lines(app)[1:]]
        assert "▸ 12 returns" in "\n".join(seen)
        app.table.show(rows(31)[3:], 3)
        await pilot.pause()
        assert [line[:40] for line in screen_lines(app)[1:]] == seen
        assert app.table.cursor_key == "k12"
        assert app.table.border_subtitle == "3 older ones are kept no more"
        app.table.show(rows(40)[14:], 14)
        await pilot.pause()
        assert app.table.cursor_key == "k15"
        assert "▸ 15 returns" in screen_lines(app)[1]
        await pilot.press("end")
        app.table.show(rows(41)[15:], 15)
        await pilot.pause()
        assert app.table.cursor_key == "k41"


async def test_keys() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 8)) as pilot:
        app.table.focus()
        app.table.show(rows(30))
        for key, wanted in (
            ("home", 1),
            ("up", 1),
            ("down", 2),
            ("pagedown", 9),
            ("pageup", 2),
            ("pageup", 1),
            ("end", 30),
            ("down", 30),
        ):
            await pilot.press(key)
            assert app.table.cursor_key == f"k{wanted}", key
            assert any(line.startswith("▸") for line in screen_lines(app)), key
        await pilot.press("enter")
        await until(pilot, lambda: app.opened == ["k30"])


async def test_keys_on_an_empty_table_do_nothing() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 8)) as pilot:
        app.table.focus()
        await pilot.press("up", "pagedown", "home", "enter")
        assert app.table.cursor_key is None
        assert app.opened == []


async def test_a_click_selects_and_a_double_click_opens() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 8)) as pilot:
        app.table.show(rows(4))
        await pilot.pause()
        await pilot.click(app.table, offset=(10, 2))
        assert app.table.cursor_key == "k2"
        await pilot.click(app.table, offset=(10, 0))
        await pilot.click(app.table, offset=(10, 7))
        assert app.table.cursor_key == "k2"
        assert app.opened == []
        await pilot.click(app.table, offset=(10, 3), times=2)
        await until(pilot, lambda: app.opened == ["k3"])


async def test_the_cursor_goes_to_what_was_just_sent_wherever_it_stood() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 9)) as pilot:
        app.table.show(rows(3))
        app.table.focus()
        await pilot.press("home")
        app.table.follow("k5")
        app.table.show(rows(4))
        assert app.table.cursor_key == "k1"
        app.table.show(rows(5))
        assert app.table.cursor_key == "k5"
        await pilot.press("home")
        app.table.show(rows(6))
        assert app.table.cursor_key == "k1"


async def test_the_cursor_can_be_set_from_outside() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 8)) as pilot:
        app.table.show(rows(30))
        app.table.cursor_key = "k12"
        await pilot.pause()
        assert any(line.startswith("▸ 12") for line in screen_lines(app))


async def test_the_cursor_stays_with_its_request_when_older_ones_go() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 8)) as pilot:
        app.table.show(rows(30))
        app.table.cursor_key = "k25"
        app.table.show(rows(30)[20:])
        await pilot.pause()
        assert app.table.cursor_key == "k25"
        assert any(line.startswith("▸ 25") for line in screen_lines(app))


async def test_the_end_stays_in_sight_when_the_pane_gets_smaller() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 20)) as pilot:
        app.table.show(rows(15))
        await pilot.resize_terminal(78, 6)
        await pilot.pause()
        assert screen_lines(app)[0].split()[:2] == ["#", "policy"]
        assert screen_lines(app)[5].startswith("▸ 15")


async def test_an_equal_view_paints_nothing_and_a_changed_figure_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    app = TableApp()
    async with app.run_test(size=(118, 12)) as pilot:
        before = (*rows(5), request_row(6, phase="answering", output_tokens=31))
        app.table.show(before)
        await pilot.pause()
        paints = Paints(app.table, monkeypatch)
        app.table.show(tuple(msgspec.structs.replace(row) for row in before))
        assert paints.regions == []
        app.table.show((*before[:-1], msgspec.structs.replace(before[-1], output_tokens=32)))
        assert paints.cells == 1
        await pilot.pause()
        assert " 32 " in screen_lines(app)[6]


async def test_running_figures_wait_a_little_but_a_phase_does_not() -> None:
    app = TableApp()
    async with app.run_test(size=(118, 12)) as pilot:
        live = request_row(1, phase="answering", output_tokens=31)
        app.table.show((live,))
        for count in (32, 33, 34):
            app.table.show((msgspec.structs.replace(live, output_tokens=count),))
        assert app.table.rows[0].output_tokens == 32
        await until(pilot, lambda: app.table.rows[0].output_tokens == 34)
        app.table.show((msgspec.structs.replace(live, output_tokens=35),))
        app.table.show((msgspec.structs.replace(live, phase="done", output_tokens=36),))
        assert app.table.rows[0].output_tokens == 36
        app.table.show((msgspec.structs.replace(live, phase="done", output_tokens=36), request_row(2)))
        assert len(app.table.rows) == 2
        await pilot.pause()
        assert "✓ done" in screen_lines(app)[1]


async def test_a_changed_row_out_of_sight_paints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    app = TableApp()
    async with app.run_test(size=(118, 12)) as pilot:
        before = rows(5000)
        app.table.show(before)
        await pilot.pause()
        paints = Paints(app.table, monkeypatch)
        app.table.show((request_row(1, policy="other"), *before[1:]))
        assert paints.regions == []


async def test_a_wide_number_moves_the_columns() -> None:
    app = TableApp()
    async with app.run_test(size=(78, 8)) as pilot:
        app.table.show(rows(9))
        app.table.show((*rows(9), request_row(12345)))
        await pilot.pause()
        assert "▸12345 returns" in "\n".join(screen_lines(app))


async def test_markup_in_foreign_text_is_text() -> None:
    app = TableApp()
    async with app.run_test(size=(160, 4)) as pilot:
        app.table.show((request_row(1, why="[bold]no[/bold] [link=x]"),))
        await pilot.pause()
        assert "[bold]no[/bold] [link=x]" in screen_lines(app)[1]


async def test_the_cursor_is_seen_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = TableApp()
    async with app.run_test(size=(78, 6)) as pilot:
        app.table.show(rows(3))
        await pilot.pause()
        assert [line[0] for line in screen_lines(app)[1:4]] == [" ", " ", "▸"]
