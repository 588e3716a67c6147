"""Running figures of all requests, of those that are no longer kept too; only `tally` writes here."""

from collections import deque
from dataclasses import dataclass, field

TREND_REQUESTS = 8
"""Requests over which memory must have risen steadily before it is called a trend."""
RECENT_SPANS = 64
"""Requests that ended last of which is known when they were in work."""


@dataclass(slots=True)
class PolicyTally:
    """What came so far of the requests that count of one policy, or of all; the sums of those that told both tokens."""

    requests: int = 0
    cached_tokens: int = 0
    prompt_tokens: int = 0
    last: int = 0
    """Number of the latest request that is over and told both."""
    last_ratio: float | None = None
    last_hit_ns: int | None = None
    evicted: int = 0

    @property
    def ratio(self) -> float | None:
        """Σ C / Σ P: weighted by tokens."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


@dataclass(frozen=True, slots=True)
class NoSooner:
    """Two requests that begin alike, by number, and their TTFT in seconds: the later one should have been faster."""

    number: int
    ttft_s: float
    than: int
    than_s: float


@dataclass(slots=True)
class ProcessTally:
    """What is remembered of the requests that this server process served."""

    first: int | None = None
    """Number of the first request to it."""
    done: int = 0
    ends: deque[int] = field(default_factory=lambda: deque(maxlen=TREND_REQUESTS))
    """When the last ones ended, monotonic ns."""
    spans: deque[tuple[int, int | None]] = field(default_factory=lambda: deque(maxlen=RECENT_SPANS))
    """From when to when the last ones were in work, warm-ups too."""
    cold: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    """First message to number and TTFT of the first request that had to read it."""
    no_sooner: NoSooner | None = None
    """Of the last request that is done."""


@dataclass(slots=True)
class Tally:
    """All of them."""

    all: PolicyTally = field(default_factory=PolicyTally)
    policies: dict[str, PolicyTally] = field(default_factory=dict)
    process: ProcessTally = field(default_factory=ProcessTally)
    evictions: int = 0
    evictions_seen: int = 0
    """Those of them that are not inferred."""
    by_count: int = 0
    first_by_count_ns: int | None = None
    prefill_tps: float | None = None
    """The latest that was measured."""
    least_wait_s: float | None = None
    """The latest TTFT of a request that had next to nothing to read: what is waited for whatever is reused."""


@dataclass(slots=True)
class Gaps:
    """The time from one text event of a reply to the next, ns: all of them while it is written, then what is told."""

    live: list[int] | None = field(default_factory=list)
    count: int = 0
    median: int | None = None
    longest: int | None = None

    def add(self, gaps: tuple[int, ...]) -> None:
        """The next ones; what comes behind the end does not count."""
        if self.live is not None:
            self.live.extend(gaps)
            self.count += len(gaps)

    def close(self) -> None:
        """The reply is over."""
        self.median, self.longest = self.told()
        self.live = None

    def told(self) -> tuple[int | None, int | None]:
        """The median and the longest; None where there was no second event."""
        if self.live is None:
            return self.median, self.longest
        between = sorted(self.live[1:])  # the first is the time to the first text
        return (between[len(between) // 2], between[-1]) if between else (None, None)
