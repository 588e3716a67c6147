"""A request's prompt as the server saw it, and where it parts from another one.

The observer tells each prompt as tokens and what each token says; put together that is the text behind the chat
template, exactly. Without it there are only the messages as they were sent: the same comparison on them is approximate.
"""

from array import array
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass
from itertools import pairwise

from mlxcache_tui.core.difference import common_prefix, common_tokens, other_parameters, prompt_tokens
from mlxcache_tui.core.state import RequestState, SessionState
from mlxcache_tui.core.text import clean, clean_block
from mlxcache_tui.core.views import LensPart, LensView

EXCERPT = 16
"""Characters shown of each text at the first difference."""
KEPT_TEXTS = 16
"""Prompts whose text is kept: one of 100,000 tokens takes some 3 MB."""


@dataclass(frozen=True, slots=True)
class PromptText:
    """A prompt as tokens and as text; `ends` are the byte offsets behind each token."""

    tokens: "array[int]"
    data: bytes
    ends: "array[int]"
    text: str

    def characters(self, tokens: int) -> int:
        """How many whole characters the first `tokens` tokens hold: a token may end inside a character."""
        end = self.ends[tokens - 1] if tokens else 0
        while 0 < end < len(self.data) and self.data[end] & 0xC0 == 0x80:
            end -= 1
        return len(self.data[:end].decode("utf-8", "surrogateescape"))

    def whole_tokens(self, characters: int) -> int:
        """How many tokens lie entirely within the first `characters` characters."""
        return bisect_right(self.ends, len(self.text[:characters].encode("utf-8", "surrogateescape")))


class PromptTexts:
    """The texts of prompts, the last few kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], PromptText] = OrderedDict()

    def of(self, state: SessionState, key: str) -> PromptText | None:
        """A request's prompt as text; None where tokens, or what they say, are not known."""
        request = state.requests.get(key)
        if request is None or request.lookup is None:
            return None
        name = (key, request.lookup.at_ns)
        text = self._kept.get(name) or _prompt_text(state, request)
        if text is not None:
            self._kept[name] = text
            self._kept.move_to_end(name)
            if len(self._kept) > KEPT_TEXTS:
                self._kept.popitem(last=False)
        return text


def _prompt_text(state: SessionState, request: RequestState) -> PromptText | None:
    tokens = prompt_tokens(request)
    names = state.vocabularies.get(request.lookup.model if request.lookup else None)
    if tokens is None or names is None:
        return None
    pieces, ends, end = [], array("q"), 0
    for token in tokens:
        piece = names.get(token)
        if piece is None:
            return None
        pieces.append(piece)
        end += len(piece)
        ends.append(end)
    data = b"".join(pieces)
    text = data.decode("utf-8", "surrogateescape")
    return PromptText(tokens, data, ends, text)


# --- the view --------------------------------------------------------------------------------------------------------


def lens_view(state: SessionState, key: str, against: str | None, texts: PromptTexts) -> LensView | None:
    """The prompt of `key` beside that of `against`; None: the most similar one, or that of which its reason speaks."""
    request = state.requests.get(key)
    if request is None or not request.messages:
        return None
    exact = texts.of(state, key)
    others = tuple(other.key for other in state.requests.values() if _comparable(request, other, exact is not None))
    if against not in others:
        against = next((name for name in _defaults(state, request) if name in others), None)
    other = state.requests[against] if against is not None else None
    theirs = texts.of(state, other.key) if exact and other else None
    if exact and (other is None or theirs):
        return _exact_view(request, other, others, exact, theirs)
    return _sent_view(state, request, other, others)


def _comparable(request: RequestState, other: RequestState, exact: bool) -> bool:
    if other is request or not other.messages:
        return False
    if not exact:
        return other.purpose != "readiness"
    return other.lookup is not None and request.lookup is not None and other.lookup.model == request.lookup.model


def _defaults(state: SessionState, request: RequestState) -> list[str | None]:
    """The one that its reason speaks of, and the most similar: of a hit that comes first, what it came from second."""
    number = request.reason.from_request if request.reason else None
    named = next((other.key for other in state.requests.values() if other.number == number), None)
    earlier = [other for other in state.requests.values() if other.composed_ns < request.composed_ns and other.number]
    same = next((other.key for other in reversed(earlier) if other.messages[:1] == request.messages[:1]), None)
    base = request.lookup.tokens.base if request.lookup else None
    is_hit = request.reason is not None and request.reason.kind == "hit"
    return [base, named, same] if is_hit else [named, base, same]


def _exact_view(
    request: RequestState,
    other: RequestState | None,
    others: tuple[str, ...],
    ours: PromptText,
    theirs: PromptText | None,
) -> LensView:
    cached = request.lookup.cached_tokens if request.lookup else 0
    shared = common_tokens(ours.tokens, theirs.tokens) if theirs else None
    cuts = sorted({0, cached, len(ours.tokens), *(() if shared is None else (shared,))})
    parts = tuple(
        LensPart(
            text=clean_block(ours.text[ours.characters(start) : ours.characters(end)]),
            tokens=end - start,
            reused=start < cached,
            same=None if shared is None else start < shared,
        )
        for start, end in pairwise(cuts)
    )
    other_parts: tuple[LensPart, ...] = ()
    if theirs is not None and shared is not None:
        rest = clean_block(theirs.text[theirs.characters(shared) :])
        common = tuple(part for part in parts if part.same)
        other_parts = common
        if rest:
            last = LensPart(text=rest, tokens=len(theirs.tokens) - shared, reused=False, same=False)
            other_parts = (*common, last)
    equal = theirs is not None and shared == len(ours.tokens) == len(theirs.tokens)
    return LensView(
        key=request.key,
        number=request.number,
        exact=True,
        note="",
        tokens=len(ours.tokens),
        cached=cached,
        shared=shared,
        parts=parts,
        other_key=other.key if other else None,
        other_number=other.number if other else None,
        other_policy=other.policy if other else "",
        other_parts=other_parts,
        others=others,
        parameters=other_parameters(request, other) if other else (),
        here=_excerpt(ours.text, ours.characters(shared)) if shared is not None and not equal else "",
        there=_excerpt(theirs.text, theirs.characters(shared)) if theirs and shared is not None and not equal else "",
    )


def _sent_view(
    state: SessionState, request: RequestState, other: RequestState | None, others: tuple[str, ...]
) -> LensView:
    """From the messages as sent: where the text first differs is known, what was reused only as a count."""
    ours, theirs = sent_text(state, request), sent_text(state, other) if other else ""
    cut = common_prefix(ours, theirs) if other else None
    pieces = [ours] if cut is None else [ours[:cut], ours[cut:]]
    parts = tuple(
        LensPart(text=piece, tokens=None, reused=None, same=None if cut is None else index == 0)
        for index, piece in enumerate(pieces)
        if piece
    )
    other_parts = parts[:1] if cut else ()
    if cut is not None and theirs[cut:]:
        other_parts = (*other_parts, LensPart(text=theirs[cut:], tokens=None, reused=None, same=False))
    observed = "what its tokens say is not known" if request.lookup else "the server has not looked it up"
    why = observed if state.server.observed else "not observed"
    return LensView(
        key=request.key,
        number=request.number,
        exact=False,
        note=f"{why}: the messages as sent, without the chat template; the difference is approximate",
        tokens=request.prompt_tokens,
        cached=request.cached_tokens,
        shared=None,
        parts=parts,
        other_key=other.key if other else None,
        other_number=other.number if other else None,
        other_policy=other.policy if other else "",
        other_parts=other_parts,
        others=others,
        parameters=other_parameters(request, other) if other else (),
        here=_excerpt(ours, cut) if other and ours != theirs else "",
        there=_excerpt(theirs, cut) if other and ours != theirs else "",
    )


def sent_text(state: SessionState, request: RequestState) -> str:
    """The messages one below the other, each under its role."""
    return "\n".join(f"[{role}]\n{state.message_text(text_id)}" for role, text_id in request.messages)


def _excerpt(text: str, start: int | None) -> str:
    rest = text[start or 0 : (start or 0) + EXCERPT + 1]
    piece = clean(rest[:EXCERPT])
    return f"“{piece}{'…' if len(rest) > EXCERPT else ''}”" if piece else "the end"
