"""`sessions` lists and deletes; nothing goes without a name, and a yes."""

import json
import os
from pathlib import Path

import pytest

from mlxcache_tui.cli.main import main
from mlxcache_tui.store.paths import sessions_dir
from mlxcache_tui.store.recorder import Recorder
from support.sessions import told, write


@pytest.fixture
def two() -> list[Path]:
    """Two sessions, one of them old."""
    made = [write(sessions_dir() / f"{name}.jsonl", told()) for name in ("new", "old")]
    for path, age in zip(made, (10, 9 * 86_400), strict=True):
        at = path.stat().st_mtime - age
        os.utime(path, (at, at))
    return made


def test_the_list_says_what_is_in_each_and_how_much_they_take(
    two: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions"]) == 0
    out = capsys.readouterr().out
    size = sum(path.stat().st_size for path in two)
    assert "127.0.0.1:8080" in out
    assert f"2 sessions, {size / 1000:.1f} kB in {sessions_dir()}" in out
    assert "--older-than DAYS" in out


def test_the_list_tells_warmed_requests_and_damage(capsys: pytest.CaptureFixture[str]) -> None:
    story = told()
    story.compose("w1", purpose="warm", warmup=True)
    path = write(sessions_dir() / "s.jsonl", story)
    with path.open("ab") as file:
        file.write(b"\x00\n")
    assert main(["sessions"]) == 0
    out = capsys.readouterr().out
    assert " 4 (+1 warmed) " in out
    assert f"damaged: line {len(story.events) + 1}" in out


def test_the_list_as_json(two: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "--json", "-"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert [session["requests"] for session in whole["sessions"]] == [4, 4]


def test_a_list_that_cannot_be_written_is_one_line(
    two: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", "--json", str(tmp_path / "none" / "list.json")]) == 2
    assert "cannot be written: no such file or directory" in capsys.readouterr().err


def test_none_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions"]) == 0
    assert "no session was recorded yet" in capsys.readouterr().out


def test_only_what_is_named_is_deleted(two: list[Path]) -> None:
    assert main(["sessions", "--delete", "new.jsonl", "--yes"]) == 0
    assert [path.exists() for path in two] == [False, True]


def test_only_what_is_old_is_deleted(two: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "--older-than", "7", "--yes"]) == 0
    assert [path.exists() for path in two] == [True, False]
    assert main(["sessions", "--older-than", "7", "--yes"]) == 0
    assert "nothing was deleted" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "left"), [("y", False), ("n", True), ("", True)])
def test_it_asks(two: list[Path], answer: str, left: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return answer

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", ask)
    assert main(["sessions", "--delete", "old"]) == int(left)
    assert two[1].exists() is left
    assert "cannot be brought back" in asked[0]


def test_without_a_terminal_it_needs_a_yes(two: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "--delete", "old"]) == 2
    assert two[1].exists()
    assert "add --yes" in capsys.readouterr().err


def test_what_is_not_there_or_being_recorded_is_refused(two: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder(sessions_dir() / "now.jsonl")
    for event in told().events:
        recorder.append(event)
    assert main(["sessions", "--delete", "now", "never", "--yes"]) == 2
    recorder.close()
    err = capsys.readouterr().err
    assert "no session is called never" in err
    assert "now is being recorded" in err
    assert all(path.exists() for path in two)
    assert main(["sessions", "--older-than", "-1"]) == 2
