"""Facts that stand in the server's log lines: cache counters, progress bars, how far a download is."""

import re
from dataclasses import dataclass

from mlxcache_tui.core.events import CacheCounted, ModelFetchProgressed
from mlxcache_tui.core.text import bounded, clean

# 0.31.0 and 0.31.1, in one line; from 0.31.2 on a line for all and one for each of three types.
_ONE_LINE = re.compile(r"KV Caches: (\d+) seq, (\d+\.\d+) GB")
_ALL = re.compile(r"Prompt Cache: (\d+) sequences, (\d+\.\d+) GB")
_TYPE = re.compile(r"- (\w+): (\d+) sequences, (\d+\.\d+) GB")
_STARTS = ("KV Caches: ", "Prompt Cache: ", "- ")
_TYPES = 3
LONGEST_BAR = 500
"""Characters in front of a bar's clocks: tqdm fills one line of a terminal, and longer ones cost their square."""

_CLOCKS = re.compile(r"\[\d+:\d\d(?::\d\d)?(?:<[^\],]{0,20})?, *([^\],]{1,20}(?:/s|s/it))[^\]]{0,200}\]")
_HEAD = re.compile(r"(.*?):? *(\d{1,3})%\|[^|]*\| *(\S+)/(\S+) *$", re.DOTALL)
_CURSOR = re.compile(r"(?:\x1b\[[AK]|\s)*")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kKMGTP]?)")
_FACTORS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class CacheCounter:
    """Reads the counters that the server prints at each lookup."""

    def __init__(self) -> None:
        self._open: CacheCounted | None = None

    def take(self, message: str, at_ns: int) -> list[CacheCounted] | None:
        """The events of one logged message; None if it is no line of counters."""
        if not message.startswith(_STARTS):
            return None
        if match := _TYPE.match(message):
            return self._typed(match.group(1), int(match.group(2)))
        match = _ALL.match(message) or _ONE_LINE.match(message)
        if match is None:
            return None
        counted = CacheCounted(at_ns=at_ns, origin="log", count=int(match.group(1)), gigabytes=float(match.group(2)))
        events = self.over()
        if message.startswith("KV"):
            return [*events, counted]
        self._open = counted
        return events

    def over(self) -> list[CacheCounted]:
        """The counters whose block was left unfinished: something else was printed."""
        counted, self._open = self._open, None
        return [] if counted is None else [counted]

    def _typed(self, name: str, count: int) -> list[CacheCounted]:
        block = self._open
        if block is None:
            # With several ranks each line comes once per rank: the rest of a second block says nothing new.
            return []
        self._open = CacheCounted(
            at_ns=block.at_ns,
            origin="log",
            count=block.count,
            gigabytes=block.gigabytes,
            by_type={**block.by_type, name: count},
        )
        return self.over() if len(self._open.by_type) == _TYPES else []


@dataclass(frozen=True, slots=True)
class Bar:
    """One state of a progress bar, cleaned; `rate` as printed, unknown parts None. `behind`: raw text glued to it."""

    text: str
    label: str
    percent: float | None
    done: str | None
    total: str | None
    rate: str | None
    in_bytes: bool
    behind: str

    @property
    def full(self) -> bool:
        """Whether it has come to its end."""
        return self.percent == 100


def parse_bar(text: str) -> Bar | None:
    """A state as tqdm draws it (`label:  12%|█▏ | 270M/2.26G [00:05<00:40, 49.9MB/s]`), None if there is none."""
    if "[" not in text or (clocks := _CLOCKS.search(text)) is None:
        return None
    if clocks.start() > LONGEST_BAR:
        return None
    before, behind = text[: clocks.start()], text[clocks.end() :]
    if moved := _CURSOR.match(behind):
        behind = behind[moved.end() :]
    rate = clocks.group(1).strip()
    head = _HEAD.match(before)
    label, percent, done, total = head.groups() if head else (before.partition(":")[0], None, None, None)
    return Bar(
        text=bounded(clean(text[: clocks.end()]).strip()),
        label=bounded(clean(label).strip(), 200),
        percent=min(100.0, float(percent)) if percent else None,
        done=clean(done) if done else None,
        total=clean(total) if total else None,
        rate=None if rate.startswith("?") else clean(rate),
        in_bytes=rate.endswith("B/s"),
        behind=behind if clean(behind).strip() else "",
    )


class FetchFollower:
    """Picks, of the bars drawn side by side while a model is fetched, the one that tells most: the biggest file's."""

    def __init__(self) -> None:
        self._biggest = 0.0

    def fact(self, bar: Bar, at_ns: int) -> ModelFetchProgressed | None:
        """What a bar says about fetching the model; None if nothing, or less than another bar does."""
        if bar.percent is None or not (bar.in_bytes or bar.label.startswith(("Fetching", "Download"))):
            return None
        size = _size(bar.total) if bar.in_bytes else 0.0
        if size < self._biggest:
            return None
        self._biggest = 0.0 if bar.full else size
        return ModelFetchProgressed(
            at_ns=at_ns,
            origin="log",
            text=f"{bar.label} {bar.done} of {bar.total}",
            percent=bar.percent,
            rate=bar.rate,
        )


def _size(text: str | None) -> float:
    match = _SIZE.match(text or "")
    return float(match.group(1)) * _FACTORS[match.group(2)] if match else 0.0
