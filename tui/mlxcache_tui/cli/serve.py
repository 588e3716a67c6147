"""`mlxcache-tui serve`: server and observer without a screen, for tmux or launchd. Viewers come and go by the port.

Standard output is the server's log, with our marks among its lines; standard error says where the server is and how it
ended. SIGINT, SIGTERM and SIGHUP stop both cleanly.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable

from mlxcache_tui.cli.arguments import port_number
from mlxcache_tui.cli.flags import server_flags
from mlxcache_tui.cli.screen import DEMO_KINDS, PORT
from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.reduce import Part
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.core.text import clean
from mlxcache_tui.engine.measure import server_text
from mlxcache_tui.engine.setup import open_engine
from mlxcache_tui.store.recorder import save_problem

DONE, BAD_INPUT, NO_SERVER = 0, 2, 3
OVER = ("exited", "worker_dead")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `serve`. Flags for the server stand behind `--` and arrive as `args.server_flags`."""
    parser = subparsers.add_parser("serve", help="a server with its observer, without a screen; viewers come and go")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--demo", nargs="?", const="smollm2", choices=DEMO_KINDS, help="serve a demo model")
    what.add_argument("--model", help="serve this model: a name on Hugging Face, or a folder")
    parser.add_argument("--port", type=port_number, default=PORT, help=f"its port (default {PORT}; 0: any free one)")
    parser.add_argument("--python", metavar="PROGRAM", help="the Python that has mlx_lm (default: this one)")
    parser.add_argument("--save", metavar="FILE", help="record the session here instead of in the state folder")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal comes or the server is gone; returns the exit status."""
    flags, problems = server_flags(args.server_flags, args.python)
    if args.save is not None and (unsaved := save_problem(args.save)):
        problems.append(unsaved)
    for problem in problems:
        _say(problem)
    if problems:
        return BAD_INPUT
    spec = ServerSpec(
        model=f"demo:{args.demo}" if args.demo else args.model, port=args.port, flags=flags, python=args.python
    )
    return asyncio.run(_serve(Settings(start=spec, save_path=args.save)))


async def _serve(settings: Settings) -> int:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with open_engine(settings) as engine:
        output = Output(engine.state, on_broken=stopped.set)
        engine.listen(output.heed)
        output.heed(frozenset())
        ends = [asyncio.ensure_future(stopped.wait()), asyncio.ensure_future(engine.until(_is_over))]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        if not stopped.is_set():
            output.heed(frozenset())
            _say(engine.state.server.text or "the server is gone")
            return NO_SERVER
    output.heed(frozenset())
    _say("stopped")
    return DONE


def _is_over(state: SessionState) -> bool:
    return state.server.phase in OVER


class Output:
    """Prints what is new of a session: log lines to standard output, the server's phases to standard error."""

    def __init__(self, state: SessionState, *, on_broken: Callable[[], None]) -> None:
        self._state = state
        self._on_broken = on_broken
        self._seen = self._notices = 0
        self._told = ""

    def heed(self, parts: frozenset[Part]) -> None:  # noqa: ARG002 - a listener's form
        """Print what came since the last time."""
        new = [row for row in self._state.log.rows if row.seq > self._seen]
        if new:
            self._seen = new[-1].seq
            try:
                # A bar would be a line for each of its states; what it says is told below.
                sys.stdout.write("".join(f"{row.text}\n" for row in new if row.kind != "bar"))
                sys.stdout.flush()
            except BrokenPipeError:
                self._on_broken()
        for notice in self._state.notices:
            if notice.seq > self._notices:
                self._notices = notice.seq
                _say(notice.text)
        self._tell_phase()

    def _tell_phase(self) -> None:
        server = self._state.server
        if server.phase == "ready":
            line = f"{server.model} answers at {server.url}: watch it with mlxcache-tui --url {server.url}"
        elif server.phase in ("starting", "loading", "fetching", "not_answering", "unreachable"):
            line = server_text(self._state)
        else:
            return
        if line != self._told:
            self._told = line
            _say(line)


def _say(line: str) -> None:
    print(f"mlxcache-tui: {clean(line)}", file=sys.stderr, flush=True)
