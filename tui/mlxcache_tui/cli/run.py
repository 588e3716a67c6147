"""`mlxcache-tui run`: scenarios without a screen. Standard output is for a report, standard error for progress."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from mlxcache_tui.cli.arguments import server_url
from mlxcache_tui.cli.flags import help_for, server_flags
from mlxcache_tui.cli.screen import DEMO_KINDS
from mlxcache_tui.core.commands import AttachServer, ServerSpec
from mlxcache_tui.core.flags import missing_names
from mlxcache_tui.core.results import RunResult
from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_check import Mistake, ScenarioError, attached_mistakes
from mlxcache_tui.core.scenario_plan import model_notes
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.text import clean
from mlxcache_tui.engine.progress import Progress
from mlxcache_tui.engine.runner import Runner
from mlxcache_tui.engine.setup import open_engine
from mlxcache_tui.report.json import to_json
from mlxcache_tui.report.markdown import to_markdown
from mlxcache_tui.report.text import progress_lines, run_lines, sweep_lines
from mlxcache_tui.store.files import write_report
from mlxcache_tui.store.recorder import save_problem
from mlxcache_tui.store.scenario_files import load_scenario

DONE, FAILED, BAD_INPUT, NO_SERVER, INTERRUPTED = 0, 1, 2, 3, 130
DEFAULT_URL = "http://127.0.0.1:8080"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What to run and where: `model` starts a server of ours for each run, else `url` is attached to."""

    scenarios: tuple[Scenario, ...]
    model: str | None
    url: str
    log: str | None
    python: str | None
    flags: dict[str, Any]
    save: str | None

    @property
    def several(self) -> bool:
        """Whether the JSON is a list of runs."""
        return len(self.scenarios) > 1 or any(scenario.sweep for scenario in self.scenarios)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `run`. Flags for the server stand behind `--` and arrive as `args.server_flags`."""
    parser = subparsers.add_parser("run", help="run scenarios without a screen")
    parser.add_argument("scenarios", nargs="+", metavar="SCENARIO", help="a file, or the name of one that ships")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--demo", nargs="?", const="smollm2", choices=DEMO_KINDS, help="start a server on a demo model")
    where.add_argument("--model", help="start a server on this model")
    where.add_argument("--url", type=server_url, help=f"use a server that runs already (default {DEFAULT_URL})")
    parser.add_argument("--log", metavar="FILE", help="with --url: the file that the server's output goes to")
    parser.add_argument("--python", metavar="PROGRAM", help="the Python that has mlx_lm (default: this one)")
    parser.add_argument("--json", metavar="FILE", help="write the measurements as JSON (- is standard output)")
    parser.add_argument("--markdown", metavar="FILE", help="write a report in Markdown (- is standard output)")
    parser.add_argument("--save", metavar="FILE", help="record the session here (of several runs: FILE, FILE-2 …)")
    parser.add_argument("--check", action="store_true", help="only check the files")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    scenarios, mistakes = _load(args.scenarios)
    wanted = _wanted(args, scenarios)
    if wanted.model is None and not args.check:
        mistakes += [mistake for scenario in scenarios for mistake in attached_mistakes(scenario)]
    words = getattr(args, "server_flags", [])
    flags, problems = _server_flags(words, wanted, args.python, asks=not args.check and not mistakes)
    problems = [*map(str, mistakes), *problems, *_output_problems(args, _count(scenarios))]
    if args.log and wanted.model is not None:
        problems.append("--log goes with --url: the output of a server that we start is read anyway")
    for problem in problems:
        _say(problem)
    if problems:
        return BAD_INPUT
    if args.check:
        for scenario in scenarios:
            _say(f"{scenario.name}: {_extent(scenario)}, no mistakes")
            for note in model_notes(scenario, wanted.model):
                _say(f"  {note}")
        return DONE
    if wanted.model is None and args.url is None:
        _say(f"no --demo, --model or --url: a server that runs at {DEFAULT_URL} is used, with what its cache holds")
    runs = asyncio.run(_run_all(msgspec.structs.replace(wanted, flags=flags)))
    return _report(args, wanted, runs)


def _load(names: Sequence[str]) -> tuple[list[Scenario], list[Mistake]]:
    scenarios: list[Scenario] = []
    mistakes: list[Mistake] = []
    for name in names:
        try:
            scenarios.append(load_scenario(name))
        except ScenarioError as error:
            mistakes += error.mistakes
    return scenarios, mistakes


def _wanted(args: argparse.Namespace, scenarios: Sequence[Scenario]) -> Wanted:
    """The server that the command line names; else the model that a scenario names; else what answers at port 8080."""
    model = f"demo:{args.demo}" if args.demo else args.model
    if model is None and args.url is None:
        model = next((scenario.server["model"] for scenario in scenarios if "model" in scenario.server), None)
    return Wanted(
        scenarios=tuple(scenarios),
        model=model,
        url=args.url or DEFAULT_URL,
        log=args.log,
        python=args.python,
        flags={},
        save=args.save,
    )


def _server_flags(
    words: Sequence[str], wanted: Wanted, python: str | None, *, asks: bool
) -> tuple[dict[str, Any], list[str]]:
    """The flags behind `--`, and what the installed server would refuse of them and of the scenarios' own flags.

    `asks` false: nothing will be started, so the scenarios' flags are not held against the server that is here.
    """
    if wanted.model is None:
        return {}, ["flags behind -- are for a server that we start: add --demo or --model"] if words else []
    flags, problems = server_flags(words, python)
    if asks and not problems:
        problems = _refused_flags(wanted.scenarios, python)
    return flags, problems


def _refused_flags(scenarios: Sequence[Scenario], python: str | None) -> list[str]:
    """A line for each flag in a scenario that the installed server does not have; values were checked with the file."""
    named = {scenario.source: _flag_names(scenario) for scenario in scenarios}
    server = help_for([name for names in named.values() for name in names], python)
    return [f"{source}: {line}" for source, names in named.items() for line in missing_names(names, server)]


def _flag_names(scenario: Scenario) -> list[str]:
    names = {*scenario.server, *scenario.sweep, *(name for step in scenario.steps for name in step.restart or ())}
    return sorted(names - {"model"})


def _extent(scenario: Scenario) -> str:
    runs = len(scenario.combinations())
    requests = sum(step.count for step in scenario.steps) * runs
    steps = len(scenario.steps)
    times = f", {runs} runs" if runs > 1 else ""
    return f"{steps} step{'s' * (steps != 1)}, {requests} request{'s' * (requests != 1)}{times}"


# --- running ---------------------------------------------------------------------------------------------------------


async def _run_all(wanted: Wanted) -> list[RunResult]:
    """Every scenario under every set of its limits, until one is interrupted or the server is lost."""
    _interrupt_on(signal.SIGTERM, signal.SIGHUP)
    plan = [(scenario, combination) for scenario in wanted.scenarios for combination in scenario.combinations()]
    runs: list[RunResult] = []
    for number, (scenario, combination) in enumerate(plan, 1):
        runs.append(await _run_one(wanted, scenario, combination, _numbered(wanted.save, number)))
        swept = scenario.combinations()
        if combination and (combination == swept[-1] or not runs[-1].is_whole):
            for line in sweep_lines(runs[-swept.index(combination) - 1 :]):
                _say(line)
        if not runs[-1].is_whole:
            break
    return runs


async def _run_one(wanted: Wanted, scenario: Scenario, combination: dict[str, Any], save: str | None) -> RunResult:
    """One run, in a session of its own: what it finds does not depend on what ran before it in the same call."""
    _say("  ".join((f"■ {scenario.name}", *(f"{name}={value}" for name, value in combination.items()))))
    attach = AttachServer(url=wanted.url, log_path=wanted.log) if wanted.model is None else None
    async with open_engine(Settings(start=attach, save_path=save, bounded=False)) as engine:
        runner = Runner(
            engine,
            scenario,
            spec=_spec(wanted, scenario, combination),
            combination=combination,
            clock=lambda: datetime.now().astimezone(),
            listener=_print_progress,
        )
        result = await runner.run()
        for notice in engine.state.notices:
            if notice.level != "info":
                _say(f"  note: {notice.text}")
    for line in run_lines(result):
        _say(line)
    return result


def _numbered(path: str | None, number: int) -> str | None:
    """The session file of a run: the one named for the first, `name-2` and so on for those after it.

    What is no file (a pipe, /dev/null) takes all of them.
    """
    if path is None or number == 1 or (Path(path).exists() and not Path(path).is_file()):
        return path
    return str(Path(path).with_stem(f"{Path(path).stem}-{number}"))


def _interrupt_on(*signals: signal.Signals) -> None:
    """A polite end and a closed SSH session stop a run as ctrl+c does: what was measured is kept."""
    task = asyncio.current_task()
    assert task is not None
    for number in signals:
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)


def _spec(wanted: Wanted, scenario: Scenario, combination: dict[str, Any]) -> ServerSpec | None:
    """The server for one run: flags typed win over [server], the sweep's over both. Port 0: any free one."""
    if wanted.model is None:
        return None
    flags = {name: value for name, value in scenario.server.items() if name != "model"} | wanted.flags | combination
    return ServerSpec(model=wanted.model, port=0, flags=flags, python=wanted.python)


def _print_progress(progress: Progress) -> None:
    for line in progress_lines(progress):
        _say(line)


def _say(line: str) -> None:
    print(clean(line), file=sys.stderr, flush=True)


# --- the end ---------------------------------------------------------------------------------------------------------


def _report(args: argparse.Namespace, wanted: Wanted, runs: Sequence[RunResult]) -> int:
    """Write what was asked for; returns the exit status."""
    status = DONE
    if not all(result.held for result in runs):
        status = FAILED
    if runs and runs[-1].lost is not None:
        status = NO_SERVER
    if runs and runs[-1].interrupted:
        status = INTERRUPTED
    reports: list[tuple[str, str]] = []
    if args.json is not None:
        reports.append((args.json, to_json(runs, several=wanted.several)))
    if args.markdown is not None:
        reports.append((args.markdown, to_markdown(runs)))
    for target, text in sorted(reports, key=lambda report: report[0] == "-"):  # a closed pipe loses no file
        try:
            write_report(target, text)
        except OSError as error:
            _say(f"{target}: cannot be written: {(error.strerror or str(error)).lower()}")
            status = status or BAD_INPUT
    return status


def _count(scenarios: Sequence[Scenario]) -> int:
    return sum(len(scenario.combinations()) for scenario in scenarios)


def _output_problems(args: argparse.Namespace, count: int) -> list[str]:
    """What would keep the reports and the sessions of `count` runs from being written, told before the first one."""
    problems = []
    if args.json == "-" and args.markdown == "-":
        problems.append("--json - and --markdown -: standard output takes one of them; give the other a file")
    sessions = dict.fromkeys(filter(None, (_numbered(args.save, number) for number in range(1, count + 1))))
    problems += [problem for target in sessions if (problem := save_problem(target))]
    for target in (args.json, args.markdown):
        if target is None or target == "-":
            continue
        path = Path(target)
        if path.is_dir():
            problems.append(f"{target}: is a folder; expected a file")
        elif not path.parent.is_dir():
            problems.append(f"{target}: there is no folder {path.parent}")
        elif not os.access(path if path.exists() else path.parent, os.W_OK):
            problems.append(f"{target}: cannot be written: permission denied")
    return problems
