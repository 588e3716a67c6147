"""The log ring and whose line is whose."""

from mlxcache_tui.core.events import LogLine, LogOwned, LogRead
from mlxcache_tui.core.state import LOG_LINES
from support.story import Story

LINE = "2026-11-29 14:48:18,120 - INFO - Prompt processing progress: 10/10"
TEXT = "Prompt processing progress: 10/10"


def read(story: Story, *texts: str, bar: bool = False, replace: bool = False) -> None:
    lines = tuple(LogLine(text=text, kind="bar" if bar else "record") for text in texts)
    story.tell(LogRead(at_ns=story.tick(), origin="log", lines=lines, replace_last=replace))


def test_a_line_finds_its_request_whichever_comes_first() -> None:
    story = Story()
    story.server()
    story.compose("a")
    story.compose("b")
    story.tell(LogOwned(at_ns=story.tick(), origin="observer", key="a", text=TEXT))
    read(story, LINE, LINE)
    story.tell(LogOwned(at_ns=story.tick(), origin="observer", key="b", text=TEXT))
    assert [row.request for row in story.state.log.rows] == [1, 2]


def test_a_bar_is_drawn_over_itself() -> None:
    story = Story()
    read(story, "10 %", bar=True)
    read(story, "20 %", bar=True, replace=True)
    read(story, "done")
    assert [row.text for row in story.state.log.rows] == ["20 %", "done"]


def test_looks_whether_the_server_is_well_are_one_line_the_last() -> None:
    story = Story()
    look = '127.0.0.1 - - [29/Nov/2026 20:17:{:02d}] "GET /health HTTP/1.1" 200 -'
    read(story, look.format(1), look.format(2), "else")
    read(story, look.format(3))
    read(story, look.format(4))
    assert [row.text for row in story.state.log.rows] == [look.format(2), "else", look.format(4)]


def test_the_ring_is_bounded_and_numbers_go_on() -> None:
    story = Story()
    read(story, *(str(number) for number in range(LOG_LINES + 5)))
    rows = story.state.log.rows
    assert (len(rows), rows[0].text, rows[-1].seq) == (LOG_LINES, "5", LOG_LINES + 5)


def test_owners_of_lines_that_never_come_are_bounded() -> None:
    story = Story()
    for number in range(3_000):
        story.tell(LogOwned(at_ns=1, origin="observer", key="a", text=str(number)))
    assert len(story.state.log.owners) <= 1_000
