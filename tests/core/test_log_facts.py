"""Bars and counters of the server's log, one by one; `test_loglines` reads them out of a stream."""

import pytest

from mlxcache_tui.core.log_facts import LONGEST_BAR, CacheCounter, FetchFollower, parse_bar

WEIGHTS = "model.safetensors:  12%|█▏ | 270M/2.26G [00:05<00:40, 49.9MB/s]"


@pytest.mark.parametrize(
    ("text", "label", "percent", "done", "total", "rate", "in_bytes"),
    [
        (WEIGHTS, "model.safetensors", 12.0, "270M", "2.26G", "49.9MB/s", True),
        (
            "Fetching 7 files:  43%|█| 3/7 [00:10<00:13,  3.32s/it]",
            "Fetching 7 files",
            43.0,
            "3",
            "7",
            "3.32s/it",
            False,
        ),
        ("Fetching 7 files:   0%|  | 0/7 [00:00<?, ?it/s]", "Fetching 7 files", 0.0, "0", "7", None, False),
        ("Loading: 12it [00:03, 4.00it/s]", "Loading", None, None, None, "4.00it/s", False),
        ("big: 100%|█| 9.0G/9.0G [1:02:03<00:00, 2.4MB/s]", "big", 100.0, "9.0G", "9.0G", "2.4MB/s", True),
        (" 50%|█| 1/2 [00:01<00:01, 1.0it/s]", "", 50.0, "1", "2", "1.0it/s", False),
    ],
)
def test_a_bar_is_taken_apart(
    text: str, label: str, percent: float | None, done: str | None, total: str | None, rate: str | None, in_bytes: bool
) -> None:
    bar = parse_bar(text)
    assert bar is not None
    assert (bar.label, bar.percent, bar.done, bar.total, bar.rate) == (label, percent, done, total, rate)
    assert (bar.in_bytes, bar.full, bar.behind) == (in_bytes, percent == 100, "")


@pytest.mark.parametrize("text", ["", "plain", "[00:01]", "[1, 2, 3]", "x [00:01<00:02, fast]", "a [b: 12%|█|"])
def test_what_is_no_bar(text: str) -> None:
    assert parse_bar(text) is None


def test_cursor_moves_behind_a_bar_are_nothing_and_text_is_kept() -> None:
    moved, glued = parse_bar(f"{WEIGHTS}\x1b[A"), parse_bar(f"{WEIGHTS}  \x1b[Anext")
    assert moved is not None
    assert glued is not None
    assert (moved.behind, glued.behind) == ("", "next")


def test_a_label_is_clean() -> None:
    bar = parse_bar(f"\x1b]0;x\x07\x1b[31m{WEIGHTS}")
    assert bar is not None
    assert (bar.label, bar.text) == ("model.safetensors", WEIGHTS)


def test_text_longer_than_a_terminal_is_no_bar() -> None:
    assert parse_bar(" " * 60_000 + WEIGHTS) is None
    assert parse_bar("x" * LONGEST_BAR + "[00:01, 1it/s]") is not None


def test_a_bar_of_anything_else_says_nothing_about_the_download() -> None:
    for text in ("Loading weights:  12%|█| 27/226 [00:05<00:40, 49.9it/s]", "Loading: 12it [00:03, 4.00it/s]"):
        bar = parse_bar(text)
        assert bar is not None
        assert FetchFollower().fact(bar, 1) is None


def test_counters_come_when_their_block_is_whole_or_over() -> None:
    counter = CacheCounter()
    assert counter.take("Prompt Cache: 3 sequences, 0.31 GB", 1) == []
    assert counter.take("- assistant: 2 sequences, 0.31 GB", 2) == []
    assert counter.take("Prompt processing progress: 1/1", 3) is None
    (counted,) = counter.over()
    assert (counted.at_ns, counted.count, counted.gigabytes, counted.by_type) == (1, 3, 0.31, {"assistant": 2})
    assert counter.over() == []


@pytest.mark.parametrize("message", ["Prompt Cache: many", "- not: a counter", "KV Caches: ?", "- "])
def test_lines_that_only_look_like_counters(message: str) -> None:
    assert CacheCounter().take(message, 1) is None
