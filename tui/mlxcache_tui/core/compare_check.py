"""May two sides be compared? What is not the same on both, and whether that was meant."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from mlxcache_tui.core.run_file import Run

_BASIC = ("scenario", "model", "mlx_lm", "mlx")
"""What a verdict never goes across unless it is named; all else are flags of the server."""


def find_differences(a: Sequence[Run], b: Sequence[Run]) -> dict[str, tuple[Any, Any]]:
    """What is not the same on both sides; flags that a sweep sets are part of the step's name."""
    swept = {name for run in (*a, *b) for name in run.sweep}
    flags = sorted({name for run in (*a, *b) for name in run.server.flags} - swept)
    parts: dict[str, Callable[[Run], Any]] = {
        "scenario": lambda run: run.digest or run.scenario,
        "model": lambda run: run.server.model,
        "mlx_lm": lambda run: run.server.mlx_lm,
        "mlx": lambda run: run.server.mlx,
        **{name: (lambda run, name=name: run.server.flags.get(name)) for name in flags},  # type: ignore[misc]
    }
    found = {}
    for name, value in parts.items():
        sides = _common(map(value, a)), _common(map(value, b))
        if sides[0] != sides[1]:
            found[name] = sides
    if "scenario" in found and {run.scenario for run in a} != {run.scenario for run in b}:
        found["scenario"] = (_common(run.scenario for run in a), _common(run.scenario for run in b))
    return found


def _common(values: Iterable[Any]) -> Any:
    """The value that all runs of a side have; a list of them where they differ."""
    distinct: list[Any] = []
    for value in values:
        if value not in distinct:
            distinct.append(value)
    return distinct[0] if len(distinct) == 1 else distinct


def find_unmeant(differences: dict[str, tuple[Any, Any]], changed: Collection[str]) -> tuple[str, ...]:
    """Differences that were not meant: all that were not named, but for a server flag that is the only one."""
    flags = [name for name in differences if name not in _BASIC]
    meant = {name.replace("-", "_") for name in changed} | (set(flags) if len(flags) == 1 else set())
    return tuple(name for name in differences if name not in meant)


def refusal(differences: dict[str, tuple[Any, Any]], unmeant: Sequence[str]) -> str | None:
    """Why the two are not compared: more differs than was meant; None if nothing stands in the way."""
    if not unmeant:
        return None
    listed = ", ".join(f"{name} ({_shown(pair[0])} and {_shown(pair[1])})" for name, pair in differences.items())
    return f"the two differ in {listed}: what changed cannot be told apart"


def _shown(value: Any) -> str:
    return "—" if value is None else str(value)
