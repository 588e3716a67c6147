"""A reply told as a conversation: bytes with stamps in, events out. Each oddity of real servers by its name."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core import exchange as exchange_module
from mlxcache_tui.core.events import (
    AnyEvent,
    FinishArrived,
    FirstTokenArrived,
    PrefillProgressed,
    RequestAdmitted,
    RequestEnded,
    ServerIdentified,
    TextArrived,
    UsageReported,
)
from mlxcache_tui.core.exchange import FLUSH_NS, Exchange

MS = 1_000_000
FINGERPRINT = "0.32.2-0.32.4-Linux-6.1.0-x86_64"


def sse(*values: object) -> bytes:
    return b"".join(b"data: " + (v if isinstance(v, bytes) else json.dumps(v).encode()) + b"\n\n" for v in values)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": finish, "delta": fields}]}


def usage(prompt: int, output: int, cached: int | None = None) -> dict[str, Any]:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": output, **details}}


DONE = sse(b"[DONE]")


def play(
    *chunks: bytes,
    status: int = 200,
    kind: str = "text/event-stream",
    location: str = "",
    streamed: bool = True,
) -> list[AnyEvent]:
    """The events of a reply whose headers come at 0 and whose chunks come each 100 ms after the one before."""
    exchange = Exchange("k", streamed=streamed, known=set())
    events = exchange.admitted(status, kind, location, 0)
    for number, chunk in enumerate(chunks, start=1):
        events += exchange.received(chunk, number * 100 * MS)
    return events + exchange.closed((len(chunks) + 1) * 100 * MS)


def brief(events: Sequence[AnyEvent]) -> list[str]:
    """Each event in a few words, to compare at a glance."""
    return [word for event in events if (word := _word(event))]


def _word(event: AnyEvent) -> str:
    ms = event.at_ns // MS
    match event:
        case RequestAdmitted():
            return f"{ms} admitted {event.status}"
        case PrefillProgressed():
            return f"{ms} prefill {event.done}/{event.total}"
        case FirstTokenArrived():
            return f"{ms} first {event.kind}"
        case TextArrived():
            return f"{ms} {event.kind} {event.text!r} {[gap // MS for gap in event.gaps_ns]}"
        case FinishArrived():
            return f"{ms} finish {event.finish_reason}"
        case UsageReported():
            return f"{ms} usage {event.prompt_tokens} {event.output_tokens} {event.cached_tokens}"
        case ServerIdentified():
            return f"{ms} {event.software} {event.mlx_lm} {event.mlx} {event.platform}"
        case RequestEnded():
            return f"{ms} {event.outcome} {event.status}" + (f" {event.error}" if event.error else "")
    raise AssertionError(event)


CASES: dict[str, tuple[list[bytes], list[str]]] = {
    "as mlx_lm 0.32 sends it": (
        [
            b": keepalive 2048/4012\n\n",
            b": keepalive 4012/4012\n\n",
            sse(delta(content="Yes", role="assistant") | {"system_fingerprint": FINGERPRINT}),
            sse(delta(content=", they"), delta(content=" can.")),
            sse(delta("stop", role="assistant"), usage(4100, 5, 88)) + DONE,
        ],
        [
            "0 admitted 200",
            "100 prefill 2048/4012",
            "200 prefill 4012/4012",
            "300 first answer",
            "300 mlx_lm 0.32.2 0.32.4 Linux-6.1.0-x86_64",
            "300 answer 'Yes' []",
            "400 answer ', they can.' [100, 0]",
            "500 finish stop",
            "500 usage 4100 5 88",
            "500 done 200",
        ],
    ),
    "42: comments before, between and after, with CRLF": (
        [
            b": keep-alive\r\n\r\n",
            sse(delta(content="a")).replace(b"\n", b"\r\n"),
            b":\r\n: x\r\n",
            sse(delta("stop", content="b")) + b": bye\n" + DONE,
        ],
        [
            "0 admitted 200",
            "200 first answer",
            "200 answer 'a' []",
            "400 answer 'b' [200]",
            "400 finish stop",
            "400 done 200",
        ],
    ),
    "42: comment inside an event": (
        [b"data: " + json.dumps(delta(content="a")).encode() + b"\n: keepalive 1/2\n\n" + DONE],
        [
            "0 admitted 200",
            "100 prefill 1/2",
            "100 first answer",
            "100 answer 'a' []",
            "100 finish None",
            "100 done 200",
        ],
    ),
    "44: role only first, the first token is the text": (
        [sse(delta(role="assistant")), sse(delta(content="")), sse(delta(content="a")), sse(delta("stop")) + DONE],
        ["0 admitted 200", "300 first answer", "300 answer 'a' []", "400 finish stop", "400 done 200"],
    ),
    "44: reasoning first, then the answer": (
        [sse(delta(reasoning="Hm")), sse(delta(reasoning="…")), sse(delta("stop", content="a")) + DONE],
        [
            "0 admitted 200",
            "100 first reasoning",
            "100 reasoning 'Hm' []",
            "200 reasoning '…' [100]",
            "300 first answer",
            "300 answer 'a' [100]",
            "300 finish stop",
            "300 done 200",
        ],
    ),
    "44: only a tool call": (
        [sse(delta("tool_calls", tool_calls=[{"function": {"name": "look", "arguments": "{}"}}])) + DONE],
        ["0 admitted 200", "100 first tool", "100 tool 'look {}' []", "100 finish tool_calls", "100 done 200"],
    ),
    "44: only usage": (
        [sse(usage(9, 0, 8)) + DONE],
        ["0 admitted 200", "100 usage 9 0 8", "100 done 200"],
    ),
    "47: usage before the finish is told with it": (
        [sse(delta(content="a")), sse(usage(9, 1)), sse(delta("stop")), DONE],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "300 finish stop",
            "200 usage 9 1 None",
            "400 done 200",
        ],
    ),
    "47: usage in every event is told once": (
        [
            sse(delta(content="a") | usage(9, 1) | delta(content="a")),
            sse(delta("stop", content="b") | {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}),
            DONE,
        ],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "200 answer 'b' [100]",
            "200 finish stop",
            "200 usage 9 2 None",
            "300 done 200",
        ],
    ),
    "47: no usage": (
        [sse(delta("stop", content="a")) + DONE],
        ["0 admitted 200", "100 first answer", "100 answer 'a' []", "100 finish stop", "100 done 200"],
    ),
    "49: no finish reason, told at the last text": (
        [sse(delta(content="a")), sse(usage(9, 1)) + DONE],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "100 finish None",
            "200 usage 9 1 None",
            "200 done 200",
        ],
    ),
    "finish told twice counts once": (
        [sse(delta("stop", content="a")), sse(delta("stop")), DONE],
        ["0 admitted 200", "100 first answer", "100 answer 'a' []", "100 finish stop", "300 done 200"],
    ),
    "50: think tags, the opening one cut": (
        [
            sse(delta(content="<thi")),
            sse(delta(content="nk>")),
            sse(delta(content="Hm")),
            sse(delta(content="</think>Yes")),
            DONE,
        ],
        [
            "0 admitted 200",
            "100 first reasoning",
            "200 reasoning '' [100]",
            "300 reasoning 'Hm' [100]",
            "400 first answer",
            "400 answer 'Yes' [100]",
            "400 finish None",
            "500 done 200",
        ],
    ),
    "50: what looked like a tag was text: first token when it came": (
        [sse(delta(content="<")), sse(delta(content="t")), sse(delta(content="b>")), sse(delta("stop")) + DONE],
        ["0 admitted 200", "100 first answer", "300 answer '<tb>' [100, 100]", "400 finish stop", "400 done 200"],
    ),
    "51: all spent on thinking": (
        [sse(delta(reasoning="Hm")), sse(delta("length"), usage(9, 1, 0)) + DONE],
        [
            "0 admitted 200",
            "100 first reasoning",
            "100 reasoning 'Hm' []",
            "200 finish length",
            "200 usage 9 1 0",
            "200 done 200",
        ],
    ),
    "text before and after a tool call keeps its order": (
        [
            sse(
                delta(content="a"),
                delta(tool_calls=[{"function": {"name": "f", "arguments": "{}"}}]),
                delta("stop", content="b"),
            )
            + DONE
        ],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "100 first tool",
            "100 tool 'f {}' [0]",
            "100 answer 'b' [0]",
            "100 finish stop",
            "100 done 200",
        ],
    ),
    "no [DONE] at the end": (
        [sse(delta(content="a"))],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "200 cut 200 the stream ended without [DONE]",
        ],
    ),
    "no [DONE], cut inside an event": (
        [sse(delta(content="a")) + sse(delta(content="b"))[:20]],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "200 cut 200 the stream ended without [DONE]",
        ],
    ),
    "no [DONE], cut inside a think tag": (
        [sse(delta(content="<think>a</th"))],
        [
            "0 admitted 200",
            "100 first reasoning",
            "100 reasoning 'a' []",
            "200 reasoning '</th' []",
            "200 cut 200 the stream ended without [DONE]",
        ],
    ),
    "[DONE] without its blank line": (
        [sse(delta("stop", content="a")) + b"data: [DONE]"],
        ["0 admitted 200", "100 first answer", "100 answer 'a' []", "100 finish stop", "200 done 200"],
    ),
    "nothing behind the headers": ([], ["0 admitted 200", "100 cut 200 the stream ended before anything came"]),
    "what comes after [DONE] is not read": (
        [DONE + sse(delta(content="a")), sse(delta(content="b"))],
        ["0 admitted 200", "100 done 200"],
    ),
    "an error in mid-stream, then the end": (
        [sse(delta(content="a")), sse({"error": {"message": "out of memory"}})],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "300 failed 200 the server reported: out of memory",
        ],
    ),
    "an error without its blank line": (
        [b'data: {"error": "out of memory"}'],
        ["0 admitted 200", "200 failed 200 the server reported: out of memory"],
    ),
    "garbage is told once and the rest is read": (
        [sse(b"{nonsense") * 3, sse(delta("stop", content="a")) + DONE],
        [
            "0 admitted 200",
            "200 first answer",
            "200 answer 'a' []",
            "200 finish stop",
            "200 failed 200 the server sent a stream event that is not JSON: {nonsense",
        ],
    ),
    "an event that is too long": (
        [b"data: " + b"x" * (5 << 20) + b"\n\n" + DONE],
        ["0 admitted 200", "100 failed 200 the server sent a stream event that is too long to read"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_stream(name: str) -> None:
    chunks, expected = CASES[name]
    assert brief(play(*chunks)) == expected


def body(**message: Any) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return json.dumps(usage(9, 2, 7) | {"choices": [choice]}).encode()


WHOLE_CASES: dict[str, tuple[dict[str, Any], list[bytes], list[str]]] = {
    "an answer in two parts": (
        {},
        [body(content="Yes", reasoning="Hm")[:30], body(content="Yes", reasoning="Hm")[30:]],
        [
            "0 admitted 200",
            "200 reasoning 'Hm' []",
            "200 answer 'Yes' []",
            "200 finish stop",
            "200 usage 9 2 7",
            "300 done 200",
        ],
    ),
    "no finish reason": (
        {},
        [b'{"choices": [{"message": {"content": "Yes"}}]}'],
        ["0 admitted 200", "100 answer 'Yes' []", "100 finish None", "200 done 200"],
    ),
    "a server that does not stream although asked": (
        {"streamed": True},
        [body(content="Yes")],
        ["0 admitted 200", "100 answer 'Yes' []", "100 finish stop", "100 usage 9 2 7", "200 done 200"],
    ),
    "empty body": ({}, [], ["0 admitted 200", "100 failed 200 the server answered with an empty body"]),
    "not JSON": ({}, [b"hello"], ["0 admitted 200", "200 failed 200 the server's answer is not JSON: hello"]),
    "cut JSON": (
        {},
        [b'{"choices": ['],
        ["0 admitted 200", '200 failed 200 the server\'s answer is not JSON: {"choices": ['],
    ),
    "a web page": (
        {"kind": "text/html"},
        [b"<html><title>Router</title>"],
        ["0 admitted 200", "200 failed 200 HTTP 200, a web page: Router; is this the right URL?"],
    ),
    "404 with JSON": (
        {"status": 404},
        [b'{"error": "generation', b' thread died"}'],
        ["0 admitted 404", "300 failed 404 HTTP 404: generation thread died"],
    ),
    "404 with plain text": (
        {"status": 404, "kind": "application/json"},
        [b"Not Found"],
        ["0 admitted 404", "200 failed 404 HTTP 404: Not Found"],
    ),
    "503 empty": ({"status": 503, "kind": ""}, [], ["0 admitted 503", "100 failed 503 HTTP 503 with an empty body"]),
    "204": ({"status": 204, "kind": ""}, [], ["0 admitted 204", "100 failed 204 HTTP 204 with an empty body"]),
    "a redirect": (
        {"status": 307, "location": "http://x/\x1b[2Jv1"},
        [],
        ["0 admitted 307", "100 failed 307 HTTP 307: the server redirects to http://x/v1; use that URL"],
    ),
    "an error body without end": (
        {"status": 500, "kind": "text/plain"},
        [b"x" * 40_000, b"x" * 40_000, b"never read"],
        ["0 admitted 500", "200 failed 500 HTTP 500: " + "x" * 299 + "…"],
    ),
}


@pytest.mark.parametrize("name", WHOLE_CASES)
def test_a_whole_reply(name: str) -> None:
    options, chunks, expected = WHOLE_CASES[name]
    assert brief(play(*chunks, **{"streamed": False, "kind": "application/json", **options})) == expected


def test_a_stream_without_a_content_type_is_read_as_a_stream() -> None:
    assert brief(play(sse(delta("stop", content="a")) + DONE, kind=""))[-1] == "100 done 200"


def test_a_stream_that_was_not_asked_for_is_read_as_one() -> None:
    events = play(sse(delta("stop", content="a")) + DONE, streamed=False)
    assert brief(events)[1] == "100 first answer"


def test_an_answer_that_is_too_long_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_module, "MAX_BODY_BYTES", 1 << 20)
    events = play(b" " * (1 << 20), b" ", b" ", kind="application/json", streamed=False)
    assert brief(events)[1:] == ["200 failed 200 the server's answer is longer than 1 MiB"]


def test_text_is_given_out_at_once_and_then_merged_until_it_is_due() -> None:
    exchange = Exchange("k", streamed=True, known=set())
    exchange.admitted(200, "text/event-stream", "", 0)
    assert exchange.flush_at_ns is None
    assert brief(exchange.received(sse(delta(content="a")), 10 * MS)) == ["10 first answer", "10 answer 'a' []"]
    assert exchange.received(sse(delta(content="b")), 20 * MS) == []
    assert exchange.received(sse(delta(content="c")), 30 * MS) == []
    assert exchange.flush_at_ns == 10 * MS + FLUSH_NS
    assert brief(exchange.flush(60 * MS)) == ["30 answer 'bc' [10, 10]"]
    assert exchange.flush_at_ns is None
    assert exchange.flush(61 * MS) == []
    assert brief(exchange.received(sse(delta(content="d")), 120 * MS)) == ["120 answer 'd' [90]"]


def test_a_cut_connection_in_mid_answer_keeps_what_came() -> None:
    exchange = Exchange("k", streamed=True, known=set())
    exchange.admitted(200, "text/event-stream", "", 0)
    exchange.received(sse(delta(content="a")), 10 * MS)
    exchange.received(sse(delta(content="b"), usage(9, 2)), 20 * MS)
    assert brief(exchange.broke("reset", 30 * MS)) == [
        "20 answer 'b' [10]",
        "20 usage 9 2 None",
        "30 cut 200 reset",
    ]
    assert exchange.ended
    assert [*exchange.broke("x", 1), *exchange.cancelled(1), *exchange.closed(1), *exchange.received(b"x", 1)] == []


def test_a_connection_that_fails_before_the_headers() -> None:
    exchange = Exchange("k", streamed=True, known=set())
    assert brief(exchange.broke("nothing answers", 5 * MS)) == ["5 failed None nothing answers"]


def test_a_connection_that_breaks_inside_an_error_still_tells_the_error() -> None:
    exchange = Exchange("k", streamed=True, known=set())
    exchange.admitted(400, "application/json", "", 0)
    exchange.received(b'{"error": "max_tokens must be at least 1"}', 10 * MS)
    assert brief(exchange.broke("reset", 30 * MS)) == ["30 failed 400 HTTP 400: max_tokens must be at least 1"]


def test_cancelled_tells_the_text_that_waited() -> None:
    exchange = Exchange("k", streamed=True, known=set())
    exchange.admitted(200, "text/event-stream", "", 0)
    exchange.received(sse(delta(content="a")), 10 * MS)
    exchange.received(sse(delta(content="b")), 20 * MS)
    assert brief(exchange.cancelled(30 * MS)) == ["20 answer 'b' [10]", "30 cancelled 200"]


def test_a_server_is_identified_once() -> None:
    known: set[Any] = set()
    for identified in (1, 0):
        exchange = Exchange("k", streamed=True, known=known)
        exchange.admitted(200, "text/event-stream", "", 0)
        events = exchange.received(sse(delta(content="a") | {"system_fingerprint": FINGERPRINT}) * 2, 1)
        assert sum(isinstance(event, ServerIdentified) for event in events) == identified


STREAM = b"".join(chunk for chunks, _ in list(CASES.values())[:14] for chunk in chunks if DONE not in chunk) + DONE


def facts_of(events: list[AnyEvent]) -> tuple[list[str], dict[str, str]]:
    """What does not depend on the cuts when all bytes have one stamp: all events but text, and each text."""
    texts: dict[str, str] = {}
    for event in events:
        if isinstance(event, TextArrived):
            texts[event.kind] = texts.get(event.kind, "") + event.text
    return [word for event in events if not isinstance(event, TextArrived) and (word := _word(event))], texts


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_any_cut_of_a_stream_gives_the_same_facts(cuts: list[int]) -> None:
    places = sorted({0, len(STREAM), *cuts})
    chunks = [STREAM[start:end] for start, end in pairwise(places)]
    assert facts_of(same_stamp(chunks)) == facts_of(same_stamp([STREAM]))


def same_stamp(chunks: list[bytes]) -> list[AnyEvent]:
    exchange = Exchange("k", streamed=True, known=set())
    events = exchange.admitted(200, "text/event-stream", "", 7)
    for chunk in chunks:
        events += exchange.received(chunk, 7)
    return events + exchange.closed(7)


@given(st.lists(st.integers(0, 40 * MS), min_size=1, max_size=30))
def test_one_gap_for_each_event_with_text_but_the_first(waits: list[int]) -> None:
    exchange = Exchange("k", streamed=True, known=set())
    events = exchange.admitted(200, "text/event-stream", "", 0)
    now = 0
    for number, wait in enumerate(waits):
        now += wait
        events += exchange.received(sse(delta(**{("content", "reasoning")[number % 2]: "x"})), now)
    events += exchange.closed(now)
    gaps = [gap for event in events if isinstance(event, TextArrived) for gap in event.gaps_ns]
    assert gaps == waits[1:]
