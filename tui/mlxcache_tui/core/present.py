"""State to views. `Presenter` keeps what did not change, so that equal views are the same objects."""

from typing import Literal

from mlxcache_tui.core import metrics
from mlxcache_tui.core.by_policy import policy_rows
from mlxcache_tui.core.cachemodel import ORDER, CacheModel, next_victim
from mlxcache_tui.core.infer import is_doubtful, missed_text, next_out, requests_text
from mlxcache_tui.core.inferred import InferredEntry
from mlxcache_tui.core.state import EntryRecord, RequestState, SessionState
from mlxcache_tui.core.text import short_model
from mlxcache_tui.core.views import (
    CacheView,
    EntryRow,
    LogView,
    MemoryPoint,
    MemoryView,
    RequestPhase,
    RequestRow,
    StatusView,
)
from mlxcache_tui.core.warnings import warnings

_GONE = ("none", "exited", "unreachable")
_BACK = "no server any more: , goes back event by event"


def request_phase(request: RequestState) -> RequestPhase:
    """Where a request stands, from its stamps."""
    if request.outcome is not None:
        return request.outcome
    stamps = request.stamps
    if stamps.first_answer is not None:
        return "answering"
    if stamps.first_token is not None:
        return "thinking"
    return "queued" if stamps.admitted is None and request.server.admitted is None else "prefill"


def request_text(request: RequestState) -> str:
    """The answer so far."""
    return request.answer


def _why(request: RequestState) -> str:
    if request.error:
        return request.error
    parts = [request.reason.detail] if request.reason else []
    if hint := finish_hint(request):
        parts.append(hint)
    for gone in request.evicted:
        maker = f" (#{gone.made_by})" if gone.made_by else ""  # the warm-up has no number
        parts.append(f"→ {'≈ ' if gone.inferred else ''}threw out {gone.policy}{maker}")
    return " · ".join(parts)


def finish_hint(request: RequestState) -> str:
    """`ran out while thinking` where all output tokens went into reasoning; a warm-up is not meant to end."""
    if request.finish_reason == "length" and request.reasoning and not request.answer and not request.warmup:
        return "ran out while thinking"
    return ""


def request_row(state: SessionState, request: RequestState) -> RequestRow:
    """The table's row for a request."""
    phase = request_phase(request)
    live_output = request.gaps.count or None
    return RequestRow(
        key=request.key,
        number=request.number,
        policy=request.policy,
        phase=phase,
        ours=request.ours,
        warmup=request.warmup,
        prefill_done=request.prefill_done if phase == "prefill" else None,
        prefill_total=request.prefill_total if phase == "prefill" else None,
        eta_s=metrics.eta_s(request) if phase == "prefill" else None,
        prompt_tokens=request.prompt_tokens,
        cached_tokens=request.cached_tokens,
        cached_ratio=metrics.cached_ratio(request),
        cached_source=request.cached_source,
        wait_s=metrics.wait_s(request),
        ttft_s=metrics.ttft_s(request),
        ttfo_s=metrics.ttfo_s(request),
        prefill_tps=metrics.prefill_tps(request),
        output_tokens=request.output_tokens if request.outcome is not None else live_output,
        decode_tps=metrics.decode_tps(request),
        e2e_s=metrics.e2e_s(request) if request.outcome is not None else None,
        finish_reason=request.finish_reason,
        reason=request.reason.kind if request.reason else "pending",
        why=_why(request),
        inferred=bool(request.reason and request.reason.inferred),
        earlier=request.epoch < state.server.epoch,
    )


def status_view(state: SessionState) -> StatusView:
    """The top line."""
    server = state.server
    tally = state.tally
    return StatusView(
        model=short_model(server.model),
        address=server.url.split("://", 1)[-1] if server.url else None,
        mlx_lm=server.mlx_lm,
        phase=server.phase,
        text=server.text,
        busy=len(state.open),
        observed="none" if server.phase == "none" else _observed(state),
        fetch_percent=server.fetch_percent,
        load_s=server.loaded.seconds if server.loaded else None,
        reuse_last=tally.all.last_ratio,
        reuse_session=tally.all.ratio,
        evictions=tally.evictions_seen if server.observed or tally.evictions_seen else None,
        watch_only=server.watch_only,
        ours=server.mode == "launched",
    )


def _observed(state: SessionState) -> Literal["observer", "log", "client", "none"]:
    if state.server.observed:
        return "observer"
    return "log" if state.log.read else "client"


def cache_view(state: SessionState) -> CacheView:
    """The cache pane."""
    cache = state.cache
    stored = sorted(cache.stored.values(), key=lambda r: ("assistant", "user", "system").index(r.type))
    victim = next_victim((r.entry, r.type) for r in cache.stored.values())
    observed = cache.known == "observer"
    if state.server.phase in _GONE:
        return CacheView(
            known="unknown",
            note=_BACK if state.replayed and state.server.phase == "exited" else "no server",
            entries=(),
            count=None,
            max_count=cache.max_count,
            bytes=None,
            max_bytes=cache.max_bytes,
            counted_text="",
        )
    if not observed and cache.inferred.model is not None:
        return _inferred_view(state, cache.inferred.model)
    return CacheView(
        known=cache.known,
        note=_cache_note(state),
        entries=tuple(
            _entry_row(state, r, victim=victim) for r in (*stored, *reversed(cache.evicted), *reversed(cache.swallowed))
        ),
        count=len(cache.stored) if observed else (cache.counted.count if cache.counted else None),
        max_count=cache.max_count,
        bytes=cache.bytes if observed else (int(cache.counted.gigabytes * 1e9) if cache.counted else None),
        max_bytes=cache.max_bytes,
        counted_text=_counted_text(state),
        warnings=warnings(state),
        policies=policy_rows(state),
    )


def _inferred_view(state: SessionState, model: CacheModel) -> CacheView:
    """What the rule says of our own requests; see `infer`."""
    inferred = state.cache.inferred
    victim = next_out(inferred)
    order = sorted(model.stored, key=lambda kept: ORDER.index(kept.type))
    entries = [inferred.entries[kept.entry] for kept in order]
    return CacheView(
        known="inferred",
        note=_inferred_note(state, model),
        entries=tuple(_inferred_row(state, e, victim=victim) for e in (*entries, *reversed(inferred.evicted))),
        count=len(model.stored),
        max_count=model.max_count,
        bytes=None,
        max_bytes=state.cache.max_bytes,
        counted_text=_counted_text(state),
        warnings=warnings(state),
        policies=policy_rows(state),
    )


def _inferred_note(state: SessionState, model: CacheModel) -> str:
    inferred = state.cache.inferred
    others = inferred.others
    if inferred.missed is not None:
        return missed_text(inferred.missed, others=others.count)
    if inferred.disagreement is not None:
        ours, theirs = inferred.disagreement
        why = "others use the server too" if others.count else "others use the server too, or its limits differ"
        return f"≈ {ours} inferred before the last request, but the log counted {theirs}: {why}"
    if others.count and next_out(inferred) is None:
        since = f" since #{others.since}" if others.since else ""
        return f"≈ others use the server: {requests_text(others.count)}{since}; they may have pushed out what is older"
    size = "" if state.cache.max_bytes is not None else " and no byte limit"
    assumed = "" if state.cache.max_count is not None else f", limit {model.max_count}{size} assumed"
    return f"≈ inferred from what was sent here by the rule of mlx-lm {state.server.mlx_lm}{assumed}"


def _inferred_row(state: SessionState, entry: InferredEntry, *, victim: int | None) -> EntryRow:
    by = state.number_of(entry.gone_by)
    limit = state.cache.inferred.model.max_count if state.cache.inferred.model else None
    gone_text = ""
    if entry.gone is not None:
        gone_text = f"≈ by #{by} · count {limit}" if entry.missed_by is None else f"≈ before #{entry.missed_by}"
    return EntryRow(
        entry=entry.entry,
        type=entry.type,
        policy=entry.policy,
        tokens=entry.tokens,
        bytes=None,
        inserted_ns=entry.inserted_ns,
        made_by=entry.made_by,
        used_by=(),
        next_victim=entry.entry == victim and entry.gone is None,
        gone=entry.gone,
        gone_text=gone_text,
        doubtful=entry.gone is None and is_doubtful(state.cache.inferred, entry.entry),
    )


def _cache_note(state: SessionState) -> str:
    cache, server = state.cache, state.server
    if cache.known == "observer":
        return ""
    if server.observed:
        return f"the entries of mlx-lm {server.mlx_lm} cannot be watched: only what a request reuses is known"
    if server.mode == "launched":
        return "waiting for the observer"
    if cache.counted:
        return "not observed: only the server's own counters are known"
    return "not observed: start the server with mlxcache-tui to see its entries"


def _counted_text(state: SessionState) -> str:
    counted = state.cache.counted
    if counted is None:
        return ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in counted.by_type.items())
    return f"log, before the last request: {counted.count} sequences, {counted.gigabytes:.2f} GB" + (
        f" ({kinds})" if kinds else ""
    )


def _entry_row(state: SessionState, record: EntryRecord, *, victim: int | None) -> EntryRow:
    by = state.number_of(record.gone_by)
    if record.gone == "evicted":
        gone_text = " · ".join(part for part in (f"by #{by}" if by else "", f"{record.rule} {record.limit}") if part)
    elif record.gone == "swallowed":
        longer = state.cache.records.get(record.swallowed_by or -1)
        gone_text = f"in a longer entry of #{by}" if by else ("in a longer entry" if longer else "replaced")
    else:
        gone_text = ""
    return EntryRow(
        entry=record.entry,
        type=record.type,
        policy=record.policy,
        tokens=record.tokens,
        bytes=record.bytes,
        inserted_ns=record.inserted_ns,
        made_by=record.made_by,
        used_by=tuple(dict.fromkeys(record.used_by)),
        next_victim=record.entry == victim and record.gone is None,
        gone=record.gone,
        gone_text=gone_text,
    )


def memory_view(state: SessionState) -> MemoryView:
    """The memory pane."""
    memory, server = state.memory, state.server
    # What a server that is gone had is history: the graph and the peak.
    gone = server.phase in _GONE
    last = memory.samples[-1] if memory.samples and not gone else None
    mlx = None if gone else memory.mlx
    now = last.bytes if last else None
    weights = server.loaded.weights_bytes if server.loaded and not gone else None
    cache = state.cache.bytes if state.cache.known == "observer" and not gone else None
    pool = mlx.pool if mlx else None
    parts = (weights, cache, pool)
    explained = sum(part for part in parts if part is not None)
    other = None if now is None or None in parts else max(0, now - explained)
    return MemoryView(
        source=last.source if last else None,
        points=tuple(MemoryPoint(at_ns=sample.at_ns, bytes=sample.bytes) for sample in memory.samples),
        marks=tuple(memory.marks),
        now=now,
        peak=memory.peak,
        limit=last.limit if last else None,
        limit_name="wired limit" if last and last.source == "footprint" else "limit",
        pressure=last.pressure if last else None,
        mlx_active=mlx.active if mlx else None,
        mlx_pool=pool,
        mlx_peak=memory.mlx_peak,
        weights=weights,
        cache=cache,
        other=other,
    )


def log_view(state: SessionState) -> LogView:
    """The log pane."""
    if state.log.read or state.log.rows:
        source = state.server.log_path or "the server's output"
    elif state.server.mode == "attached":
        source = "the server's log is not known: start with --log FILE to see it here"
    else:
        source = "no line yet"
    return LogView(rows=tuple(state.log.rows), total=state.log.total, source=source)


class Presenter:
    """The rows of all requests, kept between folds: only those that changed are made anew."""

    def __init__(self) -> None:
        self._rows: dict[str, RequestRow] = {}

    def rows(self, state: SessionState) -> tuple[RequestRow, ...]:
        """All rows in the table's order."""
        moved = False
        for key in state.dirty:
            request = state.requests[key]
            moved |= request.number == 0 and key not in self._rows  # it may stand in front of what was told before
            self._rows[key] = request_row(state, request)
        state.dirty.clear()
        if moved or len(self._rows) > len(state.requests):  # or the oldest were let go
            self._rows = {key: self._rows[key] for key in state.requests}
        return tuple(self._rows.values())
