"""What a scenario would do here, and why it cannot."""

import pytest

from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_check import check
from mlxcache_tui.core.scenario_plan import ServerHere, model_notes, plan_of, unmet_need

OURS = ServerHere(model="demo:tiny", ours=True, reachable=True, flags={"prompt_cache_size": "3", "kv_bits": "4"})
THEIRS = ServerHere(model="m", ours=False, reachable=True)
TEXT = """
[server]
prompt_cache_size = 2
model = "other"
[policies]
p = "text"
[[steps]]
id = "a"
policy = "p"
user = "one"
warmup = true
expect = ["cached_ratio < 0.5"]
[[steps]]
id = "b"
users = ["two", "three"]
repeat = 2
concurrency = 4
wait = 1.5
continues = "a"
restart = { prompt_cache_size = 10 }
"""


def scenario(text: str = TEXT) -> Scenario:
    return check(text, source="x.toml", name="x", read_policy=lambda file: file)


def test_on_a_server_of_ours() -> None:
    plan = plan_of(scenario(), OURS)
    assert plan.refused == ()
    assert plan.does == (
        "Starts demo:tiny anew, on an empty cache, with prompt_cache_size 2, kv_bits 4. "
        "What its cache holds now is lost.",
        "The server runs on with the last limits afterwards; ^o starts it with others.",
        "It was written for other and runs on demo:tiny here.",
        "Sends 5 requests in 2 steps, at most 4 at once.",
        "Restarts the server 1 time in between.",
    )


def test_its_steps() -> None:
    first, second = plan_of(scenario(), OURS).steps
    assert (first.about, first.notes) == (
        "1 request, policy p, max 128 tokens",
        ("warm-up: left out of the run's figures",),
    )
    assert first.expects == ("cached_ratio < 0.5",)
    assert second.about == "4 requests, 4 at once, no policy, continues a, max 128 tokens"
    assert second.notes == ("after 1.5 s", "↻ server restarted with prompt_cache_size 10 first")


def test_a_sweep() -> None:
    text = """
[sweep]
prompt_cache_size = [1, 2]
prompt_cache_bytes = ["1MB", "2MB"]
[[steps]]
user = "q"
restart = true
"""
    plan = plan_of(scenario(text), ServerHere(model="m", ours=True, reachable=True))
    assert plan.does == (
        "Starts m anew, on an empty cache, with the server's own limits. What its cache holds now is lost.",
        "The server runs on with the last limits afterwards; ^o starts it with others.",
        "Sweeps prompt_cache_size: 1, 2.",
        "Sweeps prompt_cache_bytes: 1 MB, 2 MB.",
        "Sends 1 request in 1 step, 4 times: 4 in all, one after the other.",
        "Restarts the server 1 time in between.",
    )
    assert plan.steps[0].notes == ("↻ server restarted first",)
    assert [line.split(":")[0] for line in plan_of(scenario(text), THEIRS).refused] == ["steps.step1.restart", "sweep"]


def test_on_a_server_that_runs_already() -> None:
    plan = plan_of(scenario('[server]\nprompt_cache_size = 2\n[[steps]]\nuser = "q"'), THEIRS)
    assert plan.refused == ()
    assert plan.does[:2] == (
        "Uses the server as it runs, with what its cache holds.",
        "The scenario wants prompt_cache_size 2; a difference is reported.",
    )
    assert len(plan_of(scenario('[[steps]]\nuser = "q"'), THEIRS).does) == 2


@pytest.mark.parametrize(
    ("here", "said"),
    [
        (ServerHere(model=None, ours=False, reachable=False), "there is no server"),
        (ServerHere(model="m", ours=False, reachable=True, watch_only=True), "only watches"),
    ],
)
def test_where_nothing_can_be_sent(here: ServerHere, said: str) -> None:
    assert said in plan_of(scenario('[[steps]]\nuser = "q"'), here).refused[0]


def test_what_comes_of_another_model_is_told_before_anything_is_sent() -> None:
    text = TEXT.replace('user = "one"', 'user = "one"\nmodel = "some/model"')
    assert model_notes(scenario(text), "m") == [
        "it was written for other and runs on m here",
        "a: asks for the model some/model; the server drops m, loads that one and fetches it if it is not on this "
        "machine, or answers 404",
    ]
    assert model_notes(scenario(text), None)[0].startswith("a: asks for the model some/model; the server drops the one")
    assert model_notes(scenario(TEXT.replace('model = "other"', "")), "m") == []


def test_what_assumes_a_cache_that_can_be_cut_back_is_not_judged_without_one() -> None:
    needy = scenario('needs = "trimmable"\n' + TEXT)
    assert unmet_need(needy, trimmable=False).endswith("its expectations are not judged")
    assert [unmet_need(needy, trimmable=known) for known in (True, None)] == ["", ""]
    assert unmet_need(scenario(), trimmable=False) == ""
