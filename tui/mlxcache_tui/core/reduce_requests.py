"""Folding the life of a request, as our own socket and as the server saw it."""

from sys import intern
from typing import Literal

from mlxcache_tui.core import alike, bounds, infer, retention, tally
from mlxcache_tui.core import events as ev
from mlxcache_tui.core.commands import DEFAULT_MODEL
from mlxcache_tui.core.diagnose import diagnose_unobserved
from mlxcache_tui.core.last_words import model_error
from mlxcache_tui.core.state import RequestState, SessionState, Stamps

Part = Literal["server", "requests"]
RequestEvent = (
    ev.RequestComposed
    | ev.RequestSent
    | ev.RequestAdmitted
    | ev.PrefillProgressed
    | ev.FirstTokenArrived
    | ev.TextArrived
    | ev.FinishArrived
    | ev.UsageReported
    | ev.RequestEnded
)
_TOUCHED: frozenset[Part] = frozenset({"server", "requests"})
_NOTHING: frozenset[Part] = frozenset()
LOST = "events were lost: how it ended is unknown"
"""Told of another client's open request; whatever comes of it later shows that it goes on."""
_PLACES: dict[ev.TextKind, str] = {"answer": "answer", "reasoning": "reasoning", "tool": "tools"}
KEPT_TEXT = 65_536
"""Characters of an answer that are kept in memory; the session file has them all."""


def apply_request(state: SessionState, event: RequestEvent) -> frozenset[Part]:
    """Fold one request event; returns the parts of the screen that it touches."""
    if isinstance(event, ev.RequestComposed):
        _composed(state, event)
        return _TOUCHED
    request = state.requests.get(event.key)
    if request is None:
        return _NOTHING
    state.dirty[event.key] = None
    if request.error == LOST:
        request.outcome = request.error = None
        tally.reopened(state, request)
    stamps = request.server if event.origin == "observer" else request.client
    told_before = request.ours and event.origin == "observer"  # we tell of our own ourselves
    match event:  # the most frequent kinds first
        case ev.PrefillProgressed(done=done, total=total):
            request.prefill_done, request.prefill_total, request.prefill_ns = done, total, event.at_ns
        case ev.TextArrived():
            _text(state, request, event)
        case ev.RequestSent(connect_ns=connect_ns):
            stamps.sent, stamps.connect_ns = event.at_ns, connect_ns
            if not told_before:
                infer.sent(state, request)
        case ev.RequestAdmitted(status=status):
            stamps.admitted = event.at_ns
            request.status = status
        case ev.FirstTokenArrived(kind=kind):
            if stamps.first_token is None and not told_before:
                infer.prompt_read(state, request, reasons=kind == "reasoning")
            _first(stamps, event.at_ns, answer=kind != "reasoning")
        case ev.FinishArrived(finish_reason=finish_reason):
            stamps.finish = event.at_ns
            request.finish_reason = finish_reason or request.finish_reason
        case ev.UsageReported():
            _usage(request, event)
            tally.told(state, request)
        case ev.RequestEnded():
            _ended(state, request, stamps, event)
    return _TOUCHED


def _composed(state: SessionState, event: ev.RequestComposed) -> None:
    ours = event.origin != "observer"
    known = state.requests.get(event.key)
    if known is not None:
        # Ours, seen by the observer as well: it adds only what we did not say ourselves.
        known.client_name = event.client or known.client_name
        return
    number = 0 if event.purpose == "readiness" else state.next_number
    state.next_number += number > 0
    latest = next(reversed(state.requests.values()), None)
    request = RequestState(
        key=event.key,
        number=number,
        purpose=event.purpose,
        path=intern(event.path),
        messages=_messages(state, event),
        params=latest.params if latest is not None and latest.params == event.params else event.params,
        policy=intern(event.policy or _label(state, event)),
        ours=ours,
        composed_ns=event.at_ns,
        epoch=state.server.epoch,
        step=event.step,
        warmup=event.warmup or event.purpose == "readiness",
        client_name=event.client,
    )
    state.requests[event.key] = request
    state.dirty[event.key] = None
    if number == 0:
        # The observer may tell of it after what was sent here, though it was before: it has no number to show that.
        for key in [key for key, other in state.requests.items() if other.composed_ns > request.composed_ns]:
            state.requests[key] = state.requests.pop(key)
    tally.composed(state, request)
    alike.add(state, request)
    bounds.take_in(state, request)


def _messages(state: SessionState, event: ev.RequestComposed) -> tuple[tuple[str, str], ...]:
    """The same, where names that others have as well are one object."""
    uses = state.text_uses
    return tuple((intern(role), intern(text_id) if text_id in uses else text_id) for role, text_id in event.messages)


def _label(state: SessionState, event: ev.RequestComposed) -> str:
    """The label of the known policy that the request carries; else the first words of its first message."""
    if event.purpose == "readiness":
        return "warm-up"
    texts = [state.message_text(text_id) for _, text_id in event.messages]
    for label, text in state.policies.items():
        if text and any(text in message for message in texts):
            return label
    first = texts[0] if texts else ""
    words = " ".join(first[:80].split())
    return f"“{words[:18].rstrip()}…”" if len(words) > 18 else (f"“{words}”" if words else "—")


def _first(stamps: Stamps, at_ns: int, *, answer: bool) -> None:
    if stamps.first_token is None:
        stamps.first_token = at_ns
    if answer and stamps.first_answer is None:
        stamps.first_answer = at_ns


def _text(state: SessionState, request: RequestState, event: ev.TextArrived) -> None:
    if event.origin == "observer" and request.ours:
        return
    place = _PLACES[event.kind]
    before: str = getattr(request, place)
    if len(before) < KEPT_TEXT:
        setattr(request, place, before + event.text)
        state.size += len(event.text)
    request.gaps.add(event.gaps_ns)
    request.last_text_ns = event.at_ns


def _usage(request: RequestState, event: ev.UsageReported) -> None:
    if event.prompt_tokens is not None:
        request.prompt_tokens = event.prompt_tokens
    if event.output_tokens is not None:
        request.output_tokens = event.output_tokens
    if event.cached_tokens is not None:
        request.cached_tokens = event.cached_tokens
        request.cached_source = "usage" if event.origin == "client" else "observer"


def _ended(state: SessionState, request: RequestState, stamps: Stamps, event: ev.RequestEnded) -> None:
    stamps.ended = event.at_ns
    if event.output_tokens is not None and request.output_tokens is None:
        request.output_tokens = event.output_tokens
    if event.origin == "observer":
        retention.came_late(state, request, event.at_ns, "over")
    if request.ours and event.origin == "observer":
        return
    model = request.params.get("model", DEFAULT_MODEL)
    named = event.error is not None and model != DEFAULT_MODEL
    request.outcome = event.outcome
    request.error = model_error(event.error or "", str(model)) if named else event.error
    request.gaps.close()
    request.status = event.status if event.status is not None else request.status
    if request.reason is None and request.lookup is None:
        _derive_cached(request)
        request.reason = diagnose_unobserved(state, request)
    infer.ended(state, request)
    tally.ended(state, request)


def _derive_cached(request: RequestState) -> None:
    """Versions without the usage field: the progress total is what was not cached (mlx-lm-server.md §1)."""
    known = request.prompt_tokens is not None and request.prefill_total is not None
    if request.cached_tokens is None and known and request.prompt_tokens is not None:
        request.cached_tokens = max(0, request.prompt_tokens - (request.prefill_total or 0))
        request.cached_source = "derived"
