"""`mlxcache-tui compare`: two sessions or runs side by side, with a verdict that a script can act on."""

import argparse
import sys

from mlxcache_tui.cli.width import terminal_width
from mlxcache_tui.core.compare import TOO_FEW, Comparison, compare
from mlxcache_tui.core.text import clean
from mlxcache_tui.engine.recorded import read_side
from mlxcache_tui.report.compare import comparison_json, comparison_lines, comparison_markdown
from mlxcache_tui.store.files import write_report

BAD_INPUT = 2
STATUS = {"better": 0, "same": 0, "worse": 1, "inconclusive": 4}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `compare`."""
    parser = subparsers.add_parser(
        "compare",
        help="is B worse than A? two sessions, or two results of run --json",
        epilog="Exit status: 0 no worse, 1 worse, 2 bad input or not comparable, 4 inconclusive. Give several runs a "
        f"side (a1.json,a2.json,a3.json), taken in turns with the other's: {TOO_FEW}.",
    )
    parser.add_argument("a", metavar="A", help="a session, a run's JSON, or several with commas between them")
    parser.add_argument("b", metavar="B", help="what is judged against A")
    parser.add_argument("--changed", action="append", default=[], metavar="FLAG", help="a difference that was meant")
    parser.add_argument("--json", metavar="FILE", help="write the comparison as JSON (- is standard output)")
    parser.add_argument("--markdown", metavar="FILE", help="write it in Markdown (- is standard output)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare; returns the exit status."""
    if args.json == "-" and args.markdown == "-":
        return _refuse("--json - and --markdown -: standard output takes one of them; give the other a file")
    try:
        sides = read_side(args.a), read_side(args.b)
    except ValueError as error:
        return _refuse(str(error))
    for side in sides:
        if side.note:
            _say(side.note)
    comparison = compare(sides[0].runs, sides[1].runs, [flag.lstrip("-") for flag in args.changed])
    try:
        _report(args, comparison)
    except OSError as error:
        return _refuse(f"{error.filename}: cannot be written: {(error.strerror or str(error)).lower()}")
    target = sys.stderr if "-" in (args.json, args.markdown) else sys.stdout
    for line in comparison_lines(comparison, (args.a, args.b), terminal_width(target)):
        print(clean(line), file=target)
    return BAD_INPUT if comparison.refused is not None else STATUS[comparison.verdict]


def _report(args: argparse.Namespace, comparison: Comparison) -> None:
    if args.json is not None:
        write_report(args.json, comparison_json(comparison))
    if args.markdown is not None:
        write_report(args.markdown, comparison_markdown(comparison, (args.a, args.b)))


def _refuse(line: str) -> int:
    _say(line)
    return BAD_INPUT


def _say(line: str) -> None:
    print(f"mlxcache-tui: {clean(line)}", file=sys.stderr)
