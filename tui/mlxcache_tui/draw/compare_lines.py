"""A comparison as lines of spans: both sides, what differs, the verdict, tables, and answers side by side."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from mlxcache_tui.core.compare_view import RULE, WHOLE, CompareView, MetricRow, StepView
from mlxcache_tui.core.text import fit, wrap_cells
from mlxcache_tui.draw.columns import Column, Layout, head_line, lay_out, place
from mlxcache_tui.draw.signs import REASON_SIGNS, VERDICT_SIGNS
from mlxcache_tui.draw.spans import Line, Look, Span, fit_line

DIFFERS = REASON_SIGNS["diverged"].sign
_METRIC_COLUMNS = (
    Column("name", "", 13, 0, most=30),
    Column("a", "A", 8, 1, "right", most=9),
    Column("b", "B", 8, 1, "right", most=9),
    Column("ratio", "B ÷ A", 5, 3, "right", most=7),
    Column("interval", "90 % interval", 13, 4, "right", most=14),
    Column("n", "n", 6, 5, "right"),
    Column("verdict", " verdict", 15, 2),
)
_STEP_COLUMNS = (
    Column("name", "step, A → B", 13, 0, most=34),
    Column("n", "n", 3, 5, "right"),
    Column("cached_ratio", "cached", 14, 1, "right"),
    Column("ttft_s", "TTFT", 18, 2, "right"),
    Column("e2e_s", "total", 18, 3, "right"),
    Column("prefill_tps", "prefill tok/s", 17, 4, "right"),
    Column("decode_tps", "decode tok/s", 17, 6, "right"),
)

SERVER_FROM, WHOLE_FROM = 14, 28
"""Lines from which on each side's server has one of them, and as many as it takes."""


class Row(NamedTuple):
    """A line, and the step that it opens."""

    line: Line
    step: int | None = None


def side_lines(view: CompareView, width: int, height: int) -> list[Line]:
    """The two sides, named. They stand still: in few lines (`height`) less is told of the servers."""
    lines: list[Line] = []
    for letter, side in zip("AB", view.sides, strict=True):
        # A session is named by its day and time.
        when = Span(f"{side.when} · " if side.when and not side.name.startswith(side.when[:10]) else "")
        name, measured = Span(side.name, "strong"), Span(f" · {side.measured}")
        lines.append(fit_line((Span(f"{letter}  ", "accent"), when, name, measured), width))
        if height >= WHOLE_FROM:
            lines += _wrapped("   ", side.server, "dim", width)
        elif height >= SERVER_FROM:
            lines.append(fit_line((Span(f"   {side.server}", "dim"),), width))
    return lines


def overview_rows(view: CompareView, width: int) -> list[Row]:
    """What differs, the verdict or the refusal, the table over all steps, a line for each step, and the notes."""
    lines = list(_differences(view, width))
    lines += _verdict(view, width)
    if view.refused is not None:
        return [Row(line) for line in lines]
    lines.append(_blank(width))
    lines += metric_lines(view.rows, "over all steps", width)
    lines.append(_blank(width))
    rows = [Row(line) for line in lines]
    layout = _step_layout(width)
    rows.append(Row(head_line(layout)))
    rows += [Row(_step_line(step, layout), index) for index, step in enumerate(view.steps)]
    rows.append(Row(_blank(width)))
    for note in view.notes:
        rows += [Row(line) for line in _wrapped("· ", note, "plain", width)]
    return [*rows, *(Row(line) for line in _wrapped("  ", RULE, "dim", width))]


def step_rows(view: CompareView, index: int, width: int) -> list[Row]:
    """One step: its table, and the first answer of each side beside the other."""
    step = view.steps[index]
    title = (Span(f"step {index + 1} of {len(view.steps)}  ", "dim"), Span(step.name, "strong"))
    lines = [fit_line(title, width), _blank(width), *metric_lines(step.rows, "this step", width), _blank(width)]
    return [Row(line) for line in (*lines, *answer_lines(step, width))]


# --- what differs, and the verdict -----------------------------------------------------------------------------------


def _differences(view: CompareView, width: int) -> Iterator[Line]:
    for row in view.differences:
        words = (Span(f"{DIFFERS}  ", "warn"), Span(f"{row.name}  ", "strong"), Span(f"{row.a} → {row.b}"))
        yield fit_line(words, width)
    if not view.differences:
        yield fit_line((Span("=  "), Span("no flag or version differs")), width)
    for letter, side in zip("AB", view.sides, strict=True):
        if side.note:
            yield from _wrapped(f"!  {letter}: ", side.note, "warn", width)


def _verdict(view: CompareView, width: int) -> list[Line]:
    if view.refused is None:
        sign = VERDICT_SIGNS[view.verdict]
        look: Look = "strong" if sign.look in ("plain", "dim") else sign.look
        return [_blank(width), fit_line((Span(f"{sign.sign}  {WHOLE[view.verdict]}", look),), width)]
    if view.unmeant:
        names = f"{', '.join(view.unmeant)} differ{'s' * (len(view.unmeant) == 1)}"
        reason = f"{names}: what changed cannot be told apart (m: that was meant)"
    else:
        reason = view.refused
    return [_blank(width), *_wrapped("✗  ", f"not compared: {reason}", "bad", width)]


# --- tables ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _metric_layout(width: int, title: str) -> Layout:
    layout = lay_out(_METRIC_COLUMNS, width)
    return Layout((layout.columns[0]._replace(head=title), *layout.columns[1:]), layout.gap)


@lru_cache(maxsize=16)
def _step_layout(width: int) -> Layout:
    return lay_out(_STEP_COLUMNS, width)


def metric_lines(rows: tuple[MetricRow, ...], title: str, width: int) -> list[Line]:
    """A table of metrics with its head, `width` cells each."""
    layout = _metric_layout(width, title)
    return [head_line(layout), *(_metric_line(row, layout) for row in rows)]


def _metric_line(row: MetricRow, layout: Layout) -> Line:
    sign = VERDICT_SIGNS[row.verdict]
    cells: list[Line] = []
    for column in layout.columns:
        if column.name == "verdict":
            cells.append((Span(f" {sign.sign} {sign.word}", sign.look),))
        else:
            look: Look = "dim" if column.name in ("interval", "n") else "plain"
            cells.append((Span(getattr(row, column.name), look),))
    return place(cells, layout)


def _step_line(step: StepView, layout: Layout) -> Line:
    by_metric = {row.metric: row for row in step.rows}
    cells: list[Line] = []
    for column in layout.columns:
        if column.name in ("name", "n"):
            cells.append((Span(getattr(step, column.name), "plain" if column.name == "name" else "dim"),))
        else:
            row = by_metric[column.name]
            sign = VERDICT_SIGNS[row.verdict]
            cells.append((Span(f"{row.a} → {row.b} "), Span(sign.sign, sign.look)))
    return place(cells, layout)


# --- answers ---------------------------------------------------------------------------------------------------------


def answer_lines(step: StepView, width: int) -> list[Line]:
    """Both answers side by side; one over the whole width where they are the same."""
    answers = step.answers
    if answers.same:
        head = fit_line((Span("answers  "), Span("= the same on both sides")), width)
        return [head, *(fit_line((Span(text),), width) for text in wrap_cells(answers.a or "(no text)", width))]
    half = (width - 3) // 2
    left, right = (wrap_cells(text or "(no text)", max(1, half - 2)) for text in (answers.a, answers.b))
    same = next(
        (row for row, (one, other) in enumerate(zip(left, right, strict=False)) if one != other),
        min(len(left), len(right)),
    )
    lines = [
        fit_line((Span("answers  "), Span(f"{DIFFERS} they differ", "warn")), width),
        _beside(Span("A", "head"), Span("B", "head"), half, width),
    ]
    for row in range(max(len(left), len(right))):
        one, other = (_answer_part(side, row, differs=row >= same) for side in (left, right))
        lines.append(_beside(one, other, half, width))
    return lines


def _answer_part(lines: list[str], row: int, *, differs: bool) -> Span:
    if row >= len(lines):
        return Span("")
    return Span(f"{DIFFERS} {lines[row]}", "warn") if differs else Span(f"  {lines[row]}")


def _beside(one: Span, other: Span, half: int, width: int) -> Line:
    left = Span(fit(one.text, half), one.look)
    return fit_line((left, Span(" │ ", "dim"), other), width)


def _wrapped(sign: str, text: str, look: Look, width: int) -> list[Line]:
    indent = len(sign)
    lines = wrap_cells(text, max(1, width - indent))
    return [
        fit_line((Span(" " * indent if number else sign, look), Span(line, look)), width)
        for number, line in enumerate(lines)
    ]


def _blank(width: int) -> Line:
    return (Span(" " * width),)
