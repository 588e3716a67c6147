"""The values of a scenario that a person tunes between two runs: server flags, how many at once, how often, how long.

Texts from a form in, an edited scenario or the mistakes by field out.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mlxcache_tui.core.flags import KNOWN_FLAGS
from mlxcache_tui.core.scenario import Scenario, Step
from mlxcache_tui.core.scenario_keys import DEFAULT_KEYS, FLAG_KEYS, SIZE
from mlxcache_tui.core.units import human_bytes, parse_size

TUNED_FLAGS = ("prompt_cache_size", "prompt_cache_bytes", "prompt_concurrency", "decode_concurrency")
"""The limits that every form offers; those that the scenario sets itself come with them."""
_FREE_TEXTS = ("chat_template", "chat_template_args")
"""Flags that are no limits and may hold commas: they stay as the file has them."""
STEP_VALUES = ("concurrency", "repeat", "max_tokens")
"""What is tuned of each step."""
_NONE_KEPT: Mapping[str, Any] = {}
_DEFAULTS = {known.name: known.default for known in KNOWN_FLAGS if known.default is not None}


def flag_names(scenario: Scenario, kept: Mapping[str, Any] = _NONE_KEPT) -> tuple[str, ...]:
    """The flags to offer for a scenario, the usual ones first; `kept`: those that the server is started with anyway."""
    named = (*TUNED_FLAGS, *scenario.server, *scenario.sweep, *kept)
    return tuple(name for name in dict.fromkeys(named) if name in FLAG_KEYS and name not in _FREE_TEXTS)


def restart_flags(step: Step) -> tuple[str, ...]:
    """The flags to offer of a step that restarts the server with others."""
    return tuple(name for name in step.restart or {} if name not in _FREE_TEXTS)


def flag_text(scenario: Scenario, name: str) -> str:
    """What the scenario says of a flag, as a form's field holds it: `2`, swept `1, 2, 4`, nothing if it is not set."""
    return ", ".join(map(value_text, _values_of(scenario, name)))


def unset_text(name: str, kept: Mapping[str, Any]) -> str:
    """What holds where the scenario sets no value: `2 (as started)`, or `10 (default)`."""
    if name in kept:
        return f"{flag_word(name, kept[name])} (as started)"
    return f"{_DEFAULTS[name]} (default)" if name in _DEFAULTS else "default"


def value_text(value: Any) -> str:
    """One value of a flag, as a form's field holds it."""
    return "off" if value is None else "on" if value is True else str(value)


def _values_of(scenario: Scenario, name: str) -> tuple[Any, ...]:
    return scenario.sweep.get(name) or ((scenario.server[name],) if name in scenario.server else ())


def _in_force(scenario: Scenario, name: str, kept: Mapping[str, Any]) -> str:
    """What a run has of a flag: what the scenario says, else what the server is started with, else its default."""
    values = _values_of(scenario, name) or ((kept[name],) if name in kept else ())
    return ", ".join(flag_word(name, value) for value in values) or "default"


def field_of(step_id: str, name: str) -> str:
    """The name of a step's field."""
    return f"{step_id}-{name}"


def edited(
    scenario: Scenario, flags: Mapping[str, str], steps: Mapping[str, str]
) -> tuple[Scenario | None, dict[str, str]]:
    """The scenario with the values of a form; None and a line for each field that is wrong.

    Args:
        scenario: what was on the form before.
        flags: texts by flag name; several values with commas between them are swept, an empty text leaves the flag out.
        steps: texts by `field_of` a step and one of `STEP_VALUES`, or one of its `restart_flags`.
    """
    errors: dict[str, str] = {}
    server = {name: value for name, value in scenario.server.items() if name not in flags}
    sweep = {name: values for name, values in scenario.sweep.items() if name not in flags}
    for name, text in flags.items():
        try:
            values = _flag_values(name, text)
        except ValueError as error:
            errors[name] = str(error)
            continue
        if len(values) > 1:
            sweep[name] = values
        elif values:
            server[name] = values[0]
    changed = tuple(_edited_step(step, steps, errors) for step in scenario.steps)
    for step in changed:
        earlier = next((known for known in changed if known.id == step.continues), None)
        if earlier is not None and earlier.count not in (1, step.count):
            text = f"it continues {earlier.name}, which has {earlier.count} requests: expected 1 or as many as here"
            errors.setdefault(field_of(step.id, "repeat"), text)
    if errors:
        return None, errors
    result = msgspec.structs.replace(scenario, server=server, sweep=sweep, steps=changed)
    if changed != scenario.steps:
        result = msgspec.structs.replace(result, digest=_digest(result))
    return result, {}


def _flag_values(name: str, text: str) -> tuple[Any, ...]:
    """The values in a field.

    Raises:
        ValueError: with what was expected.
    """
    key = FLAG_KEYS[name]
    values: list[Any] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        value = _value(word)
        if value is not False and not key.accepts(value):
            raise ValueError(f"expected {key.expected} (several with commas between: a sweep), not {word!r}")
        if value is False:
            value = None
        elif key is SIZE and isinstance(value, str):
            value = parse_size(value)
        if value not in values:
            values.append(value)
    return tuple(values)


def _value(word: str) -> Any:
    """A word as the file would have it: a number, a switch, or the text itself."""
    if word.lower() in ("true", "on", "false", "off"):
        return word.lower() in ("true", "on")
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def _edited_step(step: Step, texts: Mapping[str, str], errors: dict[str, str]) -> Step:
    values: dict[str, int] = {}
    for name in STEP_VALUES:
        text = texts.get(field_of(step.id, name), "").strip()
        if not text:
            continue
        number = int(text) if text.isascii() and text.isdigit() else -1
        if DEFAULT_KEYS[name].accepts(number):
            values[name] = number
        else:
            errors[field_of(step.id, name)] = f"expected {DEFAULT_KEYS[name].expected}, not {text!r}"
    if step.restart is None:
        return msgspec.structs.replace(step, **values)
    return msgspec.structs.replace(step, restart=_edited_restart(step, step.restart, texts, errors), **values)


def _edited_restart(
    step: Step, restart: Mapping[str, Any], texts: Mapping[str, str], errors: dict[str, str]
) -> dict[str, Any]:
    """The flags to restart with; an empty text leaves the flag as it was before."""
    kept = dict(restart)
    for name in restart_flags(step):
        field = field_of(step.id, name)
        if field not in texts:
            continue
        del kept[name]
        try:
            found = _flag_values(name, texts[field])
        except ValueError as error:
            errors[field] = str(error)
            continue
        if len(found) > 1:
            errors[field] = "expected one value: only the limits of the whole run are swept"
        elif found:
            kept[name] = found[0]
    return kept


def _digest(scenario: Scenario) -> str:
    """12 hex digits over the file's digest and the steps' values: another digest, other requests.

    The limits of the server are none of it: results tell them as flags, as those that are typed for a run.
    """
    values = [[step.id, step.restart, *(getattr(step, name) for name in STEP_VALUES)] for step in scenario.steps]
    whole = msgspec.json.encode([scenario.digest, values], order="sorted")
    return hashlib.sha256(whole).hexdigest()[:12]


def changed_flags(
    old: Scenario, new: Scenario, was: Mapping[str, Any] = _NONE_KEPT, now: Mapping[str, Any] = _NONE_KEPT
) -> tuple[str, ...]:
    """The flags that were edited and are swept in neither; `was` and `now`: what the servers were started with."""
    return tuple(name for name, _, _ in _edits(old, new, was, now) if name not in old.sweep and name not in new.sweep)


def _edits(
    old: Scenario, new: Scenario, was: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys((*flag_names(old, was), *flag_names(new, now))):
        before, after = _in_force(old, name, was), _in_force(new, name, now)
        if before != after:
            yield name, before, after


def changes(
    old: Scenario, new: Scenario, was: Mapping[str, Any] = _NONE_KEPT, now: Mapping[str, Any] = _NONE_KEPT
) -> tuple[str, ...]:
    """What was edited, a few words each: `prompt_cache_size 2 → 4`, `repeat 1 → 3 in A, first time`.

    `was` and `now` are the flags that the servers were started with, and kept where the scenario sets none.
    """
    lines = [f"{name} {before} → {after}" for name, before, after in _edits(old, new, was, now)]
    for one, other in zip(old.steps, new.steps, strict=True):
        for name in restart_flags(one):
            before, after = one.restart or {}, other.restart or {}
            if before.get(name) != after.get(name) or name not in after:
                words = (flag_word(name, flags[name]) if name in flags else "as before" for flags in (before, after))
                lines.append(f"{name} {' → '.join(words)} in {one.name}")
    for name in STEP_VALUES:
        pairs: dict[tuple[int, int], list[str]] = {}
        for one, other in zip(old.steps, new.steps, strict=True):
            if getattr(one, name) != getattr(other, name):
                pairs.setdefault((getattr(one, name), getattr(other, name)), []).append(one.name)
        every = {getattr(step, name) for step in new.steps}
        if len(pairs) > 1 and len(every) == 1:
            lines.append(f"{name} {every.pop()} in every step")
            continue
        for (before_count, after_count), names in pairs.items():
            where = "" if len(names) == len(old.steps) else f" in {', '.join(names)}"
            lines.append(f"{name} {before_count} → {after_count}{where}")
    return tuple(lines)


def flags_text(flags: Mapping[str, Any]) -> str:
    """`prompt_cache_size 2, prompt_cache_bytes 8 MB`; a flag that is taken away is `off`."""
    return ", ".join(f"{name} {flag_word(name, value)}" for name, value in flags.items())


def flag_word(name: str, value: Any) -> str:
    """A flag's value as a person reads it."""
    if value is None:
        return "off"
    if value is True:
        return "on"
    # A flag as it was typed on a command line is text.
    digits = isinstance(value, str) and value.isascii() and value.isdigit()
    return human_bytes(int(value)) if name.endswith("_bytes") and (digits or isinstance(value, int)) else str(value)
