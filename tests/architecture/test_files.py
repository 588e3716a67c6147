"""Sizes, pairs and the table of actions."""

import ast
from pathlib import Path

import pytest

from mlxcache_tui.ui.bindings import bindings
from mlxcache_tui.ui.keys import ACTIONS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tui" / "mlxcache_tui"
MAX_LINES = 400
OBSERVER = PACKAGE / "observer" / "observe.py"
"""One file by design: it runs under another Python, where nothing of ours is installed."""
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != OBSERVER)
TAKEN_KEYS = {"ctrl+b", "ctrl+a", "f11"}
"""Keys that tmux, screen or a terminal may take for themselves."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_is_short_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_LINES
    if path.name != "__init__.py":
        assert ast.get_docstring(ast.parse(text)), "a module begins with a line that says what it is for"


def test_core_modules_have_their_own_tests() -> None:
    untested = {
        "actions",
        "commands",
        "settings",
        "state",
        "views",
        "scenario_keys",
        "results",
        "glossary",
        "figures",
        "inferred",
    }
    for path in (PACKAGE / "core").glob("*.py"):
        if path.stem not in untested and path.name != "__init__.py":
            assert (ROOT / "tests" / "core" / f"test_{path.stem}.py").exists(), path.name


def test_no_action_is_listed_twice_and_no_key_has_two_meanings() -> None:
    ids = [info.id for info in ACTIONS]
    assert len(ids) == len(set(ids))
    keys = [binding.key for binding in bindings()]  # type: ignore[union-attr]
    assert len(keys) == len(set(keys))


def test_no_action_hangs_on_a_key_that_terminals_take() -> None:
    for info in ACTIONS:
        keys = set(filter(None, info.key.split(",")))
        assert not keys or keys - TAKEN_KEYS, info.id


def test_the_top_level_holds_only_what_it_should() -> None:
    allowed = {"pyproject.toml", "tui", "scenarios", "tests", "screenshots", "README.md", "LICENSE"}
    made = {"uv.lock", "dist", "build"}
    assert {path.name for path in ROOT.iterdir() if not path.name.startswith(".")} - made <= allowed
