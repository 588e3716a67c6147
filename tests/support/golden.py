"""Golden files: what is drawn, as plain text, compared with what was drawn when a person last looked at it."""

import difflib
import html
import re
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

from mlxcache_tui.core.text import cell_width

_TEXT = re.compile(r'<text [^>]*x="([\d.]+)"[^>]*clip-path="url\(#[^)]*-line-(\d+)\)">(.*?)</text>')
_CELL = 12.2
"""Width of a cell in the picture."""
GOLDEN = Path(__file__).parents[1] / "golden"


def screen_lines(app: App[Any]) -> list[str]:
    """The screen of a running app as it stands now, a string for each line; blanks at the end are cut."""
    return text_of_picture(app.export_screenshot(), app.size.height)


def text_of_picture(svg: str, height: int) -> list[str]:
    """The lines of an exported picture, in which each piece of text has its place."""
    lines = [""] * height
    for x, row, text in _TEXT.findall(svg):
        column = round(float(x) / _CELL)
        piece = html.unescape(text).replace("\xa0", " ")
        lines[int(row)] += " " * (column - cell_width(lines[int(row)])) + piece
    return [line.rstrip() for line in lines]


def text_lines(app: App[Any]) -> list[str]:
    """The same without the scroll bar at the right edge."""
    return [line.rstrip(" ▁▂▃▄▅▆▇█") for line in screen_lines(app)]


def check_golden(request: pytest.FixtureRequest, name: str, lines: list[str]) -> None:
    """Compare with `tests/golden/<name>.txt`; with `--update-golden` write it."""
    path = GOLDEN / f"{name}.txt"
    text = "\n".join(lines) + "\n"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    if text != kept:
        diff = difflib.unified_diff(kept.splitlines(), text.splitlines(), str(path.name), "drawn now", lineterm="")
        pytest.fail("\n".join(["not as in the golden file (look, then --update-golden):", *diff]), pytrace=False)
