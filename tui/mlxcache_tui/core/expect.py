"""Expectations of a scenario: `[step.]metric op value`, parsed by hand and compared, never run as code.

A value is a number, a quoted word, or `number * step.metric` (also `step.metric` alone). `min.`, `max.`, `sum.` in
front of a name choose what is taken over several requests; without one it is the median. Words have no median: over
several requests a comparison of words must hold for each of them.
"""

import difflib
import math
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from mlxcache_tui.core import stats

Operator = Literal["<=", ">=", "==", "!=", "<", ">", "contains"]
Aggregate = Literal["median", "min", "max", "sum"]
Value = float | str
MetricKind = Literal["number", "word"]

OPERATORS: tuple[Operator, ...] = ("<=", ">=", "==", "!=", "<", ">", "contains")
AGGREGATES: tuple[Aggregate, ...] = ("median", "min", "max", "sum")

REQUEST_METRICS: dict[str, MetricKind] = {
    "cached_ratio": "number",
    "cached_tokens": "number",
    "prompt_tokens": "number",
    "output_tokens": "number",
    "shared_tokens": "number",
    "wait_s": "number",
    "ttft_s": "number",
    "prefill_s": "number",
    "prefill_tps": "number",
    "decode_tps": "number",
    "e2e_s": "number",
    "status": "number",
    "reason": "word",
    "finish_reason": "word",
    "cached_source": "word",
    "rule": "word",
    "state": "word",
    "policy": "word",
    "text": "word",
    "error": "word",
}
STEP_METRICS: dict[str, MetricKind] = {
    "evictions": "number",
    "requests": "number",
    "failed": "number",
    "hits": "number",
    "wall_s": "number",
    "system_tps": "number",
    "peak_bytes": "number",
    "load_s": "number",
}
METRICS: dict[str, MetricKind] = REQUEST_METRICS | STEP_METRICS


class ExpectationError(ValueError):
    """The text is not an expectation; the message says what was expected in its place."""


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A measured figure: of one step (None: the step that the expectation stands in)."""

    name: str
    step: str | None = None
    aggregate: Aggregate | None = None

    @property
    def kind(self) -> MetricKind:
        """Whether it is a number or a word."""
        return METRICS[self.name]


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """`left op right`, or `left op factor * right` where right is a metric."""

    text: str
    left: Metric
    op: Operator
    right: float | str | Metric
    factor: float = 1.0

    def steps(self) -> tuple[str, ...]:
        """Ids of the other steps that it names."""
        named = [self.left.step, self.right.step if isinstance(self.right, Metric) else None]
        return tuple(step for step in named if step is not None)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an expectation. `measured` None is unknown, which never holds; `why` says by how much it failed."""

    step: str
    text: str
    held: bool
    measured: float | str | None
    wanted: float | str | None
    why: str


Measure = Callable[[Metric], Sequence[float | str | None]]
"""The values of a metric, one for each request of its step (one in all for a figure of the step itself)."""


# --- reading ---------------------------------------------------------------------------------------------------------


def parse(text: str) -> Expectation:
    """Read one expectation.

    Raises:
        ExpectationError: with what was expected, and the nearest known metric for an unknown one.
    """
    tokens = _tokens(text)
    if len(tokens) < 3:
        raise ExpectationError(f"{text!r}: expected a metric, one of {' '.join(OPERATORS)}, and a value")
    left = _metric(tokens[0])
    op = next((known for known in OPERATORS if known == tokens[1]), None)
    if op is None:
        raise ExpectationError(f"{tokens[1]!r}: expected one of {' '.join(OPERATORS)}")
    factor, right = _right(tokens[2:])
    _same_kind(left, op, right)
    return Expectation(text=text, left=left, op=op, right=right, factor=factor)


def _tokens(text: str) -> list[str]:
    """Names and numbers, operators, `*`, and quoted words with their first quote kept as the mark of one."""
    tokens: list[str] = []
    at = 0
    while at < len(text):
        mark = text[at]
        if mark.isspace():
            at += 1
        elif mark in "'\"":
            end = text.find(mark, at + 1)
            if end < 0:
                raise ExpectationError(f"{text[at:]!r}: the closing quote is missing")
            tokens.append(text[at:end])
            at = end + 1
        elif _in_name(mark):
            start = at
            while at < len(text) and _in_name(text[at]):
                at += 1
            tokens.append(text[start:at])
        else:
            size = 2 if text[at : at + 2] in OPERATORS else 1
            tokens.append(text[at : at + size])
            at += size
    return tokens


def _in_name(mark: str) -> bool:
    return mark.isalnum() or mark in "_.-+"


def _number(token: str) -> float | None:
    try:
        value = float(token)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _metric(token: str) -> Metric:
    """`[aggregate.][step.]metric`, also `step.aggregate.metric`."""
    if token[:1] in "'\"" or not _in_name(token[:1]):
        raise ExpectationError(f"{token!r}: expected a metric such as cached_ratio or ttft_s")
    *front, name = token.split(".")
    if name not in METRICS:
        raise ExpectationError(f"{name!r} is not a metric{nearest(name, METRICS)}")
    aggregate: Aggregate | None = None
    for known in AGGREGATES:
        if known in front:
            aggregate = known
            front.remove(known)
            break
    if len(front) > 1 or "" in front:
        raise ExpectationError(f"{token!r}: expected [min.|max.|sum.][step.]metric")
    if aggregate is not None and METRICS[name] == "word":
        raise ExpectationError(f"{token!r}: {name} is a word and has no {aggregate}")
    return Metric(name=name, step=front[0] if front else None, aggregate=aggregate)


def _right(tokens: list[str]) -> tuple[float, float | str | Metric]:
    """The factor and the value after the operator."""
    first = tokens[0]
    number = _number(first)
    if len(tokens) == 1 and number is not None:
        return 1.0, number
    if len(tokens) == 1 and first[0] in "'\"":
        return 1.0, first[1:]
    if len(tokens) == 1 and "." not in first and first not in METRICS and _in_name(first[0]):
        raise ExpectationError(f"{first!r}: expected a number, or a word in quotes ('{first}')")
    if len(tokens) == 1:
        return 1.0, _metric(first)
    if len(tokens) == 3 and tokens[1] == "*" and number is not None:
        right = _metric(tokens[2])
        if right.kind == "word":
            raise ExpectationError(f"{tokens[2]!r} is a word and cannot be multiplied")
        return number, right
    raise ExpectationError(f"{' '.join(tokens)!r}: expected a number, a quoted word, or number * step.metric")


def _same_kind(left: Metric, op: Operator, right: float | str | Metric) -> None:
    kind = right.kind if isinstance(right, Metric) else ("word" if isinstance(right, str) else "number")
    if left.kind != kind:
        want = "a number" if left.kind == "number" else "a quoted word"
        raise ExpectationError(f"{left.name} is compared with {want}")
    if left.kind == "number" and op == "contains":
        raise ExpectationError(f"contains looks into words such as text; {left.name} is a number")
    if left.kind == "word" and op not in ("==", "!=", "contains"):
        raise ExpectationError(f"{left.name} is a word: expected ==, != or contains, not {op}")


def nearest(name: str, known: Sequence[str] | dict[str, MetricKind]) -> str:
    """`; did you mean …?` for a near miss, else the list of what is known."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"


# --- judging ---------------------------------------------------------------------------------------------------------


def judge(expectation: Expectation, step: str, measure: Measure) -> Verdict:
    """Compare what was measured with what was expected; `step` names the step in the verdict."""
    values = list(measure(expectation.left))
    right: float | str | None
    if isinstance(expectation.right, Metric):
        right, why = _single(expectation.right, list(measure(expectation.right)))
        right = right * expectation.factor if isinstance(right, float) else right
    else:
        right, why = expectation.right, ""
    measured, unknown = _single(expectation.left, values)
    if expectation.left.kind == "word":
        held = right is not None and not unknown and all(_holds(str(v), expectation.op, right) for v in values)
    else:
        held = measured is not None and right is not None and _holds(measured, expectation.op, right)
    if not held:
        why = unknown or why or _gap(expectation, measured, right)
    return Verdict(
        step=step, text=expectation.text, held=held, measured=measured, wanted=right, why="" if held else why
    )


def _single(metric: Metric, values: list[float | str | None]) -> tuple[float | str | None, str]:
    """One figure for all requests, or None and why it is unknown."""
    name = f"{metric.step}.{metric.name}" if metric.step else metric.name
    missing = values.count(None)
    if not values:
        return None, f"{name} is unknown: no request was made"
    if missing:
        return None, f"{name} is unknown" + (f" for {missing} of {len(values)} requests" if len(values) > 1 else "")
    if metric.kind == "word":
        return _words([str(value) for value in values]), ""
    numbers = [float(value) for value in values if value is not None]
    match metric.aggregate:
        case "min":
            return min(numbers), ""
        case "max":
            return max(numbers), ""
        case "sum":
            return math.fsum(numbers), ""
        case _:
            return stats.median(numbers), ""


def _words(words: list[str]) -> str:
    """The word that all have, or each with how many have it."""
    distinct = list(dict.fromkeys(words))
    if len(distinct) == 1:
        return distinct[0]
    return ", ".join(f"{word} ×{words.count(word)}" for word in distinct)


def _holds(left: float | str, op: Operator, right: float | str) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        a, b = str(left), str(right)
        # A model may begin a sentence with the word that is looked for.
        return {"==": a == b, "!=": a != b}.get(op, b.casefold() in a.casefold())
    same = math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return {
        "==": same,
        "!=": not same,
        "<": left < right and not same,
        ">": left > right and not same,
        "<=": left < right or same,
        ">=": left > right or same,
    }[op]


def _gap(expectation: Expectation, measured: float | str | None, right: float | str | None) -> str:
    """By how much it failed, in the metric's own unit."""
    if isinstance(measured, float) and isinstance(right, float):
        return f"measured {measured:.4g}, expected {expectation.op} {right:.4g}"
    shown = str(measured)
    return f"measured {shown[:80]!r}{' …' if len(shown) > 80 else ''}, expected {expectation.op} {right!r}"
