"""What the faces show: frozen views, made from the state by `present`, drawn by widgets and reports.

Numbers stay numbers here (seconds, bytes, tokens; None is unknown); the drawing turns them into text. Texts are clean.
"""

from typing import Literal

import msgspec

from mlxcache_tui.core.events import EntryType, LogKind, ServerPhase

RequestPhase = Literal["queued", "prefill", "thinking", "answering", "done", "cut", "failed", "cancelled"]
ReasonKind = Literal[
    "pending",
    "hit",
    "first",
    "diverged",
    "in_flight",
    "restarted",
    "model_changed",
    "evicted",
    "cancelled",
    "sequential",
    "not_trimmable",
    "disabled",
    "not_reported",
    "unknown",
]


class View(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all views: compared by value, so that a widget can skip what did not change."""


class StatusView(View, frozen=True, kw_only=True):
    """The top line."""

    model: str | None
    address: str | None
    mlx_lm: str | None
    phase: ServerPhase
    text: str
    """One line: what the server is doing, or why it is not."""
    busy: int
    """Requests in work now."""
    observed: Literal["observer", "log", "client", "none"]
    fetch_percent: float | None
    load_s: float | None
    reuse_last: float | None
    """Cached ratio (0 to 1) of the last finished request that reported it."""
    reuse_session: float | None
    """Token-weighted cached ratio of the session, warm-ups left out."""
    evictions: int | None
    watch_only: bool
    ours: bool
    """We started this server, so that we may stop and restart it."""


class RequestRow(View, frozen=True, kw_only=True):
    """One row of the request table. Seconds, tokens, tokens per second; definitions in `metrics`."""

    key: str
    number: int
    """Running number of the session; 0 for the warm-up that belongs to getting ready."""
    policy: str
    phase: RequestPhase
    ours: bool
    warmup: bool
    prefill_done: int | None = None
    prefill_total: int | None = None
    eta_s: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    cached_ratio: float | None = None
    cached_source: Literal["usage", "observer", "derived"] | None = None
    wait_s: float | None = None
    ttft_s: float | None = None
    ttfo_s: float | None = None
    prefill_tps: float | None = None
    output_tokens: int | None = None
    decode_tps: float | None = None
    e2e_s: float | None = None
    finish_reason: str | None = None
    reason: ReasonKind = "pending"
    why: str = ""
    """Short: `hit: 112 tokens of #1`, `evicted by #3 (count 2)`, or the error's line."""
    inferred: bool = False
    """The reason is inferred (drawn with ≈), not measured."""
    earlier: bool = False
    """It was sent to a server process that is gone, with all that was stored there."""


class EntryRow(View, frozen=True, kw_only=True):
    """One stored entry of the prompt cache, or one that just went."""

    entry: int
    type: EntryType
    policy: str
    tokens: int | None
    bytes: int | None
    inserted_ns: int
    made_by: int | None
    """Number of the request that made it."""
    used_by: tuple[int, ...]
    """Numbers of the requests that it served, latest last, at most 4."""
    next_victim: bool
    gone: Literal["evicted", "swallowed"] | None
    gone_text: str
    """`by #7 · count 2`, or `in a longer entry of #3`; empty while it is stored."""
    doubtful: bool = False
    """Inferred, and other clients may have pushed it out since."""


class WarningView(View, frozen=True, kw_only=True):
    """A line with a figure. `name` stays the same while its cause lasts: what was seen is not shown again."""

    name: str
    text: str


class PolicyRow(View, frozen=True, kw_only=True):
    """What the cache did for one policy. Ratios 0 to 1, weighted by tokens; warm-ups left out."""

    policy: str
    requests: int
    reuse_last: float | None
    reuse_session: float | None
    last_hit_ns: int | None
    """When a request of it last was a hit, monotonic ns."""
    evicted: int
    entries: int
    bytes: int
    share: float | None
    """Of the bytes of all entries."""
    warm_before: bool = False
    """It was stored when the server ended, and is not now."""


class CacheView(View, frozen=True, kw_only=True):
    """The prompt cache as the server holds it. `known`: how far this can be trusted."""

    known: Literal["observer", "inferred", "counted", "unknown"]
    note: str
    """One line where there is something to say: what is not known and why, or that a limit is not enforced."""
    entries: tuple[EntryRow, ...]
    """Oldest first within each type, then those that went lately, evicted before swallowed."""
    count: int | None
    max_count: int | None
    bytes: int | None
    max_bytes: int | None
    counted_text: str
    """The server's own counters, labelled `before request …`; empty when none were printed."""
    warnings: tuple[WarningView, ...] = ()
    policies: tuple[PolicyRow, ...] = ()


class MemoryPoint(View, frozen=True, kw_only=True):
    """One sample: monotonic ns and bytes (None is a gap)."""

    at_ns: int
    bytes: int | None


class MemoryMark(View, frozen=True, kw_only=True):
    """Something that happened on the time line of the memory graph."""

    at_ns: int
    kind: Literal["eviction", "restart"]


class MemoryView(View, frozen=True, kw_only=True):
    """The server process's memory, bytes; each None is unknown and drawn as —."""

    source: Literal["footprint", "pss", "rss"] | None
    points: tuple[MemoryPoint, ...]
    marks: tuple[MemoryMark, ...]
    now: int | None
    peak: int | None
    limit: int | None
    limit_name: str
    pressure: str | None
    mlx_active: int | None
    mlx_pool: int | None
    mlx_peak: int | None
    weights: int | None
    cache: int | None
    other: int | None
    """now - weights - cache - pool: what none of them explains."""


class LogRow(View, frozen=True, kw_only=True):
    """One line of the log pane. `seq` counts from the start of the session and never repeats."""

    seq: int
    text: str
    kind: LogKind | Literal["mark"]
    """`mark` is a line of ours among the server's (an eviction, a restart)."""
    level: str | None
    request: int | None
    """Number of the request that it belongs to, if known."""


class LogView(View, frozen=True, kw_only=True):
    """The lines kept (a bounded ring). A row that did not change is the same object as in the view before."""

    rows: tuple[LogRow, ...]
    total: int
    source: str
    """Where the lines come from, or why there are none (`start with --log FILE to see the log`)."""


class Phase(View, frozen=True, kw_only=True):
    """One bar of the timeline: seconds since t0."""

    name: Literal["connect", "wait", "prefill", "thinking", "answer"]
    start_s: float
    end_s: float


class MessageView(View, frozen=True, kw_only=True):
    """One message as sent."""

    role: str
    text: str


class DetailView(View, frozen=True, kw_only=True):
    """Everything about one request."""

    row: RequestRow
    title: str
    answer: str
    reasoning: str
    error: str
    hint: str
    """For instance: ran out while thinking: raise max tokens or turn thinking off."""
    evidence: tuple[str, ...]
    """The reason in full, a line each."""
    messages: tuple[MessageView, ...]
    timeline: tuple[Phase, ...]
    facts: tuple[tuple[str, str], ...]
    """Name and value of further figures (server's own stamps, gaps between chunks p50/p99, path …)."""
    curl: str


class LensPart(View, frozen=True, kw_only=True):
    """A piece of a prompt's text. `same`: as in the request it is compared with (None: compared with none)."""

    text: str
    tokens: int | None
    reused: bool | None
    """Taken from the cache; None: not known."""
    same: bool | None


class LensView(View, frozen=True, kw_only=True):
    """A prompt beside another one, both in pieces: cut where reuse ends and where they first differ."""

    key: str
    number: int
    exact: bool
    """The whole prompt as the server saw it; else only the messages as sent."""
    note: str
    tokens: int | None
    cached: int | None
    shared: int | None
    """Tokens before the first difference; None: not compared, or not known."""
    parts: tuple[LensPart, ...]
    other_key: str | None
    other_number: int | None
    other_policy: str
    other_parts: tuple[LensPart, ...]
    """The pieces that both have are those of `parts`."""
    others: tuple[str, ...]
    """Keys of the requests that it can be compared with, in order."""
    parameters: tuple[str, ...]
    """What the two were sent with that differs: model, seed, template arguments."""
    here: str
    """The token (or the text) at the first difference; empty where there is none."""
    there: str


class NoticeView(View, frozen=True, kw_only=True):
    """A line for the person. `seq` never repeats."""

    seq: int
    level: Literal["info", "warning", "error"]
    pane: str
    text: str


class ForecastView(View, frozen=True, kw_only=True):
    """What would happen if the composer's text were sent now; the text is empty only where there is none to send."""

    text: str
    more: tuple[str, ...] = ()
    """Further lines: `✂ …` what would be evicted, `! …` traps."""
