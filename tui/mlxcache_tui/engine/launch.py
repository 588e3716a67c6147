"""From a `ServerSpec` to a running process: the model on disk, the port, the flags, the fast BLAS, the command."""

import asyncio
import shlex
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from mlxcache_tui.core.address import MAX_PORT
from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.events import AnyEvent, ModelFetchProgressed
from mlxcache_tui.core.flags import ServerHelp, check_flags
from mlxcache_tui.core.units import human_bytes
from mlxcache_tui.models.blas import fast_blas
from mlxcache_tui.models.fetch import DemoModelError, DemoProgress, ensure_demo_model
from mlxcache_tui.sources import ports
from mlxcache_tui.sources.child import Child, server_python
from mlxcache_tui.store.paths import PathsError, loose_path, server_log_path, socket_path

DEMO = "demo:"
"""Prefix of a model name that stands for an embedded model (`demo:tiny`)."""
WEIGHTS = ("*.safetensors", "*.npz", "*.gguf")


class LaunchError(Exception):
    """The server cannot be started; the text is one line for the person, with what to do."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A server process that was just started."""

    child: Child
    model: str
    url: str
    host: str
    port: int
    command: tuple[str, ...]
    flags: dict[str, Any]
    log_path: Path
    socket: Path
    blas: str | None


async def resolve_model(
    spec: ServerSpec, emit: Callable[[AnyEvent], None], clock: Callable[[], int], give_up: threading.Event
) -> str:
    """The model as the server is told it: a folder for `demo:KIND` (made or fetched once), else the name as it is.

    `emit` is called on this loop. Setting `give_up` ends the making or fetching.

    Raises:
        LaunchError: the demo model cannot be had, or the name is a folder that is not there or has no model in it.
    """
    if not spec.model.startswith(DEMO):
        return _named_model(spec.model)

    loop = asyncio.get_running_loop()

    def report(progress: DemoProgress) -> None:
        known = progress.done_bytes is not None and progress.total_bytes
        percent = 100 * progress.done_bytes / progress.total_bytes if known else None  # type: ignore[operator]
        text = progress.text
        if known and progress.done_bytes is not None and progress.total_bytes is not None:
            text = f"{text} {human_bytes(progress.done_bytes)} of {human_bytes(progress.total_bytes)}"
        told = ModelFetchProgressed(at_ns=clock(), origin="program", text=text, percent=percent)
        loop.call_soon_threadsafe(emit, told)  # it is fetched on another thread

    try:
        kind: Any = spec.model.removeprefix(DEMO)
        folder = await asyncio.to_thread(
            ensure_demo_model, kind, python=Path(server_python(spec.python)), report=report, cancel=give_up
        )
    except DemoModelError as error:
        raise LaunchError(str(error)) from error
    return str(folder)


def _named_model(name: str) -> str:
    folder = loose_path(name)
    if not name.startswith(("/", "./", "../", "~")):
        return name
    if not folder.is_dir():
        raise LaunchError(f"no model folder at {folder}: check the path, or give a name on Hugging Face")
    if not (folder / "config.json").is_file():
        raise LaunchError(f"{folder} is no model folder: it has no config.json")
    if not any(next(folder.glob(pattern), None) for pattern in WEIGHTS):
        raise LaunchError(f"{folder} is no model folder: it has no weights (.safetensors)")
    return str(folder)


async def launch(spec: ServerSpec, model: str) -> Launched:
    """Start `mlx_lm.server` through the observer.

    Raises:
        LaunchError: the port is taken, a flag cannot be read, or the program cannot be run.
    """
    flags = _checked(spec.flags)
    if not 0 <= spec.port <= MAX_PORT:
        raise LaunchError(f"{spec.port} is not a port: choose one from 1 to {MAX_PORT}, or 0 for any free one")
    try:
        port = spec.port or ports.free_port(spec.host)
    except OSError as error:
        raise LaunchError(
            f"{spec.host} is not an address of this machine: {(error.strerror or str(error)).lower()}"
        ) from error
    if (holder := await asyncio.to_thread(ports.holder, port)) is not None:
        url = f"http://{spec.host}:{port}"
        raise LaunchError(f"port {port} is taken by {holder.who}: attach with --url {url} or use --port")
    python = server_python(spec.python)
    blas = await asyncio.to_thread(fast_blas, Path(python))
    try:
        socket, log_path = socket_path(port), server_log_path(port)
        socket.unlink(missing_ok=True)  # nobody holds the port, so this is left from a server that was killed
    except PathsError as error:
        raise LaunchError(f"no server is started: {error}") from error
    observer = str(files("mlxcache_tui.observer") / "observe.py")
    command = [python, observer, "--socket", str(socket), "--log-path", str(log_path)]
    command += [] if spec.keep else ["--leash"]
    command += ["--", "--model", model, "--host", spec.host, "--port", str(port), *flag_arguments(flags)]
    try:
        child = Child(command, log_path=log_path, env=blas.env, leash=not spec.keep)
    except OSError as error:
        raise LaunchError(f"the server cannot be started with {shlex.quote(python)}: {error.strerror}") from error
    url = f"http://[{spec.host}]:{port}" if ":" in spec.host else f"http://{spec.host}:{port}"
    return Launched(
        child=child,
        model=spec.model,
        url=url,
        host=spec.host,
        port=port,
        command=tuple(command),
        flags=flags,
        log_path=log_path,
        socket=socket,
        blas=blas.source,
    )


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """The flags with sizes translated and counts as numbers; the server's own `--help` is not asked (seconds)."""
    flags, errors = check_flags(given, ServerHelp())
    if errors:
        raise LaunchError("; ".join(errors.values()))
    return {name: int(value) if str(value).isdecimal() else value for name, value in flags.items()}


def flag_arguments(flags: dict[str, Any]) -> list[str]:
    """Flags as the server's command line takes them; True is a bare switch, False and None are left out."""
    arguments: list[str] = []
    for name, value in flags.items():
        if value is None or value is False:
            continue
        arguments.append(f"--{name.replace('_', '-')}")
        if value is not True:
            arguments.append(str(value))
    return arguments
