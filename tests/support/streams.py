"""Event streams of any kind and order, made by hypothesis: also such as no server would send."""

from typing import Any

from hypothesis import strategies as st

from mlxcache_tui.core import events as ev

KEYS = st.sampled_from(["a", "b", "c", "foreign.1"])
ENTRIES = st.integers(1, 6)
TOKENS = st.integers(0, 400)
WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=("C", "Z")), max_size=20)
MAYBE = st.none() | st.integers(0, 10**9)
RUNS = st.builds(
    ev.TokenRun, count=TOKENS, base=st.none() | KEYS, shared=TOKENS, new=st.lists(TOKENS, max_size=5).map(tuple)
)
MODELS = st.none() | st.sampled_from(["m", "org/other"])


def of(event: type[ev.Event], /, *origins: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        event, at_ns=st.integers(0, 10**12), origin=st.sampled_from(origins or ("client", "observer")), **fields
    )


EVENTS: st.SearchStrategy[ev.AnyEvent] = st.one_of(
    of(ev.PolicyKnown, "program", label=st.sampled_from(["p", "q"]), text=WORDS),
    of(ev.TextKept, text_id=st.sampled_from(["1", "2"]), text=WORDS),
    of(ev.Noticed, "program", level=st.sampled_from(["info", "error"]), pane=st.just("server"), text=WORDS),
    of(ev.EventsLost, "observer", count=st.integers(1, 5)),
    of(
        ev.ServerTargeted,
        "program",
        url=st.sampled_from(["http://a", "http://b"]),
        mode=st.sampled_from(["launched", "attached"]),
    ),
    of(
        ev.ServerLaunched,
        "process",
        pid=st.integers(1, 3),
        port=st.just(1),
        command=st.just(("x",)),
        flags=st.just({"prompt_cache_size": 2}),
    ),
    of(ev.ServerPhaseChanged, "process", phase=st.sampled_from(["ready", "unreachable", "exited"]), text=WORDS),
    of(ev.ServerIdentified, "http", mlx_lm=st.none() | WORDS, model=MODELS),
    of(
        ev.ObserverConnected,
        "observer",
        protocol=st.just(1),
        pid=st.integers(1, 3),
        mlx_lm=MODELS,
        mlx=MODELS,
        python=st.just("3"),
        hooks=st.just(("h",)),
        flags=st.just({"prompt_cache_size": 2, "ratio": 0.5}),
        started_ns=MAYBE,
    ),
    of(ev.ObserverLost, "process"),
    of(ev.ModelLoadStarted, "observer", model=st.just("m")),
    of(
        ev.ModelLoaded,
        "observer",
        model=st.just("m"),
        seconds=st.floats(0, 100),
        trimmable=st.none() | st.booleans(),
        head_tokens=MAYBE,
    ),
    of(ev.WorkerDied, "observer", error=WORDS),
    of(
        ev.ServerExited,
        "process",
        pid=st.integers(1, 3),
        code=st.none() | st.integers(-9, 1),
        tail=st.lists(WORDS, max_size=2).map(tuple),
    ),
    of(
        ev.RequestComposed,
        key=KEYS,
        purpose=st.sampled_from(["send", "readiness", "foreign"]),
        path=st.just("/v1/chat/completions"),
        messages=st.just((("system", "1"), ("user", "2"))),
        params=st.just({"max_tokens": 3, "stop": ["x"]}),
        policy=st.none() | st.just("p"),
    ),
    of(ev.RequestSent, key=KEYS, connect_ns=MAYBE),
    of(ev.RequestAdmitted, key=KEYS, status=st.just(200)),
    of(ev.PrefillProgressed, key=KEYS, done=TOKENS, total=TOKENS),
    of(ev.FirstTokenArrived, key=KEYS, kind=st.sampled_from(["answer", "reasoning", "tool"])),
    of(
        ev.TextArrived,
        key=KEYS,
        kind=st.sampled_from(["answer", "reasoning", "tool"]),
        text=WORDS,
        gaps_ns=st.lists(TOKENS, max_size=3).map(tuple),
    ),
    of(ev.FinishArrived, key=KEYS, finish_reason=st.none() | st.just("stop")),
    of(
        ev.UsageReported,
        key=KEYS,
        prompt_tokens=st.none() | TOKENS,
        output_tokens=st.none() | TOKENS,
        cached_tokens=st.none() | TOKENS,
    ),
    of(
        ev.RequestEnded,
        key=KEYS,
        outcome=st.sampled_from(["done", "cut", "failed", "cancelled"]),
        error=st.none() | WORDS,
    ),
    of(
        ev.LookedUp,
        "observer",
        key=KEYS,
        tokens=RUNS,
        cached_tokens=TOKENS,
        how=st.sampled_from(["exact", "trimmed", "none"]),
        entry=st.none() | ENTRIES,
        path=st.sampled_from(["batched", "sequential"]),
        model=MODELS,
    ),
    of(
        ev.EntryInserted,
        "observer",
        entry=ENTRIES,
        type=st.sampled_from(["system", "user", "assistant"]),
        tokens=RUNS,
        bytes=TOKENS,
        key=st.none() | KEYS,
        replaced=st.none() | ENTRIES,
    ),
    of(ev.EntrySwallowed, "observer", entry=ENTRIES, by=ENTRIES),
    of(
        ev.EntryEvicted,
        "observer",
        entry=ENTRIES,
        rule=st.sampled_from(["count", "bytes"]),
        limit=st.integers(0, 3),
        key=st.none() | KEYS,
    ),
    of(ev.CacheCounted, "log", count=TOKENS, gigabytes=st.floats(0, 9), by_type=st.just({"user": 1})),
    of(ev.MlxMemorySampled, "observer", active=TOKENS, pool=TOKENS, peak=TOKENS),
    of(ev.MemorySampled, "memory", pid=st.integers(1, 3), source=st.just("pss"), bytes=MAYBE, peak=MAYBE),
    of(
        ev.LogRead,
        "log",
        lines=st.lists(
            st.builds(ev.LogLine, text=WORDS, kind=st.sampled_from(["record", "bar", "other"])), max_size=3
        ).map(tuple),
        replace_last=st.booleans(),
    ),
    of(ev.LogOwned, "observer", key=KEYS, text=WORDS),
    of(ev.SourceFailed, "program", source=st.just("log"), error=WORDS),
)
