"""Every engine of a test is held to its session file: read back, it folds to what was live, event by event."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mlxcache_tui.core.events import AnyEvent
from mlxcache_tui.core.reduce import apply
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.engine import engine as engine_module
from mlxcache_tui.engine.engine import Engine
from mlxcache_tui.store.replay import read_session
from support.same import content, same

EVERY = 50
"""Events between two looks at the whole state; the parts that each event touches are compared every time."""
Trail = list[tuple[frozenset[Any], str]]


def note(trail: Trail, state: SessionState, event: AnyEvent) -> frozenset[Any]:
    """Fold an event and write down what came of it."""
    parts = apply(state, event)
    trail.append((parts, repr(content(state)) if len(trail) % EVERY == 0 else ""))
    return parts


@contextmanager
def lived_as_recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Watches the engines that are opened; gives the number of events of each that was compared."""
    trails: dict[int, Trail] = {}
    compared: list[int] = []
    leave = Engine.__aexit__

    def folded(state: SessionState, event: AnyEvent) -> frozenset[Any]:
        return note(trails.setdefault(id(state), []), state, event)

    async def left(self: Engine, *error: object) -> None:
        await leave(self, *error)
        recorder = self._recorder
        if recorder is None or not recorder.path.exists():
            return
        session = read_session(recorder.path)
        assert (session.damage, session.unknown) == (None, 0)
        state, again = SessionState(bounded=self.state.bounded), Trail()
        for event in session.events:
            note(again, state, event)
        lived = trails.pop(id(self.state), Trail())
        for number, (one, other) in enumerate(zip(lived, again, strict=False)):
            assert one == other, f"event {number} of {recorder.path}: {session.events[number]}"
        assert len(lived) == len(again)
        assert same(state, self.state)
        compared.append(len(again))

    monkeypatch.setattr(engine_module, "apply", folded)
    monkeypatch.setattr(Engine, "__aexit__", left)
    yield compared
