"""The log buffer: what an update costs is what changed, and what it shows is what starting over would show."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.views import LogRow
from mlxcache_tui.draw.log_buffer import HELD_LINES, Change, Fold, LogBuffer, LogFilter, Shown, shown_text
from support.views import lines_of_log, log_row, traceback_rows


def texts(buffer: LogBuffer) -> list[str]:
    return [describe(line) for line in buffer.lines]


def describe(line: Shown) -> str:
    return f"fold {len(line.rows)} {line.open}" if isinstance(line, Fold) else f"{line.seq} {line.kind}"


def test_lines_that_come_are_appended() -> None:
    buffer = LogBuffer()
    rows = lines_of_log(3)
    assert buffer.update(rows) == Change(0, 0, 3)
    assert buffer.update((*rows, log_row(4))) == Change(0, 3, 1)
    assert [line.seq for line in buffer.lines] == [1, 2, 3, 4]


def test_lines_that_the_ring_drops_are_dropped() -> None:
    buffer = LogBuffer()
    rows = lines_of_log(5)
    buffer.update(rows)
    assert buffer.update((*rows[2:], log_row(6), log_row(7))) == Change(2, 3, 2)


def test_while_held_they_stay_up_to_a_limit() -> None:
    buffer = LogBuffer()
    rows = lines_of_log(5)
    buffer.update(rows)
    assert buffer.update((*rows[2:], log_row(6)), hold=True) == Change(0, 5, 1)
    assert buffer.lines[0] is rows[0]
    buffer.update(lines_of_log(HELD_LINES, 6), hold=True)
    change = buffer.update(lines_of_log(HELD_LINES, 10), hold=True)
    assert change.dropped > 0


def test_a_line_that_got_its_request_is_replaced() -> None:
    buffer = LogBuffer()
    rows = lines_of_log(5)
    buffer.update(rows)
    owned = msgspec.structs.replace(rows[3], request=2)
    assert buffer.update((*rows[:3], owned, rows[4])) == Change(0, 3, 0)
    assert buffer.lines[3] is owned


def test_a_bar_that_goes_on_takes_the_place_of_the_one_before() -> None:
    buffer = LogBuffer()
    rows = (*lines_of_log(2), log_row(3, "10%", kind="bar"))
    buffer.update(rows)
    assert buffer.update((*rows[:2], log_row(4, "20%", kind="bar"))).first == 2
    assert texts(buffer) == ["1 record", "2 record", "4 bar"]


def test_a_traceback_is_one_line_and_grows() -> None:
    buffer = LogBuffer()
    trace = traceback_rows(2)
    buffer.update((log_row(1), *trace[:2]))
    assert texts(buffer) == ["1 record", "fold 2 False"]
    change = buffer.update((log_row(1), *trace, log_row(6)))
    assert texts(buffer) == ["1 record", "fold 4 False", "6 record"]
    assert change.first == 1


def test_an_open_traceback_grows_in_place() -> None:
    buffer = LogBuffer()
    first, trace = log_row(1), traceback_rows(2)
    buffer.update((first, *trace[:2]))
    assert buffer.toggle(1) == 1
    assert buffer.update((first, *trace)) == Change(0, 1, 2)
    assert texts(buffer) == ["1 record", "fold 4 True", *["2 traceback", "3 traceback", "4 traceback", "5 traceback"]]
    assert buffer.toggle(4) == 1
    assert texts(buffer) == ["1 record", "fold 4 False"]


def test_only_tracebacks_fold() -> None:
    buffer = LogBuffer()
    buffer.update(lines_of_log(2))
    assert buffer.toggle(1) is None
    assert buffer.toggle(7) is None
    assert not buffer.toggle_if_folded(0)


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [("all", [1, 2, 3, 4, 5, 6]), ("warnings", [2, 5, 6]), ("quiet", [1, 2, 5, 6])],
)
def test_filters(wanted: LogFilter, kept: list[int]) -> None:
    buffer = LogBuffer()
    buffer.update(
        (
            log_row(1),
            log_row(2, level="WARNING"),
            log_row(3, kind="progress"),
            log_row(4, kind="access", level=None),
            log_row(5, kind="mark", level=None),
            log_row(6, kind="traceback", level=None),
        )
    )
    buffer.filter(wanted)
    assert [line.seq for line in buffer.lines] == kept


def test_search_goes_round_and_looks_into_folded_tracebacks() -> None:
    buffer = LogBuffer()
    buffer.update((log_row(1, "Hit here"), *traceback_rows(2), log_row(6, "nothing"), log_row(7, "a HIT")))
    assert buffer.find("hit", 0, 1) == 0
    assert buffer.find("hit", 1, 1) == 3
    assert buffer.find("hit", -1, -1) == 3
    assert buffer.find("valueerror", 0, 1) == 1
    assert buffer.find("absent", 0, 1) is None
    assert buffer.toggle_if_folded(1)
    assert buffer.find("valueerror", 0, 1) == 5


def test_date_and_milliseconds_are_not_shown() -> None:
    assert shown_text(log_row(1, "2026-11-29 14:48:18,123 - WARNING - full - stop")) == "14:48:18 WARNING full - stop"
    assert shown_text(log_row(1, "2026-11-29 is a date")) == "2026-11-29 is a date"


KINDS = st.sampled_from(["record", "progress", "traceback", "traceback", "bar", "mark"])
STEPS = st.lists(
    st.tuples(st.lists(KINDS, max_size=6), st.integers(0, 3), st.booleans(), st.booleans(), st.integers(-1, 12)),
    max_size=12,
)


@given(STEPS, st.sampled_from(["all", "warnings", "quiet"]))
def test_step_by_step_shows_what_starting_over_shows(steps: list[Any], wanted: LogFilter) -> None:
    buffer = LogBuffer(wanted)
    rows: list[LogRow] = []
    seq = 0
    for kinds, drop, own, replace, toggled in steps:
        if replace and rows and rows[-1].kind == "bar":
            rows.pop()
        for kind in kinds:
            seq += 1
            rows.append(log_row(seq, f"line {seq}", kind=kind))
        if own and len(rows) > 2:
            rows[-2] = msgspec.structs.replace(rows[-2], request=seq)
        del rows[: min(drop, len(rows) - 1)]
        before = list(buffer.lines)
        change = buffer.update(tuple(rows))
        assert before[change.dropped : change.dropped + change.first] == buffer.lines[: change.first]
        buffer.toggle(toggled)
    shown = _flat(buffer.lines)
    again = LogBuffer(wanted)
    again.update(tuple(rows))
    kept = {row.seq for row in rows}
    # The oldest traceback keeps lines that the ring has dropped until it is gone as a whole.
    assert [row for row in shown if row.seq in kept] == _flat(again.lines)


def _flat(lines: list[Shown]) -> list[LogRow]:
    flat: list[LogRow] = []
    for line in lines:
        if isinstance(line, Fold):
            flat.extend(line.rows)
        elif line.kind != "traceback":
            flat.append(line)
    return flat
