"""How many tokens a text has that was not sent yet: by its scripts, at the rates of this session's prompts.

A tokenizer takes a word of plain letters for a token or two, and may take a Japanese character for three: one rate for
both is wrong for each of them where languages mix. The two rates are those that fit the last prompts best, whose
tokens were counted, as if one small prompt of each kind with the usual rate had been among them.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from mlxcache_tui.core.state import SessionState

PLAIN_PER_TOKEN, OTHER_PER_TOKEN = 4.0, 1.0
"""Characters per token of plain letters and of other scripts, as long as no prompt was counted."""
USUAL_TOKENS = 30.0
"""Tokens of the small prompt that stands for the usual rate."""
PROMPTS, LOOKED_AT = 16, 64
"""The last prompts that were counted, among so many requests: this is worked out at each key."""
LEAST_RATE = 0.05
"""Tokens per character: a prompt that says otherwise was not sent as text."""
# Latin with its accents, and signs such as dashes and quotes, are plain; all alphabets and characters behind them not.
_OTHER = re.compile("[\u0370-\u1fff\u2c00-\U0010ffff]+")


@lru_cache(maxsize=256)  # the messages of the prompts that are looked at: conversations have many
def scripts(text: str) -> tuple[int, int]:
    """Characters of plain letters, and of other scripts."""
    other = 0 if text.isascii() else sum(map(len, _OTHER.findall(text)))
    return len(text) - other, other


def estimate(state: SessionState, text: str) -> int:
    """Tokens of a text."""
    return round(_tokens(rates(state), text))


def difference(state: SessionState, ours: list[str], theirs: list[str]) -> int:
    """How many tokens more `ours` has: what both have in common counts exactly, whatever its script."""
    both = rates(state)
    return round(sum(_tokens(both, text) for text in ours) - sum(_tokens(both, text) for text in theirs))


def weight(state: SessionState, texts: list[str]) -> float:
    """Tokens of texts, not rounded: to divide a number that is known among them."""
    both = rates(state)
    return sum(_tokens(both, text) for text in texts)


def _tokens(both: tuple[float, float], text: str) -> float:
    plain, other = scripts(text)
    return plain * both[0] + other * both[1]


def rates(state: SessionState) -> tuple[float, float]:
    """Tokens per character of plain letters and of other scripts: least squares over the last prompts."""
    prior_plain, prior_other = USUAL_TOKENS * PLAIN_PER_TOKEN, USUAL_TOKENS * OTHER_PER_TOKEN
    plain_plain, other_other, both = prior_plain**2 / USUAL_TOKENS, prior_other**2 / USUAL_TOKENS, 0.0
    plain_sum, other_sum = prior_plain, prior_other
    for plain, other, tokens in islice(_counted(state), PROMPTS):
        plain_plain += plain**2 / tokens
        other_other += other**2 / tokens
        both += plain * other / tokens
        plain_sum += plain
        other_sum += other
    whole = plain_plain * other_other - both**2
    of_plain = (plain_sum * other_other - other_sum * both) / whole
    of_other = (other_sum * plain_plain - plain_sum * both) / whole
    return max(LEAST_RATE, of_plain), max(LEAST_RATE, of_other)


def _counted(state: SessionState) -> Iterator[tuple[int, int, int]]:
    """Characters of both kinds and tokens of prompts, the latest first."""
    for request in islice(reversed(state.requests.values()), LOOKED_AT):
        has_system = bool(request.messages) and request.messages[0][0] == "system"
        tokens = (request.prompt_tokens or 0) - (state.server.head_tokens(has_system=has_system) or 0)
        sizes = [scripts(state.message_text(text_id)) for _, text_id in request.messages] if tokens > 0 else []
        plain, other = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
        if plain or other:
            yield plain, other, tokens
