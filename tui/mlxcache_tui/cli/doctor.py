"""`mlxcache-tui doctor`: what is here, one line each, so that a report of trouble can say it."""

import argparse
import asyncio
import importlib.metadata
import json
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

import psutil

from mlxcache_tui.core.text import clean
from mlxcache_tui.core.units import human_bytes
from mlxcache_tui.models.blas import fast_blas
from mlxcache_tui.models.fetch import cache_folder
from mlxcache_tui.sources import ports
from mlxcache_tui.sources.health import probe
from mlxcache_tui.sources.server_help import read_server_help
from mlxcache_tui.store import paths

PACKAGES = ("mlxcache-tui", "mlx-lm", "mlx", "textual", "httpx", "psutil", "plotext")
PORT = 8080


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `doctor`."""
    parser = subparsers.add_parser("doctor", help="what is here: versions, memory, models, port, terminal")
    parser.add_argument("--python", metavar="PROGRAM", default=sys.executable, help="the Python that has mlx_lm")
    parser.add_argument("--json", metavar="FILE", help="write it as JSON (- is standard output)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what is found; exit status 0, or 3 when no server could be started here."""
    found = asyncio.run(examine(args.python))
    if args.json == "-":
        print(json.dumps({"schema": 1, **found}, indent=2))
    else:
        if args.json:
            try:
                Path(args.json).write_text(json.dumps({"schema": 1, **found}, indent=2) + "\n")
            except OSError as error:
                print(f"mlxcache-tui: cannot write {args.json}: {error.strerror or error}", file=sys.stderr)
                return 2
        for name, value in found.items():
            print(f"{name.replace('_', ' '):<14} {clean(_shown(value))}")
    return 3 if found["server"].startswith("✗") else 0


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return "—" if value is None else str(value)


async def examine(python: str) -> dict[str, Any]:
    """Everything, by name. Unknown is None."""
    server_help = await read_server_help(python)
    health = await probe(f"http://127.0.0.1:{PORT}")
    holder = await asyncio.to_thread(ports.holder, PORT)
    blas = await asyncio.to_thread(fast_blas, Path(python))
    memory = psutil.virtual_memory()
    return {
        "program": {name: _version(name) for name in PACKAGES},
        "python": {"version": platform.python_version(), "for the server": python},
        "server": f"✗ {server_help.error}"
        if server_help.error
        else f"mlx-lm {server_help.mlx_lm}, {len(server_help.flags)} flags",
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
        "memory": {"total": human_bytes(memory.total), "available": human_bytes(memory.available)},
        "fast_blas": _blas(blas.source, blas.reason),
        "demo_models": _models(),
        "port_8080": _port(holder, reachable=health.reachable, software=health.software),
        "terminal": {
            "TERM": os.environ.get("TERM"),
            "COLORTERM": os.environ.get("COLORTERM"),
            "size": "×".join(map(str, shutil.get_terminal_size())),
            "tmux": "TMUX" in os.environ,
            "ssh": "SSH_CONNECTION" in os.environ,
            "NO_COLOR": "NO_COLOR" in os.environ,
        },
        "folders": _folders(),
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _blas(source: str, reason: str) -> str:
    if sys.platform == "darwin":
        return "not needed: Metal"
    return f"{source}: {reason}" if source == "none" else source


def _models() -> dict[str, str] | None:
    folder = cache_folder()
    found = {path.parent.name: str(path.parent) for path in sorted(folder.glob("**/config.json"))}
    return found or None


def _port(holder: ports.Holder | None, *, reachable: bool, software: str | None) -> str:
    if holder is None:
        return "free"
    return f"{holder.who}, {software or 'answers' if reachable else 'does not answer to HTTP'}"


def _folders() -> dict[str, str]:
    found = {}
    ours = {
        "state": paths.state_dir,
        "config": paths.config_dir,
        "cache": paths.cache_dir,
        "runtime": paths.runtime_dir,
    }
    for name, folder in ours.items():
        try:
            found[name] = str(folder())
        except paths.PathsError as error:
            found[name] = f"✗ {error}"
    return found
