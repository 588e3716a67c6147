"""Text from outside, made harmless, and text fitted into terminal cells.

Log lines, answers, file names: whatever we did not write may carry escape sequences, control characters, marks that
turn the reading direction, or very long lines. It is cleaned once, where it comes in.
"""

import re
from typing import Literal

from mlxcache_tui.core.cells import cell_width as cell_width
from mlxcache_tui.core.cells import graphemes

LINE_LIMIT = 4096
"""Characters that are kept of one line."""
TAB = "    "

# Only sequences that begin with ESC: the one-byte forms (C1) are in practice letters in a wrong encoding (a curly quote
# gives U+009D), and what stands between two of them is text.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI, also one that was cut off
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC with their text, if they end
    r"|\x1b[ -/]*[0-~]?"
)
_DIRECTION = "\u202a-\u202e\u2066-\u2069"
_INVISIBLE = (
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f\ufeff\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
)
_CONTROL = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029{_DIRECTION}{_INVISIBLE}\ud800-\udfff]")
_GONE = re.compile(f"[{_INVISIBLE}]")
_NEWLINES = re.compile("\r\n|\u2028|\u2029")
_PICTURES = 0x2400
_JOINER = "\u200d"


def is_clean(text: str) -> bool:
    """Whether there is nothing in a text that would have to be cleaned; newlines and tabs would."""
    return (text.isascii() and text.isprintable()) or not _CONTROL.search(text)


def clean(text: str) -> str:
    """One harmless line: escape sequences gone, control characters as visible marks, newline as ⏎, tab as spaces."""
    if is_clean(text):
        return text
    text = _NEWLINES.sub("\n", _ESCAPES.sub("", text)).replace("\n", "⏎").replace("\t", TAB)
    return _CONTROL.sub(_visible, text)


def clean_block(text: str) -> str:
    """The same for text of several lines: newlines stay, CRLF and lone CR become newlines."""
    if not _CONTROL.search(text):
        return text
    text = _NEWLINES.sub("\n", _ESCAPES.sub("", text)).replace("\r", "\n").replace("\t", TAB)
    return "\n".join(_CONTROL.sub(_visible, line) for line in text.split("\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == 0x7F:
        return "␡"
    return "" if _GONE.match(match.group()) else "�"


def bounded(text: str, limit: int = LINE_LIMIT) -> str:
    """The text, cut to `limit` characters with a mark that says how many more there were."""
    if len(text) <= limit:
        return text
    mark = f"… (+{len(text) - limit} characters)"
    return text[: limit - len(mark)] + mark if limit > len(mark) else text[:limit]


def fit(text: str, width: int, align: Literal["left", "right"] = "left", ellipsis: str = "…") -> str:
    """The text in exactly `width` cells: padded, or cut between characters as a person sees them, with an ellipsis."""
    if width <= 0:
        return ""
    size = cell_width(text)
    if size > width:
        room = width - cell_width(ellipsis)
        text = _head(text, room) + ellipsis if room >= 0 else _head(text, width)
        size = cell_width(text)
    if size == width:
        return text
    padding = " " * (width - size)
    # A joiner at the end would swallow the first space.
    return padding + text if align == "right" else text.rstrip(_JOINER) + padding


def _head(text: str, width: int) -> str:
    """As many whole characters from the start as fit into `width` cells."""
    if text.isascii() and text.isprintable():
        return text[: max(0, width)]
    end, used = 0, 0
    for grapheme, size in graphemes(text):
        if used + size > width:
            break
        end += len(grapheme)
        used += size
    return text[:end].rstrip(_JOINER)


def wrap_cells(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells; breaks at newlines, else at spaces, else between characters.

    A wide character that does not fit at all stands alone in its line. A width of 0 or less breaks at newlines only.
    """
    if width <= 0:
        return text.split("\n")
    lines: list[str] = []
    for paragraph in text.split("\n"):
        _wrap_paragraph(paragraph, width, lines)
    return lines


def _wrap_paragraph(text: str, width: int, lines: list[str]) -> None:
    start = 0
    while True:
        # Enough for a full line of anything but heaps of combining marks; the whole rest each time would be quadratic.
        piece = text[start : start + 4 * width + 64]
        head = _head(piece, width) or next((grapheme for grapheme, _ in graphemes(piece)), "")
        end = start + len(head)
        if end >= len(text):
            lines.append(head)
            return
        space = head.rfind(" ")
        if space > 0 and not text[end].isspace():
            head = head[: space + 1]
        lines.append(head.rstrip(" ") if head.strip() else head)
        start += len(head)
        while start < len(text) and text[start] == " ":
            start += 1
        if start == len(text):
            return


def short_model(model: str | None) -> str | None:
    """A model's name without its organisation or folder."""
    return model.rstrip("/").rsplit("/", 1)[-1] if model else None
