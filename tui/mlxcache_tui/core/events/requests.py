"""The life of a request; each kind may come from our own socket and from the observer."""

from typing import Any

import msgspec

from mlxcache_tui.core.events.base import Event, Outcome, Purpose, TextKind


class RequestComposed(Event, frozen=True, kw_only=True):
    """A request exists. Ours before it is sent; another client's when the server read it.

    `key` names it in all later events: ours goes along in the header `X-Mlxcache-Request`, another client's is made by
    the observer. `messages` are (role, text_id) pairs; a text completion has one with the role `prompt`. `params` are
    the other keys of the body. `policy` is the label chosen in the composer or scenario; `scenario` is the name and the
    digest of the scenario that `step` is one of.
    """

    key: str
    purpose: Purpose
    path: str
    messages: tuple[tuple[str, str], ...]
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    policy: str | None = None
    before: str = ""
    after: str = ""
    step: str | None = None
    scenario: tuple[str, str] | None = None
    warmup: bool = False
    client: str | None = None


class RequestSent(Event, frozen=True, kw_only=True):
    """t0. Client: the first byte is about to be written (`connect_ns`: opening the connection, kept apart)."""

    key: str
    connect_ns: int | None = None


class RequestAdmitted(Event, frozen=True, kw_only=True):
    """tH. Client: the response's headers were read. Observer: the server is about to queue them."""

    key: str
    status: int


class PrefillProgressed(Event, frozen=True, kw_only=True):
    """tP. `done` of `total` tokens that were not cached."""

    key: str
    done: int
    total: int


class FirstTokenArrived(Event, frozen=True, kw_only=True):
    """tF (first of any kind) and tC (first answer or tool text): at most one event for each `kind`."""

    key: str
    kind: TextKind


class TextArrived(Event, frozen=True, kw_only=True):
    """Text of one kind, several stream events merged; `gaps_ns`: the time from the one before to each of them."""

    key: str
    kind: TextKind
    text: str
    gaps_ns: tuple[int, ...] = ()


class FinishArrived(Event, frozen=True, kw_only=True):
    """tE: the stream event, or the body, that carries `finish_reason`."""

    key: str
    finish_reason: str | None


class UsageReported(Event, frozen=True, kw_only=True):
    """Token counts of the reply; `cached_tokens` None means that the field was missing or null, never 0."""

    key: str
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None


class RequestEnded(Event, frozen=True, kw_only=True):
    """tD: `[DONE]`, end of the stream, an error, or our cancel. `error` is one clear line."""

    key: str
    outcome: Outcome
    status: int | None = None
    error: str | None = None
    output_tokens: int | None = None
