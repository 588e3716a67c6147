"""Editing the values of a scenario, and what is said of it."""

import pytest

from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_check import check
from mlxcache_tui.core.scenario_values import (
    changed_flags,
    changes,
    edited,
    field_of,
    flag_names,
    flag_text,
    flags_text,
    unset_text,
)

TEXT = """
[server]
prompt_cache_size = 2
trust_remote_code = true
model = "m"
[sweep]
prompt_cache_bytes = ["1MB", "8MB"]
[[steps]]
id = "a"
name = "first"
users = ["one", "two"]
[[steps]]
id = "b"
name = "second"
continues = "a"
users = ["three", "four"]
"""


def scenario(text: str = TEXT) -> Scenario:
    return check(text, source="x.toml", name="x", read_policy=lambda file: file)


def test_the_usual_limits_are_offered_and_those_that_the_scenario_sets() -> None:
    usual = ("prompt_cache_size", "prompt_cache_bytes", "prompt_concurrency", "decode_concurrency")
    assert flag_names(scenario()) == (*usual, "trust_remote_code")


def test_a_field_holds_what_the_file_says() -> None:
    texts = [flag_text(scenario(), name) for name in flag_names(scenario())]
    assert texts == ["2", "1000000, 8000000", "", "", "on"]
    assert flag_text(scenario(TEXT.replace("true", "false")), "trust_remote_code") == "off"


def test_nothing_changed_is_the_same_scenario() -> None:
    old = scenario()
    flags = {name: flag_text(old, name) for name in flag_names(old)}
    steps = {field_of(step.id, "repeat"): str(step.repeat) for step in old.steps}
    assert edited(old, flags, steps) == (old, {})
    assert changes(old, old) == ()


def test_limits_leave_the_digest_and_steps_change_it() -> None:
    old = scenario()
    limits, _ = edited(old, {"prompt_cache_size": "4", "prompt_cache_bytes": "1MB"}, {})
    assert limits is not None
    assert limits.digest == old.digest
    assert changed_flags(old, limits) == ("prompt_cache_size",)  # the bytes were swept
    steps, _ = edited(old, {}, {field_of("a", "repeat"): "2", field_of("b", "repeat"): "2"})
    assert steps is not None
    assert steps.digest != old.digest
    assert changed_flags(old, steps) == ()


def test_several_values_are_a_sweep_and_one_is_not() -> None:
    new, errors = edited(scenario(), {"prompt_cache_size": "1, 2,4, 4", "prompt_cache_bytes": "512kB"}, {})
    assert errors == {}
    assert new is not None
    assert new.sweep == {"prompt_cache_size": (1, 2, 4)}
    assert new.server == {"trust_remote_code": True, "model": "m", "prompt_cache_bytes": 512_000}
    assert new.digest == scenario().digest
    assert changes(scenario(), new) == (
        "prompt_cache_size 2 → 1, 2, 4",
        "prompt_cache_bytes 1 MB, 8 MB → 512 kB",
    )


def test_an_empty_field_leaves_the_servers_default() -> None:
    new, _ = edited(scenario(), {"prompt_cache_size": " ", "trust_remote_code": "off"}, {})
    assert new is not None
    assert new.server == {"model": "m", "trust_remote_code": None}
    assert changes(scenario(), new) == ("prompt_cache_size 2 → default", "trust_remote_code on → off")


def test_what_the_server_was_started_with_is_kept_where_the_scenario_sets_nothing() -> None:
    kept = {"prompt_cache_size": 3, "prompt_cache_bytes": "300000", "kv_bits": 8}
    assert unset_text("prompt_cache_bytes", kept) == "300 kB (as started)"
    assert unset_text("decode_concurrency", kept) == "32 (default)"
    assert unset_text("trust_remote_code", kept) == "default"
    old, _ = edited(scenario(), {"prompt_cache_size": "", "prompt_cache_bytes": ""}, {})
    assert old is not None
    assert "kv_bits" in flag_names(old, kept)
    assert changes(old, scenario(), kept, kept) == (
        "prompt_cache_size 3 → 2",
        "prompt_cache_bytes 300 kB → 1 MB, 8 MB",
    )
    assert changes(old, old, {}, kept)[0] == "prompt_cache_size default → 3"
    assert changed_flags(old, old, {}, kept) == ("prompt_cache_size", "prompt_cache_bytes", "kv_bits")


def test_steps() -> None:
    texts = {field_of("a", "repeat"): "3", field_of("b", "repeat"): "3", field_of("b", "max_tokens"): "7"}
    new, errors = edited(scenario(), {}, texts)
    assert errors == {}
    assert new is not None
    assert [(step.repeat, step.max_tokens) for step in new.steps] == [(3, 128), (3, 7)]
    assert changes(scenario(), new) == ("repeat 1 → 3", "max_tokens 128 → 7 in second")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("prompt_cache_size", "many", "expected a whole number from 0"),
        ("prompt_cache_size", "1.5", "not '1.5'"),
        ("prompt_cache_size", "1, x", "not 'x'"),
        ("prompt_cache_bytes", "8 apples", "expected a size such as"),
        ("trust_remote_code", "2", "expected true or false"),
    ],
)
def test_a_flag_that_makes_no_sense(name: str, text: str, said: str) -> None:
    new, errors = edited(scenario(), {name: text}, {})
    assert new is None
    assert said in errors[name]


@pytest.mark.parametrize("text", ["0", "-1", "x", "257", "²"])
def test_a_number_at_once_that_makes_no_sense(text: str) -> None:
    new, errors = edited(scenario(), {}, {field_of("a", "concurrency"): text})
    assert new is None
    assert errors == {field_of("a", "concurrency"): f"expected a whole number from 1 to 256, not {text!r}"}


def test_a_continued_step_keeps_as_many_requests_as_its_start() -> None:
    new, errors = edited(scenario(), {}, {field_of("a", "repeat"): "2"})
    assert new is None
    assert errors == {
        field_of("b", "repeat"): "it continues first, which has 4 requests: expected 1 or as many as here"
    }


def test_one_value_for_every_step_is_told_once() -> None:
    old, _ = edited(scenario(), {}, {field_of("b", "concurrency"): "4"})
    assert old is not None
    new, _ = edited(old, {}, {field_of("a", "concurrency"): "2", field_of("b", "concurrency"): "2"})
    assert new is not None
    assert changes(old, new) == ("concurrency 2 in every step",)


RESTARTS = """
[[steps]]
id = "a"
name = "again"
user = "q"
restart = { prompt_cache_size = 10, chat_template = "a, b" }
"""


def test_the_limits_of_a_restart_in_the_middle() -> None:
    old = scenario(RESTARTS)
    same, _ = edited(old, {}, {field_of("a", "prompt_cache_size"): "10"})
    assert same == old
    new, _ = edited(old, {}, {field_of("a", "prompt_cache_size"): "20"})
    assert new is not None
    assert new.steps[0].restart == {"chat_template": "a, b", "prompt_cache_size": 20}
    assert new.digest != old.digest
    assert changes(old, new) == ("prompt_cache_size 10 → 20 in again",)
    gone, _ = edited(old, {}, {field_of("a", "prompt_cache_size"): ""})
    assert gone is not None
    assert gone.steps[0].restart == {"chat_template": "a, b"}
    assert changes(old, gone) == ("prompt_cache_size 10 → as before in again",)


@pytest.mark.parametrize(("text", "said"), [("1, 2", "expected one value"), ("x", "expected a whole number")])
def test_a_restart_takes_one_sensible_value(text: str, said: str) -> None:
    new, errors = edited(scenario(RESTARTS), {}, {field_of("a", "prompt_cache_size"): text})
    assert new is None
    assert said in errors[field_of("a", "prompt_cache_size")]


def test_texts_with_commas_stay_as_the_file_has_them() -> None:
    old = scenario(TEXT.replace('model = "m"', "chat_template_args = { enable_thinking = false }"))
    assert "chat_template_args" not in flag_names(old)
    assert edited(old, {name: flag_text(old, name) for name in flag_names(old)}, {}) == (old, {})


def test_flags_in_words() -> None:
    flags = {"prompt_cache_size": 2, "prompt_cache_bytes": 8_000_000, "kv_bits": None, "pipeline": True}
    assert flags_text(flags) == "prompt_cache_size 2, prompt_cache_bytes 8 MB, kv_bits off, pipeline on"
    assert flags_text({"temp": 0.5}) == "temp 0.5"
