"""Text from outside, made harmless, and text measured in terminal cells.

Log lines, answers, file names: whatever we did not write may carry escape sequences, control characters, marks that
turn the reading direction, or very long lines. It is cleaned once, where it comes in.
"""

import re
from functools import lru_cache
from typing import Literal

from wcwidth import iter_graphemes, wcswidth

LINE_LIMIT = 4096
"""Characters that are kept of one line."""
TAB = "    "

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*(?:[@-~]|$)"  # CSI, also one that was cut off
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS, SOS, PM, APC with their text
    r"|\x9b[0-?]*[ -/]*(?:[@-~]|$)"
    r"|[\x90\x98\x9d\x9e\x9f].*?(?:\x07|\x1b\\|\x9c|$)"
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_INVISIBLE = (
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
)
_CONTROL = re.compile(rf"[\x00-\x1f\x7f-\x9f{_INVISIBLE}\ud800-\udfff\U000e0000-\U000e007f]")
_PICTURES = 0x2400


def clean(text: str) -> str:
    """One harmless line: escape sequences gone, control characters as visible marks, newline as ⏎, tab as spaces."""
    if text.isascii() and text.isprintable():
        return text
    if not _CONTROL.search(text):
        return text
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\n", "⏎").replace("\t", TAB)
    return _CONTROL.sub(_visible, text)


def clean_block(text: str) -> str:
    """The same for text of several lines: newlines stay, CRLF and lone CR become newlines."""
    if not _CONTROL.search(text):
        return text
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n").replace("\t", TAB)
    return "\n".join(_CONTROL.sub(_visible, line) for line in text.split("\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == 0x7F:
        return "␡"
    return "�" if 0xD800 <= code <= 0xDFFF or code < 0xA0 else ""


def bounded(text: str, limit: int = LINE_LIMIT) -> str:
    """The text, cut to `limit` characters with a mark that says how many more there were."""
    if len(text) <= limit:
        return text
    mark = f"… (+{len(text) - limit} characters)"
    return text[: limit - len(mark)] + mark if limit > len(mark) else text[:limit]


@lru_cache(maxsize=4096)
def _measured(text: str) -> int:
    return max(0, wcswidth(text))


def cell_width(text: str) -> int:
    """Terminal cells that a clean text takes: wide characters two, combining marks none."""
    return len(text) if text.isascii() else _measured(text)


def fit(text: str, width: int, align: Literal["left", "right"] = "left", ellipsis: str = "…") -> str:
    """The text in exactly `width` cells: padded, or cut between characters as a person sees them, with an ellipsis."""
    if width <= 0:
        return ""
    size = cell_width(text)
    if size > width:
        text = _head(text, width - cell_width(ellipsis)) + ellipsis if width > cell_width(ellipsis) else ellipsis
        text = text if cell_width(text) <= width else _head(text, width)
        size = cell_width(text)
    padding = " " * (width - size)
    return padding + text if align == "right" else text + padding


def _head(text: str, width: int) -> str:
    """As many whole characters from the start as fit into `width` cells."""
    if text.isascii():
        return text[: max(0, width)]
    kept, used = [], 0
    for grapheme in iter_graphemes(text):
        size = cell_width(grapheme)
        if used + size > width:
            break
        kept.append(grapheme)
        used += size
    return "".join(kept)


def wrap_cells(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells; breaks at newlines, else at spaces, else between characters."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        rest = paragraph
        while cell_width(rest) > width > 0:
            head = _head(rest, width) or next(iter(iter_graphemes(rest)))
            space = head.rfind(" ")
            if space > 0 and len(head) < len(rest) and not rest[len(head)].isspace():
                head = head[: space + 1]
            lines.append(head.rstrip(" ") if head.strip() else head)
            rest = rest[len(head) :].lstrip(" ")
        lines.append(rest)
    return lines
