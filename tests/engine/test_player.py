"""A recording plays as it was: the same state at each event, at any speed, forwards and back."""

import asyncio
import math
import os
from pathlib import Path

import pytest

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.codec import encode_event
from mlxcache_tui.core.commands import StopServer
from mlxcache_tui.core.reduce import Part, fold
from mlxcache_tui.engine import player as playing
from mlxcache_tui.engine.player import Player
from support.same import same
from support.sessions import told, write

STORY = told()
COUNT = len(STORY.events)
S = 10**9
PATIENCE_S = 60.0


class Clock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def fresh_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was just written is one that grows, also where the test is slow to get there."""
    monkeypatch.setattr(playing, "FRESH_S", 600.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = write(tmp_path / "s.jsonl", STORY)
    os.utime(made, (0, 0))
    return made


def opened(path: Path, speed: float | None = None, clock: Clock | None = None) -> Player:
    """A player whose work is done by hand."""
    player = Player(path, speed, clock or Clock())
    player.begin()
    player.work()
    return player


def test_it_opens_at_the_end_with_all_that_happened(path: Path) -> None:
    player = opened(path)
    assert same(player.state, STORY.state)
    view = player.view
    assert (view.position, view.count, view.state) == (COUNT, COUNT, "paused")
    assert (view.request, view.requests) == (4, 4)
    assert view.at_ns == view.end_ns == STORY.now
    assert view.damage is None


def test_it_opens_at_the_last_look_before_the_server_was_stopped(tmp_path: Path) -> None:
    story = told()
    story.tell(ev.ObserverLost(at_ns=story.tick(), origin="process"))
    story.tell(ev.ServerExited(at_ns=story.tick(), origin="process", pid=10, code=0, asked=True))
    path = write(tmp_path / "s.jsonl", story)
    os.utime(path, (0, 0))
    player = opened(path)
    assert (player.view.position, player.view.count) == (COUNT, COUNT + 2)
    assert player.view.state == "paused"
    assert same(player.state, STORY.state)
    player.jump("request", 1)
    assert (player.view.note, player.view.position) == ("no further request; < to the start", COUNT)
    player.to_end()
    player.work()
    assert player.state.server.phase == "exited"
    again = opened(path)
    again.toggle()
    again.work()
    assert again.playing
    assert again.view.position <= 1
    story.compose("late")
    assert len(opened(write(path, story)).state.requests) == 6


def test_a_move_that_leads_nowhere_says_so_until_the_next_one(path: Path) -> None:
    player = opened(path)
    for kind in ("request", "eviction"):
        player.jump(kind, 1)
        assert player.view.note == f"no further {kind}; < to the start"
    player.step(1)
    assert player.view.note == "no further event; < to the start"
    assert player.view.position == COUNT
    player.step(-1)
    player.work()
    assert (player.view.note, player.view.position) == ("", COUNT - 1)
    player.to_start()
    player.work()
    player.jump("eviction", -1)
    assert player.view.note == "no eviction before this; > to the end"
    player.to_end()
    assert player.view.note == ""


def test_keys_that_come_faster_than_it_folds_all_count(path: Path) -> None:
    player = opened(path)
    player.to_start()
    for _ in range(5):
        player.step(1)
    player.step(-1)
    player.work()
    assert player.view.position == 4
    player.to_start()
    for by in (1, 1, 1, -1):
        player.jump("request", by)
    player.work()
    assert player.view.request == 1


def test_a_server_that_died_is_shown_dead(tmp_path: Path) -> None:
    story = told()
    story.tell(ev.ServerExited(at_ns=story.tick(), origin="process", pid=10, signal="SIGKILL"))
    assert opened(write(tmp_path / "s.jsonl", story)).state.server.phase == "exited"


def test_each_event_forwards_and_back_gives_the_state_that_was(path: Path) -> None:
    player = opened(path)
    player.to_start()
    player.work()
    for position in range(1, COUNT + 1):
        player.step(1)
        player.work()
        assert player.view.position == position
        assert same(player.state, fold(STORY.events[:position]))
    player.step(1)
    player.work()
    assert player.view.position == COUNT
    for position in (COUNT - 1, COUNT - 2):
        player.step(-1)
        player.work()
        assert same(player.state, fold(STORY.events[:position]))
    assert player.rewinds == 3


def test_jumps(path: Path) -> None:
    player = opened(path)
    player.to_start()
    player.work()
    assert player.state.requests == {}
    player.jump("eviction", 1)
    player.work()
    assert len(player.state.cache.evictions) == 1
    player.jump("request", -1)
    player.work()
    assert player.view.request == 2
    assert not player.state.cache.evictions
    player.jump("request", 1)
    player.work()
    assert player.view.request == 3
    player.to_end()
    player.work()
    assert same(player.state, STORY.state)


@pytest.mark.parametrize("speed", [1, 10])
def test_it_plays_by_the_recordings_own_clock(path: Path, speed: int) -> None:
    clock = Clock()
    player = opened(path, speed, clock)
    start, end = player.view.start_ns, player.view.end_ns
    for share in (0.0, 0.3, 0.7):
        clock.now = int((end - start) * share / speed)
        player.work()
        assert player.state == fold(
            [e for n, e in enumerate(STORY.events) if player.track.times[n] <= start + int(clock.now * speed)]
        )
        assert player.view.state == "playing"
    clock.now = (end - start) // speed + 1
    player.work()
    assert same(player.state, STORY.state)
    assert player.view.state == "paused"


def test_as_fast_as_it_goes(path: Path) -> None:
    player = opened(path, math.inf)
    assert player.speed is None
    assert same(player.state, STORY.state)


def test_pausing_stays_where_it_is_and_playing_goes_on_from_there(path: Path) -> None:
    clock = Clock()
    player = opened(path, 1, clock)
    length = player.view.end_ns - player.view.start_ns
    clock.now = length // 2
    player.work()
    player.toggle()
    at = player.view.position
    clock.now += 100 * S
    player.work()
    assert player.view.position == at
    player.toggle()
    player.work()
    assert player.view.position == at
    clock.now += length
    player.work()
    assert player.view.position == COUNT
    player.toggle()
    player.work()
    assert player.view.position < COUNT
    assert player.view.state == "playing"


def test_speeds_go_from_1_to_as_fast_as_it_goes(path: Path) -> None:
    player = opened(path)
    seen = []
    for _ in range(7):
        seen.append(player.speed)
        player.change_speed(1)
    assert seen == [1, 2, 5, 10, 50, None, None]
    player.change_speed(-1)
    assert player.speed == 50
    player.speed = 3
    player.change_speed(1)
    assert player.speed == 5


def test_nothing_is_sent_or_added(path: Path) -> None:
    player = opened(path)
    player.submit(StopServer())
    player.emit(STORY.events[0])
    assert player.new_key()
    assert same(player.state, STORY.state)


def test_damage_is_told_with_its_place(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"\x00broken\n", *lines[3:]])[:-4])
    player = opened(path)
    assert player.view.damage is not None
    assert player.view.damage.startswith("damaged: line 4: ")
    assert player.view.position == 3


def test_a_file_of_another_version_opens_and_says_what_it_does_not_show(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"origin"', b'"later_field":[1],"origin"')
    path.write_bytes(b"".join([*lines, b'{"t":"MoonRose","at_ns":1,"origin":"log"}\n']))
    player = opened(path)
    assert same(player.state, STORY.state)
    assert player.view.damage == "1 events of kinds that a newer version writes are not shown"


async def test_a_file_that_grows_is_followed_until_one_goes_elsewhere(tmp_path: Path, fresh_for_long: None) -> None:
    lines = [encode_event(event) for event in STORY.events]
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines[:10]) + lines[10][:20])
    told: list[frozenset[Part]] = []
    async with Player(path) as player:
        player.listen(told.append)
        assert await player.until(lambda _: player.view.state == "following", PATIENCE_S)
        assert player.view.position == 10
        assert player.view.damage is None
        with path.open("ab") as file:
            file.write(lines[10][20:] + b"".join(lines[11:20]))
        assert await player.until(lambda _: player.view.position == 20, PATIENCE_S)
        assert same(player.state, fold(STORY.events[:20]))
        assert any("requests" in parts for parts in told)
        player.step(-1)
        assert await player.until(lambda _: player.view.position == 19, PATIENCE_S)
        with path.open("ab") as file:
            file.write(b"".join(lines[20:]))
        assert await player.until(lambda _: player.view.count == COUNT, PATIENCE_S)
        assert player.view.position == 19
        player.to_end()
        assert await player.until(lambda _: player.view.position == COUNT, PATIENCE_S)
        assert same(player.state, STORY.state)


async def test_a_file_that_goes_away_has_ended(tmp_path: Path, fresh_for_long: None) -> None:
    path = write(tmp_path / "s.jsonl", STORY)
    async with Player(path) as player:
        assert await player.until(lambda _: player.view.state == "following", PATIENCE_S)
        path.unlink()
        assert await player.until(lambda _: player.view.state == "paused", PATIENCE_S)


async def test_what_cannot_be_read_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        async with Player(tmp_path / "none.jsonl"):
            pass


async def test_it_plays_on_its_own_and_tells(path: Path) -> None:
    told: list[frozenset[Part]] = []
    async with Player(path, 1) as player:
        player.listen(told.append)
        assert await player.until(lambda state: same(state, STORY.state), PATIENCE_S)
        assert player.detail("b") is not None
    assert told
    await asyncio.sleep(0)
