"""`mlxcache-tui`: the command line. Words behind `--` go to the server as they are."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

from mlxcache_tui.cli import compare, doctor, export, replay, run, scenarios, screen, sessions

EPILOG = "Words behind -- are flags of mlx_lm.server, for instance: mlxcache-tui --demo -- --prompt-cache-size 2"


def build_parser() -> argparse.ArgumentParser:
    """The whole command line, without the words behind `--`."""
    parser = argparse.ArgumentParser(
        prog="mlxcache-tui",
        description="See what mlx_lm.server does with its prompt cache. Without arguments: watch the server at "
        "127.0.0.1:8080 if one answers there, else choose what to start.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"mlxcache-tui {version('mlxcache-tui')}")
    screen.add_arguments(parser)
    subparsers = parser.add_subparsers(title="without the screen", metavar="")
    for command in (run, scenarios, compare, replay, sessions, export, doctor):
        command.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status (design: 0, 1, 2, 3, 130)."""
    words = list(sys.argv[1:] if argv is None else argv)
    cut = words.index("--") if "--" in words else len(words)
    args = build_parser().parse_args(words[:cut])
    args.server_flags = words[cut + 1 :]
    try:
        status: int = args.run(args)
    except KeyboardInterrupt:
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
