"""The prefix lens as lines: a prompt and the one it is compared with, wrapped alike, with a rule where they part.

Each line begins with a sign, so that nothing is said by colour alone: ● taken from the cache, ○ read anew, ≠ other
text than in the request beside it, │ not known or simply the same.
"""

from typing import Literal, NamedTuple

from mlxcache_tui.core.text import cell_width, fit, wrap_cells
from mlxcache_tui.core.units import human_count
from mlxcache_tui.core.views import LensPart, LensView
from mlxcache_tui.draw.signs import INFERRED, REASON_SIGNS
from mlxcache_tui.draw.spans import Line, Look, Span, fit_line

RowKind = Literal["reused", "anew", "differs", "same", "rule", "difference"]
GUTTER = 2
_SIGNS: dict[RowKind, tuple[str, Look]] = {
    "reused": ("●", "good"),
    "anew": ("○", "plain"),
    "differs": ("≠", "warn"),
    "same": ("│", "dim"),
    "rule": ("─", "info"),
    "difference": ("─", "warn"),
}
_DIFFERS = REASON_SIGNS["diverged"].sign


class Row(NamedTuple):
    """One line of one column: its kind and its text without the sign."""

    kind: RowKind
    text: str


class LensRows(NamedTuple):
    """Both columns line by line; rows of one number stand beside each other while the texts are the same."""

    ours: list[Row]
    theirs: list[Row]
    difference: int | None
    """The row of the rule at the first difference."""
    reuse_end: int | None


def lens_rows(view: LensView, width: int) -> LensRows:
    """Both prompts wrapped into columns of `width` cells, signs included."""
    room = max(2, width - GUTTER)
    ours: list[Row] = []
    theirs: list[Row] = []
    difference = reuse_end = None
    before: LensPart | None = None
    for part in view.parts:
        if before is not None:
            if before.reused and not part.reused:
                reuse_end = len(ours)
                ours.append(Row("rule", f"reused up to here: {view.cached} tokens; read anew below"))
                theirs.extend([Row("rule", "")] if before.same else [])
            if before.same and part.same is False:
                difference = len(ours)
                where = f"token {view.shared}" if view.shared is not None else "≈ here"
                ours.append(Row("difference", f"{_DIFFERS} first difference from {_name(view.other_number)}: {where}"))
                theirs.append(Row("difference", f"from here other than #{view.number}"))
        last = part is view.parts[-1]
        lines = [Row(_kind(part), line) for line in _wrapped(part.text, room, last=last) if part.text]
        ours.extend(lines)
        if part.same:
            theirs.extend(Row("same", row.text) for row in lines)
        before = part
    _finish(view, ours, theirs, room)
    if difference is None and view.other_key is not None and view.here:
        difference = next((index for index, row in enumerate(theirs) if row.kind in ("differs", "difference")), None)
    return LensRows(ours, theirs, difference, reuse_end)


def _finish(view: LensView, ours: list[Row], theirs: list[Row], room: int) -> None:
    """The rest of the other prompt, and a last word where one goes on as the other ends."""
    rest = [part for part in view.other_parts if part.same is False]
    if rest and not any(row.kind == "difference" for row in theirs):
        theirs.append(Row("difference", f"from here other than #{view.number}"))
        if len(ours) < len(theirs):
            ours.append(Row("difference", f"ends here; {_name(view.other_number)} goes on"))
    for part in rest:
        theirs.extend(Row("differs", line) for line in _wrapped(part.text, room, last=True))
    if view.other_key is not None and not rest:
        end = "equal to its end" if not view.here else f"ends here; #{view.number} goes on"
        if theirs and theirs[-1].kind == "difference":
            theirs.pop()
        theirs.append(Row("difference", end))


def _kind(part: LensPart) -> RowKind:
    if part.same is False and not part.reused:
        return "differs"
    if part.reused is None:
        return "same"
    return "reused" if part.reused else "anew"


def _wrapped(text: str, room: int, *, last: bool) -> list[str]:
    # A newline at a cut ends the line; what follows begins a line of its own anyway.
    return wrap_cells(text if last else text.removesuffix("\n"), room)


def row_line(row: Row | None, width: int) -> Line:
    """A row in exactly `width` cells."""
    if row is None:
        return (Span(" " * width),)
    sign, look = _SIGNS[row.kind]
    if row.kind in ("rule", "difference"):
        text = f"── {row.text} " if row.text else ""
        return (Span(fit(text, width) if cell_width(text) > width else text + "─" * (width - cell_width(text)), look),)
    return fit_line((Span(sign, look), Span(" "), Span(row.text, "dim" if row.kind == "same" else look)), width)


def head_lines(view: LensView, width: int) -> list[Line]:
    """What is reused, what it is compared with, and the first difference; each `width` cells."""
    lines: list[Line] = [fit_line(_figures(view), width)]
    if view.other_key is None:
        lines.append(fit_line((Span("compared with none: there is no other request like it", "dim"),), width))
    elif not view.here:
        lines.append(fit_line((Span(f"= the same text as {_name(view.other_number)}, to its end", "good"),), width))
    else:
        where = f"token {view.shared}" if view.shared is not None else f"{INFERRED} the text"
        text = f"{_DIFFERS} {where}: {view.here} here, {view.there} in {_name(view.other_number)}"
        lines.append(fit_line((Span(text, "warn"),), width))
    if view.parameters:
        lines.append(fit_line((Span(f"{_DIFFERS} {'; '.join(view.parameters)}", "warn"),), width))
    if view.note:
        lines.append(fit_line((Span(f"{INFERRED} {view.note}", "warn"),), width))
    return lines


def _figures(view: LensView) -> Line:
    line: list[Span] = []
    if view.tokens is not None and view.cached is not None:
        line += [Span(f"● {view.cached} reused", "good"), Span(f"  ○ {view.tokens - view.cached} read anew")]
        line.append(Span(f"  of {view.tokens} tokens", "dim"))
    else:
        line.append(Span(f"{human_count(view.tokens)} tokens, reuse not known", "dim"))
    if view.other_key is not None:
        place = f" ({view.others.index(view.other_key) + 1} of {len(view.others)})"
        line += [Span(f"  · beside {other_name(view)}"), Span(place, "dim")]
    return tuple(line)


def other_name(view: LensView) -> str:
    """`#1 returns`, or `the warm-up`."""
    return f"{_name(view.other_number)} {view.other_policy}" if view.other_number else _name(view.other_number)


def _name(number: int | None) -> str:
    return f"#{number}" if number else "the warm-up"
