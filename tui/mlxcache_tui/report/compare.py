"""A comparison as JSON, as a table for people, and in Markdown. Differences come first."""

from collections.abc import Callable
from typing import Any

import msgspec

from mlxcache_tui.core.compare import ALL, CONFIDENCE, ENOUGH, THRESHOLD, Answers, Comparison, Metric
from mlxcache_tui.core.units import UNKNOWN, human_bytes, human_percent, human_rate
from mlxcache_tui.report import format as fmt

SCHEMA = 1
ANSWER_LENGTH = 200
_NAMES = {
    "ttft_s": "TTFT",
    "e2e_s": "total",
    "cached_ratio": "cached",
    "prefill_tps": "prefill tok/s",
    "decode_tps": "decode tok/s",
    "evictions": "evictions",
    "failed": "failed",
    "memory_peak_bytes": "memory peak",
    "mlx_peak_bytes": "MLX peak",
}
_WHOLE = {
    "worse": "B is worse than A",
    "better": "B is better than A",
    "same": "B is no worse than A",
    "inconclusive": "inconclusive: this does not show that B is no worse",
}
_WORDS = {"better": "▲ better", "worse": "▼ worse", "same": "= same", "inconclusive": "? inconclusive"}
_HEAD = ("over all steps", "A", "B", "B ÷ A", "90 % interval", "n", "verdict")
_OF_STEPS = ("ttft_s", "e2e_s", "cached_ratio", "prefill_tps", "decode_tps")
_STEP_HEAD = ("step, A → B", "n", *(_NAMES[name] for name in _OF_STEPS), "verdicts")
RULE = (
    f"Times and rates: worse or better where the whole {CONFIDENCE:.0%} interval of B ÷ A lies beyond {THRESHOLD:.0%}, "
    f"from {ENOUGH} runs a side on. Cached ratio, evictions and failures are counted, so that they need no interval."
)


def comparison_json(comparison: Comparison) -> str:
    """The object of `compare --json`, indented, one line end."""
    whole = {
        "schema": SCHEMA,
        "refused": comparison.refused,
        "differences": {name: list(pair) for name, pair in comparison.differences.items()},
        "metrics": [msgspec.to_builtins(metric) for metric in comparison.metrics],
        "verdict": comparison.verdict,
        "answers": [msgspec.to_builtins(answers) for answers in comparison.answers],
        "notes": list(comparison.notes),
        "threshold": THRESHOLD,
        "confidence": CONFIDENCE,
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"


def comparison_lines(comparison: Comparison, names: tuple[str, str]) -> list[str]:
    """For a terminal: what differs, the table, the answers, the verdict last."""
    lines = [f"A  {names[0]}", f"B  {names[1]}", *_difference_lines(comparison)]
    if comparison.refused is not None:
        return [*lines, f"not compared: {comparison.refused}"]
    lines += ["", *fmt.text_table(_HEAD, _rows(comparison)), ""]
    lines += [*fmt.text_table(_STEP_HEAD, _step_rows(comparison)), ""]
    for answers in comparison.answers:
        lines += _answer_lines(answers)
    lines += [f"note: {note}" for note in comparison.notes]
    return [*lines, "", RULE, f"{_WORDS[comparison.verdict].split()[0]} {_WHOLE[comparison.verdict]}"]


def comparison_markdown(comparison: Comparison, names: tuple[str, str]) -> str:
    """The same for someone who was not there."""
    lines = [f"# {fmt.one_line(names[0])} against {fmt.one_line(names[1])}", ""]
    lines += [f"- A: {fmt.one_line(names[0])}", f"- B: {fmt.one_line(names[1])}"]
    lines += [f"- {line.strip()}" for line in _difference_lines(comparison)]
    if comparison.refused is not None:
        return "\n".join([*lines, "", f"**Not compared:** {comparison.refused}", ""])
    lines += ["", f"**{_WHOLE[comparison.verdict]}**", ""]
    lines += [*fmt.markdown_table(_HEAD, _rows(comparison)), "", "## Steps", ""]
    lines += [*fmt.markdown_table(_STEP_HEAD, _step_rows(comparison)), "", "## Answers", ""]
    rows = [
        (answers.step, "same" if answers.same else "different", _short(answers.a), _short(answers.b))
        for answers in comparison.answers
    ]
    lines += fmt.markdown_table(("step", "", "A", "B"), [tuple(map(_harmless, row)) for row in rows])
    lines += ["", *(f"- {note}" for note in comparison.notes), "", "---", "", RULE, ""]
    return "\n".join(lines)


def _difference_lines(comparison: Comparison) -> list[str]:
    if not comparison.differences:
        return ["no flag or version differs"]
    return [f"differs: {name}: {_value(pair[0])} → {_value(pair[1])}" for name, pair in comparison.differences.items()]


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value)) or UNKNOWN
    return UNKNOWN if value is None else str(value)


def _rows(comparison: Comparison) -> list[tuple[str, ...]]:
    return [_row(metric) for metric in comparison.metrics if metric.step == ALL]


def _row(metric: Metric) -> tuple[str, ...]:
    show = _shower(metric.metric)
    known = metric.low is not None and metric.high is not None
    return (
        _NAMES[metric.metric],
        show(metric.a),
        show(metric.b),
        UNKNOWN if metric.ratio is None else f"{metric.ratio:.2f}",
        f"{metric.low:.2f} to {metric.high:.2f}" if known else UNKNOWN,
        _count(metric.n),
        _WORDS[metric.verdict],
    )


def _count(n: tuple[int, int]) -> str:
    return str(n[0]) if n[0] == n[1] else f"{n[0]}, {n[1]}"


def _step_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row a step, both sides in each cell; of the verdicts those that say something."""
    steps: dict[str, dict[str, Metric]] = {}
    for metric in comparison.metrics:
        if metric.step != ALL:
            steps.setdefault(metric.step, {})[metric.metric] = metric
    rows = []
    for step, metrics in steps.items():
        told = [
            f"{_NAMES[name]} {metrics[name].verdict}"
            for name in _OF_STEPS
            if metrics[name].verdict in ("worse", "better")
        ]
        cells = [f"{_shower(name)(metrics[name].a)} → {_shower(name)(metrics[name].b)}" for name in _OF_STEPS]
        rows.append((step, _count(metrics["ttft_s"].n), *cells, ", ".join(told)))
    return rows


def _shower(metric: str) -> Callable[[float | None], str]:
    if metric.endswith("_s"):
        return fmt.seconds
    if metric.endswith("_bytes"):
        return human_bytes
    return {"cached_ratio": human_percent}.get(metric, human_rate if metric.endswith("_tps") else fmt.whole)


def _answer_lines(answers: Answers) -> list[str]:
    if answers.same:
        return [f"answers of {answers.step}: the same: {_short(answers.a)}"]
    return [f"answers of {answers.step}:", f"  A  {_short(answers.a)}", f"  B  {_short(answers.b)}"]


def _short(text: str) -> str:
    line = fmt.one_line(text)
    return (line if len(line) <= ANSWER_LENGTH else line[: ANSWER_LENGTH - 1] + "…") or "(no text)"


def _harmless(text: str) -> str:
    return text.translate({ord(mark): f"\\{mark}" for mark in "\\`*_[]#<>"})
