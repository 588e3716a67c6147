"""Asking an interpreter for its server's flags: the real one, and ones that fail."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from mlxcache_tui.core.flags import form_flags
from mlxcache_tui.sources.server_help import read_server_help


def _python(folder: Path, script: str) -> str:
    """An executable that stands for a Python interpreter."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.mlx
async def test_the_installed_server_tells_its_flags() -> None:
    server = await read_server_help(sys.executable, time_limit_s=120)
    assert server.error == ""
    assert server.mlx_lm is not None
    names = {flag.name for _, flag in form_flags(server)}
    assert {"prompt_cache_size", "prompt_cache_bytes", "decode_concurrency", "prompt_concurrency"} <= names


async def test_an_interpreter_without_mlx_lm_is_one_clear_line(tmp_path: Path) -> None:
    python = _python(tmp_path, f"echo '{sys.executable}: No module named mlx_lm' >&2; exit 1")
    server = await read_server_help(python)
    assert server.flags == ()
    assert server.error == f"mlx_lm is not installed for {python}: install mlx-lm there"


async def test_an_import_that_fails_shows_its_last_line(tmp_path: Path) -> None:
    python = _python(tmp_path, "echo Traceback >&2; echo 'ImportError: libmlx.so: cannot open' >&2; exit 1")
    server = await read_server_help(python)
    assert server.error == f"mlx_lm cannot be imported by {python}: ImportError: libmlx.so: cannot open"


async def test_help_without_flags_is_an_error_too(tmp_path: Path) -> None:
    server = await read_server_help(_python(tmp_path, "echo hello"))
    assert server.error.endswith("it printed no flags")


async def test_a_missing_interpreter_is_one_clear_line(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    assert (await read_server_help(missing)).error == f"cannot run {missing}: No such file or directory"


async def test_one_that_hangs_is_given_up(tmp_path: Path) -> None:
    server = await read_server_help(_python(tmp_path, "exec sleep 600"), time_limit_s=0.3)
    assert "did not answer within 0.3 s" in server.error


async def test_one_that_is_given_up_is_ended(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    python = _python(tmp_path, f"echo $$ > {pid_file}; exec sleep 600")
    reading = asyncio.ensure_future(read_server_help(python, time_limit_s=600))
    async with asyncio.timeout(60):
        while not (pid_file.exists() and pid_file.read_text().endswith("\n")):  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.01)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


async def test_colours_and_control_characters_do_not_reach_the_form(tmp_path: Path) -> None:
    text = r"options:\n  --prompt-cache-size N  \033[31mHow\033[0m many\a\n"
    server = await read_server_help(_python(tmp_path, f"printf '{text}'"))
    assert server.flags[0].help == "How many␇"
