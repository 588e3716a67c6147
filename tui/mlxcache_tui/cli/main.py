"""`mlxcache-tui`: the command line. Words behind `--` go to the server as they are."""

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from mlxcache_tui.cli import screen
from mlxcache_tui.store.files import OutputClosedError

COMMANDS = ("serve", "run", "scenarios", "compare", "replay", "sessions", "export", "doctor")
BROKEN_PIPE = 141
"""128 + SIGPIPE: how other programs end when nobody reads their output any more."""
EPILOG = "Words behind -- are flags of mlx_lm.server, for instance: mlxcache-tui --demo -- --prompt-cache-size 2"


def build_parser(commands: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The command line with these commands, without the words behind `--`."""
    parser = _Parser(
        prog="mlxcache-tui",
        description="See what mlx_lm.server does with its prompt cache. Without arguments: watch the server at "
        "127.0.0.1:8080 if one answers there, else choose what to start.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    screen.add_arguments(parser)
    if commands:
        subparsers = parser.add_subparsers(title="without the screen", metavar="COMMAND")
        for name in commands:
            importlib.import_module(f"mlxcache_tui.cli.{name}").add_parser(subparsers)
    return parser


def _commands_of(words: Sequence[str]) -> Sequence[str]:
    """The commands that the words may mean. None for the screen alone: their imports would take longer than its own."""
    named = bool(words) and not words[0].startswith("-")
    return COMMANDS if named or not {"-h", "--help", *COMMANDS}.isdisjoint(words) else ()


class _Parser(argparse.ArgumentParser):
    """Says where flags of the server belong: in front of `--` they are the likeliest mistake."""

    def error(self, message: str) -> NoReturn:
        hint = "; flags of mlx_lm.server stand behind --" if message.startswith("unrecognized") else ""
        super().error(message + hint)


class _Version(argparse.Action):
    """Looks the version up only when it is asked for: that takes longer than the whole command line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        parser.exit(message=f"mlxcache-tui {version('mlxcache-tui')}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status (design: 0, 1, 2, 3, 130), or what a shell gives for a closed pipe."""
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except (BrokenPipeError, OutputClosedError):
        _let_go_of_output()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _let_go_of_output()
        print(f"mlxcache-tui: the output cannot be written: {os.strerror(errno.ENOSPC).lower()}", file=sys.stderr)
        return 2


def _run(words: Sequence[str]) -> int:
    cut = words.index("--") if "--" in words else len(words)
    args = build_parser(_commands_of(words[:cut])).parse_args(words[:cut])
    args.server_flags = words[cut + 1 :]
    status: int = args.run(args)
    return status


def _let_go_of_output() -> None:
    """Nobody reads any more (`… | head`), or the disk is full: what is left goes nowhere, or the end would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
