"""The life of the server and its model."""

from typing import Any, Literal

import msgspec

from mlxcache_tui.core.events.base import Event, ServerPhase


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
    flags: dict[str, Any] = msgspec.field(default_factory=dict)
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
    """Versions and model, from the observer's first message or from `system_fingerprint` of a reply.

    `flags`: the cache's limits as the process's command line gives them (None: it was not read).
    """

    mlx_lm: str | None = None
    mlx: str | None = None
    platform: str | None = None
    model: str | None = None
    software: str | None = None
    flags: dict[str, Any] | None = None


class ObserverConnected(Event, frozen=True, kw_only=True):
    """The observer's first message: what it is in, what it could hook and what not (`missing`)."""

    protocol: int
    pid: int
    mlx_lm: str | None
    mlx: str | None
    python: str
    hooks: tuple[str, ...]
    missing: tuple[str, ...] = ()
    flags: dict[str, Any] = msgspec.field(default_factory=dict)
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
    layers: dict[str, int] = msgspec.field(default_factory=dict)
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
