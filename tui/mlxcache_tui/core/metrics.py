"""One definition for each figure of a request. Times are monotonic ns in, seconds out; None is unknown, never 0.

Definitions and the anchors that they were compared with: t0 first byte written, tH headers read, tF first non-empty
reasoning, answer or tool text, tC first non-empty answer or tool text, tE the event with `finish_reason`, tD the end of
the stream; P prompt tokens, C cached tokens, N output tokens.
"""

from mlxcache_tui.core.state import RequestState

MIN_PREFILL_TOKENS = 64
"""Fewer uncached tokens than this give no prefill rate: a rate from so few says nothing."""
MIN_TOKEN_S = 0.0005
"""Tokens that come faster than this were not made as they came: they were held back and sent in one burst."""
MIN_RATE_S = 0.005
"""Nor does a rate over a shorter time: on a busy machine what came apart is read, and stamped, at once."""


def seconds(start: int | None, end: int | None) -> float | None:
    """From one stamp to another, in seconds; None if either is unknown."""
    return None if start is None or end is None else max(0, end - start) / 1e9


def wait_s(request: RequestState) -> float | None:
    """tH - t0: queueing and tokenising, until the server admits the request."""
    return seconds(request.stamps.sent, request.stamps.admitted)


def ttft_s(request: RequestState) -> float | None:
    """TTFT = tF - t0, reasoning counts. Unknown for a reply that was not streamed to us."""
    return seconds(request.stamps.sent, request.stamps.first_token)


def ttfo_s(request: RequestState) -> float | None:
    """Time to first visible output = tC - t0."""
    return seconds(request.stamps.sent, request.stamps.first_answer)


def prefill_s(request: RequestState) -> float | None:
    """tF - tH: reading what was not cached (on the sequential path the look-up as well)."""
    return seconds(request.stamps.admitted, request.stamps.first_token)


def uncached_tokens(request: RequestState) -> int | None:
    """U = P - C."""
    if request.prompt_tokens is None or request.cached_tokens is None:
        return None
    return request.prompt_tokens - request.cached_tokens


def prefill_tps(request: RequestState) -> float | None:
    """U / prefill time, tokens per second; while it runs, what is done since admission.

    Blank if U < 64 or the time is below 5 ms.
    """
    if request.stamps.first_token is None:
        done, took = request.prefill_done, seconds(request.stamps.admitted, request.prefill_ns)
        return done / took if done and took and done >= MIN_PREFILL_TOKENS else None
    uncached, took = uncached_tokens(request), prefill_s(request)
    if uncached is None or uncached < MIN_PREFILL_TOKENS or took is None or took < MIN_RATE_S:
        return None
    return uncached / took


def eta_s(request: RequestState) -> float | None:
    """What is left of the prefill at the speed so far, in seconds."""
    done, total = request.prefill_done, request.prefill_total
    took = seconds(request.stamps.admitted, request.prefill_ns)
    return (total - done) * took / done if done and total is not None and took else None


def decode_tps(request: RequestState) -> float | None:
    """(N - 1) / (tE - tF) for N ≥ 2; mlx_lm's N counts the stop token, whose time is tE.

    Blank below 5 ms, and where all came in one burst.

    While it runs: text events instead of tokens, up to the last one.
    """
    if request.outcome is None:
        events, took = request.gaps.count, seconds(request.stamps.first_token, request.last_text_ns)
        return (events - 1) / took if events >= 2 and took else None
    took = seconds(request.stamps.first_token, request.stamps.finish)
    output = request.output_tokens
    if output is None or output < 2 or took is None or took < max(MIN_RATE_S, (output - 1) * MIN_TOKEN_S):
        return None
    return (output - 1) / took


def e2e_s(request: RequestState) -> float | None:
    """tE - t0 of a request that was done; one that failed, was cut or cancelled has no completion time."""
    return seconds(request.stamps.sent, request.stamps.finish) if request.outcome == "done" else None


def cached_ratio(request: RequestState) -> float | None:
    """C / P; None where the reply had no such field."""
    if request.cached_tokens is None or not request.prompt_tokens:
        return None
    return request.cached_tokens / request.prompt_tokens
