"""May two sides be compared? What is not the same on both, and whether that was meant."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from mlxcache_tui.core.run_file import Run

_BASIC = ("scenario", "model", "mlx_lm", "mlx")
"""What a verdict never goes across unless it is named; all else are flags of the server."""


def find_differences(a: Sequence[Run], b: Sequence[Run]) -> dict[str, tuple[Any, Any]]:
    """What is not the same on both sides; flags that both sweep are part of the step's name."""
    swept_a, swept_b = _swept(a), _swept(b)
    alike = {name for name, values in swept_a.items() if any(value in values for value in swept_b.get(name, ()))}
    flags = sorted({name for run in (*a, *b) for name in run.server.flags} - alike)
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


def _swept(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """The flags that runs of a sweep set, each with its values in order."""
    found: dict[str, list[Any]] = {}
    for run in runs:
        for name, value in run.sweep.items():
            values = found.setdefault(name, [])
            if value not in values:
                values.append(value)
    return found


def unlike_sweeps(a: Sequence[Run], b: Sequence[Run]) -> str | None:
    """Why two sides that have no step in common have none, where a sweep is the reason."""
    if _swept(a) == _swept(b):
        return None
    return f"A is {_extent(a)}, B {_extent(b)}: compare two of the same limits"


def _extent(runs: Sequence[Run]) -> str:
    swept = _swept(runs)
    if not swept:
        return "a single run" if len(runs) == 1 else "no sweep"
    return "a sweep over " + ", ".join(f"{name} ({', '.join(map(_shown, values))})" for name, values in swept.items())


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
