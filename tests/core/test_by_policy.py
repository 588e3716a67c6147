"""Figures by policy, and the requests that warm again."""

from typing import Any

import pytest

from mlxcache_tui.core.by_policy import policy_rows, to_warm, warming_drafts
from mlxcache_tui.core.views import PolicyRow
from mlxcache_tui.core.warnings import warnings
from support.story import Story


def rows(story: Story) -> dict[str, PolicyRow]:
    return {row.policy: row for row in policy_rows(story.state)}


def test_each_policy_has_its_own_figures_weighted_by_tokens() -> None:
    story = Story()
    story.server(prompt_cache_size=2)
    story.sent("a", entry=1, prompt=100)
    story.sent("b", entry=2, prompt=300, cached=270, base="a", shared=270)
    story.sent("c", entry=3, prompt=50, system="other", policy="warranty")
    story.evict(1, "c")
    found = rows(story)
    returns, warranty = found["returns"], found["warranty"]
    assert (returns.requests, returns.entries, returns.evicted, returns.bytes) == (2, 1, 1, 1_000)
    assert (returns.reuse_last, returns.reuse_session) == (0.9, 270 / 400)
    lookup = story.state.requests["b"].lookup
    assert lookup is not None
    assert returns.last_hit_ns == lookup.at_ns
    assert (warranty.reuse_last, warranty.last_hit_ns, warranty.share) == (0.0, None, 0.5)


def test_warm_ups_count_for_the_bytes_only_and_unknown_is_not_nought() -> None:
    story = Story()
    story.server()
    story.compose("w", purpose="warm", warmup=True)
    story.store(1, "w", 50)
    story.compose("a")
    story.answer("a", prompt=100, cached=None)
    row = rows(story)["returns"]
    assert (row.requests, row.entries, row.reuse_last, row.reuse_session) == (1, 1, None, None)


def test_what_was_warm_is_sent_again_with_one_token_and_the_same_arguments() -> None:
    story = Story()
    story.server(pid=10)
    story.compose("a", "opened?", params={"chat_template_kwargs": {"enable_thinking": False}, "max_tokens": 64})
    story.look_up("a", prompt=100)
    story.store(1, "a", 103)
    story.answer("a", prompt=100, cached=0)
    story.sent("b", entry=2, system="other", policy="warranty")
    story.evict(2, "b")
    assert to_warm(story.state) == ()
    story.server(pid=11)
    (draft,) = warming_drafts(story.state)
    assert (draft.policy, draft.policy_text, draft.user, draft.max_tokens) == ("returns", "policy", "opened?", 1)
    assert (draft.purpose, draft.warmup) == ("warm", True)
    assert draft.extra == {"chat_template_kwargs": {"enable_thinking": False}}
    assert rows(story)["returns"].warm_before
    assert not rows(story)["warranty"].warm_before


def test_a_restart_before_anything_was_stored_keeps_the_list() -> None:
    story = Story()
    story.server(pid=10)
    story.sent("a", entry=1)
    story.server(pid=11)
    story.server(pid=12)
    assert to_warm(story.state) == ("a",)


@pytest.mark.parametrize("why", ["replay", "watching", "no places", "no bytes"])
def test_there_is_no_list_where_nothing_could_be_warmed(why: str) -> None:
    story = Story()
    story.server(pid=10)
    story.sent("a", entry=1)
    sizes: dict[str, dict[str, Any]] = {"no places": {"prompt_cache_size": 0}, "no bytes": {"prompt_cache_bytes": 0}}
    story.server(pid=11, **sizes.get(why, {}))
    story.state.replayed = why == "replay"
    story.state.server.watch_only = why == "watching"
    assert story.state.cache.warm_before
    assert (to_warm(story.state), warming_drafts(story.state)) == ((), ())
    assert not any(row.warm_before for row in rows(story).values())
    assert not any(warning.name.startswith("cold") for warning in warnings(story.state))
