"""`mlxcache-tui export`: a recorded session for other tools, with or without what people wrote."""

import argparse
import secrets
import sys

from mlxcache_tui.core.mooncake import BLOCK_SIZE
from mlxcache_tui.core.text import clean
from mlxcache_tui.report.export import FORMATS, export
from mlxcache_tui.store.files import write_report
from mlxcache_tui.store.paths import PathsError
from mlxcache_tui.store.replay import read_session
from mlxcache_tui.store.sessions import session_file

DONE, BAD_INPUT = 0, 2


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `export`."""
    parser = subparsers.add_parser("export", help="a recorded session as a table, JSON, report or request trace")
    parser.add_argument("file", metavar="FILE", help="a session file, or a name that `sessions` lists")
    parser.add_argument("--to", required=True, choices=FORMATS, help="what to make; session: the file itself")
    parser.add_argument("--output", metavar="FILE", default="-", help="where to (default: standard output)")
    parser.add_argument("--redact", action="store_true", help="lengths and hashes instead of prompts and answers")
    parser.add_argument(
        "--block-size", type=int, default=BLOCK_SIZE, metavar="N", help=f"mooncake: tokens a block ({BLOCK_SIZE})"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the export; returns the exit status."""
    if args.block_size < 1:
        return _refuse(f"--block-size {args.block_size}: expected 1 or more")
    try:
        path = session_file(args.file)
        session = read_session(path)
    except PathsError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{args.file}: cannot be read: {(error.strerror or str(error)).lower()}")
    if not session.events:
        return _refuse(f"{args.file}: no session: {session.damage or 'the file is empty'}")
    if session.damage:
        _say(f"{path}: {session.damage}; what could be read is exported")
    salt = secrets.token_bytes(16) if args.redact else None
    text, note = export(session.events, path.stem, args.to, redact=salt, block_size=args.block_size)
    if note:
        _say(note)
    try:
        write_report(args.output, text)
    except OSError as error:
        return _refuse(f"{args.output}: cannot be written: {(error.strerror or str(error)).lower()}")
    return DONE


def _refuse(line: str) -> int:
    _say(line)
    return BAD_INPUT


def _say(line: str) -> None:
    print(f"mlxcache-tui: {clean(line)}", file=sys.stderr)
