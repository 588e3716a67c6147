"""The log pane in an app: following and holding, searching, filtering, folding, and how little is done."""

import msgspec
import pytest

from mlxcache_tui.core.views import LogRow
from mlxcache_tui.ui.widgets.log_pane import LogPane
from support.golden import check_golden, screen_lines, text_lines
from support.pane import Paints, PaneApp
from support.until import until
from support.views import lines_of_log, log, log_row, traceback_rows

MIXED = (
    log_row(1, "2026-11-29 14:48:18,001 - INFO - Prompt Cache: 1 sequences, 0.31 GB, latest user cache: 1 sequences"),
    log_row(2, "2026-11-29 14:48:18,002 - INFO - Prompt processing progress: 2048/4012", kind="progress", request=3),
    log_row(3, "✂ evicted returns, 195 tokens, 18 MB, by #3: count 3", kind="mark", level=None),
    log_row(4, "2026-11-29 14:48:19,000 - WARNING - [bold]markup[/bold] 日本語のログ行 🎁 here", level="WARNING"),
    log_row(5, '127.0.0.1 - - "POST /v1/chat/completions HTTP/1.1" 200 -', kind="access", level=None),
    *traceback_rows(6),
    log_row(10, "Fetching 4 files:  25%|██▌       | 1/4", kind="bar", level=None),
)


def subtitle(app: PaneApp) -> str:
    return app.pane.border_subtitle or ""


def cursor_line(app: PaneApp) -> str:
    return next(line for line in text_lines(app) if line.startswith("▸"))


@pytest.mark.parametrize("width", [58, 78, 118])
async def test_what_it_looks_like(width: int, request: pytest.FixtureRequest) -> None:
    app = PaneApp(pane := LogPane())
    app.pane.styles.border = ("round", "white")
    async with app.run_test(size=(width, 12)) as pilot:
        pane.highlight(3)
        pane.show(log(*MIXED))
        await pilot.pause()
        check_golden(request, f"log-pane-{width}", screen_lines(app))


async def test_an_empty_log_says_where_lines_would_come_from() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 6)) as pilot:
        pane.show(log(source="no line yet"))
        pane.show(log(source="start with --log FILE to see it here"))
        await pilot.pause()
        assert "start with --log FILE to see it here" in "\n".join(text_lines(app))


async def test_it_follows_until_the_reader_goes_up_and_again_from_the_end_on() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 6)) as pilot:
        pane.show(log(*lines_of_log(20)))
        await pilot.pause()
        assert text_lines(app)[5].endswith("line 20")
        assert subtitle(app) == "following · all"
        pane.focus()
        await pilot.press("up")
        pane.show(log(*lines_of_log(27)))
        await pilot.pause()
        assert text_lines(app)[5].endswith("line 20")
        assert subtitle(app) == "held, end follows · 7 new · all"
        await pilot.press("end")
        assert text_lines(app)[5].endswith("line 27")
        assert subtitle(app) == "following · all"


async def test_the_wheel_holds_and_follows_too() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 6)) as pilot:
        pane.show(log(*lines_of_log(50)))
        await pilot.pause()
        pane.lines.scroll_to(y=10, animate=False)
        await until(pilot, lambda: not pane.lines.following)
        pane.show(log(*lines_of_log(70)))
        await pilot.pause()
        assert text_lines(app)[0].endswith("line 11")
        assert "20+ new" in subtitle(app)
        # While held the scroll bar learns of new lines once the reader moves.
        pane.lines.scroll_to(y=30, animate=False)
        await until(pilot, lambda: pane.lines.max_scroll_y == 64)
        pane.lines.scroll_end(animate=False)
        await until(pilot, lambda: pane.lines.following)
        assert subtitle(app) == "following · all"


async def test_the_wheel_goes_on_from_where_the_end_was() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 6)) as pilot:
        pane.show(log(*lines_of_log(50)))
        pane.focus()
        await pilot.press("up")
        pane.show(log(*lines_of_log(70)))
        assert pane.lines.max_scroll_y == 64
        await pilot.pause()
        assert text_lines(app)[5].endswith("line 50")


async def test_while_held_nothing_moves_though_the_ring_drops_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 6)) as pilot:
        rows = lines_of_log(100)
        pane.show(log(*rows))
        pane.focus()
        await pilot.press("home")
        paints = Paints(pane.lines, monkeypatch)
        pane.show(log(*rows[60:], *lines_of_log(60, 101)))
        assert paints.regions == []
        await pilot.pause()
        assert text_lines(app)[0].endswith("line 1")


async def test_keys_move_by_line_and_page() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 6)) as pilot:
        pane.show(log(*lines_of_log(50)))
        pane.focus()
        for key, wanted in (("pageup", 45), ("up", 44), ("home", 1), ("down", 2), ("pagedown", 7), ("up", 6)):
            await pilot.press(key)
            here = [line for line in text_lines(app) if line.startswith("▸")]
            assert [line.rsplit(" ", 1)[1] for line in here] == [str(wanted)], key


async def test_a_traceback_is_one_line_that_enter_and_a_click_unfold() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 8)) as pilot:
        pane.show(log(log_row(1), *traceback_rows(2)))
        pane.focus()
        await pilot.pause()
        assert [line[2:] for line in text_lines(app)[1:3]] == ["▸ traceback, 4 lines: ValueError: bad", ""]
        await pilot.press("enter")
        assert [line[2:].strip() for line in text_lines(app)[1:6]] == [
            "▾ traceback, 4 lines",
            "Traceback (most recent call last):",
            'File "server.py", line 3, in go',
            "go()",
            "ValueError: bad",
        ]
        await pilot.click(pane.lines, offset=(5, 3))
        assert text_lines(app)[2] == ""


async def test_search_marks_and_goes_to_matches() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 8)) as pilot:
        rows = (*lines_of_log(30), *traceback_rows(31), *lines_of_log(5, 35))
        pane.show(log(*rows))
        pane.focus()
        await pilot.press("slash", *"LINE 2")
        assert text_lines(app)[7].startswith("LINE 2")
        assert subtitle(app) == "11 matches, enter goes there, esc ends"
        await pilot.press("enter")
        assert subtitle(app) == "11 of 11, n N next, esc ends"
        assert "▸" in next(line for line in text_lines(app) if line.endswith("line 29"))
        await pilot.press("N")
        assert subtitle(app) == "10 of 11, n N next, esc ends"
        assert any(line.startswith("▸") and line.endswith("line 28") for line in text_lines(app))
        await pilot.press("n", "n")
        assert any(line.startswith("▸") and line.endswith("line 2") for line in text_lines(app))
        assert subtitle(app).startswith("1 of 11, ")
        await pilot.press("escape")
        assert not text_lines(app)[7].startswith("LINE 2")
        assert subtitle(app) == "held, end follows · all"


async def test_search_opens_the_traceback_that_holds_it_and_says_when_nothing_does() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 12)) as pilot:
        pane.show(log(log_row(1), *traceback_rows(2)))
        pane.start_search()
        await pilot.press(*"valueerror", "enter")
        assert any(line.startswith("▸") and line.endswith("ValueError: bad") for line in text_lines(app))
        assert subtitle(app) == "1 of 1, n N next, esc ends"
        await pilot.press("slash", "x", "enter")
        assert "no match" in subtitle(app)
        await pilot.press("n")
        assert "no match" in subtitle(app)
        await pilot.press("escape", "n")
        assert "no match" not in subtitle(app)


async def test_escape_without_a_search_is_left_to_others() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 6)):
        assert not pane.check_action("close_search", ())
        pane.start_search()
        assert pane.check_action("close_search", ())
        assert pane.check_action("cycle_filter", ())


async def test_the_filter_cycles_and_keeps_the_line_of_the_cursor() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(78, 12)) as pilot:
        pane.show(log(*MIXED))
        pane.focus()
        await pilot.press("home", "down", "down", "down")
        await pilot.press("f")
        assert subtitle(app) == "held, end follows · warnings and errors"
        assert [line[:4].strip() for line in text_lines(app)[:3]] == ["◆ ✂", "▸ 14", "▸"]
        await pilot.press("f")
        assert subtitle(app) == "held, end follows · no progress, no access"
        assert "progress" not in "\n".join(text_lines(app)[:8])
        await pilot.press("f", "end")
        assert subtitle(app) == "following · all"
        pane.show(log(log_row(1, kind="progress")))
        await pilot.press("f")
        assert "no line passes the filter" in "\n".join(text_lines(app))


async def test_long_lines_scroll_sideways_as_far_as_they_go() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(42, 4)) as pilot:
        pane.show(log(log_row(1, "漢字 " + "x" * 50 + " the end")))
        pane.focus()
        await pilot.pause()
        assert text_lines(app)[0].endswith("x…")
        await pilot.press(*["right"] * 9)
        assert text_lines(app)[0].startswith("▸ …")
        assert text_lines(app)[0].endswith("x the end")
        await pilot.press(*["left"] * 9)
        assert text_lines(app)[0].startswith("▸ 漢字")


async def test_an_equal_view_paints_nothing_and_new_lines_only_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 12)) as pilot:
        rows = lines_of_log(4)
        pane.show(log(*rows))
        await pilot.pause()
        paints = Paints(pane.lines, monkeypatch)
        pane.show(log(*rows))
        assert paints.regions == []
        pane.show(log(*rows, log_row(5)))
        assert {region.y for region in paints.regions if region} == {3}
        await pilot.pause()
        assert text_lines(app)[4].endswith("line 5")


async def test_lines_that_nobody_can_read_are_drawn_a_few_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 6)) as pilot:
        pane.show(log(*lines_of_log(100)))
        await pilot.pause()
        pane.show(log(*lines_of_log(200)))
        paints = Paints(pane.lines, monkeypatch)
        for count in (300, 400, 500):
            pane.show(log(*lines_of_log(count)))
        assert paints.regions == []
        await until(pilot, lambda: text_lines(app)[5].endswith("line 500"))


async def test_a_line_that_gets_its_request_is_marked() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 12)) as pilot:
        rows: list[LogRow] = list(lines_of_log(4))
        pane.highlight(7)
        pane.show(log(*rows))
        rows[1] = msgspec.structs.replace(rows[1], request=7)
        pane.show(log(*rows))
        await pilot.pause()
        assert [line[0] for line in text_lines(app)[:4]] == [" ", "▌", " ", " "]


async def test_a_smaller_pane_still_shows_the_end() -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 20)) as pilot:
        pane.show(log(*lines_of_log(50)))
        await pilot.resize_terminal(60, 5)
        await pilot.pause()
        assert text_lines(app)[4].endswith("line 50")
        pane.show(log(*lines_of_log(51)))
        await pilot.pause()
        assert text_lines(app)[4].endswith("line 51")


@pytest.mark.parametrize("height", [14, 4])
async def test_what_was_found_stays_the_line_of_the_cursor_when_the_terminal_gets_another_size(height: int) -> None:
    app = PaneApp(pane := LogPane())
    async with app.run_test(size=(60, 8)) as pilot:
        pane.show(log(*lines_of_log(20)))
        pane.focus()
        await pilot.press("slash", *"line 16", "enter")
        await pilot.pause()
        await pilot.resize_terminal(60, height)
        await pilot.pause()
        assert cursor_line(app).endswith("line 16")
        pane.show(log(*lines_of_log(23)))
        await pilot.pause()
        assert cursor_line(app).endswith("line 16")
        assert subtitle(app) == "1 of 1, n N next, esc ends"
