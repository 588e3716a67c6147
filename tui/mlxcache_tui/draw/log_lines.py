"""One line of the log pane as spans."""

from mlxcache_tui.core.text import cell_width
from mlxcache_tui.core.views import LogRow
from mlxcache_tui.draw.log_buffer import Fold, Shown, shown_text
from mlxcache_tui.draw.spans import Line, Look, Span, drop_cells, fit_line

_LEVELS: dict[str, Look] = {"DEBUG": "dim", "WARNING": "warn", "ERROR": "bad", "CRITICAL": "bad"}
_KINDS: dict[str, Look] = {"mark": "mark", "traceback": "bad", "bar": "info", "progress": "dim", "access": "dim"}
GUTTER = 2
HERE, OWNED, OURS = "▸", "▌", "◆"
"""Signs of the gutter: the line that enter acts on, lines of the selected request, lines of ours."""


def log_line(
    line: Shown, width: int, *, left: int = 0, needle: str = "", highlighted: int | None = None, here: bool = False
) -> Line:
    """One line in `width` cells: the gutter, then its text from cell `left` on, an ellipsis where it is cut.

    `needle` (casefolded) is marked where it is found; `highlighted` is the number of the request whose lines are.
    """
    text, look = _text(line)
    body: Line = (Span(text, look),)
    if needle:
        body = _matches(text, look, needle)
    if left > 0:
        body = (Span("…", "dim"), *drop_cells(body, left + 1)) if cell_width(text) > left else ()
    return (*_gutter(line, highlighted, here=here), *fit_line(body, max(0, width - GUTTER)))


def text_width(line: Shown) -> int:
    """Cells of the whole line without the gutter."""
    return cell_width(_text(line)[0])


def _text(line: Shown) -> tuple[str, Look]:
    if isinstance(line, LogRow):
        # What kind of line it is says more than its level: progress at INFO is still only progress.
        return shown_text(line), _LEVELS.get(line.level or "") or _KINDS.get(line.kind, "plain")
    count = f"{len(line.rows)} line" + ("s" if len(line.rows) != 1 else "")
    if line.open:
        return f"▾ traceback, {count}", "bad"
    return f"▸ traceback, {count}: {_cause(line.rows)}", "bad"


def _cause(rows: list[LogRow]) -> str:
    """The exception's own line: the last one that is neither indented nor part of the frame of dashes."""
    own = (row.text.rstrip() for row in reversed(rows) if not row.text[:1].isspace() and row.text.strip("- "))
    return next(own, rows[-1].text.strip())


def _gutter(line: Shown, highlighted: int | None, *, here: bool) -> Line:
    if here:
        return (Span(f"{HERE} ", "strong"),)
    row = line.rows[0] if isinstance(line, Fold) else line
    if highlighted is not None and row.request == highlighted:
        return (Span(f"{OWNED} ", "accent"),)
    return (Span(f"{OURS} ", "mark"),) if row.kind == "mark" else (Span("  "),)


def _matches(text: str, look: Look, needle: str) -> Line:
    folded = text.casefold()
    if len(folded) != len(text):
        # A few characters grow when case is folded; then positions would not be those of the text.
        folded = text.lower() if len(text.lower()) == len(text) else text
    spans: list[Span] = []
    begin = 0
    while (found := folded.find(needle, begin)) >= 0:
        spans += [Span(text[begin:found], look), Span(text[found : found + len(needle)], "match")]
        begin = found + len(needle)
    spans.append(Span(text[begin:], look))
    return tuple(span for span in spans if span.text)
