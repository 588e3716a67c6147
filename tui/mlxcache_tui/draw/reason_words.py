"""The words of a reason in the cells that there are: what matters stays, what the sign says too goes first."""

import re

from mlxcache_tui.core.text import cell_width

_SHORTER = (
    (r"^hit: |^evicted (?=by )|^differs from ", ""),
    (r" tokens of ", " of "),
    (r" more lost: ", " lost: "),
    (r": begun .*? before(, \w+ .*? after)?(?= · |$)", ""),
    (r" · → ", " → "),
    (r" \(#\d+\)", ""),
    (r"→ (≈ )?threw out ", r"→ \1✂ "),
    (r"an entry made before we watched", "an earlier entry"),
    (r" before it was stored$", ""),
    (r"(lost: .*) \((count|bytes) [^)]*\)", r"\1"),
    (r"(lost: #\d+) evicted ", r"\1 ✂ "),
)
"""What is said shorter, in this order, as long as there is no room. The sign in front stands for the first."""


def fitting_reason(text: str, room: int) -> str:
    """The reason in `room` cells; the shortest wording, to be cut, where none fits."""
    for pattern, shorter in _SHORTER:
        if cell_width(text) <= room:
            break
        text = re.sub(pattern, shorter, text)
    return text
