"""Flags that the installed server lacks: refused before anything is started, in one line that names the nearest."""

from pathlib import Path

import pytest

from mlxcache_tui.cli import main, screen

HELP = """usage: mlx_lm.server [-h] [--model MODEL]

options:
  -h, --help            show this help message and exit
  --model MODEL         The model
  --kv-bits KV_BITS     Bits of the quantized cache
  --prompt-cache-size N  Most entries (default: 10)
"""
SCENARIO = """
title = "t"
[policies]
p = "Opened accessories can be returned only if they arrived damaged."
[server]
draft_model = "d"
[[steps]]
policy = "p"
user = "q"
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python whose mlx_lm.server prints this help and whose mlx-lm is 0.31.3; it starts no server."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\nif [ \"$1\" = -c ]; then echo 0.31.3; exit; fi\ncat <<'END'\n{HELP}END\n")
    path.chmod(0o700)
    return str(path)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--max-kv-size", "100"], "--max-kv-size is not in mlx-lm 0.31.3: no released server has it"),
        (["--bogus", "100"], "mlx-lm 0.31.3 has no --bogus"),
        (["--kv-bit", "4"], "mlx-lm 0.31.3 has no --kv-bit; did you mean --kv-bits?"),
    ],
)
@pytest.mark.parametrize("command", [["run", "return-policy"], ["serve"], []])
def test_an_unknown_flag_is_refused_before_the_start(
    command: list[str], flags: list[str], line: str, python: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([*command, "--demo", "tiny", "--python", python, "--", *flags]) == 2
    out, err = capsys.readouterr()
    assert (out, err.removeprefix("mlxcache-tui: ")) == ("", f"{line}\n")


def test_a_flag_of_the_scenario_that_is_not_here_is_refused_with_its_file(
    python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.toml"
    path.write_text(SCENARIO)
    assert main.main(["run", str(path), "--demo", "tiny", "--python", python]) == 2
    assert capsys.readouterr().err == f"{path}: mlx-lm 0.31.3 has no --draft-model; did you mean --model?\n"


def test_the_server_is_asked_once_for_the_flags_of_several_scenarios(
    python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "asked"
    Path(python).write_text(Path(python).read_text().replace("cat <<", f"echo help >>{asked}\ncat <<"))
    paths = [tmp_path / "one.toml", tmp_path / "two.toml"]
    for path in paths:
        path.write_text(SCENARIO)
    assert main.main(["run", *map(str, paths), "--demo", "tiny", "--python", python]) == 2
    assert [line.split(": ")[0] for line in capsys.readouterr().err.splitlines()] == list(map(str, paths))
    assert asked.read_text() == "help\n"


def test_a_known_flag_passes_and_a_usual_one_asks_nobody(tmp_path: Path, python: str) -> None:
    parser = main.build_parser(())
    args = parser.parse_args(["--demo", "tiny", "--python", python])
    args.server_flags = ["--kv-bits", "4"]
    assert screen.settings_of(args)[1] == ""
    args.python, args.server_flags = str(tmp_path / "nobody"), ["--prompt-cache-size", "2"]
    assert screen.settings_of(args)[1] == ""
