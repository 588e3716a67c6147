"""A reply told as a conversation: bytes with stamps in, events out. Each oddity of real servers by its name."""

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
from support.replies import CASES, DONE, FINGERPRINT, WHOLE_CASES, delta, sse, usage

MS = 1_000_000


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


@pytest.mark.parametrize("name", CASES)
def test_a_stream(name: str) -> None:
    chunks, expected = CASES[name]
    assert brief(play(*chunks)) == expected


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
