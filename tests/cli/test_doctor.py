"""`doctor` says what is here, as lines and as JSON."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest

from mlxcache_tui.cli import doctor
from mlxcache_tui.cli.main import main
from mlxcache_tui.sources.server_help import read_server_help

KEYS = {
    "program",
    "python",
    "server",
    "machine",
    "memory",
    "fast_blas",
    "demo_models",
    "port_8080",
    "terminal",
    "folders",
}


def test_json_is_one_object_and_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "read_server_help", partial(read_server_help, time_limit_s=120))
    assert main(["doctor", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == KEYS | {"schema"}
    assert found["server"].startswith("mlx-lm ")
    assert set(found["folders"]) == {"state", "config", "cache", "runtime"}


def test_a_python_without_a_server_is_told_and_exits_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--python", "/nowhere/python"]) == 3
    assert "✗ cannot run /nowhere/python" in capsys.readouterr().out


def test_a_file_that_cannot_be_written_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--python", sys.executable, "--json", str(tmp_path / "no" / "file.json")]) == 2
    assert "cannot write" in capsys.readouterr().err
