"""Prompts with their tokens, told as the observer tells them."""

from array import array
from typing import Any

from mlxcache_tui.core.difference import common_tokens, prompt_tokens
from mlxcache_tui.core.events import LookedUp, TokenRun, TokensNamed
from support.story import Story

PIECE = 2
"""Bytes of a token here: a wide character is split into two of them."""


def tokens_of(text: str) -> list[int]:
    data = text.encode()
    return [int.from_bytes(b"\x01" + data[at : at + PIECE]) for at in range(0, len(data), PIECE)]


def ask(
    story: Story, key: str, prompt: str, *, cached: int = 0, base: str | None = None, named: bool = True, **more: Any
) -> None:
    """A request whose prompt is this text, told as the observer tells it."""
    story.compose(key, **more)
    tokens, shared = tokens_of(prompt), 0
    if base is not None:
        earlier = prompt_tokens(story.state.requests[base])
        assert earlier is not None
        shared = common_tokens(array("q", tokens), earlier)
    if named:
        pairs = tuple((token, token.to_bytes(8).lstrip(b"\0")[1:].hex()) for token in dict.fromkeys(tokens))
        story.tell(TokensNamed(at_ns=story.tick(), origin="observer", pairs=pairs, model="m"))
    run = TokenRun(count=len(tokens), base=base, shared=shared, new=tuple(tokens[shared:]))
    story.tell(
        LookedUp(
            at_ns=story.tick(),
            origin="observer",
            key=key,
            tokens=run,
            cached_tokens=cached,
            how="trimmed" if cached else "none",
            path="batched",
            model="m",
        )
    )
