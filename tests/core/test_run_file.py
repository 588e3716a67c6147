"""A run's JSON is read with the place of a mistake; what is not compared is passed over."""

import json
import re

import pytest

from mlxcache_tui.core.run_file import parse_runs

LEAST = {
    "schema": 1,
    "scenario": "s",
    "server": {"mlx_lm": "0.32.2", "flags": {"prompt_cache_size": 2}},
    "requests": [{"step": "a", "state": "done", "ttft_s": 0.5, "later": "key"}],
}


def test_one_and_several() -> None:
    (run,) = parse_runs(json.dumps(LEAST).encode())
    assert (run.scenario, run.requests[0].ttft_s, run.requests[0].cached_tokens) == ("s", 0.5, None)
    assert parse_runs(json.dumps({"schema": 1, "runs": [LEAST, LEAST]}).encode()) == (run, run)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no run JSON: Input data was truncated"),
        ("[]", "no run JSON: Expected `object`, got `array`"),
        ("{}", "its schema is None, expected 1"),
        ('{"schema": 2}', "its schema is 2, expected 1"),
        ('{"schema": 1, "runs": []}', "no run in it"),
        (json.dumps({**LEAST, "requests": [{"step": 1}]}), "Expected `str`, got `int` - at `$.requests[0].step`"),
    ],
)
def test_a_mistake_has_its_place(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_runs(text.encode())
