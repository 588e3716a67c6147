"""Sessions of the real server: lived as recorded, and compared with each other by the command."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.engine.setup import open_engine
from support.engines import MAIN, ask, phase
from support.sessions import SECRET

pytestmark = pytest.mark.mlx


async def test_a_session_is_lived_as_it_is_recorded(tmp_path: Path, lived: list[int]) -> None:
    spec = ServerSpec(model="demo:tiny", port=0, flags={"prompt_cache_size": 1})
    async with open_engine(Settings(start=spec, save_path=str(tmp_path / "s.jsonl"))) as engine:
        await phase(engine, "ready")
        for policy in ("returns", "warranty", "returns"):
            await ask(engine, "May I?", f"{policy} " + SECRET * 20)
    (count,) = lived
    assert count > 50


def measured(folder: Path, name: str, size: int) -> Path:
    """The result of the shipped scenario with this limit."""
    target = folder / f"{name}.json"
    command = [*MAIN, "run", "alternate-policies", "--demo", "tiny", "--json", str(target)]
    done = subprocess.run(
        [*command, "--save", str(folder / f"{name}.jsonl"), "--", "--prompt-cache-size", str(size)],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode in (0, 1), done.stderr  # the scenario's own expectations are for another limit
    return target


def compared(*words: str | Path) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [*MAIN, "compare", *map(str, words), "--json", "-"], capture_output=True, text=True, timeout=60
    )
    whole: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, whole


def test_room_for_1_against_room_for_10_is_worse_and_a_run_with_its_like_is_not(tmp_path: Path) -> None:
    ten, one, again = (measured(tmp_path, name, size) for name, size in (("ten", 10), ("one", 1), ("again", 10)))
    status, whole = compared(ten, one)
    assert (status, whole["verdict"]) == (1, "worse")
    assert whole["differences"] == {"prompt_cache_size": [10, 1]}
    verdicts = {(metric["metric"], metric["step"]): metric["verdict"] for metric in whole["metrics"]}
    assert verdicts["evictions", "all"] == "worse"
    assert verdicts["cached_ratio", "A again, room for 2"] == "worse"
    status, whole = compared(ten, again)
    assert (status, whole["verdict"]) in ((0, "same"), (4, "inconclusive"))
    assert whole["differences"] == {}
    status, whole = compared(tmp_path / "ten.jsonl", tmp_path / "one.jsonl")
    assert (status, whole["verdict"]) == (1, "worse")
