"""What the program knows, folded from the events by `reduce.apply`, which alone changes it."""

from array import array
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal

from mlxcache_tui.core.events import (
    CacheCounted,
    EntryType,
    MemorySampled,
    MlxMemorySampled,
    ModelLoaded,
    Outcome,
    Purpose,
    ServerPhase,
)
from mlxcache_tui.core.figures import Gaps, Tally
from mlxcache_tui.core.inferred import EVICTED_ENTRIES, InferredCache
from mlxcache_tui.core.pieces import PieceIndex
from mlxcache_tui.core.views import LogRow, MemoryMark, NoticeView, ReasonKind

LOG_LINES = 5_000
MEMORY_SAMPLES = 1_200
SWALLOWED_ENTRIES = 2
"""Each request on a trimmable model leaves two of these: more would push the evictions out of sight."""
HEAD_UNKNOWN = 16
"""Tokens taken for the template's head where it was not measured."""
NOTICES = 200
USERS_SHOWN = 4


@dataclass(slots=True)
class Stamps:
    """The moments of one request as one side saw them, monotonic ns (names as in `metrics`)."""

    sent: int | None = None
    connect_ns: int | None = None
    admitted: int | None = None
    first_token: int | None = None
    first_answer: int | None = None
    finish: int | None = None
    ended: int | None = None


@dataclass(slots=True, init=False)
class Reason:
    """Why a request reused what it reused. `detail` is the short form, `evidence` the long one, a line each."""

    kind: ReasonKind
    detail: str
    lines: bytes
    """The evidence, kept small."""
    from_request: int | None
    shared_tokens: int | None
    evicted_by: int | None
    rule: Literal["count", "bytes"] | None
    inferred: bool

    def __init__(
        self,
        kind: ReasonKind,
        detail: str,
        evidence: tuple[str, ...] = (),
        from_request: int | None = None,
        shared_tokens: int | None = None,
        evicted_by: int | None = None,
        rule: Literal["count", "bytes"] | None = None,
        inferred: bool = False,
    ) -> None:
        self.kind = kind
        self.detail = detail
        self.lines = "\n".join(evidence).encode("utf-8", "surrogatepass")
        self.from_request = from_request
        self.shared_tokens = shared_tokens
        self.evicted_by = evicted_by
        self.rule = rule
        self.inferred = inferred

    @property
    def evidence(self) -> tuple[str, ...]:
        """The long form, a line each."""
        return tuple(self.lines.decode("utf-8", "surrogatepass").split("\n")) if self.lines else ()

    def add(self, line: str) -> None:
        """A line of evidence that came later."""
        self.lines += b"\n" * bool(self.lines) + line.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class PromptRun:
    """A prompt's tokens: the first `shared` of `base`'s, then `new`; `count` in all.

    `start` is the run that the shared ones are found in, so that what a prompt says does not hang on which requests
    are still known. None: they were not told.
    """

    count: int
    base: str | None
    shared: int
    start: "PromptRun | None"
    new: "array[int]"


@dataclass(frozen=True, slots=True)
class Lookup:
    """What the server found in its cache for a request, as `events.LookedUp` tells it, kept small."""

    at_ns: int
    tokens: PromptRun
    cached_tokens: int
    how: Literal["exact", "extended", "trimmed", "none"]
    entry: int | None
    path: Literal["batched", "sequential"]
    model: str | None


@dataclass(slots=True)
class RequestState:
    """One request, ours or another client's. Ten thousand of them are kept: what is empty takes no room."""

    key: str
    number: int
    purpose: Purpose
    path: str
    messages: tuple[tuple[str, str], ...]
    params: dict[str, Any]
    policy: str
    ours: bool
    composed_ns: int
    epoch: int
    step: str | None = None
    warmup: bool = False
    client_name: str | None = None
    client: Stamps = field(default_factory=Stamps)
    server: Stamps = field(default_factory=Stamps)
    status: int | None = None
    outcome: Outcome | None = None
    error: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    cached_source: Literal["usage", "observer", "derived"] | None = None
    output_tokens: int | None = None
    prefill_done: int | None = None
    prefill_total: int | None = None
    prefill_ns: int | None = None
    answer: str = ""
    reasoning: str = ""
    tools: str = ""
    gaps: Gaps = field(default_factory=Gaps)
    last_text_ns: int | None = None
    lookup: Lookup | None = None
    entries: tuple[int, ...] = ()
    """Entries that it left in the cache."""
    evicted: tuple["EvictionRecord", ...] = ()
    """What went since it was served."""
    reason: Reason | None = None
    like: str | None = None
    """Key of the earlier request that had most of its text, though behind other text."""
    awaited_by: tuple[str, ...] = ()
    """Keys of requests that looked for what this one was computing."""
    counted: tuple[int, int] | None = None
    """Cached and prompt tokens that it has in the sums of `Tally`."""
    first_of_process: bool = False
    """No other request met this server process before, as far as was seen, a warm-up of its start aside."""

    @property
    def stamps(self) -> Stamps:
        """The side that its times are taken from: our own socket where we sent it, else the server's own."""
        return self.client if self.client.sent is not None else self.server

    @property
    def size(self) -> int:
        """Characters of its answer and bytes of its tokens."""
        tokens = self.lookup.tokens.new if self.lookup else None
        told = len(self.answer) + len(self.reasoning) + len(self.tools)
        return told + (len(tokens) * tokens.itemsize if tokens is not None else 0)

    @property
    def counts(self) -> bool:
        """Whether it belongs in the session's figures (warm-ups do not)."""
        return not self.warmup and self.number > 0


@dataclass(slots=True)
class EntryRecord:
    """One entry of the server's prompt cache, stored or gone."""

    entry: int
    type: EntryType
    tokens: int
    bytes: int
    inserted_ns: int
    key: str | None
    model: str | None
    trimmable: bool | None
    made_by: int | None = None
    """Number of the request that made it, and its policy: they stay when the request itself is let go."""
    policy: str = "?"
    used_by: tuple[int, ...] = ()
    """Numbers of the requests that it served last, at most `USERS_SHOWN`."""
    gone: Literal["evicted", "swallowed"] | None = None
    gone_ns: int | None = None
    gone_by: str | None = None
    swallowed_by: int | None = None
    rule: Literal["count", "bytes"] | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class EvictionRecord:
    """One eviction, for the tables and reports; requests by number. Of an inferred one the size is not known."""

    type: EntryType
    policy: str
    tokens: int | None
    bytes: int | None
    made_by: int | None
    caused_by: int | None
    rule: Literal["count", "bytes"]
    limit: int
    at_ns: int
    inferred: bool = False


@dataclass(slots=True)
class CacheState:
    """The prompt cache. `stored` and `records` are empty without an observer."""

    known: Literal["observer", "counted", "unknown"] = "unknown"
    stored: dict[int, EntryRecord] = field(default_factory=dict)
    records: dict[int, EntryRecord] = field(default_factory=dict)
    evicted: deque[EntryRecord] = field(default_factory=lambda: deque(maxlen=EVICTED_ENTRIES))
    swallowed: deque[EntryRecord] = field(default_factory=lambda: deque(maxlen=SWALLOWED_ENTRIES))
    evictions: list[EvictionRecord] = field(default_factory=list)
    max_count: int | None = None
    max_bytes: int | None = None
    counted: CacheCounted | None = None
    inferred: InferredCache = field(default_factory=InferredCache)
    warm_before: dict[str, str] = field(default_factory=dict)
    """What was stored when the last server ended: text id of the system message to a request that carries it."""

    @property
    def bytes(self) -> int:
        """Bytes of all stored entries, as the server counts them."""
        return sum(record.bytes for record in self.stored.values())


@dataclass(slots=True)
class MemoryState:
    """Memory of the server process and what MLX says of itself."""

    samples: deque[MemorySampled] = field(default_factory=lambda: deque(maxlen=MEMORY_SAMPLES))
    marks: deque[MemoryMark] = field(default_factory=lambda: deque(maxlen=MEMORY_SAMPLES))
    peak: int | None = None
    mlx: MlxMemorySampled | None = None
    mlx_peak: int | None = None


@dataclass(slots=True)
class ServerState:
    """The server that is watched."""

    phase: ServerPhase = "none"
    text: str = ""
    url: str | None = None
    mode: Literal["launched", "attached", "none"] = "none"
    model: str | None = None
    watch_only: bool = False
    pid: int | None = None
    port: int | None = None
    command: tuple[str, ...] = ()
    blas: str | None = None
    flags: dict[str, Any] = field(default_factory=dict)
    mlx_lm: str | None = None
    mlx: str | None = None
    platform: str | None = None
    software: str | None = None
    observed: bool = False
    log_path: str | None = None
    fetch_percent: float | None = None
    loading_since: int | None = None
    loaded: ModelLoaded | None = None
    exit_tail: tuple[str, ...] = ()
    epoch: int = 0
    """Counts the server processes seen; a request of an earlier epoch met another (empty) cache."""
    first_epoch: int = 0
    """The first at this address: what was sent to a server elsewhere tells nothing here."""

    def head_tokens(self, *, has_system: bool) -> int | None:
        """Tokens that the chat template puts in front of any prompt, with a system message or not; None: unknown."""
        if self.loaded is None:
            return None
        return self.loaded.head_tokens if has_system else self.loaded.head_tokens_no_system

    def is_more_than_head(self, tokens: int, *, has_system: bool) -> bool:
        """Whether so many tokens from a prompt's start are more than the template's: less is nothing reused."""
        measured = self.head_tokens(has_system=has_system)
        return tokens > (measured if measured is not None else HEAD_UNKNOWN) + 2


@dataclass(slots=True)
class LogState:
    """The last lines of the server's output, with marks of ours among them."""

    rows: deque[LogRow] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    total: int = 0
    owners: dict[str, deque[str]] = field(default_factory=dict)
    read: bool = False


@dataclass(slots=True)
class SessionState:
    """Everything. Requests are in the order in which they were composed; the oldest are let go if it is `bounded`."""

    program: str = ""
    started: str = ""
    started_ns: int = 0
    wall_ns: int = 0
    now_ns: int = 0
    """The stamp of the latest event: the state's own clock, so that a replay shows what was shown."""
    server: ServerState = field(default_factory=ServerState)
    requests: dict[str, RequestState] = field(default_factory=dict)
    open: dict[str, RequestState] = field(default_factory=dict)
    """Those of them that are in work."""
    tally: Tally = field(default_factory=Tally)
    beginnings: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Keys of requests by their first message, and by their policy if it is a known one; `core.alike` keeps both."""
    labelled: dict[str, list[str]] = field(default_factory=dict)
    pieces: PieceIndex = field(default_factory=PieceIndex)
    bounded: bool = field(default=True, compare=False)
    replayed: bool = field(default=False, compare=False)
    """Nothing can be sent: it is a recording that is looked at."""
    let_go: int = 0
    """Requests that are in the session file only."""
    size: int = 0
    """Characters of the texts and answers that are kept, and bytes of tokens."""
    texts: dict[str, str] = field(default_factory=dict)
    text_uses: dict[str, int] = field(default_factory=dict)
    """How many requests have the text."""
    unused_texts: dict[str, None] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)
    vocabularies: dict[str | None, dict[int, bytes]] = field(default_factory=dict)
    """What each token says, by model; only tokens that stood in a prompt."""
    cache: CacheState = field(default_factory=CacheState)
    memory: MemoryState = field(default_factory=MemoryState)
    log: LogState = field(default_factory=LogState)
    notices: deque[NoticeView] = field(default_factory=lambda: deque(maxlen=NOTICES))
    notice_count: int = 0
    next_number: int = 1
    dirty: dict[str, None] = field(default_factory=dict)
    """Keys of the requests that changed since the presenter last looked; new ones in the order of their making."""

    def number_of(self, key: str | None) -> int | None:
        """The number shown for a request, None if it is not known."""
        request = self.requests.get(key) if key is not None else None
        return request.number if request else None

    def message_text(self, text_id: str) -> str:
        """A message's text; empty if it was never told."""
        return self.texts.get(text_id, "")
