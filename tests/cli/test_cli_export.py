"""`export` writes to standard output or a file, and says what it could not read."""

from pathlib import Path

import pytest

from mlxcache_tui.cli.main import main
from support.sessions import told, write


def test_standard_output_holds_the_export_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "s.jsonl", told())
    assert main(["export", str(path), "--to", "csv"]) == 0
    out = capsys.readouterr()
    assert out.out.startswith("id,step,policy")
    assert out.err == ""


def test_a_file_is_private_and_redacted(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", told())
    target = tmp_path / "out.json"
    assert main(["export", str(path), "--to", "json", "--redact", "--output", str(target)]) == 0
    assert "zebra" not in target.read_text()
    assert target.stat().st_mode & 0o077 == 0


def test_damage_is_told_and_the_rest_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "s.jsonl", told())
    path.write_bytes(path.read_bytes()[:-5])
    assert main(["export", str(path), "--to", "mooncake"]) == 0
    assert "has no end: the recording was interrupted; what could be read is exported" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "told_so"),
    [(None, "cannot be read: no such file"), (b"", "the file is empty"), (b"x\n", "no session: line 1")],
)
def test_what_is_no_session_is_refused(
    tmp_path: Path, content: bytes | None, told_so: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.jsonl"
    if content is not None:
        path.write_bytes(content)
    assert main(["export", str(path), "--to", "json"]) == 2
    assert told_so in capsys.readouterr().err


def test_a_bad_target_or_block_size_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", told())
    assert main(["export", str(path), "--to", "csv", "--output", str(tmp_path / "no" / "x")]) == 2
    assert main(["export", str(path), "--to", "mooncake", "--block-size", "0"]) == 2
