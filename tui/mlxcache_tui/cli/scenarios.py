"""`mlxcache-tui scenarios`: the scenarios that ship, one line each."""

import argparse
import sys

from mlxcache_tui.cli.width import terminal_width
from mlxcache_tui.core.scenario_check import ScenarioError
from mlxcache_tui.report.format import folded
from mlxcache_tui.store.scenario_files import load_scenario, shipped_names


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `scenarios`."""
    parser = subparsers.add_parser("scenarios", help="list the scenarios that ship")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:  # noqa: ARG001 - every command has this form
    """Print name and title of each; a file that was broken by hand is told on standard error."""
    names = shipped_names()
    longest, width = max(map(len, names), default=0), terminal_width(sys.stdout)
    status = 0
    for name in names:
        try:
            scenario = load_scenario(name)
        except ScenarioError as error:
            print(error, file=sys.stderr)
            status = 2
            continue
        about = f": {scenario.about}" if scenario.about else ""
        for line in folded([f"{name:<{longest}}  {scenario.title}{about}"], width, indent=longest + 2):
            print(line)
    return status
