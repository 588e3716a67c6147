"""What the composer says would happen."""

import re
from typing import Any

import msgspec
import pytest

from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.events import LogLine, LogRead, ServerIdentified, ServerPhaseChanged, ServerTargeted
from mlxcache_tui.core.forecast import forecast as forecast_with
from mlxcache_tui.core.lens import PromptTexts
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.core.views import ForecastView
from support.prompts import PIECE, ask
from support.story import Story

POLICY = "word " * 400


def forecast(state: SessionState, draft: Draft) -> ForecastView:
    return forecast_with(state, draft, PromptTexts())


def story() -> Story:
    made = Story()
    made.server()
    made.sent("a", entry=1, prompt=502, system=POLICY)
    return made


def test_a_stored_policy_would_be_reused() -> None:
    text = forecast(story().state, Draft(user="question", policy_text=POLICY)).text
    assert text.startswith("would reuse ≈501 of ≈502 (#1), read ≈1")


def test_a_hit_takes_as_long_as_the_last_one_however_little_is_read() -> None:
    made = story()
    assert forecast(made.state, Draft(user="question", policy_text=POLICY)).text.endswith("read ≈1")
    made.sent("b", entry=2, prompt=502, system=POLICY, cached=501, base="a", shared=501)
    assert forecast(made.state, Draft(user="question", policy_text=POLICY)).text.endswith("read ≈1, ≈22 ms")


def test_text_in_front_of_it_would_be_read_anew() -> None:
    text = forecast(story().state, Draft(user="question", policy_text=POLICY, before="today")).text
    assert text.startswith("would read all ≈")


def test_an_evicted_policy_would_be_read_anew() -> None:
    made = story()
    made.evict(1, "a")
    assert forecast(made.state, Draft(user="question", policy_text=POLICY)).text.startswith("would read all")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"known": "unknown"}, "the entries of mlx-lm 0.32.2 cannot be watched"),
        ({"known": "unknown", "observed": False, "off": True}, "the observer is gone"),
        ({"known": "unknown", "phase": "unreachable"}, "no server answers"),
        (
            {"known": "unknown", "observed": False, "software": "llama.cpp"},
            "llama.cpp does not say what it holds",
        ),
    ],
)
def test_what_is_not_known_is_said_with_its_reason(how: dict[str, Any], why: str) -> None:
    made = story()
    made.state.cache.known = how["known"]
    made.state.cache.inferred.off = how.get("off", False)
    for name in ("observed", "phase", "software"):
        setattr(made.state.server, name, how.get(name, getattr(made.state.server, name)))
    text = forecast(made.state, Draft(user="question", policy_text=POLICY)).text
    assert text == f"unknown: {why}; ≈502 tokens in all"


def test_before_the_observer_speaks_nothing_is_known() -> None:
    made = Story()
    made.server(observed=False)
    text = forecast(made.state, Draft(user="question", policy_text=POLICY)).text
    assert text.startswith("unknown: the observer has told nothing yet; ≈")


# --- without the observer --------------------------------------------------------------------------------------------


def stock(count: int = 2) -> Story:
    """A server of somebody else that holds two policies of ours."""
    made = Story()
    made.tell(ServerTargeted(at_ns=made.tick(), origin="program", url="http://127.0.0.1:1", mode="attached"))
    made.tell(ServerPhaseChanged(at_ns=made.tick(), origin="http", phase="ready"))
    draft = Draft(user="question", policy_text=POLICY)
    assert forecast(made.state, draft).text.startswith("unknown: nothing was answered yet")
    made.tell(ServerIdentified(at_ns=made.tick(), origin="client", mlx_lm="0.32.2", software="mlx_lm"))
    assert re.match(r"would read all ≈\d+ tokens anew \(inferred\)", forecast(made.state, draft).text)
    made.state.cache.max_count = count
    made.compose("a", system=POLICY, policy="word")
    made.answer("a", prompt=502, cached=0)
    made.compose("b", system="Warranty " * 100, policy="warranty")
    made.answer("b", prompt=252, cached=0)
    return made


def test_without_the_observer_it_is_told_from_what_is_inferred() -> None:
    made = stock()
    view = forecast(made.state, Draft(user="other", policy_text=POLICY))
    reused, total = figures(view.text)
    assert "(#1, inferred), read ≈" in view.text
    assert (abs(reused - 500) <= 2, abs(total - 502) <= 2) == (True, True)
    assert view.more == ("✂ would evict word (#1, the one it reuses), 505 tokens: count 2 (inferred)",)
    assert not forecast(stock(3).state, Draft(user="other", policy_text=POLICY)).more


def test_requests_of_others_are_a_doubt_in_it() -> None:
    made = stock()
    line = LogLine(text='1.2.3.4 - - [29/Nov/2026 14:48:18] "POST /v1/completions HTTP/1.1" 200 -', kind="access")
    made.tell(LogRead(at_ns=made.tick(), origin="log", lines=(line,) * 3))
    view = forecast(made.state, Draft(user="other", policy_text=POLICY))
    assert "(#1, inferred)" in view.text
    assert view.more == (
        "✂ would evict the oldest entry, maybe another client's: count 2 (inferred)",
        "! others may have pushed #1 out since",
    )


# --- tokens of what is not stored ------------------------------------------------------------------------------------


def test_the_tokens_of_a_policy_that_was_sent_are_known_though_it_is_not_stored() -> None:
    made = observed()
    send(made, "a", 1, "opened?")
    made.evict(1, "a")
    text = forecast(made.state, Draft(user="damaged?", policy_text=RULES)).text
    assert text.startswith("would read all ≈")
    assert abs(int(re.findall("≈(\\d+)", text)[0]) - len(f"<s>{RULES}<u>damaged?<a>") // PIECE) <= 2


def test_a_policy_behind_other_text_is_counted_by_what_it_was() -> None:
    made = stock()
    made.state.labelled["word"] = ["a"]
    text = forecast(
        made.state, Draft(user="question", policy="word", policy_text=POLICY, before="Today is Monday.")
    ).text
    assert abs(int(re.findall("≈(\\d+)", text)[0]) - 506) <= 4


# --- with the tokens of what was sent --------------------------------------------------------------------------------

RULES = "Return it unopened within 30 days. " * 40


def send(story: Story, key: str, entry: int, user: str, system: str = RULES, base: str | None = None) -> None:
    """A request behind a template of ours, stored with two tokens of answer."""
    prompt = f"<s>{system}<u>{user}<a>"
    ask(story, key, prompt, base=base, user=user, system=system, policy=system[:6])
    count = story.state.requests[key].lookup.tokens.count  # type: ignore[union-attr]
    story.store(entry, key, count + 2, size=(count + 2) * 100)
    story.answer(key, prompt=count, cached=0)


def observed(**flags: object) -> Story:
    made = Story()
    made.server(**flags)  # type: ignore[arg-type]
    return made


def figures(text: str) -> tuple[int, int]:
    found = re.findall("≈(\\d+)", text)
    return int(found[0]), int(found[1])


def test_tokens_of_what_was_sent_are_counted_not_estimated() -> None:
    made = observed()
    send(made, "a", 1, "opened?")
    text = forecast(made.state, Draft(user="damaged?", policy_text=RULES)).text
    reused, total = figures(text)
    assert reused == len(f"<s>{RULES}<u>") // PIECE
    assert abs(total - len(f"<s>{RULES}<u>damaged?<a>") // PIECE) <= 1
    assert "(#1)" in text


@pytest.mark.parametrize(("head", "begin"), [(36, "would read all ≈"), (2, "would reuse ≈")])
def test_what_the_template_puts_in_front_of_any_question_is_not_reuse(head: int, begin: str) -> None:
    made = observed()
    loaded = made.state.server.loaded
    assert loaded is not None
    made.state.server.loaded = msgspec.structs.replace(loaded, head_tokens=2, head_tokens_no_system=head)
    prompt = "<s>You are a helpful assistant that answers any question.<u>{}<a>"
    ask(made, "a", prompt.format("When does it open?"), user="When does it open?", system=None)
    made.store(1, "a", 50)
    made.answer("a", prompt=48, cached=0)
    assert forecast(made.state, Draft(user="May I come in?")).text.startswith(begin)


def test_the_same_once_more_reads_one_token() -> None:
    made = observed()
    send(made, "a", 1, "opened?")
    reused, total = figures(forecast(made.state, Draft(user="opened?", policy_text=RULES)).text)
    assert reused == total - 1


def test_an_edit_in_the_middle_reuses_what_stands_before_it() -> None:
    made = observed()
    send(made, "a", 1, "opened?")
    edited = RULES[:700] + "!" + RULES[700:]
    reused, total = figures(forecast(made.state, Draft(user="opened?", policy_text=edited)).text)
    assert reused == (3 + 700) // PIECE
    assert abs(total - len(f"<s>{edited}<u>opened?<a>") // PIECE) <= 2


def test_another_script_is_estimated_by_its_own_characters_per_token() -> None:
    made = observed()
    send(made, "a", 1, "返品できますか" * 30, system="規則" * 200)
    wide = "別の規則" * 100
    text = forecast(made.state, Draft(user="?", policy_text=wide)).text
    tokens = int(re.findall("≈(\\d+)", text)[0])
    assert abs(tokens - len(wide.encode()) // PIECE) < 30


def test_what_cannot_be_cut_back_is_reused_whole_or_not_at_all() -> None:
    made = observed(trimmable=False)
    send(made, "a", 1, "opened?")
    draft = Draft(user="damaged?", policy_text=RULES)
    assert forecast(made.state, draft).text.startswith("would read all")
    made.store(2, "a", 300, kind="system", trimmable=False)
    assert figures(forecast(made.state, draft).text)[0] == 300


def test_the_victim_is_named_by_the_real_rule() -> None:
    made = observed(prompt_cache_size=2)
    send(made, "a", 1, "opened?")
    send(made, "b", 2, "opened?", system="Warran" * 100)
    more = forecast(made.state, Draft(user="damaged?", policy_text=RULES)).more
    assert more == ("✂ would evict Return (#1, the one it reuses), 710 tokens: count 2",)
    made.evict(1, "b")
    assert forecast(made.state, Draft(user="damaged?", policy_text=RULES)).more == ()


def test_a_cold_request_that_cannot_be_cut_back_takes_three_places() -> None:
    made = observed(prompt_cache_size=3, trimmable=False)
    for number, key in enumerate("abc", 1):
        send(made, key, number, "opened?", system=key * 900)
    (line,) = forecast(made.state, Draft(user="new", policy_text="z" * 900)).more
    assert "and 2 more: count 3" in line


def test_the_byte_limit_counts_the_copy_of_what_is_reused() -> None:
    made = observed(prompt_cache_bytes=150_000)
    send(made, "a", 1, "opened?")
    send(made, "b", 2, "opened?", system="Warran" * 150)
    draft = Draft(user="damaged?", policy_text=RULES, max_tokens=1)
    assert forecast(made.state, draft).more == (
        "✂ would evict Return (#1, the one it reuses), 710 tokens: bytes 150 kB",
    )


def test_traps_are_named() -> None:
    made = observed(prompt_cache_bytes=50_000)
    send(made, "a", 1, "opened?")
    lines = forecast(made.state, Draft(user="damaged?", policy_text=RULES, max_tokens=100)).more
    assert any(line.startswith("! its entry alone, ≈8") for line in lines)
    seeded = forecast(made.state, Draft(user="damaged?", policy_text=RULES, extra={"seed": 1})).more
    assert any("sequential path (seed): no checkpoints, the byte limit does not apply" in line for line in seeded)
    dated = forecast(made.state, Draft(user="damaged?", policy_text=RULES, before="today")).more
    assert "! text before the policy: a change in it re-reads all behind it" in dated


def test_what_still_runs_is_said_to_be_missing() -> None:
    made = story()
    draft = Draft(user="another", policy_text=POLICY)
    assert not forecast(made.state, draft).more
    made.compose("b", system="else")
    assert forecast(made.state, draft).more == ("! #2 still runs: what it will store is not counted",)
    made.compose("c", system="else")
    assert forecast(made.state, draft).more[0].startswith("! 2 requests still run: what they")


def test_a_policy_that_is_being_read_would_be_read_twice() -> None:
    made = Story()
    made.server()
    made.compose("a", system=POLICY)
    (line,) = forecast(made.state, Draft(user="another", policy_text=POLICY)).more
    assert line == "! #1 has not stored this text yet: wait, or read it twice"


@pytest.mark.parametrize(
    ("flags", "word"), [({"draft_model": "d"}, "draft model"), ({"kv_bits": 4}, "kv-bits"), ({}, "")]
)
def test_flags_that_force_the_sequential_path(flags: dict[str, object], word: str) -> None:
    made = observed(**flags)
    send(made, "a", 1, "opened?")
    lines = forecast(made.state, Draft(user="damaged?", policy_text=RULES)).more
    assert any(f"({word})" in line for line in lines) == bool(word)


def test_a_prompt_equal_to_a_stored_sequence_is_a_trap_in_some_versions() -> None:
    made = observed(trimmable=False)
    send(made, "a", 1, "opened?")
    count = made.state.requests["a"].prompt_tokens
    assert count is not None
    draft = Draft(user="opened?", policy_text=RULES)
    assert not any("kills" in line for line in forecast(made.state, draft).more)
    made.store(2, "a", count, kind="user", trimmable=False)
    assert "! equal to a stored sequence: kills the worker of mlx-lm 0.32.2" in forecast(made.state, draft).more
    made.state.server.mlx_lm = "0.31.1"
    assert not any("kills" in line for line in forecast(made.state, draft).more)
