"""Every fact that the program knows is one of these events.

One stream of them feeds everything: the fold in `reduce`, the session file, a second viewer, a test. They are
immutable, stamped with the monotonic clock (`at_ns`, nanoseconds) where the fact happened, and tagged with where it
came from (`origin`). The same JSON is written by the observer inside the server (which cannot import this file), by the
session file and by the sources here: one object a line, its kind in `t`.

The same kind may come from two places: a request's `RequestSent` of origin `client` is stamped when our bytes leave the
socket, of origin `observer` when the server began to read it. The fold keeps both apart.
"""

from typing import Any, Literal

import msgspec

PROTOCOL = 1
"""Version of the event format, in the observer's first message and in each session file."""

Origin = Literal["client", "observer", "http", "process", "log", "memory", "user", "program"]
Outcome = Literal["done", "cut", "failed", "cancelled"]
EntryType = Literal["system", "user", "assistant"]
TextKind = Literal["answer", "reasoning", "tool"]
LogKind = Literal["record", "access", "progress", "cache", "bar", "traceback", "other"]
Purpose = Literal["send", "scenario", "readiness", "warm", "foreign"]
ServerPhase = Literal[
    "none",
    "starting",
    "fetching",
    "loading",
    "ready",
    "not_answering",
    "worker_dead",
    "exited",
    "unreachable",
]


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag=True, omit_defaults=True):
    """A fact: when it happened (monotonic ns) and who says so."""

    at_ns: int
    origin: Origin


# --- the session -----------------------------------------------------------------------------------------------------


class SessionStarted(Event, frozen=True, kw_only=True):
    """First line of each session; ties the monotonic clock to wall time (`wall_ns`, since the epoch, at `at_ns`)."""

    protocol: int
    program: str
    started: str
    wall_ns: int
    mode: Literal["launched", "attached", "none"]


class Noticed(Event, frozen=True, kw_only=True):
    """One line for the person: what happened and what to do, in the pane where they look."""

    level: Literal["info", "warning", "error"]
    pane: Literal["requests", "composer", "cache", "memory", "log", "server"]
    text: str


class EventsLost(Event, frozen=True, kw_only=True):
    """This viewer was too slow for the observer, which dropped `count` events rather than wait."""

    count: int


class PolicyKnown(Event, frozen=True, kw_only=True):
    """A policy's label and text, so that a request from another client that carries the text gets the label."""

    label: str
    text: str


class TextKept(Event, frozen=True, kw_only=True):
    """A message text, once; requests name it by `text_id` (see `text_id_of`)."""

    text_id: str
    text: str


# --- the server ------------------------------------------------------------------------------------------------------


class ServerTargeted(Event, frozen=True, kw_only=True):
    """The server that is watched from now on: ours (`launched`) or one that was running already."""

    url: str
    mode: Literal["launched", "attached"]
    model: str | None = None
    log_path: str | None = None
    watch_only: bool = False


class ServerLaunched(Event, frozen=True, kw_only=True):
    """We started a server process; `flags` are those given on top of the defaults."""

    pid: int
    port: int
    command: tuple[str, ...]
    flags: dict[str, Any] = {}
    blas: str | None = None


class ServerPhaseChanged(Event, frozen=True, kw_only=True):
    """What the server is doing as a whole; `text` is one line for the person."""

    phase: ServerPhase
    text: str = ""


class ModelFetchProgressed(Event, frozen=True, kw_only=True):
    """The server (or we, for a demo model) fetches the model: `percent` 0 to 100, `rate` as printed."""

    text: str
    percent: float | None = None
    rate: str | None = None


class ServerIdentified(Event, frozen=True, kw_only=True):
    """Versions and model, from the observer's first message or from `system_fingerprint` of a reply."""

    mlx_lm: str | None = None
    mlx: str | None = None
    platform: str | None = None
    model: str | None = None
    software: str | None = None


class ObserverConnected(Event, frozen=True, kw_only=True):
    """The observer's first message: what it is in, what it could hook and what not (`missing`)."""

    protocol: int
    pid: int
    mlx_lm: str | None
    mlx: str | None
    python: str
    hooks: tuple[str, ...]
    missing: tuple[str, ...] = ()
    flags: dict[str, Any] = {}
    log_path: str | None = None
    started_ns: int | None = None


class ObserverLost(Event, frozen=True, kw_only=True):
    """The connection to the observer ended; what it alone knew is unknown from here on."""

    text: str = ""


class ModelLoadStarted(Event, frozen=True, kw_only=True):
    """The server began to load a model."""

    model: str
    adapter: str | None = None
    draft: str | None = None


class ModelLoaded(Event, frozen=True, kw_only=True):
    """The model is in memory.

    `layers` counts cache layers by class name; `trimmable` is whether an entry can be cut back (false once a window has
    wrapped or for recurrent layers); `head_tokens` is how many tokens two unrelated prompts share through the chat
    template alone, with a system message and without one (None: not measured).
    """

    model: str
    seconds: float
    adapter: str | None = None
    draft: str | None = None
    weights_bytes: int | None = None
    layers: dict[str, int] = {}
    trimmable: bool | None = None
    sliding_window: int | None = None
    batchable: bool | None = None
    has_thinking: bool | None = None
    thinking_switch: bool | None = None
    head_tokens: int | None = None
    head_tokens_no_system: int | None = None


class ModelLoadFailed(Event, frozen=True, kw_only=True):
    """Loading ended with an error, told in one line."""

    model: str
    error: str


class WorkerDied(Event, frozen=True, kw_only=True):
    """The thread that generates is gone; the port may still answer."""

    error: str


class ServerExited(Event, frozen=True, kw_only=True):
    """The process ended: exit code, or the signal that ended it, and its last log lines."""

    pid: int
    code: int | None = None
    signal: str | None = None
    tail: tuple[str, ...] = ()
    asked: bool = False


# --- requests --------------------------------------------------------------------------------------------------------


class RequestComposed(Event, frozen=True, kw_only=True):
    """A request exists. Ours before it is sent; another client's when the server read it.

    `key` names it in all later events: ours goes along in the header `X-Mlxcache-Request`, another client's is made by
    the observer. `messages` are (role, text_id) pairs; a text completion has one with the role `prompt`. `params` are
    the other keys of the body. `policy` is the label chosen in the composer or scenario.
    """

    key: str
    purpose: Purpose
    path: str
    messages: tuple[tuple[str, str], ...]
    params: dict[str, Any] = {}
    policy: str | None = None
    before: str = ""
    after: str = ""
    step: str | None = None
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


# --- the prompt cache (observer only) --------------------------------------------------------------------------------


class TokenRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token sequence: the first `shared` tokens of request `base`'s prompt, then `new`; `count` tokens in all."""

    count: int
    base: str | None = None
    shared: int = 0
    new: tuple[int, ...] = ()


class LookedUp(Event, frozen=True, kw_only=True):
    """The server searched its cache for a request.

    `tokens` is the prompt against the earlier request that it shares most with (its `base`: the evidence for a miss).
    `how`: `exact`, `extended` (a stored prefix), `trimmed` (a longer entry cut back) or `none`.
    """

    key: str
    tokens: TokenRun
    cached_tokens: int
    how: Literal["exact", "extended", "trimmed", "none"]
    entry: int | None = None
    path: Literal["batched", "sequential"]
    model: str | None = None


class TokensNamed(Event, frozen=True, kw_only=True):
    """What tokens say, once for each: (id, bytes as hex). Bytes, since a piece may be a part of a character.

    `model` is the one whose tokenizer gave them, as in `LookedUp`: another one has other ids.
    """

    pairs: tuple[tuple[int, str], ...]
    model: str | None = None


class EntryInserted(Event, frozen=True, kw_only=True):
    """An entry was stored. `replaced`: the older entry of the identical tokens that it took the place of."""

    entry: int
    type: EntryType
    tokens: TokenRun
    bytes: int
    key: str | None = None
    model: str | None = None
    trimmable: bool | None = None
    replaced: int | None = None


class EntrySwallowed(Event, frozen=True, kw_only=True):
    """An entry was dropped since `by` (a longer one that starts with it) was stored. Not an eviction."""

    entry: int
    by: int
    key: str | None = None


class EntryEvicted(Event, frozen=True, kw_only=True):
    """The limit threw an entry out: `rule` and the `limit` in force; `key` is the request being served, if known."""

    entry: int
    rule: Literal["count", "bytes"]
    limit: int
    key: str | None = None


class EntryState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One stored entry in a `CacheSnapshot`."""

    entry: int
    type: EntryType
    tokens: int
    bytes: int
    inserted_ns: int
    key: str | None = None
    model: str | None = None
    trimmable: bool | None = None


class CacheSnapshot(Event, frozen=True, kw_only=True):
    """All that is stored now, oldest insertion first in each type; sent to a viewer that connects."""

    entries: tuple[EntryState, ...]
    max_count: int
    max_bytes: int | None
    bytes: int


class CacheCounted(Event, frozen=True, kw_only=True):
    """The counters that the server printed: the state *before* the request that it was looking up."""

    count: int
    gigabytes: float
    by_type: dict[str, int] = {}


# --- memory ----------------------------------------------------------------------------------------------------------


class MlxMemorySampled(Event, frozen=True, kw_only=True):
    """MLX's own counters, bytes. Active leaves out the pool; peak is since the process began."""

    active: int
    pool: int
    peak: int


class MemorySampled(Event, frozen=True, kw_only=True):
    """The server process seen from outside, bytes; None is unknown (drawn as a gap).

    `source` names the figure: `footprint` (macOS), `pss` (Linux: smaps_rollup Pss + SwapPss) or `rss`. `limit` is the
    wired or working-set limit on macOS, the container's on Linux. `pressure` is what the system itself calls it.
    """

    pid: int
    source: Literal["footprint", "pss", "rss"]
    bytes: int | None
    peak: int | None = None
    system_total: int | None = None
    system_available: int | None = None
    limit: int | None = None
    pressure: Literal["normal", "warning", "critical"] | None = None


# --- the log ---------------------------------------------------------------------------------------------------------


class LogLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cleaned line of the server's output; `level` as printed, `kind` by its form."""

    text: str
    kind: LogKind = "other"
    level: str | None = None


class LogRead(Event, frozen=True, kw_only=True):
    """Lines read in one go, in order; `replace_last`: the first of them overwrites an unfinished bar drawn before."""

    lines: tuple[LogLine, ...]
    replace_last: bool = False


class LogOwned(Event, frozen=True, kw_only=True):
    """The observer's word that a log line with this text belongs to request `key`."""

    key: str
    text: str


class SourceFailed(Event, frozen=True, kw_only=True):
    """A source of events stopped with an error; the rest goes on."""

    source: str
    error: str


AnyEvent = (
    SessionStarted
    | Noticed
    | EventsLost
    | PolicyKnown
    | TextKept
    | ServerTargeted
    | ServerLaunched
    | ServerPhaseChanged
    | ModelFetchProgressed
    | ServerIdentified
    | ObserverConnected
    | ObserverLost
    | ModelLoadStarted
    | ModelLoaded
    | ModelLoadFailed
    | WorkerDied
    | ServerExited
    | RequestComposed
    | RequestSent
    | RequestAdmitted
    | PrefillProgressed
    | FirstTokenArrived
    | TextArrived
    | FinishArrived
    | UsageReported
    | RequestEnded
    | LookedUp
    | TokensNamed
    | EntryInserted
    | EntrySwallowed
    | EntryEvicted
    | CacheSnapshot
    | CacheCounted
    | MlxMemorySampled
    | MemorySampled
    | LogRead
    | LogOwned
    | SourceFailed
)
