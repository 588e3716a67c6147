"""Entries, evictions, swallowed prefixes, snapshots, limits."""

from mlxcache_tui.core import events as ev
from support.story import HEAD, Story


def test_an_eviction_is_told_everywhere() -> None:
    story = Story()
    story.server(prompt_cache_size=1)
    story.sent("a", entry=1)
    story.compose("b", system="other", policy="warranty")
    story.store(2, "b", 50)
    story.evict(1, "b", limit=1)
    state = story.state
    assert list(state.cache.stored) == [2]
    assert [record.entry for record in state.cache.evicted] == [1]
    (eviction,) = state.cache.evictions
    assert (eviction.policy, eviction.made_by, eviction.caused_by, eviction.rule) == ("returns", 1, 2, "count")
    assert [mark.kind for mark in state.memory.marks] == ["eviction"]
    assert state.log.rows[-1].text == "✂ evicted returns, 103 tokens, 1 kB, by #2: count limit 1"
    assert state.log.rows[-1].request == 2
    assert state.requests["b"].evicted == (eviction,)


def test_a_swallowed_prefix_is_gone_but_no_eviction() -> None:
    story = Story()
    story.server()
    story.compose("a")
    story.store(1, "a", 90, kind="system")
    story.store(2, "a", 103)
    story.tell(ev.EntrySwallowed(at_ns=story.tick(), origin="observer", entry=1, by=2, key="a"))
    assert list(story.state.cache.stored) == [2]
    assert story.state.cache.swallowed[0].gone == "swallowed"
    assert not story.state.cache.evictions


def test_an_identical_entry_takes_the_place_of_the_older_one() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1)
    story.compose("b")
    story.store(2, "b", 103, replaced=1)
    assert list(story.state.cache.stored) == [2]
    assert not story.state.cache.evicted
    assert not story.state.cache.swallowed
    older = story.state.cache.records[1]
    assert (older.gone, older.swallowed_by, older.gone_by) == ("swallowed", 2, "b")


def test_a_snapshot_is_the_truth() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1)
    kept = ev.EntryState(entry=5, type="user", tokens=9, bytes=90, inserted_ns=3)
    story.tell(
        ev.CacheSnapshot(at_ns=story.tick(), origin="observer", entries=(kept,), max_count=4, max_bytes=100, bytes=90)
    )
    cache = story.state.cache
    assert (list(cache.stored), cache.max_count, cache.max_bytes, cache.bytes) == ([5], 4, 100, 90)


def test_the_limits_come_from_the_server_itself() -> None:
    story = Story()
    story.server(prompt_cache_size=3, prompt_cache_bytes=300_000)
    assert (story.state.cache.max_count, story.state.cache.max_bytes) == (3, 300_000)


def test_counters_of_the_log_are_only_counters() -> None:
    story = Story()
    story.server(observed=False)
    story.tell(ev.CacheCounted(at_ns=story.tick(), origin="log", count=2, gigabytes=0.0, by_type={"assistant": 2}))
    assert story.state.cache.known == "counted"
    assert not story.state.cache.stored


def test_an_eviction_of_an_entry_from_before_we_watched_changes_nothing() -> None:
    story = Story()
    story.server()
    story.evict(99, "nobody")
    assert not story.state.cache.evictions


def test_the_head_of_the_template_is_no_use_of_an_entry() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1)
    for key, cached in (("b", HEAD), ("c", HEAD + 1), ("d", HEAD + 50)):
        story.compose(key, system=f"other {key}", policy="other")
        story.look_up(key, prompt=100, cached=cached, base="a", shared=cached, entry=1)
    assert story.state.cache.records[1].used_by == (4,)
