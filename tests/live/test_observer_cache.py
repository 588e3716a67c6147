"""What the observer tells of the prompt cache, checked against the server's own counters."""

import re

import pytest

from mlxcache_tui.core.events import (
    CacheSnapshot,
    EntryEvicted,
    EntryInserted,
    LookedUp,
    ModelLoaded,
    RequestEnded,
)
from support.live_server import Server, Start, Viewer, await_same_stored, expand, rules, since, stored_after

pytestmark = pytest.mark.mlx


# --- the cache -------------------------------------------------------------------------------------------------------


def test_what_the_count_limit_throws_out(start: Start) -> None:
    server = start(prompt_cache_size=2)
    with Viewer(server.socket) as viewer:
        viewer.greeted()
        for name in ("Alpha", "Beta", "Gamma", "Alpha"):
            key = f"{name}:{len(viewer.all(RequestEnded))}"
            server.ask("May I?", rules(name), key=key)
            viewer.wait(RequestEnded, key)
            viewer.final(key)
        viewer.until(lambda events: len(stored_after(events)) == 2, "the last eviction")
        evicted = viewer.all(EntryEvicted)
        first = {entry.key: entry.entry for entry in viewer.all(EntryInserted) if entry.type == "assistant"}
        assert [event.rule for event in evicted] == ["count"] * len(evicted)
        assert {event.limit for event in evicted} == {2}
        keys = list(dict.fromkeys(entry.key for entry in viewer.all(EntryInserted) if entry.key != "readiness"))
        assert [key.split(":")[0] for key in keys if key] == ["Alpha", "Beta", "Gamma", "Alpha"]
        assert first[keys[0]] in {event.entry for event in evicted}, "the first policy was pushed out"
        assert viewer.all(LookedUp, keys[3])[0].cached_tokens < 50
        last = {event.entry: event.key for event in evicted}
        assert last[first[keys[0]]] == keys[2], "by the third policy"
        fresh = await_same_stored(server, viewer)
        assert len(fresh) == 2
        server.ask("Count.", key="count", max_tokens=1)  # the server prints its counters at the next look-up
        viewer.wait(RequestEnded, "count")
        assert re.findall(r"(?:Prompt Cache|KV Caches): (\d+) seq", server.log_text())[-1] == "2"


def test_what_the_byte_limit_throws_out(start: Start) -> None:
    server = start(prompt_cache_bytes=600_000)
    with Viewer(server.socket) as viewer:
        viewer.greeted()
        for number in range(5):
            server.ask("May I?", rules(f"Bytes{number}"), key=f"bytes:{number}")
            viewer.final(f"bytes:{number}")
        evicted = viewer.all(EntryEvicted)
        assert evicted
        assert {event.rule for event in evicted} == {"bytes"}
        assert all(0 <= event.limit <= 600_000 for event in evicted)
        assert all(event.key for event in evicted)
        assert viewer.all(CacheSnapshot)[-1].max_bytes == 600_000
        await_same_stored(server, viewer)


@since(0, 31, 2)
def test_a_sliding_window_keeps_its_checkpoints(start: Start) -> None:
    server = start("tiny-sliding")
    with Viewer(server.socket) as viewer:
        viewer.greeted()
        loaded = viewer.wait(ModelLoaded)
        assert loaded.trimmable is False
        assert loaded.sliding_window is not None
        assert any("Rotating" in name for name in loaded.layers)
        server.ask("May I?", rules("Slide"), key="slide")
        viewer.final("slide")
        kinds = [entry.type for entry in viewer.all(EntryInserted, "slide")]
        assert kinds[0] == "system"
        assert kinds[-1] == "assistant"
        assert {entry.trimmable for entry in viewer.all(EntryInserted, "slide")} == {False}
        second = server.ask("It broke. May I?", rules("Slide"), key="slide:2")
        viewer.wait(RequestEnded, "slide:2")
        looked = viewer.wait(LookedUp, "slide:2")
        system = viewer.all(EntryInserted, "slide")[0]
        assert (looked.how, looked.entry, looked.cached_tokens) == ("extended", system.entry, second.cached)
        await_same_stored(server, viewer)


def test_runs_of_tokens_give_every_prompt_back(observed: Server, viewer: Viewer) -> None:
    for number, user in enumerate(("May I?", "May I return it?", "Another?")):
        observed.ask(user, rules("Runs"), key=f"runs:{number}")
        viewer.wait(RequestEnded, f"runs:{number}")
    with Viewer(observed.socket) as late:
        late.greeted()
        told, entries = expand(viewer.events)
        again, entries_again = expand(late.events)
        for number in range(3):
            assert told[f"runs:{number}"] == again[f"runs:{number}"]
            assert len(told[f"runs:{number}"]) == viewer.wait(LookedUp, f"runs:{number}").tokens.count
        assert all(entries[entry] == entries_again[entry] for entry in entries if entry in entries_again)
