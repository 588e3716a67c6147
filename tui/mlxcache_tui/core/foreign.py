"""Events whose text somebody else wrote: other clients' prompts from the observer, anyone's session file."""

import re
from typing import Any

import msgspec

from mlxcache_tui.core.codec import decode_event
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
    if b"\\" not in line and line.isascii() and b"\x7f" not in line:
        return event  # most lines: JSON holds other control characters escaped only
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
