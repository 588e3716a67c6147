"""Runs of small scenarios on the fake engine, for the tests of reports."""

import asyncio
from datetime import UTC, datetime

from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.results import RunResult
from mlxcache_tui.core.scenario_check import check
from mlxcache_tui.engine.progress import Progress
from mlxcache_tui.engine.runner import Runner
from support.fake_engine import FakeEngine

POLICY = "The policy says that opened accessories can be returned only if they arrived damaged. " * 3
TWO_QUESTIONS = f"""
title = "Same policy, other question"
about = "What does a shared policy save?"
[policies]
returns = "{POLICY}"
other = "{POLICY[::-1]}"
[[steps]]
id = "warm"
policy = "other"
user = "warm"
warmup = true
[[steps]]
id = "first"
name = "first question"
policy = "returns"
user = "It is opened."
[[steps]]
id = "second"
name = "second | question"
policy = "returns"
users = ["It came damaged.", "It is *opened*.", "Is it <late>?"]
concurrency = 3
expect = ["cached_ratio >= 0.5", "ttft_s < 0.01 * first.ttft_s"]
"""


def run_of(
    text: str = TWO_QUESTIONS, engine: FakeEngine | None = None, combination: dict[str, int] | None = None
) -> tuple[RunResult, list[Progress]]:
    """The result of a scenario's text, and the progress that was told."""
    told: list[Progress] = []
    runner = Runner(
        engine or FakeEngine(),
        check(text, source="x.toml", name="two-questions", read_policy=lambda file: file),
        spec=ServerSpec(model="m", port=0, flags=combination or {}),
        combination=combination,
        clock=lambda: datetime(2026, 11, 29, 12, 0, tzinfo=UTC),
        listener=told.append,
    )
    return asyncio.run(runner.run()), told
