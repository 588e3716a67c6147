"""`replay` as a command: what it takes, and what it refuses before the screen opens."""

from pathlib import Path

import pytest

from mlxcache_tui.cli.main import main
from mlxcache_tui.cli.reports import comparison_reports
from support.sessions import told, write


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, float | None]]:
    """The recordings that would be shown; there is a terminal."""
    opened: list[tuple[Path, float | None]] = []

    class App:
        def __init__(self, path: Path, speed: float | None, comparison_reporter: object) -> None:
            assert comparison_reporter is comparison_reports
            opened.append((path, speed))

        def run(self) -> int:
            return 0

    monkeypatch.setattr("mlxcache_tui.ui.replay.ReplayApp", App)
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    return opened


@pytest.mark.parametrize(
    ("words", "speed"), [([], None), (["--speed", "2.5"], 2.5), (["--speed", "max"], float("inf"))]
)
def test_a_file_and_a_speed(
    tmp_path: Path, shown: list[tuple[Path, float | None]], words: list[str], speed: float | None
) -> None:
    path = write(tmp_path / "s.jsonl", told())
    assert main(["replay", str(path), *words]) == 0
    assert shown == [(path, speed)]


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "nan"])
def test_a_speed_is_a_number_above_0(speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay", "x", f"--speed={speed}"])
    assert ended.value.code == 2
    assert f"{speed}: expected a number above 0, or max" in capsys.readouterr().err


def test_what_is_no_recording_is_refused(
    tmp_path: Path, shown: list[tuple[Path, float | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(tmp_path / "none.jsonl")]) == 2
    assert "cannot be read: no such file" in capsys.readouterr().err
    (tmp_path / "x.jsonl").write_text("words\n")
    assert main(["replay", str(tmp_path / "x.jsonl")]) == 2
    assert "no session: line 1" in capsys.readouterr().err
    assert not shown


def test_without_a_terminal_it_names_the_other_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "s.jsonl", told())
    assert main(["replay", str(path)]) == 2
    assert "mlxcache-tui export FILE --to markdown" in capsys.readouterr().err
