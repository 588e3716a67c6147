"""`mlxcache-tui sessions`: what was recorded, and how much it takes. Only what is named is deleted, once asked for."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mlxcache_tui.cli.width import terminal_width
from mlxcache_tui.core.units import human_bytes, human_duration, human_percent
from mlxcache_tui.report.format import fitted_table, folded
from mlxcache_tui.store.files import write_report
from mlxcache_tui.store.paths import PathsError, sessions_dir
from mlxcache_tui.store.sessions import SessionInfo, age_days, list_sessions, started_text

DONE, NOT_DONE, BAD_INPUT = 0, 1, 2
UNKNOWN = "—"
_HEAD = (
    "session", "when", "lasted", "server", "mlx-lm", "model", "limit", "requests", "reuse", "evictions", "size", "",
)  # fmt: skip
_LEAST = ("mlx-lm", "lasted", "when", "server", "evictions", "size", "limit", "model")
"""Columns that go first on a narrow terminal; the name of a session holds its start."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `sessions`."""
    parser = subparsers.add_parser("sessions", help="list the recorded sessions, and delete old ones")
    parser.add_argument("--json", metavar="FILE", help="write the list as JSON (- is standard output)")
    parser.add_argument("--delete", nargs="+", metavar="NAME", help="delete these sessions, once you say yes")
    parser.add_argument("--older-than", type=float, metavar="DAYS", help="delete sessions not written for so long")
    parser.add_argument("--yes", action="store_true", help="delete without asking")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List, or delete; returns the exit status."""
    try:
        found = list_sessions()
        folder = sessions_dir()
    except PathsError as error:
        _say(str(error))
        return BAD_INPUT
    if args.delete is None and args.older_than is None:
        return _list(found, folder, args.json)
    chosen, problems = _chosen(found, args.delete or [], args.older_than)
    for problem in problems:
        _say(problem)
    if problems:
        return BAD_INPUT
    return _delete(chosen, yes=args.yes)


def _list(found: Sequence[SessionInfo], folder: Path, target: str | None) -> int:
    if target is not None:
        whole = {"schema": 1, "folder": str(folder), "sessions": [msgspec.to_builtins(info) for info in found]}
        text = json.dumps(whole, indent=2) + "\n"
        try:
            write_report(target, text)
        except OSError as error:
            _say(f"{target}: cannot be written: {(error.strerror or str(error)).lower()}")
            return BAD_INPUT
        return DONE
    if not found:
        print(f"no session was recorded yet in {folder}")
        return DONE
    width = terminal_width(sys.stdout)
    for line in fitted_table(_HEAD, [_row(info) for info in found], width, _LEAST):
        print(line)
    total = sum(info.bytes for info in found)
    count = f"{len(found)} session{'s' * (len(found) != 1)}"
    lines = (
        "",
        f"{count}, {human_bytes(total)} in {folder}. They are kept until you delete them:",
        "mlxcache-tui sessions --delete NAME…, or --older-than DAYS",
    )
    for line in folded(lines, width):
        print(line)
    return DONE


def _row(info: SessionInfo) -> tuple[str, ...]:
    return (
        info.name,
        started_text(info.started) or UNKNOWN,
        human_duration(info.lasted_s),
        info.server.split("://", 1)[-1] if info.server else UNKNOWN,
        info.mlx_lm or UNKNOWN,
        info.model or UNKNOWN,
        ", ".join(map(str, info.prompt_cache_sizes)) or UNKNOWN,
        f"{info.requests} (+{info.warmed} warmed)" if info.warmed else str(info.requests),
        human_percent(info.reuse),
        UNKNOWN if info.evictions is None else str(info.evictions),
        human_bytes(info.bytes),
        "recording" if info.recording else f"damaged: line {info.damaged_line}" if info.damaged_line else "",
    )


def _chosen(
    found: Sequence[SessionInfo], names: Sequence[str], days: float | None
) -> tuple[list[SessionInfo], list[str]]:
    """What is to be deleted: those named, and those old enough that nobody is writing; with what is wrong."""
    known = {info.name: info for info in found}
    wanted = [name.removesuffix(".jsonl") for name in names]
    problems = [
        f"no session is called {name}: mlxcache-tui sessions lists them" for name in wanted if name not in known
    ]
    problems += [
        f"{name} is being recorded: quit the program that does it first"
        for name in wanted
        if name in known and known[name].recording
    ]
    if days is not None and days < 0:
        problems.append("--older-than takes a number of days, 0 or more")
    chosen = {name: known[name] for name in wanted if name in known}
    if days is not None:
        chosen |= {info.name: info for info in found if not info.recording and age_days(info) > days}
    return list(chosen.values()), problems


def _delete(chosen: Sequence[SessionInfo], *, yes: bool) -> int:
    if not chosen:
        print("no session is that old: nothing was deleted")
        return DONE
    for info in chosen:
        print(f"{info.name}  {info.requests} requests  {human_bytes(info.bytes)}")
    if not yes:
        if not sys.stdin.isatty():
            _say("nothing was deleted: there is no terminal to ask on; add --yes")
            return BAD_INPUT
        total = human_bytes(sum(info.bytes for info in chosen))
        if _answer(f"Delete {len(chosen)} ({total})? They cannot be brought back. [y/N] ") != "y":
            print("nothing was deleted")
            return NOT_DONE
    status = DONE
    for info in chosen:
        try:
            Path(info.path).unlink(missing_ok=True)
        except OSError as error:
            _say(f"{info.name}: not deleted: {(error.strerror or str(error)).lower()}")
            status = NOT_DONE
    return status


def _say(line: str) -> None:
    print(f"mlxcache-tui: {line}", file=sys.stderr)


def _answer(question: str) -> str:
    """What the person types; nothing where they end the input."""
    try:
        return input(question).strip().lower()
    except EOFError:
        return ""
