"""A comparison as JSON, as a table for people, and in Markdown. Differences come first."""

from typing import Any

import msgspec

from mlxcache_tui.core.compare import ALL, CONFIDENCE, THRESHOLD, Answers, Comparison, Metric
from mlxcache_tui.core.compare_view import (
    NAMES,
    OF_STEPS,
    RULE,
    WHOLE,
    MetricRow,
    difference_rows,
    overall_rows,
    step_views,
)
from mlxcache_tui.draw.signs import VERDICT_SIGNS
from mlxcache_tui.report import format as fmt

SCHEMA = 1
ANSWER_LENGTH = 200
_HEAD = ("over all steps", "A", "B", "B ÷ A", "90 % interval", "n", "verdict")
_STEP_HEAD = ("step, A → B", "n", *(NAMES[name] for name in OF_STEPS), "verdicts")
_LEAST = ("n", "90 % interval")
_STEP_LEAST = tuple(NAMES[name] for name in ("decode_tps", "prefill_tps", "e2e_s"))
"""Columns that go first on a narrow terminal."""
NAME_CELLS = 22
"""Cells to which the names of steps are cut before that."""


def comparison_json(comparison: Comparison) -> str:
    """The object of `compare --json`, indented, one line end."""
    whole = {
        "schema": SCHEMA,
        "refused": comparison.refused,
        "unmeant": list(comparison.unmeant),
        "differences": {name: list(pair) for name, pair in comparison.differences.items()},
        "metrics": [_metric(metric) for metric in comparison.metrics],
        "verdict": comparison.verdict,
        "answers": [msgspec.to_builtins(answers) for answers in comparison.answers],
        "notes": list(comparison.notes),
        "threshold": THRESHOLD,
        "confidence": CONFIDENCE,
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"


def _metric(metric: Metric) -> dict[str, Any]:
    """`step` is `all` where it is over all of them; `overall` tells that from a step of this name."""
    overall = metric.step is ALL
    return {**msgspec.to_builtins(metric), "step": "all" if overall else metric.step, "overall": overall}


def comparison_lines(comparison: Comparison, names: tuple[str, str], width: int | None = None) -> list[str]:
    """For a terminal that is `width` cells wide: what differs, the table, the answers, the verdict last."""
    lines = [f"A  {names[0]}", f"B  {names[1]}", *_difference_lines(comparison)]
    if comparison.refused is not None:
        return fmt.folded([*lines, f"not compared: {_refusal(comparison)}"], width)
    lines += ["", *fmt.fitted_table(_HEAD, _rows(comparison), width, _LEAST), ""]
    lines += [*fmt.fitted_table(_STEP_HEAD, _step_rows(comparison), width, _STEP_LEAST, NAME_CELLS), ""]
    for answers in comparison.answers:
        lines += _answer_lines(answers)
    lines += [f"note: {note}" for note in comparison.notes]
    lines += ["", RULE, f"{VERDICT_SIGNS[comparison.verdict].sign} {WHOLE[comparison.verdict]}"]
    return fmt.folded(lines, width)


def comparison_markdown(comparison: Comparison, names: tuple[str, str]) -> str:
    """The same for someone who was not there."""
    lines = [f"# {fmt.one_line(names[0])} against {fmt.one_line(names[1])}", ""]
    lines += [f"- A: {fmt.one_line(names[0])}", f"- B: {fmt.one_line(names[1])}"]
    lines += [f"- {line.strip()}" for line in _difference_lines(comparison)]
    if comparison.refused is not None:
        return "\n".join([*lines, "", f"**Not compared:** {_refusal(comparison)}", ""])
    lines += ["", f"**{WHOLE[comparison.verdict]}**", ""]
    lines += [*fmt.markdown_table(_HEAD, _rows(comparison)), "", "## Steps", ""]
    lines += [*fmt.markdown_table(_STEP_HEAD, _step_rows(comparison)), "", "## Answers", ""]
    rows = [
        (answers.step, "same" if answers.same else "different", _short(answers.a), _short(answers.b))
        for answers in comparison.answers
    ]
    lines += fmt.markdown_table(("step", "", "A", "B"), [tuple(map(fmt.harmless, row)) for row in rows])
    lines += ["", *(f"- {note}" for note in comparison.notes), "", "---", "", RULE, ""]
    return "\n".join(lines)


def _refusal(comparison: Comparison) -> str:
    """The reason, and how to say that it was meant."""
    if not comparison.unmeant:
        return str(comparison.refused)
    flags = " ".join(f"--changed {name}" for name in comparison.unmeant)
    return f"{comparison.refused}; name what was meant: {flags}"


def _difference_lines(comparison: Comparison) -> list[str]:
    rows = difference_rows(comparison)
    return [f"differs: {row.name}: {row.a} → {row.b}" for row in rows] or ["no flag or version differs"]


def _rows(comparison: Comparison) -> list[tuple[str, ...]]:
    return [(row.name, row.a, row.b, row.ratio, row.interval, row.n, _verdict(row)) for row in overall_rows(comparison)]


def _verdict(row: MetricRow) -> str:
    sign = VERDICT_SIGNS[row.verdict]
    return f"{sign.sign} {sign.word}"


def _step_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row a step, both sides in each cell; of the verdicts those that say something."""
    rows = []
    for step in step_views(comparison):
        told = [f"{row.name} {row.verdict}" for row in step.rows if row.verdict in ("worse", "better")]
        rows.append((step.name, step.n, *(f"{row.a} → {row.b}" for row in step.rows), ", ".join(told)))
    return rows


def _answer_lines(answers: Answers) -> list[str]:
    if answers.same:
        return [f"answers of {answers.step}: the same: {_short(answers.a)}"]
    return [f"answers of {answers.step}:", f"  A  {_short(answers.a)}", f"  B  {_short(answers.b)}"]


def _short(text: str) -> str:
    line = fmt.one_line(text)
    return (line if len(line) <= ANSWER_LENGTH else line[: ANSWER_LENGTH - 1] + "…") or "(no text)"
