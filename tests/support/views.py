"""Views with everything filled in that a test does not care about."""

from typing import Any

from mlxcache_tui.core.views import (
    CacheView,
    EntryRow,
    LensPart,
    LensView,
    LogRow,
    LogView,
    MemoryMark,
    MemoryPoint,
    MemoryView,
    RequestRow,
    StatusView,
)

SECOND = 10**9
MINUTE = 60 * SECOND
GB = 10**9
MB = 10**6


def request_row(number: int = 1, **more: Any) -> RequestRow:
    """A request that is done and says nothing else."""
    fields: dict[str, Any] = {
        "key": f"k{number}",
        "number": number,
        "policy": "returns",
        "phase": "done",
        "ours": True,
        "warmup": False,
    }
    return RequestRow(**(fields | more))


def all_kinds_of_rows() -> tuple[RequestRow, ...]:
    """One row of each kind, as a session may have them."""
    warm: dict[str, Any] = {"cached_ratio": 0.972, "cached_tokens": 3900, "prompt_tokens": 4012, "reason": "hit"}
    return (
        request_row(
            0, warmup=True, policy="warm-up", prompt_tokens=12, cached_tokens=0, cached_ratio=0.0, ttft_s=2.3, e2e_s=2.4
        ),
        request_row(
            1, prompt_tokens=131, cached_tokens=0, cached_ratio=0.0, wait_s=0.002, ttft_s=0.31, prefill_tps=820.4,
            output_tokens=64, decode_tps=41.2, e2e_s=1.9, finish_reason="stop", reason="first", why="first of its kind",
        ),
        request_row(
            2, prompt_tokens=122, cached_tokens=112, cached_ratio=112 / 122, wait_s=0.002, ttft_s=0.048,
            output_tokens=64, decode_tps=41.0, e2e_s=1.6, finish_reason="length", reason="hit",
            why="hit: 112 tokens of #1",
        ),
        request_row(
            3, policy="返品ポリシー 日本語", prompt_tokens=4012, cached_tokens=112, cached_ratio=112 / 4012,
            cached_source="derived", ttft_s=4.8, e2e_s=71.0, reason="diverged",
            why="differs from #2 at message 0: 「返品」 not “Return”",
        ),
        request_row(
            4, policy="warranty 🎁 gift", ours=False, phase="cut", prompt_tokens=4012, cached_tokens=0,
            cached_ratio=0.0, e2e_s=3725.0, reason="evicted", why="evicted by #3 (count 2)", inferred=True,
        ),
        request_row(5, phase="failed", policy="warranty", why="the server said 404: model “foo” is not there"),
        request_row(6, phase="cancelled", policy="warranty", prompt_tokens=120),
        request_row(7, phase="thinking", output_tokens=31, decode_tps=38.9, why="hit: 3900 tokens of #3", **warm),
        request_row(
            8, phase="answering", policy="a-very-long-policy-label", output_tokens=131, decode_tps=38.9, **warm
        ),
        request_row(
            9, phase="prefill", policy="warranty", prefill_done=2500, prefill_total=4012, eta_s=3.0,
            prompt_tokens=4012, reason="restarted", why="the server restarted",
        ),
        request_row(10, phase="queued"),
    )  # fmt: skip


def status(**more: Any) -> StatusView:
    """A server that is ready."""
    fields: dict[str, Any] = {
        "model": "Qwen3-4B-4bit",
        "address": "127.0.0.1:8080",
        "mlx_lm": "0.32.2",
        "phase": "ready",
        "text": "",
        "busy": 0,
        "observed": "observer",
        "fetch_percent": None,
        "load_s": 1.9,
        "reuse_last": 0.92,
        "reuse_session": 0.64,
        "evictions": 2,
        "watch_only": False,
        "ours": True,
    }
    return StatusView(**(fields | more))


def entry(number: int, **more: Any) -> EntryRow:
    """A stored entry."""
    fields: dict[str, Any] = {
        "entry": number,
        "type": "assistant",
        "policy": "returns",
        "tokens": 195,
        "bytes": 18 * MB,
        "inserted_ns": 0,
        "made_by": 2,
        "used_by": (1, 2),
        "next_victim": False,
        "gone": None,
        "gone_text": "",
    }
    return EntryRow(**(fields | more))


def cache(**more: Any) -> CacheView:
    """A cache with entries of each kind, stored and gone."""
    fields: dict[str, Any] = {
        "known": "observer",
        "note": "",
        "entries": (
            entry(1, next_victim=True),
            entry(2, policy="返品ポリシー", tokens=4012, bytes=310 * MB, inserted_ns=5 * MINUTE, made_by=3, used_by=()),
            entry(3, type="system", policy="warranty", made_by=0, used_by=(4, 5, 6, 117)),
            entry(4, policy="a-very-long-policy-label", gone="evicted", gone_text="by #7 · count 2"),
            entry(5, type="user", gone="swallowed", gone_text="in a longer entry of #3"),
        ),
        "count": 3,
        "max_count": 4,
        "bytes": 346 * MB,
        "max_bytes": GB,
        "counted_text": "",
    }
    return CacheView(**(fields | more))


def points(*values: int | None) -> tuple[MemoryPoint, ...]:
    """Samples a second apart."""
    return tuple(MemoryPoint(at_ns=index * SECOND, bytes=value) for index, value in enumerate(values))


def memory(*values: int | None, **more: Any) -> MemoryView:
    """A server of 2 to 3 GB; without values a saw-tooth with a gap, two evictions and a restart."""
    saw = [None if 30 <= i < 34 else 2 * GB + (i % 20) * 40 * MB for i in range(60)]
    fields: dict[str, Any] = {
        "source": "footprint",
        "points": points(*(values or saw)),
        "marks": ()
        if values
        else (
            MemoryMark(at_ns=20 * SECOND, kind="eviction"),
            MemoryMark(at_ns=33 * SECOND, kind="restart"),
            MemoryMark(at_ns=40 * SECOND, kind="eviction"),
        ),
        "now": 3 * GB,
        "peak": 3600 * MB,
        "limit": 12 * GB,
        "limit_name": "wired limit",
        "pressure": "normal",
        "mlx_active": 2500 * MB,
        "mlx_pool": 210 * MB,
        "mlx_peak": 3 * GB,
        "weights": 2260 * MB,
        "cache": 328 * MB,
        "other": 200 * MB,
    }
    return MemoryView(**(fields | more))


def log_row(seq: int, text: str = "", **more: Any) -> LogRow:
    """A plain line of the log."""
    fields: dict[str, Any] = {"kind": "record", "level": "INFO", "request": None}
    return LogRow(seq=seq, text=text or f"2026-11-29 14:48:00,123 - INFO - line {seq}", **(fields | more))


def traceback_rows(seq: int) -> tuple[LogRow, ...]:
    """A traceback of four lines, the first with this number."""
    texts = ("Traceback (most recent call last):", '  File "server.py", line 3, in go', "    go()", "ValueError: bad")
    return tuple(
        log_row(seq + index, text, kind="traceback", level="ERROR" if index == 0 else None)
        for index, text in enumerate(texts)
    )


def log(*rows: LogRow, source: str = "the server's output") -> LogView:
    """A log of these rows."""
    return LogView(rows=rows, total=rows[-1].seq if rows else 0, source=source)


def lines_of_log(count: int, start: int = 1) -> tuple[LogRow, ...]:
    """Plain lines with running numbers."""
    return tuple(log_row(seq) for seq in range(start, start + count))


def lens(**more: Any) -> LensView:
    """A prompt of 12 tokens, 9 of them reused, beside #1, from which it then differs."""
    same = LensPart(text="The policy.\nOne rule ", tokens=9, reused=True, same=True)
    fields: dict[str, Any] = {
        "key": "k2",
        "number": 2,
        "exact": True,
        "note": "",
        "tokens": 12,
        "cached": 9,
        "shared": 9,
        "parts": (same, LensPart(text="and this", tokens=3, reused=False, same=False)),
        "other_key": "k1",
        "other_number": 1,
        "other_policy": "returns",
        "other_parts": (same, LensPart(text="and that", tokens=3, reused=False, same=False)),
        "others": ("k1", "k0"),
        "parameters": (),
        "here": "“and this”",
        "there": "“and that”",
    }
    return LensView(**(fields | more))
