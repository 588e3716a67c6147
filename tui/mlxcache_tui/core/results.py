"""What a scenario run measured: the facts that every report is made of. Unknown is None.

Names and units are those of the run JSON (seconds, bytes, tokens, tokens per second); definitions in `metrics`.
"""

from typing import Any, Literal

import msgspec

from mlxcache_tui.core.expect import Verdict


class ReasonResult(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request reused what it reused; requests by number."""

    kind: str
    detail: str
    from_request: int | None = None
    shared_tokens: int | None = None
    evicted_by: int | None = None
    rule: str | None = None


class RequestResult(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a run. `sent_ns` and `end_ns` are monotonic: t0, and tE (or the end of the stream).

    `repeated`: the same step sent the same before. `first_after_start`: it was the first since the server process began
    (apart from the one-token warm-up), so that it is no cold baseline.
    """

    id: int
    step: str
    step_id: str
    policy: str
    state: str
    status: int | None
    warmup: bool
    first_after_start: bool
    prompt_tokens: int | None
    cached_tokens: int | None
    cached_ratio: float | None
    cached_source: str | None
    output_tokens: int | None
    wait_s: float | None
    ttft_s: float | None
    prefill_s: float | None
    prefill_tps: float | None
    decode_tps: float | None
    e2e_s: float | None
    finish_reason: str | None
    reason: ReasonResult | None
    question: str
    text: str
    reasoning: str
    error: str | None
    sent_ns: int | None
    end_ns: int | None
    repeated: bool = False


class EvictionResult(msgspec.Struct, frozen=True, kw_only=True):
    """One entry that the server's limit threw out; requests by number."""

    type: str
    policy: str
    tokens: int | None
    bytes: int | None
    made_by: int | None
    caused_by: int | None
    rule: str
    inferred: bool


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """A step as a whole. `evictions` None: the server's cache cannot be seen. `load_s`: of the restart before it.

    `peak_bytes` is the highest memory sample of the server process while the step ran.
    """

    id: str
    name: str
    requests: tuple[RequestResult, ...]
    concurrency: int
    warmup: bool
    evictions: int | None
    peak_bytes: int | None
    load_s: float | None
    restarted: bool
    flags: dict[str, Any]


class MlxMemory(msgspec.Struct, frozen=True, kw_only=True):
    """MLX's own counters, bytes."""

    active_bytes: int
    peak_bytes: int
    pool_bytes: int


class MemoryResult(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of the server process, bytes; `source` names the figure."""

    source: str | None
    start_bytes: int | None
    peak_bytes: int | None
    end_bytes: int | None
    mlx: MlxMemory | None


class LaterServer(msgspec.Struct, frozen=True, kw_only=True):
    """Another server process of a recorded session, from request number `since` on."""

    since: int
    model: str | None
    flags: dict[str, Any]
    load_s: float | None


class ServerResult(msgspec.Struct, frozen=True, kw_only=True):
    """The server that was measured. `flags` and `load_s` as the run began. `differences`: keys of [server] that
    are otherwise here: what the scenario says, and what is. `later`: the processes that followed in a session."""

    mlx_lm: str | None
    mlx: str | None
    model: str | None
    mode: Literal["launched", "attached"]
    observed: Literal["observer", "log", "client"]
    flags: dict[str, Any]
    load_s: float | None
    differences: dict[str, tuple[Any, Any]]
    later: tuple[LaterServer, ...] = ()


def here_text(server: ServerResult, value: Any) -> str:
    """What a server has of a flag: an observed one tells all of its flags, so that none told is none set."""
    if value is not None:
        return str(value)
    return "not set" if server.observed == "observer" else "not known"


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a scenario under one set of limits; `combination` are the flags that the sweep set for it.

    `planned`: how many runs the sweep was to have. `unjudged`: why its expectations are not. `notes` are what the
    scenario's author says of it. `lost` says what happened to the server if it went away (or was never there: not
    `reached`); `interrupted` that a person stopped the run. In both cases what was measured until then is here, and
    the expectations of steps that were not finished are not.
    """

    scenario: str
    title: str
    about: str
    digest: str
    started: str
    combination: dict[str, Any]
    server: ServerResult
    steps: tuple[StepResult, ...]
    evictions: tuple[EvictionResult, ...]
    memory: MemoryResult
    expectations: tuple[Verdict, ...]
    notes: str = ""
    planned: int = 1
    unjudged: str = ""
    interrupted: bool = False
    reached: bool = True
    lost: str | None = None
    lost_lines: tuple[str, ...] = ()

    @property
    def requests(self) -> tuple[RequestResult, ...]:
        """All requests, in the order in which they were sent."""
        return tuple(request for step in self.steps for request in step.requests)

    @property
    def is_whole(self) -> bool:
        """Whether it came to its end: nobody stopped it, and the server stayed."""
        return not self.interrupted and self.lost is None

    @property
    def eviction_count(self) -> int | None:
        """How many entries were thrown out, also by a step that ran again since; None where that was not seen."""
        seen = bool(self.steps) and all(step.evictions is not None for step in self.steps)
        return len(self.evictions) if seen else None

    @property
    def held(self) -> bool:
        """Whether every expectation held and no request failed that was not expected to."""
        return all(verdict.held for verdict in self.expectations) and not self.unexpected_failures()

    def unexpected_failures(self) -> tuple[RequestResult, ...]:
        """Failed or cut requests of steps without an expectation on state, status, error or failed that held."""
        about = ("state", "status", "error", "failed")
        foreseen = {
            verdict.step
            for verdict in self.expectations
            if verdict.held and any(name in verdict.text.split(maxsplit=1)[0].split(".") for name in about)
        }
        return tuple(
            request for request in self.requests if request.state in ("failed", "cut") and request.step not in foreseen
        )
