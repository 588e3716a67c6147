"""Events whose text somebody else wrote: other clients' prompts from the observer, anyone's session file."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from mlxcache_tui.core.codec import decode_event, decode_events
from mlxcache_tui.core.events import AnyEvent, PolicyKnown, TextArrived, TextKept
from mlxcache_tui.core.text import clean, clean_block, is_clean

# Control characters are escaped in JSON; newlines and tabs are common in texts, so each is looked at where it counts.
_ESCAPED = re.compile(r"\\[ubfrt]")


def decode_clean(line: bytes) -> AnyEvent:
    """The event in one line, as `decode_event` gives it, with every text in it made harmless.

    Raises:
        msgspec.DecodeError: see `decode_event`.
    """
    event = decode_event(line)
    return event if _is_plain(line) else _made_harmless(line, event)


def decode_all_clean(lines: Sequence[bytes]) -> list[AnyEvent]:
    """The events in these lines, as `decode_clean` gives each of them, in less time.

    Raises:
        msgspec.DecodeError: one of them is not an event.
    """
    whole = b"\n".join(lines)
    if not _is_plain(whole):
        return [decode_clean(line) for line in lines]
    events = decode_events(whole)
    if len(events) != len(lines):
        raise msgspec.DecodeError("a line is not one event")
    return events


def _is_plain(lines: bytes) -> bool:
    """Whether nothing in it can do harm: JSON holds other control characters escaped only."""
    return b"\\" not in lines and lines.isascii() and b"\x7f" not in lines


def _made_harmless(line: bytes, event: AnyEvent) -> AnyEvent:
    text = line.decode("utf-8", "replace").rstrip("\n")
    several_lines = isinstance(event, TextKept | TextArrived | PolicyKnown)
    if is_clean(text) and not _ESCAPED.search(text) and (several_lines or "\\n" not in text):
        return event
    fields = msgspec.to_builtins(event)
    harmless_fields = {
        name: cleaned(value, block=name == "params" or (several_lines and name == "text"))
        for name, value in fields.items()
    }
    harmless: AnyEvent = msgspec.convert(harmless_fields, AnyEvent)
    return harmless


def cleaned(value: Any, *, block: bool) -> Any:
    """Plain data with every text in it made harmless. `block`: texts keep their newlines."""
    if isinstance(value, str):
        return clean_block(value) if block else clean(value)
    if isinstance(value, dict):
        return {cleaned(name, block=block): cleaned(part, block=block) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(part, block=block) for part in value]
    return value
