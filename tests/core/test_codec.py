"""Events survive the way to JSON and back, and say where they are wrong."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.codec import decode_event, decode_events, encode_event, text_id_of
from mlxcache_tui.core.events import LookedUp, TextKept, TokenRun


def test_a_line_that_is_nested_too_deeply_is_not_an_event() -> None:
    head = b'{"t":"PolicyKnown","at_ns":1,"origin":"program","label":"a","text":"b","z":'
    deep = head + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    for decode in (decode_event, decode_events):
        with pytest.raises(msgspec.DecodeError, match="nested too deeply"):
            decode(deep)


@given(text=st.text())
def test_a_text_survives(text: str) -> None:
    event = TextKept(at_ns=1, origin="client", text_id=text_id_of(text), text=text)
    line = encode_event(event)
    assert line.count(b"\n") == 1
    assert decode_event(line) == event


def test_tokens_survive() -> None:
    run = TokenRun(count=5, base="a", shared=3, new=(4, 5))
    event = LookedUp(at_ns=1, origin="observer", key="b", tokens=run, cached_tokens=3, how="trimmed", path="batched")
    assert decode_event(encode_event(event)) == event


def test_many_lines_are_the_events_of_each_of_them() -> None:
    events = [TextKept(at_ns=number, origin="client", text_id="x", text=f"{number}") for number in range(3)]
    assert decode_events(b"\n".join(map(encode_event, events))) == events
    with pytest.raises(msgspec.DecodeError):
        decode_events(encode_event(events[0]) + b"{}\n")


@pytest.mark.parametrize("line", [b"", b"{", b"{}", b'{"t":"Nothing","at_ns":1,"origin":"log"}', b'{"t":"TextKept"}'])
def test_what_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_event(line)


def test_a_lone_surrogate_has_a_name_too() -> None:
    assert len(text_id_of("\ud800")) == 16
