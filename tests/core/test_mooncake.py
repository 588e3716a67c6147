"""A trace has a row a request, and numbers that are shared exactly as far as the prompts are."""

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.mooncake import trace_rows
from support.story import Story


def asked(story: Story, key: str, tokens: ev.TokenRun, output: int = 3) -> None:
    story.compose(key, user=key)
    story.tell(
        ev.LookedUp(
            at_ns=story.tick(), origin="observer", key=key, tokens=tokens, cached_tokens=0, how="none", path="batched"
        )
    )
    story.answer(key, prompt=tokens.count, output=output)


def test_blocks_are_numbered_by_their_whole_prefix() -> None:
    story = Story()
    asked(story, "a", ev.TokenRun(count=5, new=(1, 2, 3, 4, 5)), output=7)
    asked(story, "b", ev.TokenRun(count=5, base="a", shared=4, new=(9,)))
    asked(story, "c", ev.TokenRun(count=4, new=(0, 2, 3, 4)))
    rows, left_out = trace_rows(story.events, story.state, 2)
    assert left_out == 0
    assert [row["hash_ids"] for row in rows] == [[0, 1, 2], [0, 1, 3], [4, 5]]
    assert rows[0] == {"timestamp": 0, "input_length": 5, "output_length": 7, "hash_ids": [0, 1, 2]}
    assert rows[1]["timestamp"] > 0


def test_what_is_not_known_is_not_made_up() -> None:
    story = Story()
    asked(story, "b", ev.TokenRun(count=5, base="gone", shared=4, new=(9,)))
    story.compose("failed")
    story.end("failed", "failed")
    story.compose("w", purpose="readiness")
    rows, left_out = trace_rows(story.events, story.state)
    assert left_out == 1
    assert rows == [{"timestamp": 0, "input_length": 5, "output_length": 3}]
