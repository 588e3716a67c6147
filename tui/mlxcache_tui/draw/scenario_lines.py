"""The scenario pane as lines of spans: how far it is, the verdict, a row for each run of a sweep and for each step."""

from functools import lru_cache
from typing import Literal, NamedTuple

from mlxcache_tui.core.scenario_view import (
    ExpectView,
    Figures,
    RunStatus,
    RunView,
    ScenarioView,
    StepStatus,
    StepView,
    Tone,
)
from mlxcache_tui.core.text import wrap_cells
from mlxcache_tui.core.units import UNKNOWN, human_count, human_duration, human_percent
from mlxcache_tui.draw.bars import bar
from mlxcache_tui.draw.chart import sweep_plots
from mlxcache_tui.draw.columns import Column, Layout, head_line, lay_out, place
from mlxcache_tui.draw.signs import Sign
from mlxcache_tui.draw.spans import Line, Look, Span, fit_line

STATUS_SIGNS: dict[StepStatus | RunStatus, Sign] = {
    "waiting": Sign("·", "waiting", "dim"),
    "running": Sign("▷", "running", "info"),
    "done": Sign("✓", "done", "good"),
    "failed": Sign("✗", "failed", "bad"),
    "stopped": Sign("⊘", "stopped", "warn"),
    "lost": Sign("✗", "server lost", "bad"),
}
_PHASE_SIGNS: dict[str, Span] = {"running": Span("▷ ", "info"), "paused": Span("‖ ", "warn"), "stopping": Span("⊘ ")}
_TONE_SIGNS: dict[Tone, Span] = {
    "good": Span("✓ ", "good"),
    "bad": Span("✗ ", "bad"),
    "warn": Span("! ", "warn"),
    "plain": Span("· ", "dim"),
}
_TONE_LOOKS: dict[Tone, Look] = {"good": "good", "bad": "bad", "warn": "warn", "plain": "plain"}
_BAR = 16
_ALL = 10_000
_BESIDE, _WIDE = 64, 90
"""Cells from which on the last result has columns beside the new one, and from which on the counts fit in as well."""


class Key(NamedTuple):
    """What a row stands for, so that the cursor can go there: a run by index, or a step by id."""

    kind: Literal["run", "step"]
    run: int
    step: str = ""


class Row(NamedTuple):
    """A line, and what it stands for (None: it cannot be chosen)."""

    line: Line
    key: Key | None = None


def top_lines(view: ScenarioView, width: int) -> list[Line]:
    """What stands still: how far it is or what came of it, and what was edited since the last time."""
    sign = _TONE_SIGNS[view.head.tone] if view.phase == "over" else _PHASE_SIGNS[view.phase]
    look = _TONE_LOOKS[view.head.tone]
    head: list[Span] = [sign, Span(view.head.text, "strong" if look == "plain" else look)]
    if view.phase != "over" and width >= 50:
        filled, rest = bar(view.share, _BAR)
        head = [*fit_line(tuple(head), width - _BAR - 1), Span(" "), Span(filled, "bar"), Span(rest, "rest")]
    lines = [fit_line(tuple(head), width)]
    if view.has_before:
        words = f"beside the last result; changed: {', '.join(view.changed)}" if view.changed else "beside the last run"
        lines.append(fit_line((Span(words, "dim"),), width))
    return lines


def body_rows(view: ScenarioView, shown: int, width: int) -> list[Row]:
    """What scrolls: the verdict, the runs if there are several, and the steps of run `shown`."""
    rows: list[Row] = []
    for verdict in view.verdict:
        for number, text in enumerate(wrap_cells(verdict.text, max(1, width - 2))):
            sign = Span("  ") if number else _TONE_SIGNS[verdict.tone]
            rows.append(Row(fit_line((sign, Span(text, _TONE_LOOKS[verdict.tone])), width)))
    layout = scenario_layout(width, view.has_before)
    if len(view.runs) > 1:
        rows.append(Row(_head(layout, view.limits, width)))
        rows += [
            Row(_run_line(run, layout, width, shown=index == shown), Key("run", index))
            for index, run in enumerate(view.runs)
        ]
    run = view.runs[shown]
    rows.append(Row(_head(layout, f"step, limit {run.values}" if run.values else "step", width)))
    for step in run.steps:
        key = Key("step", shown, step.id)
        rows.append(Row(_step_line(step, layout, width), key))
        rows += [Row(fit_line((Span(f"    {note}", "dim"),), width)) for note in step.notes]
        rows += [Row(_expect_line(expect, width)) for expect in step.expects]
    return [*rows, *(Row(fit_line(line, width)) for line in _plot_lines(view, width))]


def _plot_lines(view: ScenarioView, width: int) -> list[Line]:
    plots = sweep_plots(view.points, width)
    if not plots:
        return []
    return [(), (Span(f"over {view.limits}", "dim"),), *((Span(line),) for line in plots)]


@lru_cache(maxsize=16)
def scenario_layout(width: int, has_before: bool) -> Layout:
    """The columns of runs and steps in `width` cells; those of the last result only if there is one and room."""
    beside = has_before and width >= _BESIDE
    pairs = (
        ("cached", "cached", 6, 5, 2),
        ("ttft", "TTFT", 6, 6, 3),
        ("evicted", "evict", 5, 3, 4),
        ("wall", "wall", 6, 6, 6),
    )
    columns = [Column("sign", "", 1, 0), Column("name", "", 12, 1, most=_ALL)]
    if not beside or width >= _WIDE:
        columns.append(Column("n", "sent", 5, 9, "right"))
    for name, head, cells, before_cells, drop in pairs:
        columns.append(Column(name, head, cells, drop, "right"))
        if beside:
            # The figure and the one of the last time go together.
            columns.append(Column(f"{name}_before", "was", before_cells, drop, "right"))
    return lay_out(tuple(columns), width)


def _head(layout: Layout, name: str, width: int) -> Line:
    named = tuple(column._replace(head=name) if column.name == "name" else column for column in layout.columns)
    return fit_line(head_line(Layout(named, layout.gap)), width)


def _run_line(run: RunView, layout: Layout, width: int, *, shown: bool) -> Line:
    sign = STATUS_SIGNS[run.status]
    done = sum(step.done for step in run.steps)
    total = sum(step.total for step in run.steps)
    name = Span(run.values, "strong" if shown else "plain")
    return _table_line(sign, name, f"{done}/{total}", (run.figures, run.before), layout, width)


def _step_line(step: StepView, layout: Layout, width: int) -> Line:
    sign = STATUS_SIGNS[step.status]
    name = Span(step.name, "dim" if step.status == "waiting" else "plain")
    return _table_line(sign, name, f"{step.done}/{step.total}", (step.figures, step.before), layout, width)


def _table_line(
    sign: Sign, name: Span, count: str, figures: tuple[Figures | None, Figures | None], layout: Layout, width: int
) -> Line:
    cells: list[Line] = []
    for column in layout.columns:
        what, _, before = column.name.partition("_")
        match what:
            case "sign":
                cells.append((Span(sign.sign, sign.look),))
            case "name":
                cells.append((name,))
            case "n":
                cells.append((Span(count, "dim"),))
            case _:
                cells.append((Span(_figure(figures[bool(before)], what), "dim" if before else "plain"),))
    return fit_line(place(cells, layout), width)


def _figure(figures: Figures | None, name: str) -> str:
    if figures is None:
        return ""
    match name:
        case "cached":
            return human_percent(figures.cached_ratio)
        case "ttft":
            return _seconds(figures.ttft_s)
        case "evicted":
            return human_count(figures.evictions)
        case _:
            return _seconds(figures.wall_s)


def _seconds(value: float | None) -> str:
    """Short also where it is long: `48 ms`, `1.9 s`, `312 s`."""
    return human_duration(value) if value is None or value < 60 else f"{value:.0f} s"


def _expect_line(expect: ExpectView, width: int) -> Line:
    if expect.held is None:
        return fit_line((Span(f"    · {expect.text}", "dim"),), width)
    sign = Span("✓ ", "good") if expect.held else Span("✗ ", "bad")
    detail = Span(f"  {expect.detail or UNKNOWN}", "dim" if expect.held else "bad")
    return fit_line((Span("    "), sign, Span(expect.text), detail), width)
