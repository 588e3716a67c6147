"""The cache pane as lines of spans."""

from functools import lru_cache

from mlxcache_tui.core.text import wrap_cells
from mlxcache_tui.core.units import UNKNOWN, human_bytes, human_count
from mlxcache_tui.core.views import CacheView, EntryRow
from mlxcache_tui.draw.bars import bar
from mlxcache_tui.draw.columns import Column, Layout, head_line, lay_out, place, recolour
from mlxcache_tui.draw.signs import EVICTED, SWALLOWED
from mlxcache_tui.draw.spans import Line, Look, Span, fit_line, line_width, note_lines

_SHORT_TYPES = {"assistant": "asst", "system": "sys", "user": "user"}
_LONG_TYPE = 9
_WIDE = 76
_MINUTE_NS = 60 * 10**9
_NEXT = "next out"
_DOUBTFUL = "gone?"
_LEAST_NOTE = 9
"""Cells for how an entry went."""


@lru_cache(maxsize=16)
def cache_layout(width: int) -> Layout:
    """The columns of the entries in `width` cells."""
    columns = (
        Column("type", "type", 4, 0, most=_LONG_TYPE if width >= _WIDE else 0),
        Column("policy", "policy", 9, 1, most=16 if width < _WIDE else 26),
        Column("tokens", "tokens", 6, 2, "right"),
        Column("bytes", "bytes", 7, 3, "right"),
        Column("age", "age", 4, 5, "right"),
        Column("made", "made", 5, 7, "right"),
        Column("used", "used", 5, 6, most=20),
        Column("next", "", len(_NEXT), 4),
    )
    return lay_out(columns, width)


def cache_lines(view: CacheView, now_ns: int, width: int, height: int) -> tuple[list[Line], list[Line]]:
    """Lines that stand still at the top (limits, note, column heads) and lines that scroll, each `width` cells.

    `height` is what the pane has, so that a note for an unknown cache can stand in its middle.
    """
    if view.known == "unknown":
        return note_lines(view.note or "not observed", width, height), []
    top = top_lines(view, width)
    if view.known == "counted":
        return top, [fit_line((Span(view.counted_text, "dim"),), width)] if view.counted_text else []
    if not view.entries:
        return top, note_lines("nothing is stored yet", width, max(1, height - len(top)))
    layout = cache_layout(width)
    top.append(fit_line(head_line(layout), width))
    return top, [fit_line(_entry(entry, now_ns, layout, width), width) for entry in view.entries]


def top_lines(view: CacheView, width: int) -> list[Line]:
    """The two limits, and the note, if there is one, in at most two lines."""
    top = [fit_line(_limits(view, width), width)]
    for index, line in enumerate(_note(view.note, width - 2)):
        top.append(fit_line((Span("  " if index else "! ", "warn"), Span(line, "warn")), width))
    return top


def _note(text: str, width: int) -> list[str]:
    """The note broken once; what does not fit then is cut with an ellipsis."""
    first, *others = wrap_cells(text, width) if text else [""]
    return [line for line in (first, text[len(first) :].lstrip() if others else "") if line]


def _limits(view: CacheView, width: int) -> Line:
    """`2 of 3 ██████▋───  328 MB of 1 GB ████───`: the bars share what the words leave."""
    approx = "" if view.known == "observer" else "≈"
    count = approx + human_count(view.count)
    size = (approx if view.bytes is not None else "") + human_bytes(view.bytes)
    first = f"{count} of {human_count(view.max_count)} " if view.max_count is not None else f"{count} stored"
    none = "no byte limit" if view.known == "observer" else "no byte limit known"
    second = f"  {size} of {human_bytes(view.max_bytes)} " if view.max_bytes is not None else f"  {size}, {none}"
    bars = (view.max_count is not None) + (view.max_bytes is not None)
    cells = min(24, (width - len(first) - len(second)) // max(1, bars))
    line: list[Span] = [Span(first)]
    line.extend(_bar(view.count, view.max_count, cells))
    line.append(Span(second))
    line.extend(_bar(view.bytes, view.max_bytes, cells))
    return tuple(line)


def _bar(used: int | None, limit: int | None, cells: int) -> Line:
    if limit is None or cells < 3:
        return ()
    share = None if used is None else used / limit if limit else 1.0
    filled, rest = bar(share, cells)
    look: Look = "bar" if share is None or share < 0.85 else "warn" if share <= 1 else "bad"
    return Span(filled, look), Span(rest, "rest")


def _entry(entry: EntryRow, now_ns: int, layout: Layout, width: int) -> Line:
    cells = [_cell(entry, column, now_ns) for column in layout.columns]
    line = place(cells, layout)
    if entry.gone is None:
        return line
    struck = _what_went(layout, cells, width)
    text = f"{EVICTED} evicted {entry.gone_text}" if entry.gone == "evicted" else f"{SWALLOWED} {entry.gone_text}"
    rest = width - line_width(struck) - layout.gap
    look: Look = "bad" if entry.gone == "evicted" else "dim"
    return (*recolour(struck, "gone"), Span(" " * layout.gap), *fit_line((Span(text.rstrip(), look),), rest))


def _what_went(layout: Layout, cells: list[Line], width: int) -> Line:
    """The first cells, up to the bytes if there is room behind them: how it went takes the place of the others."""
    kept = tuple(column for column in layout.columns if column.name in ("type", "policy", "tokens", "bytes"))
    while len(kept) > 1 and sum(column.width + layout.gap for column in kept) + _LEAST_NOTE > width:
        kept = kept[:-1]
    return place(cells[: len(kept)], Layout(kept, layout.gap))


def _cell(entry: EntryRow, column: Column, now_ns: int) -> Line:
    match column.name:
        case "type":
            return (Span(entry.type if column.width >= _LONG_TYPE else _SHORT_TYPES[entry.type]),)
        case "policy":
            return (Span(entry.policy),)
        case "tokens":
            return (Span(UNKNOWN if entry.tokens is None else str(entry.tokens)),)
        case "bytes":
            return (Span(human_bytes(entry.bytes)),)
        case "age":
            return (Span(coarse_age(now_ns - entry.inserted_ns), "dim"),)
        case "made":
            return (Span(_number(entry.made_by)),)
        case "used":
            return _used(entry, column.width)
        case _:
            return (Span(_NEXT, "warn"),) if entry.next_victim else (Span(_DOUBTFUL, "warn"),) * entry.doubtful


def _used(entry: EntryRow, width: int) -> Line:
    """The latest requests that it served, as many as fit; `–` for none."""
    if not entry.used_by:
        return (Span("–", "dim"),)
    numbers = [_number(number) for number in entry.used_by]
    while len(numbers) > 1 and len(" ".join(numbers)) > width:
        numbers.pop(0)
    return (Span(" ".join(numbers)),)


def _number(number: int | None) -> str:
    return UNKNOWN if number is None else "warm" if number == 0 else f"#{number}"


def coarse_age(age_ns: int) -> str:
    """An age in steps, so that nothing on the screen changes each second: `<1m`, `5m`, `2h`, `3d`."""
    minutes = age_ns // _MINUTE_NS
    if minutes < 1:
        return "<1m"
    if minutes < 60:
        return f"{minutes}m"
    return f"{minutes // 60}h" if minutes < 48 * 60 else f"{minutes // 1440}d"
