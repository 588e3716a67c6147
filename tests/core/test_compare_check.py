"""What may be compared: nothing across more differences than were meant."""

from typing import Any

import pytest

from mlxcache_tui.core.compare_check import find_differences, find_unmeant, refusal
from mlxcache_tui.core.run_file import Run, Server
from support.comparisons import LIMITS, request, run

OURS: dict[str, Any] = {"mlx_lm": "0.32.2", "mlx": "1", "model": "m", "flags": LIMITS}


def on(**server: Any) -> Run:
    return run(request(), server=Server(**(OURS | server)))


def check(a: Run, b: Run, *changed: str) -> str | None:
    found = find_differences([a], [b])
    return refusal(found, find_unmeant(found, changed))


def test_one_flag_that_differs_is_what_is_compared() -> None:
    a, b = run(request()), run(request(), flags={"prompt_cache_size": 2})
    assert find_differences([a], [b]) == {"prompt_cache_size": (10, 2)}
    assert check(a, b) is None
    assert check(a, a) is None


def test_more_than_was_meant_is_refused_with_all_that_differs() -> None:
    a, b = run(request()), run(request(), flags={"prompt_cache_size": 2, "top_p": 0.5})
    told = "the two differ in prompt_cache_size (10 and 2), top_p (1.0 and 0.5): what changed cannot be told apart"
    assert check(a, b) == told
    assert find_unmeant(find_differences([a], [b]), ["top-p"]) == ("prompt_cache_size",)
    assert check(a, b, "top-p", "prompt_cache_size") is None


@pytest.mark.parametrize("name", ["model", "mlx_lm", "mlx"])
def test_another_model_or_version_must_be_named(name: str) -> None:
    a, b = on(), on(**{name: "x"})
    assert check(a, b) is not None
    assert check(a, b, name) is None


def test_a_flag_beside_another_version_needs_no_name() -> None:
    found = find_differences([on()], [on(mlx="2", flags=LIMITS | {"top_p": 0.5})])
    assert find_unmeant(found, ()) == ("mlx",)


def test_another_scenario_is_told_by_name_and_an_edited_one_by_digest() -> None:
    other = run(request(), scenario="other", digest="e")
    assert find_differences([run(request())], [other]) == {"scenario": ("s", "other")}
    edited = run(request(), digest="e")
    assert find_differences([run(request())], [edited]) == {"scenario": ("d", "e")}
    assert check(run(request()), edited) is not None


def test_a_flag_that_changes_within_a_side_is_a_difference() -> None:
    a = [run(request(), flags={"prompt_cache_size": size}) for size in (2, 4)]
    assert find_differences(a, [run(request())]) == {"prompt_cache_size": ([2, 4], 10)}


def test_what_is_swept_is_no_difference() -> None:
    sweep = [run(request(), sweep={"prompt_cache_size": n}, flags={"prompt_cache_size": n}) for n in (1, 2)]
    assert find_differences(sweep, sweep[:1]) == {}


def test_what_is_known_of_one_side_only_is_a_difference() -> None:
    assert find_differences([on()], [on(mlx_lm=None)]) == {"mlx_lm": ("0.32.2", None)}
    assert "mlx_lm (0.32.2 and —)" in str(check(on(), on(mlx_lm=None)))
