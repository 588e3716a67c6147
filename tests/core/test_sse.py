"""The stream decoder: the same records whatever the cuts, and nothing that grows without end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.sse import Comment, Data, Oversized, Record, SseDecoder


def decode(chunks: list[bytes], max_bytes: int = 1000) -> list[Record]:
    decoder = SseDecoder(max_bytes)
    records = [record for chunk in chunks for record in decoder.feed(chunk)]
    return records + decoder.close()


CASES: dict[str, tuple[bytes, list[Record]]] = {
    "data": (b"data: x\n\n", [Data(b"x")]),
    "no space behind the colon": (b"data:x\n\n", [Data(b"x")]),
    "only one space is taken": (b"data:  x\n\n", [Data(b" x")]),
    "CRLF": (b"data: x\r\n\r\ndata: y\r\n\r\n", [Data(b"x"), Data(b"y")]),
    "CR": (b"data: x\r\rdata: y\r\r", [Data(b"x"), Data(b"y")]),
    "mixed line ends": (b"data: x\r\n\ndata: y\n\r\n", [Data(b"x"), Data(b"y")]),
    "several data lines": (b"data: x\ndata: y\n\n", [Data(b"x\ny")]),
    "a data line without a colon": (b"data\n\n", [Data(b"")]),
    "empty data": (b"data:\n\n", [Data(b"")]),
    "comment": (b": keepalive 3/9\n\n", [Comment("keepalive 3/9")]),
    "comment inside an event": (b"data: x\n:c\ndata: y\n\n", [Comment("c"), Data(b"x\ny")]),
    "comment of broken UTF-8": (b":\xff\n", [Comment("�")]),
    "other fields": (b"event: e\nid: 1\nretry: 3\nfoo\ndata: x\n\n", [Data(b"x")]),
    "an event without data": (b"event: ping\n\n", []),
    "byte order mark": (b"\xef\xbb\xbfdata: x\n\n", [Data(b"x")]),
    "no blank line at the end": (b"data: x\n", [Data(b"x")]),
    "no line end at the end": (b"data: x", [Data(b"x")]),
    "nothing": (b"", []),
    "only line ends": (b"\r\n\n\r", []),
    "colons in the value": (b'data: {"a": 1}\n\n', [Data(b'{"a": 1}')]),
    "UTF-8": ("data: é日本🙂\n\n".encode(), [Data("é日本🙂".encode())]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_stream_gives_these_records_whole_or_byte_by_byte(name: str) -> None:
    stream, records = CASES[name]
    assert decode([stream]) == records
    assert decode([stream[at : at + 1] for at in range(len(stream))]) == records


@st.composite
def streams_and_cuts(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    pieces = st.sampled_from(
        [b"data: ", b"data:", b":", b"\r", b"\n", b"\r\n", b"\n\n", b"x" * 9, "🙂é".encode(), b"{}", b"\xef\xbb\xbf"]
    )
    stream = b"".join(draw(st.lists(pieces, max_size=40)))
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    ends = [*cuts, len(stream)]
    return stream, [stream[start:end] for start, end in zip([0, *cuts], ends, strict=True)]


@given(streams_and_cuts(), st.integers(1, 60))
def test_any_cut_gives_the_same_records(case: tuple[bytes, list[bytes]], max_bytes: int) -> None:
    stream, chunks = case
    assert decode(chunks, max_bytes) == decode([stream], max_bytes)


def test_a_line_that_is_too_long_is_dropped_and_the_stream_goes_on() -> None:
    stream = b"data: " + b"x" * 5000 + b"\n\ndata: y\n\n"
    assert decode([stream]) == [Oversized(), Data(b"y")]


def test_an_endless_line_does_not_grow() -> None:
    decoder = SseDecoder(max_bytes=100)
    for _ in range(1000):
        assert decoder.feed(b"x" * 99) == []
    assert sum(map(len, decoder._line)) <= 100
    assert decoder.feed(b"\ndata: y\n\n") == [Oversized(), Data(b"y")]


def test_an_event_of_too_many_lines_is_dropped_and_the_stream_goes_on() -> None:
    stream = b"data: xxxxxxxxx\n" * 500 + b"\ndata: y\n\n"
    assert decode([stream]) == [Oversized(), Data(b"y")]


def test_data_of_exactly_the_limit_is_kept() -> None:
    assert decode([b"data:" + b"x" * 95 + b"\n\n"], max_bytes=100) == [Data(b"x" * 95)]
