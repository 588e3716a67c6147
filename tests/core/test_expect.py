"""Expectations: what is read, what is refused with which words, what holds."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.expect import (
    METRICS,
    Expectation,
    ExpectationError,
    Metric,
    Verdict,
    judge,
    parse,
)

Values = dict[tuple[str | None, str], Sequence[float | str | None]]


def verdict(text: str, values: Values) -> Verdict:
    return judge(parse(text), "a step", lambda metric: values[metric.step, metric.name])


READ: dict[str, Expectation] = {
    "cached_ratio >= 0.5": Expectation(text="", left=Metric(name="cached_ratio"), op=">=", right=0.5),
    "ttft_s<1": Expectation(text="", left=Metric(name="ttft_s"), op="<", right=1.0),
    "a1.ttft_s != 1e-3": Expectation(text="", left=Metric(name="ttft_s", step="a1"), op="!=", right=0.001),
    "max.e2e_s <= 2": Expectation(text="", left=Metric(name="e2e_s", aggregate="max"), op="<=", right=2.0),
    "max.a-1.e2e_s > 2": Expectation(
        text="", left=Metric(name="e2e_s", step="a-1", aggregate="max"), op=">", right=2.0
    ),
    "a.sum.e2e_s > 2": Expectation(text="", left=Metric(name="e2e_s", step="a", aggregate="sum"), op=">", right=2.0),
    "ttft_s <= 0.8 * a1.ttft_s": Expectation(
        text="", left=Metric(name="ttft_s"), op="<=", right=Metric(name="ttft_s", step="a1"), factor=0.8
    ),
    "ttft_s < a1.ttft_s": Expectation(
        text="", left=Metric(name="ttft_s"), op="<", right=Metric(name="ttft_s", step="a1")
    ),
    "max.ttft_s <= 2*min.ttft_s": Expectation(
        text="",
        left=Metric(name="ttft_s", aggregate="max"),
        op="<=",
        right=Metric(name="ttft_s", aggregate="min"),
        factor=2.0,
    ),
    "reason == 'hit'": Expectation(text="", left=Metric(name="reason"), op="==", right="hit"),
    'text contains "a b"': Expectation(text="", left=Metric(name="text"), op="contains", right="a b"),
    "text == ''": Expectation(text="", left=Metric(name="text"), op="==", right=""),
}


@pytest.mark.parametrize("text", READ)
def test_what_is_read(text: str) -> None:
    expected = READ[text]
    found = parse(text)
    assert (found.left, found.op, found.right, found.factor) == (
        expected.left,
        expected.op,
        expected.right,
        expected.factor,
    )
    assert found.text == text


REFUSED = {
    "": "expected a metric",
    "ttft_s": "expected a metric",
    "ttft_s <": "expected a metric",
    "cached_ration >= 1": "did you mean cached_ratio?",
    "zzz >= 1": "known are",
    "ttft_s = 1": "expected one of <= >=",
    "ttft_s is 1": "expected one of",
    "ttft_s => 1": "expected one of",
    "reason == hit": "a word in quotes ('hit')",
    "reason == 'hit": "closing quote",
    "reason >= 'hit'": "expected ==, != or contains",
    "reason == 1": "compared with a quoted word",
    "ttft_s == 'fast'": "compared with a number",
    "ttft_s < a.reason": "compared with a number",
    "ttft_s contains 1": "is a number",
    "max.reason == 'hit'": "has no max",
    "a.b.ttft_s < 1": "expected [min.|max.|sum.][step.]metric",
    ".ttft_s < 1": "expected [min.|max.|sum.][step.]metric",
    "'ttft_s' < 1": "expected a metric",
    "ttft_s < nan": "expected a number",
    "ttft_s < 0.5 * 2": "is not a metric",
    "ttft_s < a.ttft_s * 2": "expected a number",
    "ttft_s < 2 * a.reason": "cannot be multiplied",
    "ttft_s < 1 and evictions == 0": "expected a number",
    "__import__('os') == 1": "is not a metric",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ExpectationError, match=re.escape(REFUSED[text])):
        parse(text)


@given(st.text(max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        found = parse(text)
    except ExpectationError:
        return
    assert found.left.name in METRICS


@given(
    st.sampled_from([name for name, kind in METRICS.items() if kind == "number"]),
    st.sampled_from(["<=", ">=", "==", "!=", "<", ">"]),
    st.floats(min_value=-1e9, max_value=1e9),
)
def test_numbers_are_read_as_written(name: str, op: str, value: float) -> None:
    found = parse(f"{name} {op} {value!r}")
    assert (found.left.name, found.op, found.right) == (name, op, value)


HOLDS: list[tuple[str, Values, bool]] = [
    ("ttft_s < 1", {(None, "ttft_s"): [0.5]}, True),
    ("ttft_s < 1", {(None, "ttft_s"): [1.0]}, False),
    ("ttft_s <= 1", {(None, "ttft_s"): [1.0]}, True),
    ("cached_ratio == 0.3", {(None, "cached_ratio"): [0.1 + 0.2]}, True),
    ("cached_tokens != 5", {(None, "cached_tokens"): [5]}, False),
    ("ttft_s > 2", {(None, "ttft_s"): [1, 3, 9]}, True),
    ("min.ttft_s > 2", {(None, "ttft_s"): [1, 3, 9]}, False),
    ("max.ttft_s == 9", {(None, "ttft_s"): [1, 3, 9]}, True),
    ("sum.ttft_s == 13", {(None, "ttft_s"): [1, 3, 9]}, True),
    ("ttft_s <= 0.5 * a.ttft_s", {(None, "ttft_s"): [0.4], ("a", "ttft_s"): [1.0]}, True),
    ("ttft_s <= 0.5 * a.ttft_s", {(None, "ttft_s"): [0.6], ("a", "ttft_s"): [1.0]}, False),
    ("reason == 'hit'", {(None, "reason"): ["hit", "hit"]}, True),
    ("reason == 'hit'", {(None, "reason"): ["hit", "first"]}, False),
    ("reason != 'hit'", {(None, "reason"): ["hit", "first"]}, False),
    ("text contains 'damaged'", {(None, "text"): ["Damaged goods can be returned"]}, True),
    ("text contains 'damaged'", {(None, "text"): ["no"]}, False),
    ("text == a.text", {(None, "text"): ["x"], ("a", "text"): ["x"]}, True),
]


@pytest.mark.parametrize(("text", "values", "held"), HOLDS)
def test_what_holds(text: str, values: Values, held: bool) -> None:
    found = verdict(text, values)
    assert found.held is held
    assert bool(found.why) is not held


UNKNOWN: list[tuple[str, Values]] = [
    ("ttft_s < 1", {(None, "ttft_s"): [None]}),
    ("ttft_s < 1", {(None, "ttft_s"): [0.1, None]}),
    ("ttft_s < 1", {(None, "ttft_s"): []}),
    ("evictions == 0", {(None, "evictions"): [None]}),
    ("reason != 'hit'", {(None, "reason"): [None]}),
    ("ttft_s < a.ttft_s", {(None, "ttft_s"): [0.1], ("a", "ttft_s"): [None]}),
]


@pytest.mark.parametrize(("text", "values"), UNKNOWN)
def test_the_unknown_never_holds_and_says_so(text: str, values: Values) -> None:
    found = verdict(text, values)
    assert not found.held
    assert "unknown" in found.why


def test_a_failure_says_by_how_much() -> None:
    found = verdict("ttft_s <= 0.5 * a.ttft_s", {(None, "ttft_s"): [0.61], ("a", "ttft_s"): [1.0]})
    assert (found.measured, found.wanted) == (0.61, 0.5)
    assert found.why == "measured 0.61, expected <= 0.5"
    found = verdict("reason == 'hit'", {(None, "reason"): ["hit", "first", "hit"]})
    assert found.why == "measured 'hit ×2, first ×1', expected == 'hit'"


def test_the_steps_that_it_names() -> None:
    assert parse("a.ttft_s < 2 * b.ttft_s").steps() == ("a", "b")
    assert parse("ttft_s < 1").steps() == ()
