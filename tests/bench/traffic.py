"""What a viewer is told of a session on an observed server, as events in the shape of real ones, as fast as wanted."""

from collections.abc import Iterator

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.codec import text_id_of

MS = 1_000_000
LIMIT = 10
BOTH_SIDES: tuple[ev.Origin, ev.Origin] = ("client", "observer")
POLICY_TOKENS, QUESTION_TOKENS, OUTPUT_TOKENS = 400, 30, 64
POLICIES = tuple(f"policy {number}: " + "return it within 30 days. " * 60 for number in range(4))
PROGRESS = "2026-11-29 14:48:18,123 - INFO - Prompt processing progress: {}/{}"


class Clock:
    """Stamps in order; starts at any time."""

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns

    def tick(self, ms: float = 1) -> int:
        """Let time pass; returns the new now."""
        self.now_ns += int(ms * MS)
        return self.now_ns


def opening(clock: Clock) -> Iterator[ev.AnyEvent]:
    """A server of ours that is ready and observed."""
    url, flags = "http://127.0.0.1:8080", {"prompt_cache_size": LIMIT, "prompt_cache_bytes": None}
    yield ev.ServerTargeted(at_ns=clock.tick(), origin="program", url=url, mode="launched", model="demo:tiny")
    yield ev.ServerLaunched(at_ns=clock.tick(), origin="process", pid=10, port=8080, command=("x",), flags=flags)
    yield ev.ObserverConnected(
        at_ns=clock.tick(),
        origin="observer",
        protocol=1,
        pid=10,
        mlx_lm="0.32.2",
        mlx="0.32.4",
        python="3.11",
        hooks=("all",),
        flags=flags,
    )
    yield ev.ModelLoaded(
        at_ns=clock.tick(),
        origin="observer",
        model="m",
        seconds=1.5,
        weights_bytes=10**9,
        trimmable=True,
        head_tokens=7,
    )
    yield ev.ServerPhaseChanged(at_ns=clock.tick(), origin="process", phase="ready")


def asked(clock: Clock, number: int) -> Iterator[ev.AnyEvent]:
    """Request `number` (from 1 on) from its making to the look-up, as both sides tell it: policies in turn."""
    key, policy = f"s.{number}", number % len(POLICIES)
    system, user = (
        POLICIES[policy],
        f"Question {number}: a customer opened an accessory and changed their mind, and now?",
    )
    messages = (("system", text_id_of(system)), ("user", text_id_of(user)))
    if number <= len(POLICIES):
        yield ev.TextKept(at_ns=clock.tick(), origin="client", text_id=messages[0][1], text=system)
    yield ev.TextKept(at_ns=clock.tick(), origin="client", text_id=messages[1][1], text=user)
    for origin in BOTH_SIDES:
        yield ev.RequestComposed(
            at_ns=clock.tick(),
            origin=origin,
            key=key,
            purpose="send",
            path="/v1/chat/completions",
            messages=messages,
            params={"max_tokens": OUTPUT_TOKENS, "stream": True, "model": "default_model"},
            policy=f"policy {policy}",
        )
        yield ev.RequestSent(at_ns=clock.tick(), origin=origin, key=key)
    yield looked_up(clock, number)


def looked_up(clock: Clock, number: int) -> ev.LookedUp:
    """A hit on the entry of the last request with the same policy; the first ones find nothing."""
    early = number - len(POLICIES)
    total = POLICY_TOKENS + QUESTION_TOKENS
    shared = POLICY_TOKENS if early > 0 else 0
    # Large ids, as real ones are: each is an object of its own in memory.
    new = tuple(1_000 + (number * 37 + index * 101) % 48_000 for index in range(total - shared))
    return ev.LookedUp(
        at_ns=clock.tick(),
        origin="observer",
        key=f"s.{number}",
        tokens=ev.TokenRun(count=total, base=f"s.{early}" if early > 0 else None, shared=shared, new=new),
        cached_tokens=shared,
        how="trimmed" if early > 0 else "none",
        entry=2 * early if early > 0 else None,
        path="batched",
        model="m",
    )


def prefilled(clock: Clock, number: int) -> Iterator[ev.AnyEvent]:
    """From the headers to the first token, and what the server prints and stores meanwhile."""
    key, total = f"s.{number}", QUESTION_TOKENS
    for origin in BOTH_SIDES:
        yield ev.RequestAdmitted(at_ns=clock.tick(), origin=origin, key=key, status=200)
        yield ev.PrefillProgressed(at_ns=clock.tick(), origin=origin, key=key, done=total, total=total)
    line = ev.LogLine(text=PROGRESS.format(total, total), kind="progress", level="INFO")
    yield ev.LogRead(at_ns=clock.tick(), origin="log", lines=(line,))
    yield from stored(clock, number, 2 * number - 1, "user", POLICY_TOKENS)
    for origin in BOTH_SIDES:
        yield ev.FirstTokenArrived(at_ns=clock.tick(), origin=origin, key=key, kind="answer")


def stored(clock: Clock, number: int, entry: int, kind: ev.EntryType, tokens: int) -> Iterator[ev.AnyEvent]:
    """An entry is stored; the oldest one has to go once there are too many."""
    key = f"s.{number}"
    run = ev.TokenRun(count=tokens, base=key, shared=tokens)
    yield ev.EntryInserted(
        at_ns=clock.tick(),
        origin="observer",
        entry=entry,
        type=kind,
        tokens=run,
        bytes=tokens * 4_000,
        key=key,
        model="m",
    )
    if entry > LIMIT:
        yield ev.EntryEvicted(
            at_ns=clock.tick(), origin="observer", entry=entry - LIMIT, rule="count", limit=LIMIT, key=key
        )


def written(clock: Clock, number: int, tokens: int) -> ev.TextArrived:
    """A piece of the answer, 25 ms a token."""
    text = "".join(f" word{index}" for index in range(tokens))
    gaps = (25 * MS,) * tokens
    return ev.TextArrived(
        at_ns=clock.tick(), origin="client", key=f"s.{number}", kind="answer", text=text, gaps_ns=gaps
    )


def ended(clock: Clock, number: int) -> Iterator[ev.AnyEvent]:
    """The end of the reply, and the entry of the whole conversation."""
    key = f"s.{number}"
    yield from stored(clock, number, 2 * number, "assistant", POLICY_TOKENS + QUESTION_TOKENS + OUTPUT_TOKENS)
    for origin in BOTH_SIDES:
        yield ev.FinishArrived(at_ns=clock.tick(), origin=origin, key=key, finish_reason="length")
        yield ev.UsageReported(
            at_ns=clock.tick(),
            origin=origin,
            key=key,
            prompt_tokens=POLICY_TOKENS + QUESTION_TOKENS,
            output_tokens=OUTPUT_TOKENS,
            cached_tokens=POLICY_TOKENS if number > len(POLICIES) else 0,
        )
        yield ev.RequestEnded(at_ns=clock.tick(), origin=origin, key=key, outcome="done", status=200)


def whole(clock: Clock, number: int) -> Iterator[ev.AnyEvent]:
    """All of a request."""
    yield from asked(clock, number)
    yield from prefilled(clock, number)
    for _ in range(OUTPUT_TOKENS // 4):
        yield written(clock, number, 4)
    yield from ended(clock, number)


def memory(clock: Clock, used: int) -> ev.MemorySampled:
    """The server's memory as the sampler sees it each second."""
    return ev.MemorySampled(
        at_ns=clock.tick(), origin="memory", pid=10, source="pss", bytes=used, peak=used, system_total=16 * 2**30
    )
