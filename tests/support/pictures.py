"""Pictures of the screen whose columns stand where they stand in a terminal, whatever font the viewer has."""

import html
import re

from mlxcache_tui.core.text import cell_width

_CELL = 12.2
"""Width of a cell in the picture."""
_TEXT = re.compile(r'<text ([^>]*)x="([\d.]+)" y="([\d.]+)" textLength="[\d.]+" ([^>]*-line-\d+\)")>(.*?)</text>')
_WORD = re.compile(r"[!-~]+|[^ !-~]+")


def anchored(svg: str) -> str:
    """The exported picture with each word put in its own place.

    Textual exports runs of words and blanks. Viewers trim the blanks at a run's start, and drift within it where their
    font is not exactly as wide as the cells.
    """
    return _TEXT.sub(_words, svg)


def _words(match: re.Match[str]) -> str:
    before, x, y, after, content = match.groups()
    text = html.unescape(content).replace("\xa0", " ")
    words = []
    for word in _WORD.finditer(text):
        left = float(x) + _CELL * cell_width(text[: word.start()])
        length = _CELL * cell_width(word.group())
        inner = html.escape(word.group(), quote=False)
        words.append(f'<text {before}x="{left:.1f}" y="{y}" textLength="{length:.1f}" {after}>{inner}</text>')
    return "".join(words)
