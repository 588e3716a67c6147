"""Where two requests differ: in their messages' texts, in their prompts' tokens, in what they were sent with."""

from array import array
from dataclasses import dataclass

from mlxcache_tui.core.state import RequestState, SessionState

HERE = "▸"
"""Stands where two texts begin to differ."""
CONTEXT = 40
"""Characters of text shown on each side of a first difference."""
TEMPLATE_ARGUMENTS = ("chat_template_kwargs", "tools", "add_generation_prompt")
"""Parameters that change what the chat template makes of the same messages."""
SHOWN_PARAMETERS = ("model", "seed", *TEMPLATE_ARGUMENTS)
"""Parameters that may explain a difference, so that the evidence names them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two requests' messages first differ: message index, its role, character, and both texts around it."""

    message: int
    role: str
    char: int
    ours: str
    theirs: str


def first_difference(state: SessionState, request: RequestState, earlier: RequestState) -> Difference | None:
    """Where the messages of two requests first differ; None where one goes on exactly as the other ends."""
    for index, (mine, other) in enumerate(zip(request.messages, earlier.messages, strict=False)):
        if mine == other:
            continue
        ours, theirs = state.message_text(mine[1]), state.message_text(other[1])
        char = common_prefix(ours, theirs)
        return Difference(
            message=index,
            role=mine[0],
            char=char,
            ours=_around(ours, char),
            theirs=_around(theirs, char),
        )
    return None


def _around(text: str, char: int) -> str:
    """A piece of one line, with a sign where it begins to differ."""
    start, end = max(0, char - CONTEXT // 2), char + CONTEXT
    before, after = (" ".join(part.split()) for part in (f"{text[start:char]}|", f"|{text[char:end]}"))
    return f"{'…' * (start > 0)}{before[:-1]}{HERE}{after[1:] or 'the end'}{'…' * (end < len(text))}"


def common_prefix(a: str, b: str) -> int:
    """How many characters two texts share from the start."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def difference_lines(number: int, difference: Difference) -> tuple[str, str]:
    there = f"#{number}:"
    width = max(len("here:"), len(there)) + 1
    return (f"{'here:':<{width}}{difference.ours}", f"{there:<{width}}{difference.theirs}")


def other_parameters(request: RequestState, base: RequestState) -> tuple[str, ...]:
    """What two requests were sent with that differs, a line each."""
    pairs = ((name, request.params.get(name), base.params.get(name)) for name in SHOWN_PARAMETERS)
    return tuple(
        f"{name}: {_shown(ours)} here, {_shown(theirs)} in #{base.number}"
        for name, ours, theirs in pairs
        if ours != theirs
    )


def _shown(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= CONTEXT else text[: CONTEXT - 1] + "…"


# --- tokens ----------------------------------------------------------------------------------------------------------


def prompt_tokens(request: RequestState) -> "array[int] | None":
    """All tokens of a request's prompt, from the runs that were told; None if a part of them was not."""
    pieces: list[array[int]] = []
    run = request.lookup.tokens if request.lookup else None
    count = run.count if run else 0
    while run is not None and count:
        if count > run.shared:
            pieces.append(run.new[: count - run.shared])
            if len(pieces[-1]) < count - run.shared:
                return None
            count = run.shared
        run = run.start
    if request.lookup is None or count:
        return None
    whole: array[int] = array("q")
    for piece in reversed(pieces):
        whole.extend(iter(piece))  # ids of four bytes or of eight
    return whole


def common_tokens(a: "array[int]", b: "array[int]") -> int:
    """How many tokens two prompts share from the start."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
