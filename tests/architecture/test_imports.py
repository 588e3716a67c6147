"""What may import what, checked at run time too: the linter cannot see an import inside a function."""

import subprocess
import sys

import pytest

VIEWER = ("mlxcache_tui.ui.app", "mlxcache_tui.engine.setup", "mlxcache_tui.cli.main")
SERVER_ONLY = ("mlx", "mlx_lm", "transformers", "numpy", "tokenizers")


def loaded_by(module: str) -> set[str]:
    """The top-level names that a fresh interpreter has after importing a module."""
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", VIEWER)
def test_the_viewer_never_loads_what_belongs_to_the_server(module: str) -> None:
    assert not loaded_by(module) & set(SERVER_ONLY)


@pytest.mark.parametrize("module", ["mlxcache_tui.engine.setup", "mlxcache_tui.cli.run", "mlxcache_tui.core.reduce"])
def test_headless_parts_do_not_load_the_screen(module: str) -> None:
    assert "textual" not in loaded_by(module)


def test_the_screen_loads_httpx_and_plotext_only_when_it_is_painted() -> None:
    assert not loaded_by("mlxcache_tui.ui.app") & {"httpx", "plotext", "psutil"}


def test_the_command_line_starts_without_the_screen() -> None:
    assert "textual" not in loaded_by("mlxcache_tui.cli.main")
