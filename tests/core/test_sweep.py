"""What the runs of a sweep tell together."""

from typing import Any

import msgspec
import pytest

from mlxcache_tui.core.results import RunResult
from mlxcache_tui.core.sweep import limit_text, sweep_points, sweep_text
from support.fake_engine import FakeEngine
from support.scenario_runs import run_of

AGAIN = """
[policies]
a = "The policy says that opened accessories can be returned only if they arrived damaged."
b = "Nobody may hand out a refund before the workshop has looked at the machine and its battery."
[[steps]]
policy = "a"
user = "x"
[[steps]]
policy = "b"
user = "x"
[[steps]]
policy = "a"
user = "x"
"""


def under(**combination: Any) -> RunResult:
    """A run with room for as many entries as its limit says."""
    cache = next(iter(combination.values()))
    return run_of(AGAIN, FakeEngine(cache=cache if isinstance(cache, int) else 9), combination)[0]


def test_a_point_for_each_run() -> None:
    one, two = sweep_points([under(prompt_cache_size=1), under(prompt_cache_size=2)])
    assert (one.label, two.label) == ("1", "2")
    assert one.reuse is not None
    assert two.reuse is not None
    assert two.reuse > one.reuse + 0.3
    assert len(one.ttfts) == 3
    assert one.peak_bytes == 1_003_000


def test_sizes_are_written_as_a_person_reads_them() -> None:
    points = sweep_points(
        [under(prompt_cache_bytes=256_000_000, kv_bits=4), under(prompt_cache_bytes=10**9, kv_bits=4)]
    )
    assert [point.label for point in points] == ["256 MB · 4", "1 GB · 4"]


def test_half_a_run_is_no_point_and_a_single_one_no_curve() -> None:
    whole, half = under(prompt_cache_size=1), msgspec.structs.replace(under(prompt_cache_size=2), interrupted=True)
    assert sweep_points([whole, half]) == ()
    assert sweep_text([whole, half]) == "cut after 1 of 2 limits: which one is enough cannot be said"
    assert (limit_text(whole), limit_text(half)) == ("1", "2 (cut)")
    assert sweep_points([run_of()[0], run_of()[0]]) == ()


def test_of_limits_that_were_not_reached_nothing_is_concluded() -> None:
    done = [msgspec.structs.replace(under(prompt_cache_size=size), planned=4) for size in (5, 6)]
    assert sweep_text(done) == "cut after 2 of 4 limits: which one is enough cannot be said"


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((1, 2, 4), "prompt_cache_size 2 is enough for these requests: 32 % reuse, a higher limit brings no more"),
        ((1, 2), "reuse grows up to the last limit, prompt_cache_size 2: 32 %; a higher one may bring more"),
        ((2, 1), "most reuse with prompt_cache_size 2: 32 %"),
        ((2, 4), "reuse is the same under every limit: 32 %"),
    ],
)
def test_which_limit_is_enough(sizes: tuple[int, ...], text: str) -> None:
    assert sweep_text([under(prompt_cache_size=size) for size in sizes]) == text


def test_nothing_is_said_of_what_is_unknown() -> None:
    runs = [under(prompt_cache_size=1), under(prompt_cache_size=2)]
    steps = tuple(msgspec.structs.replace(step, requests=()) for step in runs[1].steps)
    assert sweep_text([runs[0], msgspec.structs.replace(runs[1], steps=steps)]) == ""
