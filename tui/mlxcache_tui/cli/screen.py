"""`mlxcache-tui` itself: the screen, on a server that is started, attached to, or chosen in the start form."""

import argparse
import contextlib
import gc
import socket
import sys
from typing import Any

from mlxcache_tui.cli.arguments import port_number, server_url
from mlxcache_tui.cli.flags import server_flags
from mlxcache_tui.cli.reports import comparison_reports, run_reports
from mlxcache_tui.core.commands import AttachServer, ServerSpec
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.store.recorder import save_problem

BAD_INPUT = 2
HOST, PORT = "127.0.0.1", 8080
DEMO_KINDS = ("smollm2", "tiny", "tiny-thinking", "tiny-sliding")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the screen."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--demo", nargs="?", const="smollm2", choices=DEMO_KINDS, help="start a server on a demo model")
    where.add_argument("--model", help="start a server on this model: a name on Hugging Face, or a folder")
    where.add_argument("--url", type=server_url, help="attach to a server that runs already; it is never stopped")
    parser.add_argument("--log", metavar="FILE", help="with --url: the file that the server's output goes to")
    parser.add_argument("--watch", action="store_true", help="with --url: only watch, never send")
    parser.add_argument(
        "--port", type=port_number, help=f"port of the server to start (default {PORT}; 0: any free one)"
    )
    parser.add_argument("--python", metavar="PROGRAM", help="the Python that has mlx_lm (default: this one)")
    parser.add_argument("--keep-server", action="store_true", help="leave the server running when the program ends")
    parser.add_argument("--save", metavar="FILE", help="record the session here instead of in the state folder")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Open the screen; returns the exit status."""
    settings, problem = settings_of(args)
    if settings is None:
        print(f"mlxcache-tui: {problem}", file=sys.stderr)
        return BAD_INPUT
    if not (sys.stdin.isatty() and sys.stderr.isatty()):  # Textual draws on standard error
        print("mlxcache-tui: the screen needs a terminal; without one use: mlxcache-tui run SCENARIO", file=sys.stderr)
        return BAD_INPUT
    from mlxcache_tui.ui.app import MonitorApp

    app = MonitorApp(settings, run_reports, comparison_reports, opened=_spare_the_start)
    app.run()
    status = app.return_code or 0
    with contextlib.suppress(OSError):  # a terminal that hung up hears nothing
        for line in app.farewell:
            print(line, flush=True)
    return status


def _spare_the_start() -> None:
    """What the start made stays to the end: each look through it for garbage would hold up all threads for 80 ms."""
    gc.collect()
    gc.freeze()


def settings_of(args: argparse.Namespace) -> tuple[Settings | None, str]:
    """What the command line asks for; None and one line where it contradicts itself."""
    if args.url is None and (args.log or args.watch):
        return None, "--log and --watch go with --url"
    flags, problems = server_flags(args.server_flags, args.python)
    if problems:
        return None, "; ".join(problems)
    start = _start(args, flags)
    if flags and not isinstance(start, ServerSpec):
        return None, "flags behind -- are for a server that we start: add --demo or --model"
    if args.save is not None and (problem := save_problem(args.save)):
        return None, problem
    return Settings(start=start, save_path=args.save), ""


def _start(args: argparse.Namespace, flags: dict[str, Any]) -> ServerSpec | AttachServer | None:
    if args.url is not None:
        return AttachServer(url=args.url, log_path=args.log, watch_only=args.watch)
    model = f"demo:{args.demo}" if args.demo else args.model
    if model is not None:
        port = PORT if args.port is None else args.port
        return ServerSpec(model=model, port=port, flags=flags, python=args.python, keep=args.keep_server)
    return AttachServer(url=f"http://{HOST}:{PORT}") if _answers(HOST, PORT) else None


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=0.5).close()
    except OSError:
        return False
    return True
