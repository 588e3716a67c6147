"""`run` and `scenarios` as commands, on an engine without a server: exit statuses, what goes where, what is refused."""

import argparse
import json
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mlxcache_tui.cli import run as run_command
from mlxcache_tui.cli import scenarios as scenarios_command
from mlxcache_tui.core.commands import AttachServer, ServerSpec, StartServer
from mlxcache_tui.core.events import Noticed
from mlxcache_tui.core.settings import Settings
from support.fake_engine import FakeEngine

SCENARIO = """
title = "Two questions"
[server]
prompt_cache_size = 3
[policies]
p = "A policy that is long enough to be worth keeping, since it is sent with every question that comes in."
[[steps]]
id = "a"
policy = "p"
user = "one"
[[steps]]
id = "b"
policy = "p"
user = "two"
expect = ["reason == 'hit'"]
"""


class Opened:
    """The engines that the command opened, and how."""

    def __init__(self) -> None:
        self.settings: list[Settings] = []
        self.engine = FakeEngine()

    @asynccontextmanager
    async def open_engine(self, settings: Settings) -> AsyncIterator[FakeEngine]:
        self.settings.append(settings)
        if isinstance(settings.start, AttachServer):
            self.engine.attach()
        yield self.engine

    @property
    def specs(self) -> list[ServerSpec]:
        return [command.spec for command in self.engine.commands if isinstance(command, StartServer)]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    here = Opened()
    monkeypatch.setattr(run_command, "open_engine", here.open_engine)
    return here


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(SCENARIO)
    return path


def call(*words: str | Path, flags: tuple[str, ...] = ()) -> int:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    run_command.add_parser(subparsers)
    scenarios_command.add_parser(subparsers)
    args = parser.parse_args([str(word) for word in words])
    args.server_flags = list(flags)
    status: int = args.run(args)
    return status


def test_json_on_standard_output_is_alone_there(
    opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("run", scenario, "--demo", "tiny", "--json", "-") == 0
    out, err = capsys.readouterr()
    whole = json.loads(out)
    assert [request["step"] for request in whole["requests"]] == ["a", "b"]
    assert "1 of 1 expectations held" in err
    assert opened.specs == [ServerSpec(model="demo:tiny", port=0, flags={"prompt_cache_size": 3})]


def test_flags_typed_win_over_the_scenario_and_the_sweep_over_both(
    opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(SCENARIO + "[sweep]\nprompt_cache_bytes = ['1MB', '2MB']\n")
    flags = ("--prompt-cache-size", "5", "--prompt-cache-bytes", "3MB")
    assert call("run", scenario, "--model", "m", flags=flags) == 0
    assert [spec.flags["prompt_cache_bytes"] for spec in opened.specs] == [1_000_000, 2_000_000]
    assert {int(spec.flags["prompt_cache_size"]) for spec in opened.specs} == {5}
    assert "two: one row a limit" in capsys.readouterr().err


def test_several_scenarios_in_one_call(
    opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report = tmp_path / "report.md"
    assert call("run", scenario, scenario, "--demo", "--json", "-", "--markdown", report) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2
    assert report.read_text().startswith("# Two questions\n")
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_each_run_is_a_session_of_its_own(opened: Opened, scenario: Path, tmp_path: Path) -> None:
    assert call("run", scenario, scenario, "--demo", "--save", tmp_path / "s.jsonl") == 0
    assert [settings.save_path for settings in opened.settings] == [
        str(tmp_path / "s.jsonl"),
        str(tmp_path / "s-2.jsonl"),
    ]


def test_a_session_of_a_later_run_that_is_there_already_is_told_before_the_first(
    tmp_path: Path, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s-2.jsonl").touch()
    assert call("run", scenario, scenario, "--demo", "--save", tmp_path / "s.jsonl") == 2
    assert f"{tmp_path / 's-2.jsonl'} is there already" in capsys.readouterr().err


def test_what_the_engine_warns_of_is_told(opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened.engine.emit(
        Noticed(at_ns=1, origin="program", level="warning", pane="server", text="the session is not recorded")
    )
    assert call("run", scenario, "--demo") == 0
    assert "note: the session is not recorded" in capsys.readouterr().err


def test_a_failed_expectation_is_1(opened: Opened, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("'hit'", "'first'"))
    assert call("run", scenario, "--demo") == 1


def test_the_server_that_is_used_as_it_runs_is_named(
    opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("run", scenario) == 0
    chosen, _, used = capsys.readouterr().err.splitlines()[:3]
    assert chosen.startswith("no --demo, --model or --url: a server that runs at http://127.0.0.1:8080 is used")
    assert used.startswith("  using http://")
    assert used.endswith("not started for this run, what its cache holds is not known")


def test_a_server_that_does_not_start_is_3(opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened.engine = FakeEngine(starts=False)
    assert call("run", scenario, "--demo", "--json", "-") == 3
    out, err = capsys.readouterr()
    assert (json.loads(out)["reached"], json.loads(out)["lost"]) == (False, "port 8080 is taken")
    assert "no server: port 8080 is taken" in err


def test_every_mistake_is_told_before_anything_is_sent(
    opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(SCENARIO + "concurency = 2\nrepeat = 0\n")
    assert call("run", scenario, "no-such-thing", "--demo") == 2
    err = capsys.readouterr().err
    assert f"{scenario}:16: steps[2].concurency: unknown key; did you mean concurrency?" in err
    assert f"{scenario}:17: steps[2].repeat" in err
    assert "no-such-thing: no file and no shipped scenario" in err
    assert opened.settings == []


def test_check_only_checks(opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("run", scenario, "--check") == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", "two: 2 steps, 2 requests, no mistakes\n")
    assert opened.settings == []


def test_check_tells_what_comes_of_another_model(
    opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(SCENARIO + 'model = "some/model"\n')
    assert call("run", scenario, "--check") == 0
    assert "  b: asks for the model some/model; the server drops the one it has" in capsys.readouterr().err
    assert opened.settings == []


def test_an_attached_server_is_not_restarted(
    opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(SCENARIO + "restart = true\n")
    assert call("run", scenario, "--url", "http://127.0.0.1:1") == 2
    assert f"{scenario}:16: steps.b.restart: a server that we did not start" in capsys.readouterr().err


def test_an_attached_server_is_used_as_it_is_and_compared(
    opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened.engine = FakeEngine(observed=False)
    assert call("run", scenario, "--url", "http://127.0.0.1:1", "--log", "x.log") == 0
    assert opened.settings[0].start == AttachServer(url="http://127.0.0.1:1", log_path="x.log")
    assert opened.specs == []
    assert "prompt_cache_size is not known, the scenario says 3" in capsys.readouterr().err


REFUSED: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "two on standard output": (("--demo", "--json", "-", "--markdown", "-"), (), "standard output takes one"),
    "flags for another's server": (("--url", "http://x"), ("--prompt-cache-size", "2"), "add --demo or --model"),
    "a size that cannot be read": (("--demo",), ("--prompt-cache-bytes", "8Gigs"), "is a size such as"),
    "a log of our own server": (("--demo", "--log", "x"), (), "--log goes with --url"),
    "a folder as the file": (("--demo", "--json", "/"), (), "is a folder"),
    "no such folder": (("--demo", "--json", "/nowhere/x.json"), (), "there is no folder /nowhere"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_before_the_run(
    opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    words, flags, expected = REFUSED[name]
    assert call("run", scenario, *words, flags=flags) == 2
    assert expected in capsys.readouterr().err
    assert opened.settings == []


@pytest.mark.parametrize("address", ["x y", "ftp://127.0.0.1", "http://127.0.0.1:70000", "http://:8080"])
def test_a_wrong_address_is_refused_early(
    opened: Opened, scenario: Path, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    with pytest.raises(SystemExit) as exited:
        call("run", scenario, "--url", address)
    assert exited.value.code == 2
    assert "it should look like http://127.0.0.1:8080" in capsys.readouterr().err
    assert opened.settings == []


def test_a_report_can_go_to_a_device(opened: Opened, scenario: Path) -> None:
    assert call("run", scenario, "--demo", "--json", "/dev/null") == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_the_model_of_a_scenario_is_started(opened: Opened, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("[server]", "[server]\nmodel = 'some/model'"))
    assert call("run", scenario) == 0
    assert opened.specs == [ServerSpec(model="some/model", port=0, flags={"prompt_cache_size": 3})]


def test_the_list_has_one_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("scenarios") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert any(line.startswith("return-policy ") for line in out.splitlines())
