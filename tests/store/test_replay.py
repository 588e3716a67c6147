"""A session file is read to its last whole line, and says what it could not read."""

from pathlib import Path

import pytest

from mlxcache_tui.core.codec import encode_event
from mlxcache_tui.core.events import LogLine, LogRead, Noticed, SessionStarted
from mlxcache_tui.store.replay import SessionReader, read_session

STARTED = SessionStarted(
    at_ns=1, origin="program", protocol=1, program="0.1.0", started="2026-11-29T14:48:03+01:00", wall_ns=5, mode="none"
)
LOG = LogRead(at_ns=2, origin="log", lines=(LogLine(text="日本", kind="other"),))
NOTICED = Noticed(at_ns=3, origin="program", level="info", pane="log", text="x")
EVENTS = (STARTED, LOG, NOTICED)
WHOLE = b"".join(map(encode_event, EVENTS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def test_what_was_written_is_read(path: Path) -> None:
    path.write_bytes(WHOLE)
    session = read_session(path)
    assert (session.events, session.damage, session.unknown) == (EVENTS, None, 0)


def test_an_empty_file_is_a_session_without_events(path: Path) -> None:
    path.write_bytes(b"")
    assert read_session(path).events == ()
    assert read_session(path).damage is None


def test_cut_anywhere_it_is_read_to_the_last_whole_line(path: Path) -> None:
    for size in range(len(WHOLE)):
        path.write_bytes(WHOLE[:size])
        session = read_session(path)
        lines = WHOLE[:size].count(b"\n")
        assert session.events == EVENTS[:lines]
        told = f"line {lines + 1} has no end: the recording was interrupted"
        assert session.damage == (None if WHOLE[:size].endswith(b"\n") or not size else told)


def test_kinds_of_a_later_version_are_counted(path: Path) -> None:
    path.write_bytes(WHOLE + b'{"t":"MoonRose","at_ns":4,"origin":"log"}\n' * 2 + encode_event(NOTICED))
    session = read_session(path)
    assert session.events == (*EVENTS, NOTICED)
    assert (session.unknown, session.damage) == (2, None)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"\x00\x00\x00\n", ""),
        (b"{}\n", ""),
        (b'"x"\n', ""),
        (b'{"t":"Noticed","at_ns":"late","origin":"log"}\n', "Expected `int`, got `str` - at `$.at_ns`"),
    ],
)
def test_it_is_read_up_to_damage_inside_and_says_where(path: Path, line: bytes, told: str) -> None:
    path.write_bytes(WHOLE + line + b"\n" + encode_event(NOTICED))
    session = read_session(path)
    assert session.events == EVENTS
    assert session.damage is not None
    assert session.damage.startswith(f"line 4: left out from here on (3 lines): {told}")
    assert "\n" not in session.damage


def test_much_damage_is_still_one_line(path: Path) -> None:
    path.write_bytes(b"x\n" * 5 + b"cut")
    damage = read_session(path).damage
    assert damage is not None
    assert damage.startswith("line 1: left out from here on (5 lines): ")


def test_read_in_pieces_it_ends_at_the_same_place(path: Path) -> None:
    path.write_bytes(WHOLE + b"x\n" + WHOLE)
    reader = SessionReader(path)
    reader.look()
    events = []
    while reader.left:
        events += reader.read(2)
    with path.open("ab") as file:
        file.write(WHOLE)
    assert not reader.look()
    assert (tuple(events), reader.read()) == (EVENTS, [])
    damage = reader.damage(growing=True)
    assert damage is not None
    assert damage.startswith("line 4: left out from here on (7 lines): ")


def test_no_such_file_is_an_os_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_session(path)


def test_a_file_from_somewhere_else_carries_no_terminal_commands(path: Path) -> None:
    hostile = LogRead(at_ns=2, origin="log", lines=(LogLine(text="\x1b]52;c;aGk=\x07x\x1b[2J", kind="other"),))
    path.write_bytes(encode_event(hostile))
    assert read_session(path).events == (LogRead(at_ns=2, origin="log", lines=(LogLine(text="x", kind="other"),)),)
