"""`mlxcache-tui replay`: the screen over a recorded session."""

import argparse
import math
import sys

from mlxcache_tui.cli.reports import comparison_reports
from mlxcache_tui.core.text import clean
from mlxcache_tui.store.paths import PathsError
from mlxcache_tui.store.replay import SessionReader
from mlxcache_tui.store.sessions import session_file

BAD_INPUT = 2


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `replay`."""
    parser = subparsers.add_parser("replay", help="the screen over a recorded session")
    parser.add_argument("file", metavar="FILE", help="a session file, or a name that `sessions` lists")
    parser.add_argument(
        "--speed",
        type=_speed,
        metavar="N",
        help="play from the start, N times as fast as it was, or max (default: open at the end)",
    )
    parser.set_defaults(run=run)


def _speed(text: str) -> float:
    try:
        speed = math.inf if text == "max" else float(text)
    except ValueError:
        speed = math.nan
    if not speed > 0:
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0, or max")
    return speed


def run(args: argparse.Namespace) -> int:
    """Open the recording; returns the exit status."""
    try:
        path = session_file(args.file)
        reader = SessionReader(path)
        reader.look()
    except PathsError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{args.file}: cannot be read: {(error.strerror or str(error)).lower()}")
    if not reader.read(100):
        return _refuse(f"{args.file}: no session: {reader.damage() or 'the file is empty'}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):  # Textual draws on standard error
        return _refuse("the screen needs a terminal; without one use: mlxcache-tui export FILE --to markdown")
    from mlxcache_tui.ui.replay import ReplayApp

    return ReplayApp(path, args.speed, comparison_reports).run() or 0


def _refuse(line: str) -> int:
    print(f"mlxcache-tui: {clean(line)}", file=sys.stderr)
    return BAD_INPUT
