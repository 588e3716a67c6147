"""The log reader: the same lines and facts however the bytes are cut, bars collapsed, memory bounded."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.events import CacheCounted, LogLine, LogRead, ModelFetchProgressed
from mlxcache_tui.core.loglines import MAX_PARTIAL, LogEvent, LogReader
from mlxcache_tui.core.text import LINE_LIMIT

STAMP = "2026-11-29 14:48:18,123 - "
FETCHING = "Fetching 7 files:  43%|███| 3/7 [00:10<00:13,  2.1MB/s]"
WEIGHTS = "model.safetensors:  12%|█▏ | 270M/2.26G [00:05<00:40, 49.9MB/s]"
FRAME = "-" * 40


def shown(events: list[LogEvent]) -> list[LogLine]:
    """The lines that a screen holds after these events."""
    rows: list[LogLine] = []
    for event in events:
        if isinstance(event, LogRead):
            if event.replace_last and rows and rows[-1].kind == "bar":
                rows.pop()
            rows += event.lines
    return rows


def read(*chunks: str | bytes, flush: bool = False) -> list[LogEvent]:
    reader = LogReader()
    events: list[LogEvent] = []
    for chunk in chunks:
        events += reader.feed(chunk.encode() if isinstance(chunk, str) else chunk, 5)
    return events + (reader.flush(6) if flush else [])


def texts(*chunks: str | bytes) -> list[str]:
    return [line.text for line in shown(read(*chunks))]


def facts(kind: type[Any], *chunks: str) -> list[Any]:
    return [event for event in read(*chunks) if isinstance(event, kind)]


@pytest.mark.parametrize(
    ("text", "kind", "level"),
    [
        (f"{STAMP}INFO - Starting httpd at 127.0.0.1 on port 8080...", "record", "INFO"),
        (f"{STAMP}WARNING - careful", "record", "WARNING"),
        (f"{STAMP}INFO - Prompt processing progress: 2048/4012", "progress", "INFO"),
        (f"{STAMP}INFO - Prompt Cache: 2 sequences, 0.31 GB", "cache", "INFO"),
        (f"{STAMP}INFO - - assistant: 2 sequences, 0.31 GB", "cache", "INFO"),
        (f"{STAMP}INFO - KV Caches: 2 seq, 0.31 GB, latest user cache 12 tokens", "cache", "INFO"),
        (f"{STAMP}DEBUG - - a list in an answer", "record", "DEBUG"),
        ('127.0.0.1 - - [29/Nov/2026 14:48:18] "POST /v1/chat/completions HTTP/1.1" 200 -', "access", None),
        ('::1 - - [29/Nov/2026 14:48:18] "GET /health HTTP/1.1" 200 -', "access", None),
        ("a/file.py:12: UserWarning: mlx_lm.server is not for production", "other", None),
        ("", "other", None),
        (FETCHING, "bar", None),
    ],
)
def test_kind_and_level(text: str, kind: str, level: str | None) -> None:
    assert [(line.text, line.kind, line.level) for line in shown(read(text + "\n"))] == [(text, kind, level)]


def test_a_line_shows_when_it_has_its_end() -> None:
    assert texts("abc", "def") == []
    assert texts("abc", "def\nx") == ["abcdef"]


def test_flush_gives_out_a_line_without_its_end() -> None:
    assert [line.text for line in shown(read("terminate called", flush=True))] == ["terminate called"]
    assert read("whole\n", flush=True) == read("whole\n")


def test_crlf_ends_a_line_too() -> None:
    assert texts("a\r\nb\r\n") == ["a", "b"]


def test_a_carriage_return_in_plain_text_hides_nothing() -> None:
    assert texts("secret\rharmless\n") == ["secret␍harmless"]


def test_lines_are_clean_and_broken_bytes_are_marked() -> None:
    assert texts(b"\x1b]0;title\x07\x1b[31mred\x1b[0m \xff\x07\n") == ["red �␇"]


@pytest.mark.parametrize("size", [LINE_LIMIT + 1, 50_000, 3 * MAX_PARTIAL])
def test_a_long_line_is_cut_and_says_by_how_much(size: int) -> None:
    data = b"x" * size + b"\nnext\n"
    for cuts in ([data], [data[at : at + 1000] for at in range(0, len(data), 1000)]):
        line, after = texts(*cuts)
        kept, _, mark = line.partition("…")
        assert len(line) <= LINE_LIMIT
        assert kept == "x" * len(kept)
        assert mark == f" (+{size - LINE_LIMIT} characters)"
        assert after == "next"


def test_a_line_without_end_takes_bounded_memory() -> None:
    reader = LogReader()
    for _ in range(100):
        reader.feed(b"y" * 32_768, 0)
    assert len(reader._partial) == MAX_PARTIAL


# --- bars ---


def test_of_a_bar_the_last_state_is_kept() -> None:
    states = [f"\rFetching 7 files:  {percent}%|█| 1/7 [00:10<00:13,  2.1MB/s]" for percent in range(10, 100)]
    assert texts("".join(states) + "\n") == [states[-1].strip()]
    assert texts(*states, "\n") == [states[-1].strip()]


def test_a_moving_bar_is_shown_at_once_and_then_replaced() -> None:
    reader = LogReader()
    first = reader.feed(f"{STAMP}INFO - x\n\r{FETCHING}".encode(), 1)
    second = reader.feed(f"\r{FETCHING.replace('43', '57')}".encode(), 2)
    assert isinstance(first[0], LogRead)
    assert [line.kind for line in first[0].lines] == ["record", "bar"]
    assert isinstance(second[0], LogRead)
    assert second[0].replace_last
    assert [line.text for line in second[0].lines] == [FETCHING.replace("43", "57")]
    assert not reader.waiting
    assert reader.feed(b"\n", 3) == []


def test_bars_side_by_side_take_one_line() -> None:
    # tqdm moves the cursor down, draws, and moves it up again.
    moves = [f"\r{FETCHING}", f"\n\r{WEIGHTS}\x1b[A"] * 20
    assert texts("".join(moves)) == texts(*moves) == [WEIGHTS]


def test_a_full_bar_stays_above_the_next_one() -> None:
    full = "config.json: 100%|███| 937/937 [00:00<00:00, 7.1MB/s]"
    assert texts(f"\r{full}\r{full}\n\r{WEIGHTS}") == [full, WEIGHTS]


def test_a_line_glued_to_a_bar_is_a_line_of_its_own() -> None:
    events = read(f"\r{FETCHING}   \x1b[A{STAMP}WARNING - slow\nafter\n")
    assert [(line.kind, line.level) for line in shown(events)] == [
        ("bar", None),
        ("record", "WARNING"),
        ("other", None),
    ]


def test_a_log_record_that_quotes_a_bar_is_no_bar() -> None:
    assert [line.kind for line in shown(read(f"{STAMP}DEBUG - {WEIGHTS}\n"))] == ["record"]


def test_a_bar_without_a_total() -> None:
    assert [line.kind for line in shown(read("\rLoading: 12it [00:03, 4.00it/s]"))] == ["bar"]


def test_text_behind_a_moving_bar_is_not_lost() -> None:
    assert texts(f"{FETCHING}返品\r", "\n") == texts(f"{FETCHING}返品\r\n") == [FETCHING, "返品"]


def test_a_newline_on_its_own_ends_a_bar_that_ended_with_a_carriage_return() -> None:
    assert texts(f"{FETCHING}\r", "\n") == texts(f"{FETCHING}\r\n") == [FETCHING]


def test_states_cut_behind_the_carriage_return_stay_apart() -> None:
    later = FETCHING.replace("43", "57")
    assert texts(f"\r{FETCHING}\r", later, "\n") == texts(f"\r{FETCHING}\r{later}\n") == [later]
    assert texts(f"\r{FETCHING}\r  ", f"{later}\n") == [later]


def test_plain_parts_behind_a_bar_are_lines_however_they_are_cut() -> None:
    assert texts(f"{FETCHING}\rone", "\rtwo\n") == texts(f"{FETCHING}\rone\rtwo\n") == [FETCHING, "one", "two"]


def test_states_that_came_at_once_are_followed_one_by_one() -> None:
    full, other = WEIGHTS.replace("12%", "100%"), "\rDownload complete: : 0.00B [00:00, ?B/s]"
    assert texts(f"\r{full}\n", other, f"\r{WEIGHTS}") == texts(f"\r{full}\n{other}\r{WEIGHTS}") == [full, WEIGHTS]


@pytest.mark.timeout(10)
@pytest.mark.parametrize("filler", [" ", "1%|", "[00:01<"])
def test_no_line_takes_long_to_take_apart(filler: str) -> None:
    # 60 kB of spaces before a bar's clocks once took 25 s.
    (line,) = shown(read(filler * (60_000 // len(filler)) + "[00:01, 1.0it/s]\n"))
    assert line.kind == "other"


def test_text_behind_a_moving_bar_reads_the_same_if_cut_there() -> None:
    data = f"{FETCHING}\rfree text [00:01\r{STAMP}INFO - x\n"
    at = len(FETCHING) + 5
    assert texts(data) == texts(data[:at], data[at:]) == [FETCHING, "free text [00:01", f"{STAMP}INFO - x"]


# --- facts ---


def test_download_bars_give_percent_and_rate() -> None:
    assert facts(ModelFetchProgressed, f"\r{WEIGHTS}") == [
        ModelFetchProgressed(
            at_ns=5, origin="log", text="model.safetensors 270M of 2.26G", percent=12.0, rate="49.9MB/s"
        )
    ]
    (fact,) = facts(ModelFetchProgressed, "\rFetching 7 files:   0%|          | 0/7 [00:00<?, ?it/s]")
    assert (fact.text, fact.percent, fact.rate) == ("Fetching 7 files 0 of 7", 0.0, None)
    assert facts(ModelFetchProgressed, "\rLoading weights:  12%|█▏ | 27/226 [00:05<00:40, 49.9it/s]\n") == []


def test_the_biggest_file_speaks_for_the_download() -> None:
    tokenizer = "tokenizer.json:  50%|█| 5.7M/11.4M [00:01<00:01, 5.0MB/s]"
    found = facts(ModelFetchProgressed, f"\r{WEIGHTS}", f"\r{tokenizer}", f"\r{FETCHING}")
    assert [fact.text for fact in found] == ["model.safetensors 270M of 2.26G"]
    full = WEIGHTS.replace("12%", "100%")
    found = facts(ModelFetchProgressed, f"\r{WEIGHTS}", f"\r{full}\n", f"\r{FETCHING}")
    assert [fact.percent for fact in found] == [12.0, 100.0, 43.0]


def counters(count: int, *by_type: tuple[str, int]) -> str:
    lines = [f"Prompt Cache: {count} sequences, 0.31 GB", *(f"- {name}: {n} sequences, 0.31 GB" for name, n in by_type)]
    return "".join(f"{STAMP}INFO - {line}\n" for line in lines)


ALL_TYPES = (("assistant", 1), ("user", 2), ("system", 0))


def test_four_lines_of_counters_are_one_fact() -> None:
    assert facts(CacheCounted, counters(3, *ALL_TYPES)) == [
        CacheCounted(at_ns=5, origin="log", count=3, gigabytes=0.31, by_type={"assistant": 1, "user": 2, "system": 0})
    ]


def test_the_one_line_of_older_servers() -> None:
    line = f"{STAMP}INFO - KV Caches: 4 seq, 1.25 GB, latest user cache 310 tokens\n"
    assert facts(CacheCounted, line) == [CacheCounted(at_ns=5, origin="log", count=4, gigabytes=1.25)]


def test_counters_that_are_cut_short_count_once_something_else_comes() -> None:
    assert facts(CacheCounted, counters(3, ("assistant", 3))) == []
    (fact,) = facts(CacheCounted, counters(3, ("assistant", 3)), f"{STAMP}INFO - Prompt processing progress: 1/1\n")
    assert fact.by_type == {"assistant": 3}


def test_counters_of_two_ranks_do_not_add_up() -> None:
    lines = [line + "\n" for line in counters(3, *ALL_TYPES).splitlines()]
    found = facts(CacheCounted, "".join(line * 2 for line in lines))
    assert [fact.count for fact in found] == [3, 3]
    assert found[-1].by_type == dict(ALL_TYPES)


# --- tracebacks ---

HANDLER = f"""{FRAME}
Exception occurred during processing of request from ('127.0.0.1', 5)
Traceback (most recent call last):
  File "server.py", line 1, in x
    y()
BrokenPipeError: [Errno 32] Broken pipe
{FRAME}
after
"""
CHAINED = f"""{STAMP}ERROR - mlx_lm.server generation thread died: no
Traceback (most recent call last):
  File "server.py", line 1, in x

KeyError: 'B'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "server.py", line 1, in x
ValueError: no
after
"""


def kinds(text: str) -> list[str]:
    return [line.kind for line in shown(read(text))]


def test_a_traceback_between_dashes() -> None:
    assert kinds(HANDLER) == ["traceback"] * 7 + ["other"]


def test_a_traceback_behind_a_record_with_the_one_that_caused_it() -> None:
    assert kinds(CHAINED) == ["record"] + ["traceback"] * 10 + ["other"]


def test_other_threads_write_into_a_traceback() -> None:
    between = HANDLER.replace("    y()\n", f"{STAMP}INFO - Prompt processing progress: 1/2\n")
    assert kinds(between) == ["traceback"] * 4 + ["progress"] + ["traceback"] * 2 + ["other"]


# --- any cut ---

PIECES = st.sampled_from(
    [
        f"{STAMP}INFO - Prompt processing progress: 2048/4012\n",
        counters(3, *ALL_TYPES),
        '127.0.0.1 - - [29/Nov/2026 14:48:18] "POST / HTTP/1.1" 200 -\n',
        f"\r{FETCHING}",
        f"\r{WEIGHTS}",
        f"\n\r{WEIGHTS}\x1b[A",
        "\r" + WEIGHTS.replace("12%", "100%"),
        "\n",
        "\r\n",
        "\r",
        "   ",
        "日本語 text\n",
        HANDLER,
        CHAINED,
        "\rDownload complete: : 0.00B [00:00, ?B/s]",
        FETCHING,
        "返品",
        "free text [00:01",
        "]\x1b[31m",
    ]
)


@given(st.lists(PIECES, max_size=12), st.lists(st.integers(0, 2000), max_size=20))
def test_any_cut_gives_the_same_lines_and_counters(pieces: list[str], places: list[int]) -> None:
    data = "".join(pieces).encode() + b"\n"
    cuts = sorted({0, len(data), *(place % len(data) for place in places)})
    whole = read(data)
    parts = read(*(data[a:b] for a, b in pairwise(cuts)))
    assert shown(parts) == shown(whole)
    assert [event for event in parts if isinstance(event, CacheCounted)] == [
        event for event in whole if isinstance(event, CacheCounted)
    ]
