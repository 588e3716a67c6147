"""Verdicts in words: what was measured, in its own unit, and by how much an expectation failed."""

from mlxcache_tui.core.expect import Metric, Verdict, parse
from mlxcache_tui.core.text import bounded, clean
from mlxcache_tui.core.units import human_bytes, human_duration, human_percent

LENGTH = 60
"""Characters shown of a measured word, which may be a whole answer."""
_AMOUNTS = ("_s", "_bytes", "_tps")


def shortfall(verdict: Verdict) -> str:
    """By how much an expectation failed, in its own unit: `2 %, 48 points too low`, `310 ms, 182 ms too much`."""
    measured, wanted = verdict.measured, verdict.wanted
    if isinstance(measured, str) and isinstance(wanted, str):
        return _words_apart(verdict, measured, wanted)
    if not isinstance(measured, float | int) or not isinstance(wanted, float | int):
        return shown(verdict.why)
    name = parse(verdict.text).left.name
    gap = measured - wanted
    if gap == 0:
        return f"{figure(name, measured)}, as much as the limit"
    if name.endswith("_ratio"):
        return f"{figure(name, measured)}, {abs(gap) * 100:.3g} points too {'low' if gap < 0 else 'high'}"
    too = ("little", "much") if name.endswith(_AMOUNTS) else ("few", "many")
    return f"{figure(name, measured)}, {figure(name, abs(gap))} too {too[gap > 0]}"


def _words_apart(verdict: Verdict, measured: str, wanted: str) -> str:
    """Both words; the measured one, which may be a whole answer, is shortened first."""
    expected = _cut(wanted, LENGTH)
    got = _cut(measured, max(LENGTH // 3, LENGTH - len(expected)))
    return f"measured {got!r}, expected {parse(verdict.text).op} {expected!r}"


def _cut(text: str, length: int) -> str:
    line = clean(" ".join(text.split()))
    return line if len(line) <= length else line[: length - 1] + "…"


def measured_text(verdict: Verdict) -> str:
    """What was measured, in its unit, beside what it was measured against; empty if unknown."""
    value, wanted = verdict.measured, verdict.wanted
    if not isinstance(value, float | int):
        return shown(value or "")
    expectation = parse(verdict.text)
    name = expectation.left.name
    if isinstance(expectation.right, Metric) and isinstance(wanted, float | int):
        return f"{figure(name, value)} {expectation.op} {figure(name, wanted)}"
    return figure(name, value)


def shown(text: str) -> str:
    """One short clean line of a text from outside."""
    return bounded(clean(" ".join(text.split())), LENGTH)


def figure(name: str, value: float) -> str:
    """A metric's value in its unit."""
    if name.endswith("_ratio"):
        return human_percent(value)
    if name.endswith("_s"):
        return human_duration(value)
    return human_bytes(value) if name.endswith("_bytes") else f"{value:.4g}"
