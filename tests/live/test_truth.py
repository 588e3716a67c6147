"""The cache pane holds exactly what the server's own prompt cache holds: random requests, compared after each step.

In the default run each model gets 30 requests; `uv run pytest -m truth -n 0 -s` sends 300 to each.
`MLXCACHE_TRUTH_SEED` and `MLXCACHE_TRUTH_COUNT` choose the plan. A difference is told with its seed and the shortest
plan found that shows it.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mlxcache_tui.models.fetch import Kind
from support.truth import make_plan, run_plan, shrink

pytestmark = [pytest.mark.mlx, pytest.mark.truth, pytest.mark.timeout(1800)]

SHORT, LONG = 30, 300
SOON_S = 2.0
"""While a plan is shrunk, a difference that lasts this long counts."""


@pytest.mark.parametrize("kind", ["tiny", "tiny-sliding"])
def test_the_pane_is_the_servers_own_cache(
    kind: Kind, tiny_model: Callable[[Kind], Path], pytestconfig: pytest.Config
) -> None:
    seed = int(os.environ.get("MLXCACHE_TRUTH_SEED") or random.SystemRandom().randrange(1 << 32))
    asked_for = "truth" in pytestconfig.getoption("markexpr").split()
    count = int(os.environ.get("MLXCACHE_TRUTH_COUNT") or (LONG if asked_for else SHORT))
    model, plan = tiny_model(kind), make_plan(seed, count)
    differences, tally = run_plan(model, plan)
    told = f"MLXCACHE_TRUTH_SEED={seed} MLXCACHE_TRUTH_COUNT={count} on {kind}: {tally}"
    print(told)  # noqa: T201
    if differences:
        least = shrink(plan[: tally.steps], lambda shorter: bool(run_plan(model, shorter, SOON_S)[0]))
        steps = "\n".join(f"  {step}" for step in least)
        pytest.fail("\n".join([told, *differences, f"the shortest plan found ({len(least)} steps):", steps]))
