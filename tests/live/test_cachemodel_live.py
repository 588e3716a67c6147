"""The pure model of the prompt cache's rules against the released class of the server's mlx_lm, step by step."""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mlxcache_tui.core.cachemodel import ORDER, CacheModel, rule_of
from mlxcache_tui.core.events import EntryType
from support.live_server import SERVER_PYTHON

pytestmark = pytest.mark.mlx

SCRIPT = Path(__file__).parents[1] / "support" / "released_cache.py"
CASES = 400


def random_case(chance: random.Random, kinds: tuple[EntryType, ...], *, sized: bool) -> dict[str, Any]:
    """Short sequences of few tokens, so that prefixes, repeats and evictions are frequent."""
    steps: list[list[Any]] = []
    for _ in range(30):
        tokens = [chance.randrange(3) for _ in range(chance.randrange(1, 7))]
        draw = chance.random()
        if draw < 0.1:
            steps.append(["trim", chance.randrange(30)] if sized else ["fetch", tokens])
        elif draw < 0.3 and not sized:
            steps.append(["fetch", tokens])
        else:
            # Bytes grow with each step: storing the same again is told apart from the first time.
            steps.append(["insert", chance.choice(kinds), tokens, len(tokens) + len(steps) if sized else 0])
    limit = chance.choice((None, None, 20, 60)) if sized else None
    return {"max_count": chance.randrange(6), "max_bytes": limit, "trimmable": chance.random() < 0.7, "steps": steps}


def modelled(model: CacheModel) -> dict[str, list[Any]]:
    queues = {kind: [[list(k.sequence), k.size] for k in model.stored if k.type == kind] for kind in ORDER}
    return {kind: entries for kind, entries in queues.items() if entries}


def apply(model: CacheModel, what: list[Any], *, trimmable: bool) -> None:
    if what[0] == "trim":
        model.trim_to(what[1])
    elif what[0] == "fetch":
        model.take(tuple(what[1]))
    else:
        model.insert(what[1], tuple(what[2]), what[3], trimmable=trimmable)


def test_the_model_does_what_the_released_class_does() -> None:
    asked = [SERVER_PYTHON, "-c", "import mlx_lm; print(mlx_lm.__version__)"]
    rule = rule_of(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
    assert rule is not None
    seed = int(os.environ.get("MLXCACHE_TRUTH_SEED") or random.SystemRandom().randrange(1 << 32))
    chance = random.Random(seed)
    kinds: tuple[EntryType, ...] = {"three queues": ORDER, "two queues": ORDER[:2], "one queue": ORDER[:1]}[rule]
    cases = [random_case(chance, kinds, sized=rule != "one queue") for _ in range(CASES)]
    done = subprocess.run(
        [SERVER_PYTHON, str(SCRIPT)], input=json.dumps(cases), check=True, capture_output=True, text=True
    )
    compared = 0
    for case, told in zip(cases, json.loads(done.stdout), strict=True):
        model = CacheModel(rule, case["max_count"], case["max_bytes"])
        for what, after in zip(case["steps"], told, strict=False):
            if isinstance(after, str):
                break  # the class's own fault: it pops from an empty queue
            apply(model, what, trimmable=case["trimmable"])
            assert modelled(model) == after, f"MLXCACHE_TRUTH_SEED={seed}: {what} of {case}"
            compared += 1
    assert compared > CASES * 10
    print(f"MLXCACHE_TRUTH_SEED={seed}: {compared} steps of {len(cases)} caches compared, {rule}")  # noqa: T201
