"""The check of a scenario file: every mistake, with line, key and what was expected; and what a right one becomes."""

import pytest

from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_check import Mistake, PolicyFileError, ScenarioError, attached_mistakes, check

STEP = '[[steps]]\nid = "a"\nuser = "q"\n'


def read(text: str) -> Scenario:
    return check(text, source="x.toml", name="x", read_policy=read_policy)


def read_policy(file: str) -> str:
    if file == "missing.md":
        raise PolicyFileError("missing.md: cannot be read: no such file or directory")
    return f"text of {file}"


def mistakes(text: str) -> list[Mistake]:
    with pytest.raises(ScenarioError) as caught:
        read(text)
    return list(caught.value.mistakes)


DESIGN_EXAMPLE = """# What it shows.
#
#   And what to look at.

title = "Alternating long policies"
about = "Does the first policy survive while others are read?"
[server]
prompt_cache_size = 2
prompt_cache_bytes = "1GiB"
[defaults]
max_tokens = 32
[policies]
returns  = { file = "policies/returns.md" }
short    = "Unopened accessories may be returned within 30 days …"
[[steps]]
id = "a1"
name = "policy A, first time"
policy = "returns"
before = ""
user = "A customer opened an accessory and changed their mind. Can they return it?"
[[steps]]
id = "burst"
policy = "short"
users = ["1", "2", "3", "4"]
concurrency = 4
repeat = 2
warmup = false
[[steps]]
id = "a2"
policy = "returns"
user = "The product arrived damaged. Can they return it?"
restart = { prompt_cache_size = 10 }
expect = ["cached_ratio >= 0.5", "ttft_s <= 0.8 * a1.ttft_s", "reason == 'hit'", "evictions == 0"]
[[steps]]
id = "a3"
continues = "a2"
user = "And then?"
restart = true
wait = 1.5
temperature = 0.7
seed = 1
stream = false
model = "other"
chat_template_kwargs = { enable_thinking = false }
"""


def test_the_example_of_the_format() -> None:
    found = read(DESIGN_EXAMPLE)
    assert found.title == "Alternating long policies"
    assert found.notes == "What it shows.\n\n  And what to look at."
    assert found.server == {"prompt_cache_size": 2, "prompt_cache_bytes": 2**30}
    assert found.policies["returns"].text == "text of policies/returns.md"
    first, burst, second, third = found.steps
    assert (first.name, first.max_tokens, first.line, first.count) == ("policy A, first time", 32, 15, 1)
    assert (burst.name, burst.count, burst.concurrency, burst.restart) == ("burst", 8, 4, None)
    assert second.restart == {"prompt_cache_size": 10}
    assert len(second.expect) == 4
    assert (third.restart, third.wait_s, third.temperature, third.seed) == ({}, 1.5, 0.7, 1)
    assert (third.stream, third.model) == (False, "other")
    assert third.chat_template_kwargs == {"enable_thinking": False}
    assert found.combinations() == ({},)


def test_a_sweep_runs_each_combination() -> None:
    found = read(STEP + '[sweep]\nprompt_cache_size = [1, 2]\nprompt_cache_bytes = ["1MB", "2MB"]\n')
    assert found.combinations() == (
        {"prompt_cache_size": 1, "prompt_cache_bytes": 1_000_000},
        {"prompt_cache_size": 1, "prompt_cache_bytes": 2_000_000},
        {"prompt_cache_size": 2, "prompt_cache_bytes": 1_000_000},
        {"prompt_cache_size": 2, "prompt_cache_bytes": 2_000_000},
    )


def test_a_step_without_an_id_gets_one() -> None:
    assert read('[[steps]]\nuser = "q"').steps[0].id == "step1"


def test_the_digest_changes_with_any_text() -> None:
    policy = '[policies]\np = "x"\n'
    assert read(policy + STEP).digest == read(policy + STEP).digest
    assert read(policy + STEP).digest != read(policy.replace("x", "y") + STEP).digest


MISTAKES: dict[str, tuple[str, int, str, str]] = {
    "not TOML": ("a = 1\nb =\n", 2, "", "not valid TOML"),
    "not TOML at the end": ('a = """\n\n', 3, "", "not valid TOML"),
    "the same key twice": ("title = 'x'\ntitle = 'y'\n" + STEP, 2, "", "not valid TOML"),
    "no steps": ("title = 'x'", 1, "steps", "one or more [[steps]]"),
    "empty steps": ("steps = []", 1, "steps", "one or more [[steps]]"),
    "steps as one table": ("[steps]\nid = 'a'", 1, "steps", "one or more [[steps]]"),
    "unknown top key": ("\nabuot = 'x'\n" + STEP, 2, "abuot", "did you mean about?"),
    "title over lines": ('title = "a\\nb"\n' + STEP, 1, "title", "one line"),
    "unknown step key": (STEP + "repat = 2", 4, "steps[1].repat", "did you mean repeat?"),
    "unknown default": ("[defaults]\nusers = ['x']\n" + STEP, 2, "defaults.users", "unknown key"),
    "empty user": ("[[steps]]\nuser = ' '", 2, "steps[1].user", "not empty"),
    "empty users": ("[[steps]]\nusers = []", 2, "steps[1].users", "not an empty list"),
    "an empty one among users": ("[[steps]]\nusers = ['a', '']", 2, "steps[1].users", "texts that are not empty"),
    "no user": ("[[steps]]\nid = 'a'", 1, "steps[1].user", "either user"),
    "user and users": ("[[steps]]\nuser = 'a'\nusers = ['b']", 1, "steps[1].user", "either user"),
    "concurrency 0": (STEP + "concurrency = 0", 4, "steps[1].concurrency", "a whole number from 1 to 256, not 0"),
    "concurrency true": (STEP + "concurrency = true", 4, "steps[1].concurrency", "not true"),
    "repeat 1.5": (STEP + "repeat = 1.5", 4, "steps[1].repeat", "not 1.5"),
    "negative wait": (STEP + "wait = -1", 4, "steps[1].wait", "a number from 0"),
    "endless wait": (STEP + "wait = inf", 4, "steps[1].wait", "a number from 0"),
    "id with a dot": ("[[steps]]\nid = 'a.b'\nuser = 'q'", 2, "steps[1].id", "letters, digits"),
    "id that is a number": ("[[steps]]\nid = '1'\nuser = 'q'", 2, "steps[1].id", "starts with a letter"),
    "id with a meaning": ("[[steps]]\nid = 'max'\nuser = 'q'", 2, "steps[1].id", "has a meaning"),
    "id of all steps": ("[[steps]]\nid = 'all'\nuser = 'q'", 2, "steps[1].id", "expected another id"),
    "name of all steps": ("[[steps]]\nuser = 'q'\nname = 'all'", 3, "steps[1].name", "expected another name"),
    "id used twice": (STEP + STEP, 5, "steps[2].id", "used twice"),
    "unknown policy": (
        "[policies]\nreturns = 'x'\n" + STEP + "policy = 'retruns'",
        6,
        "steps[1].policy",
        "did you mean returns?",
    ),
    "no policies at all": (STEP + "policy = 'p'", 4, "steps[1].policy", "there is no [policies]"),
    "missing policy file": ("[policies]\np = { file = 'missing.md' }\n" + STEP, 2, "policies.p.file", "no such file"),
    "empty policy": ("[policies]\np = ''\n" + STEP, 2, "policies.p", "empty"),
    "policy of a number": ("[policies]\np = 3\n" + STEP, 2, "policies.p", "expected a text or { file"),
    "policy of nothing": ("[policies]\np = {}\n" + STEP, 2, "policies.p", "expected a text or { file"),
    "policy table with another key": ("[policies]\np = { path = 'x' }\n" + STEP, 2, "policies.p.path", "unknown key"),
    "policy label over lines": ('[policies]\n"a\\nb" = "x"\n' + STEP, 1, "policies.'a\\nb'", "one line"),
    "unknown server flag": ("[server]\nprompt_cache_sise = 2\n" + STEP, 2, "server.prompt_cache_sise", "did you mean"),
    "size that kills the server": (
        "[server]\nprompt_cache_bytes = '-1'\n" + STEP,
        2,
        "server.prompt_cache_bytes",
        "a size such as",
    ),
    "port in a scenario": ("[server]\nport = 1\n" + STEP, 2, "server.port", "unknown key"),
    "restart with a wrong flag": (STEP + "restart = { top_p = 2 }", 4, "steps[1].restart.top_p", "from 0 to 1"),
    "restart with a number": (STEP + "restart = 1", 4, "steps[1].restart", "expected true, or a table"),
    "sweep of one value": (STEP + "[sweep]\nprompt_cache_size = 2", 5, "sweep.prompt_cache_size", "a list of values"),
    "empty sweep": (STEP + "[sweep]\n", 4, "sweep", "a table [sweep]"),
    "sweep of nothing": (STEP + "[sweep]\nprompt_cache_size = []", 5, "sweep.prompt_cache_size", "a list of values"),
    "sweep with a wrong value": (STEP + "[sweep]\ntop_k = [1,\n'x']", 6, "sweep.top_k[2]", "not 'x'"),
    "sweep of an unknown flag": (STEP + "[sweep]\ncache = [1]", 5, "sweep.cache", "unknown server flag"),
    "unknown variable": ("[[steps]]\nuser = 'x {{todey}}'", 2, "steps[1].user", "did you mean today?"),
    "unknown variable in users": ("[[steps]]\nusers = ['x',\n'{{m}}']", 3, "steps[1].users[2]", "known are n, today"),
    "continues what is not there": (STEP + "continues = 'b'", 4, "steps[1].continues", "no earlier step"),
    "continues a later step": (
        "[[steps]]\nuser = 'q'\ncontinues = 'a'\n" + STEP,
        3,
        "steps[1].continues",
        "no earlier step",
    ),
    "continues other than as many": (
        "[[steps]]\nid = 'b'\nusers = ['1', '2', '3']\n" + "[[steps]]\nusers = ['1', '2']\ncontinues = 'b'",
        6,
        "steps[2].continues",
        "3 requests and this step 2",
    ),
    "continues with another system message": (
        STEP + "[[steps]]\nuser = 'q'\ncontinues = 'a'\nbefore = 'x'",
        7,
        "steps[2].before",
        "keeps its system message",
    ),
    "expectation misspelt": (STEP + "expect = [\n'ttft_s < 1',\n'ttf_s < 1']", 6, "steps[1].expect[2]", "mean ttft_s?"),
    "expectation on a later step": (
        STEP + "expect = ['ttft_s < b.ttft_s']\n[[steps]]\nid = 'b'\nuser = 'q'",
        4,
        "steps[1].expect[1]",
        "b comes after a",
    ),
    "expectation on no step": (STEP + "expect = ['ttft_s < aa.ttft_s']", 4, "steps[1].expect[1]", "did you mean a?"),
    "expectations as one text": (STEP + "expect = 'ttft_s < 1'", 4, "steps[1].expect", "a list of texts"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_has_its_place(name: str) -> None:
    text, line, key, words = MISTAKES[name]
    found = mistakes(text)
    assert [(mistake.line, mistake.key) for mistake in found] == [(line, key)]
    assert words in found[0].text
    assert str(found[0]).startswith(f"x.toml:{line}: ")


def test_all_mistakes_at_once_in_the_order_of_lines() -> None:
    text = "titel = 'x'\n[server]\nsize = 1\n" + STEP + "concurrency = 0\nexpect = ['x < 1']\n[[steps]]\nid = 'a'\n"
    assert [mistake.line for mistake in mistakes(text)] == [1, 3, 7, 8, 9, 10]


def test_a_server_that_is_not_ours_is_not_restarted() -> None:
    found = attached_mistakes(read(STEP + "restart = true\n[sweep]\nprompt_cache_size = [1]"))
    assert [(mistake.line, mistake.key) for mistake in found] == [(4, "steps.a.restart"), (5, "sweep")]
    assert attached_mistakes(read(STEP)) == []


def test_a_file_that_is_nested_too_deeply_is_a_mistake() -> None:
    with pytest.raises(ScenarioError, match="nested too deeply"):
        check(f"a = {'[' * 5_000}", source="deep.toml", name="deep", read_policy=lambda _: "")
