"""Tables are as wide as the terminal that they are printed on."""

import fcntl
import os
import struct
import termios
from pathlib import Path

import pytest

from mlxcache_tui.cli import sessions as sessions_command
from mlxcache_tui.cli.main import main
from mlxcache_tui.cli.width import terminal_width
from mlxcache_tui.core.text import cell_width
from mlxcache_tui.store.paths import sessions_dir
from support.sessions import told, write


def test_the_width_is_that_of_the_streams_own_terminal() -> None:
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb"), os.fdopen(theirs, "w") as stream:
        for columns in (67, 0):
            fcntl.ioctl(stream, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            assert terminal_width(stream) == (columns or None)


def test_what_is_no_terminal_has_no_width(tmp_path: Path) -> None:
    with (tmp_path / "x").open("w") as stream:
        assert terminal_width(stream) is None


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_list_of_sessions_fits(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(sessions_dir() / "2026-11-29T21-49-25-4f5e.jsonl", told())
    monkeypatch.setattr(sessions_command, "terminal_width", lambda _: columns)
    assert main(["sessions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_width, lines)) <= columns
    assert lines[1].startswith("2026-11-29T21-49-25-4f5e")
