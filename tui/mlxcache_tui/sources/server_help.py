"""Asks the installed `mlx_lm.server` which flags it has, by its own `--help`."""

import asyncio
import contextlib
import os

from mlxcache_tui.core.flags import ServerHelp, parse_help
from mlxcache_tui.core.text import clean_block

TIME_LIMIT_S = 30.0
"""Importing mlx and transformers takes 2 s on a warm machine and much longer right after an install."""

VERSION_CODE = "import importlib.metadata as m; print(m.version('mlx-lm'))"


async def read_server_help(python: str, time_limit_s: float = TIME_LIMIT_S) -> ServerHelp:
    """Run `python -m mlx_lm server --help` under the interpreter named and read its flags.

    Never raises for what that interpreter does: a missing interpreter or package, a crash and a time-out become the
    one-line `error` of the result.
    """
    try:
        async with asyncio.timeout(time_limit_s):
            code, text, complaint = await _run(python, "-m", "mlx_lm", "server", "--help")
            version = await _version(python) if code == 0 else None
    except TimeoutError:
        return ServerHelp(error=f"{python} -m mlx_lm server --help did not answer within {time_limit_s:g} s")
    except OSError as error:
        return ServerHelp(error=f"cannot run {python}: {error.strerror or error}")
    flags = parse_help(text) if code == 0 else ()
    return ServerHelp(flags=flags, mlx_lm=version, error="" if flags else _complaint(python, complaint))


def _complaint(python: str, stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    last = lines[-1] if lines else "it printed no flags"
    if "No module named" in last and "mlx_lm" in last:
        return f"mlx_lm is not installed for {python}: install mlx-lm there"
    return f"mlx_lm cannot be imported by {python}: {last}"


async def _version(python: str) -> str | None:
    code, text, _ = await _run(python, "-c", VERSION_CODE)
    return text.strip() or None if code == 0 else None


async def _run(*command: str) -> tuple[int | None, str, str]:
    """Exit code, output and errors of a short command; it is killed if we are cancelled."""
    # A wide terminal keeps argparse from wrapping, and newer Pythons from colouring the help.
    env = {**os.environ, "COLUMNS": "1000", "NO_COLOR": "1", "PYTHON_COLORS": "0"}
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()  # to the end of its pipes, so that they are closed with it
        raise
    return process.returncode, clean_block(out.decode(errors="replace")), clean_block(err.decode(errors="replace"))
