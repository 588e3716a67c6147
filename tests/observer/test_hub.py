"""The hub and its viewers: greeting, order, bounds, a viewer that does not read."""

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mlxcache_tui.core.codec import decode_event, text_id_of
from mlxcache_tui.core.events import (
    AnyEvent,
    CacheSnapshot,
    EntryInserted,
    Event,
    EventsLost,
    LookedUp,
    MlxMemorySampled,
    ModelLoaded,
    Noticed,
    ObserverConnected,
    RequestComposed,
    RequestSent,
    TextKept,
)
from mlxcache_tui.observer import observe
from mlxcache_tui.observer.observe import ENTRIES_HOOKS, Fields, Hub

PATIENCE_S = 60.0


class Reader:
    """A viewer's end of the socket."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self.end.settimeout(PATIENCE_S)
        self.events: list[AnyEvent] = []
        self._rest = b""

    def until(self, condition: Callable[[list[AnyEvent]], object]) -> list[AnyEvent]:
        """Read on until what came satisfies the condition."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition(self.events):
            assert time.monotonic() < deadline, self.events[-3:]
            data = self.end.recv(1 << 20)
            assert data, "closed"
            *lines, self._rest = (self._rest + data).split(b"\n")
            self.events.extend(decode_event(line) for line in lines)
        return self.events

    def until_notice(self, text: str) -> list[AnyEvent]:
        return self.until(lambda events: any(isinstance(e, Noticed) and e.text == text for e in events))

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def hub() -> Hub:
    made = Hub("/tmp/log")
    made.hooks.extend(ENTRIES_HOOKS)
    made.tell("_flags", flags={"prompt_cache_size": 3, "prompt_cache_bytes": 5000, "odd": object(), "model": "m"})
    made.start()
    return made


@pytest.fixture
def connect(hub: Hub) -> Iterator[Callable[[], Reader]]:
    ends: list[socket.socket] = []

    def open_viewer() -> Reader:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ends.append(ours)
        hub.tell("_viewer", connection=theirs)
        return Reader(ours)

    yield open_viewer
    for end in ends:
        end.close()


def lookup(hub: Hub, key: str, tokens: list[int]) -> None:
    fields: Fields = {"cached_tokens": 0, "how": "none", "entry": None, "path": "batched", "model": "m"}
    hub.tell("_lookup", key=key, tokens=tokens, **fields)


def inserted(entry: int, tokens: list[int], size: int = 10, replaced: int | None = None) -> tuple[str, Fields]:
    fields: Fields = {"entry": entry, "type": "assistant", "tokens": tokens, "bytes": size, "model": "m"}
    return "EntryInserted", {**fields, "trimmable": True, "replaced": replaced}


def test_the_greeting_says_flags_then_history_then_what_is_stored(hub: Hub, connect: Callable[[], Reader]) -> None:
    lookup(hub, "a", [1, 2, 3])
    hub.tell("_cache", key="a", changes=[inserted(1, [1, 2, 3, 4])], totals=(1, 10))
    hub.notice("before")
    early = connect()
    early.until_notice("before")
    early.until(lambda events: any(isinstance(e, CacheSnapshot) for e in events))
    hub.notice("after")
    late = connect()
    late.until_notice("after")
    hello, looked, entry, before, snapshot = early.events
    assert isinstance(hello, ObserverConnected)
    assert hello.flags["model"] == "m"
    assert hello.log_path == "/tmp/log"
    assert isinstance(looked, LookedUp)
    assert isinstance(entry, EntryInserted)
    assert entry.tokens.base == "a"
    assert isinstance(before, Noticed)
    assert isinstance(snapshot, CacheSnapshot)
    assert (snapshot.max_count, snapshot.max_bytes, snapshot.bytes) == (3, 5000, 10)
    assert [(state.entry, state.tokens, state.key) for state in snapshot.entries] == [(1, 4, "a")]
    early.until_notice("after")
    assert early.events[1:4] == late.events[1:4]
    assert [event.text for event in early.of(Noticed)] == [event.text for event in late.of(Noticed)]


def test_a_viewer_waits_until_the_flags_are_known(connect: Callable[[], Reader]) -> None:
    hub = Hub()
    hub.start()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours:
        hub.tell("_viewer", connection=theirs)
        hub.notice("first")
        hub.tell("_flags", flags={"port": 1})
        reader = Reader(ours)
        reader.until_notice("first")
        assert reader.of(ObserverConnected)[0].flags == {"port": 1}
        assert not reader.of(CacheSnapshot), "without the entries' hooks nothing is known of them"


def test_folding_what_the_cache_did(hub: Hub, connect: Callable[[], Reader]) -> None:
    lookup(hub, "a", [1])
    hub.tell("_cache", key="a", changes=[inserted(1, [1])], totals=(1, 10))
    swallow = ("EntrySwallowed", {"entry": 1, "by": 2})
    hub.tell("_cache", key="a", changes=[inserted(2, [1, 2]), swallow], totals=(1, 10))
    hub.tell("_cache", key="a", changes=[inserted(3, [1, 2], 20, replaced=2)], totals=(1, 20))
    evict = ("EntryEvicted", {"entry": 3, "rule": "bytes", "limit": 77})
    hub.tell("_cache", key="b", changes=[inserted(4, [5]), evict], totals=(1, 10))
    hub.notice("done")
    reader = connect()
    reader.until(lambda events: any(isinstance(e, CacheSnapshot) for e in events))
    (snapshot,) = reader.of(CacheSnapshot)
    assert [state.entry for state in snapshot.entries] == [4]
    eviction = next(event for event in reader.events if type(event).__name__ == "EntryEvicted")
    assert (eviction.limit, eviction.key) == (5000, "b"), "the limit that the person set, not what was left of it"  # type: ignore[union-attr]
    assert [event.text for event in reader.of(Noticed)] == ["done"]


def test_a_picture_that_differs_from_the_servers_count_is_owned_up_to(hub: Hub, connect: Callable[[], Reader]) -> None:
    for number in (1, 2):
        hub.tell("_cache", key=None, changes=[inserted(number, [number])], totals=(7, 7))
    hub.notice("done")
    reader = connect()
    reader.until_notice("done")
    assert len(reader.of(Noticed)) == 2


def test_a_text_is_told_once_and_named_by_its_id(hub: Hub, connect: Callable[[], Reader]) -> None:
    reader = connect()
    odd = "lone \ud800 and \x1b[31m"
    for key in ("a", "b"):
        texts = [("system", "policy"), ("user", odd)]
        params = {"tools": [{"name": "t" * 3000}] * 9, "nan": float("nan"), "big": 10**40, "deep": [[[[[[[[1]]]]]]]]}
        fields = {"path": "/v1/chat/completions", "client": "x", "texts": texts, "params": params}
        hub.tell("_composed", 5, key=key, purpose="foreign", **fields)
    hub.notice("done")
    reader.until_notice("done")
    kept, composed = reader.of(TextKept), reader.of(RequestComposed)
    assert [text.text_id for text in kept] == [text_id_of("policy"), text_id_of(odd)]
    assert kept[1].text == "lone ? and \x1b[31m"
    assert composed[0].messages == composed[1].messages == (("system", kept[0].text_id), ("user", kept[1].text_id))
    assert composed[0].params["tools"] == 9
    assert composed[0].params["nan"] is None
    assert [event.at_ns for event in reader.of(RequestSent)] == [5, 5]


def test_a_text_that_no_request_had_lately_is_told_again(
    hub: Hub, connect: Callable[[], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observe, "TOLD_REQUESTS", 3)
    reader = connect()
    reader.until(lambda events: events)
    for number, text in enumerate(
        ["policy", "policy", "other", "other", "other", "policy", "policy", "other", "policy"], 1
    ):
        fields = {"path": "/v1/chat/completions", "client": "x", "texts": [("user", text)], "params": {}}
        hub.tell("_composed", number, key=f"k{number}", purpose="foreign", **fields)
    hub.notice("done")
    reader.until_notice("done")
    assert [(text.at_ns, text.text) for text in reader.of(TextKept)] == [(1, "policy"), (3, "other"), (6, "policy")]
    late = connect()
    late.until(lambda events: any(isinstance(event, RequestSent) and event.at_ns == 9 for event in events))
    assert sorted(text.text for text in late.of(TextKept)) == ["other", "policy"]


def test_a_viewer_that_does_not_read_loses_events_and_is_told_how_many(
    hub: Hub, connect: Callable[[], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observe, "VIEWER_BYTES", 100_000)
    sleeper, reader = connect(), connect()
    reader.until(lambda events: events)
    for number in range(200):
        hub.notice(f"{number} " + "x" * 10_000)
        if number % 5 == 0:
            reader.until_notice(f"{number} " + "x" * 10_000)
    hub.notice("last")
    reader.until_notice("last")
    assert not reader.of(EventsLost)
    assert len(reader.of(Noticed)) == 201
    sleeper.until(lambda events: any(isinstance(e, EventsLost) for e in events))
    sleeper.until(lambda events: isinstance(events[-1], CacheSnapshot))
    (lost,) = sleeper.of(EventsLost)
    assert len(sleeper.of(Noticed)) + lost.count == 201
    hub.notice("again")
    sleeper.until_notice("again")


def test_history_is_bounded_and_the_model_stays_known(
    hub: Hub, connect: Callable[[], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observe, "HISTORY_EVENTS", 5)
    hub.tell("ModelLoaded", model="m", seconds=1.0)
    lookup(hub, "a", [1, 2, 3])
    for number in range(3):
        hub.notice(str(number))
    lookup(hub, "b", [1, 2, 4])
    hub.notice("last")
    reader = connect()
    reader.until(lambda events: any(isinstance(e, CacheSnapshot) for e in events))
    assert [event.text for event in reader.of(Noticed)] == ["0", "1", "2", "last"]
    assert reader.of(ModelLoaded)[0].model == "m"
    (looked,) = reader.of(LookedUp)
    assert looked.tokens.base is None, "its base is no longer told of, so it is written out"
    assert looked.tokens.new == (1, 2, 4)


def test_memory_is_told_when_it_changes(connect: Callable[[], Reader], hub: Hub) -> None:
    samples = iter([5, 5, 6])
    hub.memory = lambda: {"active": next(samples, 6), "pool": 0, "peak": 9}
    reader = connect()
    for key in ("a", "b", "c"):
        hub.tell("RequestEnded", key=key, outcome="done", status=200, error=None, output_tokens=1)
    hub.notice("done")
    reader.until_notice("done")
    reader.until(lambda events: any(isinstance(e, MlxMemorySampled) and e.active == 6 for e in events))
    assert [event.active for event in reader.of(MlxMemorySampled)] == [5, 6]


def test_an_event_that_cannot_be_told_stops_nothing(hub: Hub, connect: Callable[[], Reader]) -> None:
    reader = connect()
    hub.tell("_lookup", key="x")
    hub.tell("_lookup", key="y")
    hub.notice("still here")
    reader.until_notice("still here")
    reader.until(lambda _: len(reader.of(Noticed)) == 2)
    assert any("KeyError" in event.text for event in reader.of(Noticed))


def test_too_many_events_for_the_hub_are_counted(
    connect: Callable[[], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub()
    monkeypatch.setattr(observe, "QUEUE_EVENTS", 3)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours:
        hub.tell("_flags", flags={})
        hub.tell("_viewer", connection=theirs)
        for number in range(10):
            hub.notice(str(number))
        hub.start()
        reader = Reader(ours)
        reader.until(lambda events: any(isinstance(e, EventsLost) for e in events))
        assert reader.of(EventsLost)[0].count == 9
