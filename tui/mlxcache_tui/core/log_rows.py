"""The log ring: lines as they come, marks of ours, and whose request a line belongs to."""

from collections import deque
from typing import Literal

import msgspec

from mlxcache_tui.core.events import LogKind, LogLine
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.core.views import LogRow

_LOOK_BACK = 200
_OWNERS = 1_000


def append_lines(state: SessionState, lines: tuple[LogLine, ...], *, replace_last: bool) -> None:
    """Add lines in order; with `replace_last` the first takes the place of an unfinished bar drawn before."""
    log = state.log
    log.read = True
    for index, line in enumerate(lines):
        bar_goes_on = index == 0 and replace_last and log.rows and log.rows[-1].kind == "bar"
        if bar_goes_on or (_is_look(line.text) and log.rows and _is_look(log.rows[-1].text)):
            log.rows.pop()
        _append(state, line.text, line.kind, line.level, _owner_of(state, line.text))


def _is_look(text: str) -> bool:
    """Whether somebody looked whether the server is well: a watcher does so every few seconds, the last look stays."""
    return '"GET /health HTTP' in text


def mark(state: SessionState, text: str, request: int | None = None) -> None:
    """Add a line of ours among the server's."""
    _append(state, text, "mark", None, request)


def own_line(state: SessionState, key: str, text: str) -> None:
    """Give a line to a request: one that was read already, else the next one with this text."""
    log = state.log
    number = state.number_of(key)
    if number is not None:
        for back in range(1, min(len(log.rows), _LOOK_BACK) + 1):
            row = log.rows[-back]
            if row.request is None and row.kind != "mark" and _message(row.text) == text:
                log.rows[-back] = msgspec.structs.replace(row, request=number)
                return
    if len(log.owners) >= _OWNERS:
        log.owners.pop(next(iter(log.owners)))
    log.owners.setdefault(text, deque(maxlen=_LOOK_BACK)).append(key)


def _append(
    state: SessionState, text: str, kind: LogKind | Literal["mark"], level: str | None, request: int | None
) -> None:
    log = state.log
    log.total += 1
    log.rows.append(LogRow(seq=log.total, text=text, kind=kind, level=level, request=request))


def _owner_of(state: SessionState, text: str) -> int | None:
    if not state.log.owners:
        return None
    message = _message(text)
    keys = state.log.owners.get(message)
    if not keys:
        return None
    key = keys.popleft()
    if not keys:
        del state.log.owners[message]
    return state.number_of(key)


def _message(text: str) -> str:
    """A logger line without its time and level (`… - INFO - text`), any other line as it is."""
    parts = text.split(" - ", 2)
    return parts[2] if len(parts) == 3 and parts[1].isupper() else text
