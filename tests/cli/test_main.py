"""What holds for every command: how it ends when nobody reads its output any more, or there is no room for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.sessions import told, write

BROKEN_PIPE = 141
"""What a shell gives for a program that SIGPIPE ended."""


def closed(*words: str, errors_too: bool = False) -> tuple[int, bytes]:
    """Run a command into a pipe whose other end is closed; its status, and what it said to standard error."""
    read, write_end = os.pipe()
    os.close(read)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "mlxcache_tui.cli.main", *words],
            stdout=write_end,
            stderr=write_end if errors_too else subprocess.PIPE,
            check=False,
            timeout=120,
        )
    finally:
        os.close(write_end)
    return ended.returncode, ended.stderr or b""


@pytest.mark.parametrize(
    "words",
    [("sessions",), ("sessions", "--json", "-"), ("scenarios",), ("doctor", "--json", "-")],
    ids=" ".join,
)
def test_a_closed_pipe_is_no_mistake(words: tuple[str, ...]) -> None:
    assert closed(*words) == (BROKEN_PIPE, b"")


@pytest.mark.parametrize("to", [("--to", "csv"), ("--to", "session")], ids=" ".join)
def test_nor_is_it_for_an_export(to: tuple[str, ...], tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", told())
    assert closed("export", str(path), *to) == (BROKEN_PIPE, b"")


@pytest.mark.parametrize("more", [(), ("--json", "-")], ids=str)
def test_nor_for_a_comparison(more: tuple[str, ...], tmp_path: Path) -> None:
    paths = [str(write(tmp_path / f"{name}.jsonl", told())) for name in "ab"]
    status, said = closed("compare", *paths, *more)
    assert status == BROKEN_PIPE
    assert b"Traceback" not in said
    assert b"pipe" not in said


def test_nor_for_the_help() -> None:
    assert closed("--help")[1] == b""


def test_standard_error_may_be_closed_too() -> None:
    assert closed("export", "none", "--to", "csv", errors_too=True)[0] == BROKEN_PIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "mlxcache_tui.cli.main", "scenarios"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=120,
        )
    assert ended.returncode == 2
    assert ended.stderr == b"mlxcache-tui: the output cannot be written: no space left on device\n"
