"""A run's JSON is read with the place of a mistake; what is not compared is passed over."""

import json
import re

import pytest

from mlxcache_tui.core.run_file import parse_runs, run_of
from mlxcache_tui.report.json import to_json
from support.fake_engine import FakeEngine
from support.scenario_runs import run_of as measured

LEAST = {
    "schema": 1,
    "scenario": "s",
    "server": {"mlx_lm": "0.32.2", "flags": {"prompt_cache_size": 2}},
    "requests": [{"step": "a", "state": "done", "ttft_s": 0.5, "later": "key"}],
}


def with_figure(name: str, figure: str) -> str:
    """A run with a figure that only its text can hold."""
    return json.dumps({**LEAST, "requests": [{"step": "a", "state": "done", name: "FIGURE"}]}).replace(
        '"FIGURE"', figure
    )


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
        (json.dumps({**LEAST, "requests": [{"step": "a", "state": "done", "prompt_tokens": -1}]}), ">= 0 - at `$.req"),
        (with_figure("ttft_s", "1e200"), "Expected `float` <= 1000000000000000.0 - at `$.requests[0].ttft_s`"),
        (with_figure("ttft_s", "1e999"), "no run JSON: Number out of range"),
        (
            with_figure("prompt_tokens", "9" * 17),
            "Expected `int` <= 1000000000000000 - at `$.requests[0].prompt_tokens`",
        ),
        (with_figure("prompt_tokens", "9" * 400), "at `$.requests[0].prompt_tokens`"),
        ('{"schema": 1, "runs":' + "[" * 100_000, "it is nested too deep"),
    ],
)
def test_a_mistake_has_its_place(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_runs(text.encode())


def test_texts_are_made_harmless_and_answers_keep_their_lines() -> None:
    whole = {
        **LEAST,
        "scenario": "s\x1b[2J\nt",
        "requests": [{"step": "a\nb", "state": "done", "text": "one\ntwo\x07"}],
        "server": {"model": "m\u202e", "flags": {"x\x1b[1m": ["\x9b"]}},
    }
    (run,) = parse_runs(json.dumps(whole).encode())
    assert run.scenario == "s⏎t"
    assert (run.requests[0].step, run.requests[0].text) == ("a⏎b", "one\ntwo␇")
    assert (run.server.model, run.server.flags) == ("m�", {"x": ["�"]})


@pytest.mark.parametrize("cache", [1, 10])
def test_a_run_that_was_measured_here_is_what_its_json_reads_back_as(cache: int) -> None:
    result, _ = measured(engine=FakeEngine(cache=cache), combination={"prompt_cache_size": cache})
    assert parse_runs(to_json([result], several=False).encode()) == (run_of(result),)
