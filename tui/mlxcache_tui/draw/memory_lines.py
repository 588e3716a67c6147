"""The memory pane as lines of spans: graph, mark row, figures."""

from bisect import bisect_left
from collections.abc import Iterable

import msgspec

from mlxcache_tui.core.units import human_bytes
from mlxcache_tui.core.views import MemoryPoint, MemoryView
from mlxcache_tui.draw.braille import area, downsample, group_size, scale
from mlxcache_tui.draw.cache_lines import coarse_age
from mlxcache_tui.draw.signs import EVICTED, RESTARTED
from mlxcache_tui.draw.spans import Line, Look, Span, fit_line, line_width, note_lines

_LABEL = 8
"""Cells of the scale's labels, left of the graph."""
_TALL, _TALLER = 5, 9
"""Heights from which on the figures get a line above the graph, and a second one below it."""
_SOURCE_NAMES = {"footprint": "footprint", "pss": "PSS", "rss": "RSS"}


def memory_lines(view: MemoryView, width: int, height: int, dropped: int = 0) -> list[Line]:
    """`height` lines of `width` cells. `dropped`: samples that came before `points[0]` and are no longer kept."""
    if height <= 0 or width <= 0:
        return []
    if view.source is None or not view.points:
        return note_lines("memory of the server process: not known yet", width, height)
    head = [_head(view, width)] if height >= _TALL else []
    figures = _figures(view, width, most=2 if height >= _TALLER else 1, with_head=not head)
    rest = height - len(head) - len(figures)
    graph = _graph(view, width, rest - 1, dropped) if rest > 1 else []
    axis = [_axis(view, width, dropped)] if rest > 0 else []
    return head + graph + axis + figures


def _head(view: MemoryView, width: int) -> Line:
    """`footprint 3.1 GB · peak 3.6 GB · wired limit 12 GB`; the figure goes by the name of its source."""
    parts = _now(view)
    if line_width(_joined(parts)) > width:
        parts = _now(msgspec.structs.replace(view, limit_name="limit"))
    return _flow(parts, width, 1)[0]


def _now(view: MemoryView) -> list[Line]:
    name = _SOURCE_NAMES[view.source] if view.source else "memory"
    parts: list[Line] = [(Span(f"{name} ", "dim"), Span(human_bytes(view.now), "strong"))]
    parts.append(_named("peak", view.peak))
    if view.limit is not None:
        parts.append(_named(view.limit_name or "limit", view.limit))
    if view.pressure is not None:
        look: Look = "plain" if view.pressure == "normal" else "warn" if view.pressure == "warning" else "bad"
        parts.append((Span("pressure ", "dim"), Span(view.pressure, look)))
    return parts


def _named(name: str, value: int | None) -> Line:
    return Span(f"{name} ", "dim"), Span(human_bytes(value))


def _graph(view: MemoryView, width: int, height: int, dropped: int) -> list[Line]:
    known = [point.bytes for point in view.points if point.bytes is not None]
    low, high = (min(known), max(known)) if known else (0, 1)
    limit = view.limit if view.limit is not None and high > view.limit / 2 else None
    bottom, top = scale(low, high) if limit is None else scale(min(low, limit), max(high, limit))
    cells = max(1, width - _LABEL)
    values = downsample([point.bytes for point in view.points], 2 * cells, dropped)
    limit_row = None if limit is None else min(height - 1, int((top - limit) / (top - bottom) * height))
    lines = []
    for index, row in enumerate(area(values, cells, height, bottom, top)):
        edge = top if index == 0 else bottom if index == height - 1 else None
        label = f"{human_bytes(edge):>{_LABEL - 1}} " if edge is not None else " " * _LABEL
        body = _with_limit(row) if index == limit_row else (Span(row, "bar"),)
        lines.append(fit_line((Span(label, "dim"), *body), width))
    return lines


def _with_limit(row: str) -> Line:
    """A row of the graph with the limit as a dashed line where the graph leaves it free, named at its end."""
    filled = row.rstrip()
    free = len(row) - len(filled)
    name = " limit"
    dashes = "╌" * (free - len(name)) + name if free > len(name) else "╌" * free
    spans = []
    for char in filled:
        spans.append(Span("╌", "bad") if char == " " else Span(char, "bar"))
    return (*_merged(spans), Span(dashes, "bad"))


def _merged(spans: Iterable[Span]) -> Line:
    merged: list[Span] = []
    for span in spans:
        if merged and merged[-1].look == span.look:
            merged[-1] = Span(merged[-1].text + span.text, span.look)
        else:
            merged.append(span)
    return tuple(merged)


def _axis(view: MemoryView, width: int, dropped: int) -> Line:
    """The time axis: how old the first sample is, and a sign where something was evicted or the server restarted."""
    cells = max(1, width - _LABEL)
    axis: list[Span] = [Span("─", "rest")] * cells
    size = group_size(len(view.points), 2 * cells, dropped)
    for mark in view.marks:
        column = _column(view.points, mark.at_ns, size, dropped)
        if column is not None and column < cells:
            # A restart on the same column outlasts an eviction: it explains it.
            if mark.kind == "restart":
                axis[column] = Span(RESTARTED, "warn")
            elif axis[column].text != RESTARTED:
                axis[column] = Span(EVICTED, "bad")
    age = coarse_age(view.points[-1].at_ns - view.points[0].at_ns)
    return fit_line((Span(f"{age:>{_LABEL - 1}} ", "dim"), *_merged(axis)), width)


def _column(points: tuple[MemoryPoint, ...], at_ns: int, size: int, dropped: int) -> int | None:
    """The cell in which a moment lies; None before the first sample."""
    if at_ns < points[0].at_ns:
        return None
    index = min(bisect_left(points, at_ns, key=lambda point: point.at_ns), len(points) - 1)
    return ((dropped + index) // size - dropped // size) // 2


def _figures(view: MemoryView, width: int, *, most: int, with_head: bool) -> list[Line]:
    """What the memory is made of, as many figures as fit into at most `most` lines."""
    parts = _now(view)[:1] if with_head else []
    parts += [_named("weights", view.weights), _named("cache", view.cache), _named("pool", view.mlx_pool)]
    parts += [_named("other", view.other), _named("MLX active", view.mlx_active), _named("MLX peak", view.mlx_peak)]
    return _flow(parts, width, most)


def _flow(parts: list[Line], width: int, most: int) -> list[Line]:
    """The parts joined by dots, broken into at most `most` lines; what does not fit is left out."""
    lines: list[list[Line]] = [[]]
    for part in parts:
        if lines[-1] and line_width(_joined([*lines[-1], part])) > width:
            if len(lines) == most:
                break
            lines.append([])
        lines[-1].append(part)
    return [fit_line(_joined(line), width) for line in lines]


def _joined(parts: list[Line]) -> Line:
    return tuple(span for index, part in enumerate(parts) for span in ((Span(" · ", "dim"), *part) if index else part))
