"""From the session's state to the results of a run: the one place where reports and state meet."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mlxcache_tui.core import metrics
from mlxcache_tui.core.present import request_row, request_text
from mlxcache_tui.core.results import (
    EvictionResult,
    MemoryResult,
    MlxMemory,
    ReasonResult,
    RequestResult,
    ServerResult,
    here_text,
)
from mlxcache_tui.core.scenario import Step
from mlxcache_tui.core.state import EvictionRecord, Reason, RequestState, SessionState
from mlxcache_tui.core.text import short_model

LAST_LINES = 10
_PLACE_FLAGS = ("host", "port", "model", "log_level", "allowed_origins")
"""Flags that say where the server is and what it tells, not how it behaves."""


def request_result(state: SessionState, request: RequestState, step: Step) -> RequestResult:
    """What was measured of one request of a step, as far as it has come."""
    row = request_row(state, request)
    stamps = request.stamps
    return RequestResult(
        id=request.number,
        step=step.name,
        step_id=step.id,
        policy=request.policy,
        state=row.phase,
        status=request.status,
        warmup=request.warmup,
        # Of a server that ran before we came nobody knows.
        first_after_start=state.server.mode == "launched" and request.first_of_process,
        prompt_tokens=row.prompt_tokens,
        cached_tokens=row.cached_tokens,
        cached_ratio=row.cached_ratio,
        cached_source=row.cached_source,
        output_tokens=row.output_tokens,
        wait_s=row.wait_s,
        ttft_s=row.ttft_s,
        prefill_s=metrics.prefill_s(request),
        prefill_tps=row.prefill_tps,
        decode_tps=row.decode_tps,
        e2e_s=row.e2e_s,
        finish_reason=row.finish_reason,
        reason=_reason_result(request.reason),
        question=state.message_text(request.messages[-1][1]) if request.messages else "",
        text=request_text(request),
        reasoning=request.reasoning,
        error=request.error,
        sent_ns=stamps.sent,
        end_ns=stamps.finish if stamps.finish is not None else stamps.ended,
    )


def step_requests(results: Mapping[str, RequestResult], keys: Sequence[str], users: int) -> tuple[RequestResult, ...]:
    """Those of a step as far as they are known; what comes behind its first `users` is repeated."""
    return tuple(
        msgspec.structs.replace(results[key], repeated=index >= users)
        for index, key in enumerate(keys)
        if key in results
    )


def _reason_result(reason: Reason | None) -> ReasonResult | None:
    if reason is None:
        return None
    return ReasonResult(
        kind=reason.kind,
        detail=reason.detail,
        from_request=reason.from_request,
        shared_tokens=reason.shared_tokens,
        evicted_by=reason.evicted_by,
        rule=reason.rule,
    )


def eviction_result(record: EvictionRecord) -> EvictionResult:
    """One eviction as the reports tell it."""
    return EvictionResult(
        type=record.type,
        policy=record.policy,
        tokens=record.tokens,
        bytes=record.bytes,
        made_by=record.made_by,
        caused_by=record.caused_by,
        rule=record.rule,
        inferred=record.inferred,
    )


def evictions_since(state: SessionState, count: int) -> tuple[EvictionResult, ...]:
    """Those behind the first `count` of the session, as far as they are kept."""
    missing = state.tally.evictions - len(state.cache.evictions)
    return tuple(map(eviction_result, state.cache.evictions[max(0, count - missing) :]))


class Began(msgspec.Struct, frozen=True, kw_only=True):
    """The server as the run found it; a restart in the middle changes flags and loads the model again."""

    flags: dict[str, Any]
    load_s: float | None
    model: str | None


def began(state: SessionState) -> Began:
    """The server as it is now."""
    flags = {name: _number(value) for name, value in state.server.flags.items() if name not in _PLACE_FLAGS}
    server = state.server
    return Began(flags=flags, load_s=server.loaded.seconds if server.loaded else None, model=server.model)


def server_result(state: SessionState, begin: Began, wanted: Mapping[str, Any], *, ours: bool) -> ServerResult:
    """The server that was measured, and where it differs from what the scenario wanted."""
    server = state.server
    here = {**begin.flags, "model": server.model}
    return ServerResult(
        mlx_lm=server.mlx_lm,
        mlx=server.mlx,
        model=server.model,
        mode="launched" if ours else "attached",
        observed="observer" if server.observed else ("log" if state.log.read else "client"),
        flags=begin.flags,
        load_s=begin.load_s,
        differences={
            name: (value, here.get(name))
            for name, value in wanted.items()
            if (here.get(name) or None) != (value or None)
        },
    )


def _number(value: Any) -> Any:
    """A flag as typed on a command line is text; in the results counts and sizes are numbers."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


def settled(state: SessionState, key: str) -> bool:
    """Whether all that can be known of a request has arrived.

    The server stores the finished sequence after it has sent the last text, so that what was stored, and what that
    threw out, is told after the request's end.
    """
    request = state.requests[key]
    if not state.server.observed or request.outcome != "done":
        return request.outcome is not None
    records = (state.cache.records.get(entry) for entry in request.entries)
    stored = any(record.type == "assistant" and record.key == key for record in records if record is not None)
    count, limit = len(state.cache.stored), state.cache.max_count
    return request.reason is not None and stored and (limit is None or count <= limit)


def broken_off(request: RequestState) -> bool:
    """Whether the connection ended without the server's own word: it may be gone."""
    return request.outcome == "cut" or (request.outcome == "failed" and request.status is None)


def server_text(state: SessionState) -> str:
    """What a server that is not ready does, one line; per cents in tens, so that it does not change all the time."""
    server = state.server
    if server.phase == "fetching" and server.fetch_percent is not None:
        return f"fetching the model {server.fetch_percent // 10 * 10:.0f} %"
    if server.phase == "loading" and server.loading_since is not None:
        return f"loading {server.text}"  # the state says which model
    return server.text or ("waiting for the server" if server.phase == "none" else server.phase.replace("_", " "))


def found_text(state: SessionState) -> str:
    """Which server a run uses as it is, one line, with what is known of its cache: it is not empty for the run."""
    server = state.server
    version = f", mlx-lm {server.mlx_lm}" if server.mlx_lm else ""
    count = len(state.cache.stored) if evictions_known(state) else None
    entries = f"{count} {'entry' if count == 1 else 'entries'}"
    holds = "what its cache holds is not known" if count is None else f"its cache holds {entries}"
    model = short_model(server.model) or "model not known"
    return f"using {server.url} as it runs: {model}{version}; not started for this run, {holds}"


def broken_start(state: SessionState, notices_before: int) -> str | None:
    """The line that says that starting a server broke in a way that nobody foresaw, so that no phase tells of it."""
    for notice in state.notices:
        if notice.seq > notices_before and notice.level == "error" and notice.text.startswith("server stopped: "):
            return notice.text
    return None


def last_lines(state: SessionState) -> tuple[str, ...]:
    """The last lines that the server printed."""
    return state.server.exit_tail or tuple(row.text for row in list(state.log.rows)[-LAST_LINES:])


def evictions_known(state: SessionState) -> bool:
    """Whether evictions can be seen at all; without an observer none seen does not mean none."""
    return state.cache.known == "observer"


class MemoryWatch:
    """Follows the server process's memory through a run, which may be longer than the samples that the state keeps."""

    def __init__(self) -> None:
        self.start: int | None = None
        self.peak: int | None = None
        self.mlx_peak: int | None = None
        self._seen_ns: int | None = None
        """Until when samples were looked at; None: the run has not begun."""

    def begin(self, state: SessionState) -> None:
        """The run starts now: what came before does not count."""
        self.start = self.peak = _last_bytes(state)
        self._seen_ns = state.now_ns

    def skip(self, state: SessionState) -> None:
        """What was sampled since the last step does not count."""
        self._seen_ns = state.now_ns

    def step_peak(self, state: SessionState) -> int | None:
        """The highest sample since the last call, bytes."""
        samples = [sample.bytes for sample in state.memory.samples if sample.at_ns > (self._seen_ns or 0)]
        highest = _highest([*samples, _last_bytes(state)])
        self._seen_ns = state.now_ns
        self.peak = _highest([self.peak, highest])
        if state.memory.mlx is not None:
            self.mlx_peak = _highest([self.mlx_peak, state.memory.mlx.peak])
        return highest

    def result(self, state: SessionState) -> MemoryResult:
        """The run's figures, up to now; of a server that did not get ready none."""
        if self._seen_ns is None:
            return MemoryResult(source=None, start_bytes=None, peak_bytes=None, end_bytes=None, mlx=None)
        self.step_peak(state)
        samples, mlx = state.memory.samples, state.memory.mlx
        return MemoryResult(
            source=samples[-1].source if samples else None,
            start_bytes=self.start,
            peak_bytes=self.peak,
            end_bytes=_last_bytes(state),
            mlx=None
            if mlx is None
            else MlxMemory(active_bytes=mlx.active, peak_bytes=self.mlx_peak or mlx.peak, pool_bytes=mlx.pool),
        )


def _last_bytes(state: SessionState) -> int | None:
    return state.memory.samples[-1].bytes if state.memory.samples else None


def _highest(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def differences_text(server: ServerResult) -> str:
    """`prompt_cache_size is 10, the scenario says 2; …`."""
    return "; ".join(
        f"{name} is {here_text(server, here)}, the scenario says {wanted}"
        for name, (wanted, here) in server.differences.items()
    )
