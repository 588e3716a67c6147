"""Live state equals replayed state, event by event, for any stream: what a file gives back folds to the same."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.reduce import apply, fold
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.engine.player import Player
from mlxcache_tui.store.recorder import Recorder
from mlxcache_tui.store.replay import SessionReader
from support.same import same
from support.streams import EVENTS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fold")


@settings(max_examples=150, deadline=None)
@given(stream=st.lists(EVENTS, max_size=40))
def test_live_state_is_replayed_state_event_by_event(folder: Path, stream: list[ev.AnyEvent]) -> None:
    path = folder / "s.jsonl"
    path.unlink(missing_ok=True)
    recorder = Recorder(path)
    for event in stream:
        recorder.append(event)
    recorder.close()
    live, replayed = SessionState(), SessionState()
    if not stream:
        return
    reader = SessionReader(path)
    reader.look()
    for event in stream:
        (read,) = reader.read(1)
        assert apply(live, event) == apply(replayed, read)
        assert same(live, replayed)


@settings(max_examples=50, deadline=None)
@given(stream=st.lists(EVENTS, min_size=1, max_size=25), steps=st.lists(st.integers(0, 25), max_size=6))
def test_the_player_shows_at_each_place_what_was_there(
    folder: Path, stream: list[ev.AnyEvent], steps: list[int]
) -> None:
    path = folder / "p.jsonl"
    path.unlink(missing_ok=True)
    recorder = Recorder(path)
    for event in stream:
        recorder.append(event)
    recorder.close()
    player = Player(path)
    player.begin()
    player.work()
    for place in steps:
        player.step(min(place, len(stream)) - player.view.position)
        player.work()
        assert player.view.position == min(place, len(stream))
        assert same(player.state, fold(stream[: player.view.position]))
