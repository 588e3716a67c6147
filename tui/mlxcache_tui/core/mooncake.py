"""A session as a request trace in the form of Mooncake's (FAST'25), which load generators and simulators replay.

One row a request: `timestamp` (ms since the first one was sent), `input_length` and `output_length` (tokens), and
`hash_ids`: one number for each block of `block_size` tokens, the last may be short. A number stands for its block and
all before it, so that two requests share their first k numbers exactly where they share k blocks of prefix.
"""

from collections.abc import Iterable
from typing import Any

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.state import SessionState

BLOCK_SIZE = 512
"""Tokens a block, as in the published traces."""


def trace_rows(
    events: Iterable[ev.AnyEvent], state: SessionState, block_size: int = BLOCK_SIZE
) -> tuple[list[dict[str, Any]], int]:
    """The rows in the order of sending, and how many requests were left out since a length is not known.

    `hash_ids` is missing where the tokens are not known: only the observer tells them.
    """
    prompts = _prompts(events)
    blocks: dict[tuple[int, tuple[int, ...]], int] = {}
    rows: list[dict[str, Any]] = []
    left_out = 0
    first: int | None = None
    for request in state.requests.values():
        sent = request.stamps.sent
        if request.purpose == "readiness" or sent is None:
            continue
        if request.prompt_tokens is None or request.output_tokens is None:
            left_out += 1
            continue
        first = sent if first is None else min(first, sent)
        row: dict[str, Any] = {
            "timestamp": sent,
            "input_length": request.prompt_tokens,
            "output_length": request.output_tokens,
        }
        if tokens := prompts.get(request.key):
            row["hash_ids"] = _hash_ids(tokens, block_size, blocks)
        rows.append(row)
    for row in rows:
        row["timestamp"] = (row["timestamp"] - (first or 0)) // 1_000_000
    return sorted(rows, key=lambda row: row["timestamp"]), left_out


def _prompts(events: Iterable[ev.AnyEvent]) -> dict[str, tuple[int, ...]]:
    """The tokens of each request, put together from the runs; those whose base was never told are left out."""
    prompts: dict[str, tuple[int, ...]] = {}
    for event in events:
        if not isinstance(event, ev.LookedUp):
            continue
        run = event.tokens
        start = prompts.get(run.base, ())[: run.shared] if run.base is not None else ()
        tokens = start + run.new
        if len(tokens) == run.count:
            prompts[event.key] = tokens
    return prompts


def _hash_ids(tokens: tuple[int, ...], size: int, blocks: dict[tuple[int, tuple[int, ...]], int]) -> list[int]:
    """Numbers in the order of first sight; a block is known by the number of the one before it and its tokens."""
    ids: list[int] = []
    before = -1
    for start in range(0, len(tokens), size):
        before = blocks.setdefault((before, tokens[start : start + size]), len(blocks))
        ids.append(before)
    return ids
