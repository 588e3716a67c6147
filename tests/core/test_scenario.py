"""From steps to drafts."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.scenario import Policy, Scenario, Sent, Step, draft_of, fill

STEP = Step(id="a", name="step a", line=1, users=("q",), policy="p", before="b {{n}}", after="c", seed=3)
SCENARIO = Scenario(
    name="x",
    title="X",
    about="",
    source="x.toml",
    notes="",
    digest="0",
    server={},
    policies={"p": Policy(label="p", text="policy {{n}}")},
    steps=(STEP,),
    sweep={},
)


def values() -> dict[str, str]:
    return {"n": "7", "today": "2026-11-29", "uuid": "u"}


def test_the_system_message_is_before_policy_after() -> None:
    draft = draft_of(SCENARIO, STEP, "q {{today}}", values, None)
    assert draft.system == "b 7\n\npolicy 7\n\nc"
    assert (draft.user, draft.extra, draft.step) == ("q 2026-11-29", {"seed": 3}, "step a")


def test_a_continued_conversation_keeps_what_was_sent() -> None:
    first = draft_of(SCENARIO, STEP, "one", values, None)
    step = msgspec.structs.replace(STEP, continues="a", max_tokens=5)
    second = draft_of(SCENARIO, step, "two", lambda: {"n": "8"}, Sent(draft=first, answer="yes"))
    assert second.system == first.system
    assert second.messages == (("user", "one"), ("assistant", "yes"))
    assert (second.user, second.max_tokens) == ("two", 5)


def test_a_step_is_found_by_its_id() -> None:
    assert SCENARIO.step("a") is STEP
    with pytest.raises(KeyError):
        SCENARIO.step("b")


@pytest.mark.parametrize(
    ("text", "filled"),
    [("{{n}}", "7"), ("{{ n }}", "7"), ("{{m}}", "{{m}}"), ("{n}", "{n}"), ("{{{n}}}", "{7}"), ("{{n}}{{n}}", "77")],
)
def test_variables(text: str, filled: str) -> None:
    assert fill(text, values()) == filled


@given(st.text(alphabet="ab {}", max_size=30))
def test_text_without_variables_stays(text: str) -> None:
    assert fill(text, values()) == text
