"""Line numbers of keys: a table of forms, and any nesting that tomllib reads."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.toml_lines import Path, key_lines, line_of

FORMS: dict[str, tuple[str, dict[Path, int]]] = {
    "top level": ("a = 1\nb = 2", {("a",): 1, ("b",): 2}),
    "comments and blank lines": ("# x\n\n a = 1 # b = 3\n", {("a",): 3}),
    "table": ("[t]\na = 1\n[t.u]\nb = 2", {("t",): 1, ("t", "a"): 2, ("t", "u"): 3, ("t", "u", "b"): 4}),
    "array of tables": ("[[s]]\na=1\n[[s]]\na=2", {("s", 0): 1, ("s", 0, "a"): 2, ("s", 1): 3, ("s", 1, "a"): 4}),
    "table inside an array of tables": ("[[s]]\n[[s]]\n[s.t]\na=1", {("s", 1, "t"): 3, ("s", 1, "t", "a"): 4}),
    "array inside an array of tables": (
        "[[s]]\n[[s.u]]\na=1\n[[s.u]]",
        {("s", 0, "u", 0, "a"): 3, ("s", 0, "u", 1): 4},
    ),
    "dotted key": ("a.b.c = 1", {("a",): 1, ("a", "b"): 1, ("a", "b", "c"): 1}),
    "quoted key": ("\"a.b\" = 1\n'c d' = 2", {("a.b",): 1, ("c d",): 2}),
    "array over lines": ("a = [\n  1, # one\n\n  2,\n]\nb = 1", {("a", 0): 2, ("a", 1): 4, ("b",): 6}),
    "inline table": ("a = { b = 1, c = [2, 3] }", {("a", "b"): 1, ("a", "c", 1): 1}),
    "inline tables in an array": ("a = [\n{ b = 1 },\n{ b = 2 }]", {("a", 1, "b"): 3}),
    "text over lines": ('a = """\nb = 1\n[x]\n"""\nc = 1', {("a",): 1, ("c",): 5}),
    "literal text over lines": ("a = '''\n\\'''\nc = 1", {("c",): 3}),
    "quotes before the closing three": ('a = """x"""""\nb = 1', {("b",): 2}),
    "escaped quote": ('a = "x\\"]"\nb = 1', {("b",): 2}),
    "marks in a text": ("a = ['#', ']', '}']\nb = 1", {("a", 2): 1, ("b",): 2}),
    "line ends of another system": ("a = 1\r\nb = 2\r\n", {("b",): 2}),
    "a date and a float": ("a = 2026-11-29T10:00:00Z\nb = 1.5", {("a",): 1, ("b",): 2}),
}


@pytest.mark.parametrize("form", FORMS)
def test_lines_of_each_form(form: str) -> None:
    text, expected = FORMS[form]
    tomllib.loads(text)
    lines = key_lines(text)
    assert {path: lines.get(path) for path in expected} == expected


def test_an_unknown_path_has_the_line_of_what_is_around_it() -> None:
    lines = key_lines("\n[t]\na = 1")
    assert line_of(lines, ("t", "missing")) == 2
    assert line_of(lines, ("missing",)) == 1


scalars = st.integers() | st.booleans() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)


def toml(value: Any, gap: str) -> str:
    """A value as TOML, arrays over several lines where `gap` is a line end."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(inner, ' ')}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + gap + ("," + gap).join(toml(inner, gap) for inner in value) + gap + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def paths(value: Any, at: Path = ()) -> list[Path]:
    """The path of every key and element."""
    if isinstance(value, dict):
        return [path for key, inner in value.items() for path in [(*at, key), *paths(inner, (*at, key))]]
    if isinstance(value, list):
        return [path for index, inner in enumerate(value) for path in [(*at, index), *paths(inner, (*at, index))]]
    return []


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), values, max_size=4), st.sampled_from([" ", "\n"]))
def test_everything_that_is_parsed_has_a_line(raw: dict[str, Any], gap: str) -> None:
    text = "".join(f"{key} = {toml(value, gap)}\n" for key, value in raw.items())
    assert tomllib.loads(text) == raw
    lines = key_lines(text)
    known = paths(raw)
    assert set(known) <= set(lines)
    in_order = [lines[path] for path in known]
    assert in_order == sorted(in_order)
