"""Reads a session file back, up to its last whole line."""

from pathlib import Path

import msgspec

from mlxcache_tui.core.events import AnyEvent
from mlxcache_tui.core.foreign import decode_clean


class SessionFile(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a file, in order.

    `damage`: None, or one line that says what could not be read and where. `unknown` counts lines of a kind that this
    version does not know; they are passed over.
    """

    events: tuple[AnyEvent, ...]
    damage: str | None = None
    unknown: int = 0


class _Kind(msgspec.Struct):
    t: str


_kinds = msgspec.json.Decoder(_Kind)
_KNOWN = frozenset(kind.__name__ for kind in AnyEvent.__args__)


def read_session(path: Path) -> SessionFile:
    """Read a session file. A last line without its end is a write that was interrupted: it is left out.

    Texts are cleaned as they were at their source, since the file may be anyone's.

    Raises:
        OSError: the file cannot be read.
    """
    lines = path.read_bytes().split(b"\n")
    cut = lines.pop()
    events: list[AnyEvent] = []
    damages: list[str] = []
    unknown = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            events.append(decode_clean(line))
        except msgspec.DecodeError as error:
            if _is_unknown(line):
                unknown += 1
            else:
                damages.append(f"line {number}: {error}")
    if cut.strip():
        damages.append(f"line {len(lines) + 1} has no end: the recording was interrupted")
    more = f" (and {len(damages) - 1} more)" if len(damages) > 1 else ""
    return SessionFile(events=tuple(events), damage=damages[0] + more if damages else None, unknown=unknown)


def _is_unknown(line: bytes) -> bool:
    """Whether this is an event of a kind that this version does not have."""
    try:
        return _kinds.decode(line).t not in _KNOWN
    except msgspec.DecodeError:
        return False
