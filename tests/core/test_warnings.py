"""Each warning with its figure, and beside it the near miss that must not be one."""

from typing import Any

import pytest

from mlxcache_tui.core.events import MemorySampled, RequestAdmitted, ServerIdentified, ServerTargeted, TextArrived
from mlxcache_tui.core.warnings import warnings
from support.story import Story

MB = 10**6


def found(story: Story) -> dict[str, str]:
    return {warning.name: warning.text for warning in warnings(story.state)}


def observed(**flags: Any) -> Story:
    story = Story()
    story.server(**flags)
    return story


def sample(story: Story, size: int, **more: Any) -> None:
    fields: dict[str, Any] = {"pid": 10, "source": "pss", "bytes": size, **more}
    story.tell(MemorySampled(at_ns=story.tick(), origin="memory", **fields))


def test_nothing_to_warn_of() -> None:
    story = observed(prompt_cache_bytes=1_000_000)
    story.sent("a", entry=1)
    story.sent("b", entry=2, cached=90, base="a", shared=90)
    sample(story, 100 * MB, limit=1000 * MB, system_available=900 * MB)
    assert found(story) == {}


@pytest.mark.parametrize(
    ("path", "name", "words"),
    [
        ("sequential", "limit-sequential", "not applied on the sequential path"),
        ("batched", "limit-batched", "applied when the next request joins"),
    ],
)
def test_a_byte_limit_that_is_not_kept_and_by_which_path(path: Any, name: str, words: str) -> None:
    story = observed(prompt_cache_bytes=1_500)
    story.sent("a", entry=1)
    assert name not in found(story)
    story.sent("b", entry=2, system="other", path=path)
    assert found(story)[name] == f"2 kB stored over the byte limit of 1.5 kB: it is {words}"


def test_an_entry_larger_than_the_limit() -> None:
    story = observed(prompt_cache_bytes=500)
    story.sent("a", entry=1)
    assert found(story)["entry-over-limit"] == "one entry of returns, 1 kB, is larger than the byte limit of 500 B"


def test_a_hit_copies_its_entry() -> None:
    story = observed()
    story.compose("a")
    story.store(1, "a", 100, size=400 * MB)
    sample(story, 700 * MB, limit=1000 * MB, source="footprint")
    assert found(story)["peak"] == "a hit copies its entry: 700 MB + 400 MB is over the wired limit, 1 GB"
    sample(story, 500 * MB, limit=1000 * MB, system_available=300 * MB)
    assert found(story)["peak"] == "a hit copies its entry: 400 MB more, and 300 MB of memory are free"
    sample(story, 500 * MB, limit=1000 * MB, system_available=500 * MB)
    assert "peak" not in found(story)


def rounds(story: Story, count: int, size: int = 0, grow: int = 0) -> None:
    for number in range(count):
        story.sent(f"k{number}", entry=number + 1, system=f"policy {number}", policy=f"p{number % 3}")
        if number >= 2:
            story.evict(number - 1, f"k{number}")
        sample(story, size + number * grow)
        story.end(f"k{number}")


def test_memory_that_rises_at_the_count_limit() -> None:
    story = observed(prompt_cache_size=2, prompt_cache_bytes=10**9)
    rounds(story, 6, 400 * MB, 60 * MB)
    assert found(story)["rising-at-limit"].startswith("2 of 2 entries, yet memory rose by 240 MB since then")
    flat = observed(prompt_cache_size=2, prompt_cache_bytes=10**9)
    rounds(flat, 6, 400 * MB, 1 * MB)
    assert "rising-at-limit" not in found(flat)


def test_a_trend_of_bytes_a_request() -> None:
    story = observed(prompt_cache_size=20)
    rounds(story, 12, 400 * MB, 12 * MB)
    assert found(story)["trend"].startswith("memory grows by 12 MB a request; no byte limit is set")
    limited = observed(prompt_cache_bytes=10**10)
    rounds(limited, 12, 400 * MB, 12 * MB)
    assert "trend" not in found(limited)
    few = observed()
    rounds(few, 6, 400 * MB, 12 * MB)
    assert "trend" not in found(few)


def test_of_a_server_that_tells_no_limits_none_is_called_missing() -> None:
    story = Story()
    story.tell(ServerTargeted(at_ns=story.tick(), origin="program", url="http://127.0.0.1:1", mode="attached"))
    story.tell(ServerIdentified(at_ns=story.tick(), origin="client", mlx_lm="0.32.2", software="mlx_lm"))
    for number in range(12):
        story.compose(f"k{number}")
        story.answer(f"k{number}", prompt=100, cached=0)
        sample(story, (400 + 12 * number) * MB)
    assert "; no byte limit is known (" in found(story)["trend"]


def test_one_policy_that_holds_all_places() -> None:
    story = observed(prompt_cache_size=2)
    story.sent("a", entry=1, policy="warranty", system="other")
    story.sent("b", entry=2)
    assert "one-policy" not in found(story)
    story.sent("c", entry=3)
    story.evict(1, "c")
    assert found(story)["one-policy"].startswith("returns holds all 2 places")
    alone = observed(prompt_cache_size=2)
    alone.sent("a", entry=1)
    alone.sent("b", entry=2)
    assert "one-policy" not in found(alone)


def slow(story: Story, key: str, entry: int, ttft_ms: int, *, cached: int | None = 0, system: str = "policy") -> None:
    story.compose(key, system=system)
    story.tell(RequestAdmitted(at_ns=story.tick(), origin="client", key=key, status=200))
    story.tick(ttft_ms)
    story.answer(key, prompt=1000, cached=cached)
    story.tell(TextArrived(at_ns=story.tick(), origin="client", key=key, kind="answer", text="."))


def test_a_first_token_that_came_no_sooner() -> None:
    story = Story()
    story.server(observed=False)
    slow(story, "first", 1, 900, cached=None, system="other")
    slow(story, "a", 2, 500, cached=None)
    slow(story, "b", 3, 490, cached=None)
    text = found(story)["not-faster"]
    assert text.startswith("#3: TTFT ")
    assert text.endswith("(#2), though the text in front is equal")
    slow(story, "c", 4, 50, cached=None)
    assert "not-faster" not in found(story)


def test_a_miss_that_is_explained_is_no_riddle() -> None:
    story = observed(prompt_cache_size=1)
    slow(story, "first", 1, 900, system="other")
    story.compose("a")
    story.look_up("a", prompt=1000)
    story.tick(500)
    story.store(1, "a", 1003)
    story.answer("a", prompt=1000, cached=0)
    story.evict(1, "a")
    story.compose("b")
    story.look_up("b", prompt=1000, base="a", shared=990)
    story.tick(500)
    story.answer("b", prompt=1000, cached=0)
    assert "not-faster" not in found(story)


def test_a_model_whose_requests_take_three_places() -> None:
    story = observed(trimmable=False)
    assert found(story)["three-places"].startswith("a cold request takes 3 of the 10 places")
    assert "three-places" not in found(observed())


def test_what_was_warm_before_a_restart_is_offered_until_it_is_warm() -> None:
    story = observed(pid=10)
    story.sent("a", entry=1)
    story.sent("b", entry=2, system="other", policy="warranty")
    story.server(pid=11)
    assert found(story)["cold-2"] == "w: warm again after the restart: returns, warranty"
    story.sent("c", entry=1)
    assert found(story)["cold-2"].endswith(": warranty")
    story.sent("d", entry=2, system="other", policy="warranty")
    assert "cold-2" not in found(story)
