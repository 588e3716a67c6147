"""Whether two states say the same, whatever they are made of; what the screen has drawn of them is left out."""

from collections import deque
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from mlxcache_tui.core.state import SessionState


def plain(value: Any) -> Any:
    """A value as nested tuples of its content, so that equal content is equal."""
    if isinstance(value, msgspec.Struct):
        return type(value).__name__, tuple(plain(getattr(value, name)) for name in value.__struct_fields__)
    if is_dataclass(value) and not isinstance(value, type):
        compared = (field.name for field in fields(value) if field.compare)
        return type(value).__name__, tuple((name, plain(getattr(value, name))) for name in compared)
    if isinstance(value, dict):
        return tuple((plain(name), plain(part)) for name, part in value.items())
    if isinstance(value, list | tuple | deque):
        return tuple(map(plain, value))
    if isinstance(value, set | frozenset):
        return tuple(sorted(map(repr, value)))
    names = getattr(type(value), "__slots__", None) or list(getattr(value, "__dict__", ()))
    if names and not isinstance(value, str | bytes | int | float):
        return type(value).__name__, tuple((name, plain(getattr(value, name))) for name in names)
    return value


def content(state: SessionState) -> Any:
    """A state as nested tuples."""
    kept, state.dirty = state.dirty, {}
    try:
        return plain(state)
    finally:
        state.dirty = kept


def same(one: SessionState, other: SessionState) -> bool:
    """Whether the states say the same."""
    return bool(content(one) == content(other))
