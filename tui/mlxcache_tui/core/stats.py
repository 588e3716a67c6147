"""Order statistics over a few measurements. Every figure goes with its `n`; no values at all is None."""

import math
from collections.abc import Iterable, Sequence

import msgspec


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Median with the range and the number of values behind it, in the unit of the values."""

    n: int
    median: float
    low: float
    high: float


def known(values: Iterable[float | None]) -> list[float]:
    """The values that are known, in order."""
    return [value for value in values if value is not None]


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The percentile (0 to 100) by linear interpolation between the two nearest ranks; None of no values.

    The rule is that of `numpy.percentile`'s default and of aiperf's and guidellm's reports.
    """
    if not values:
        return None
    ranked = sorted(values)
    rank = (len(ranked) - 1) * percent / 100
    below = math.floor(rank)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (ranked[above] - ranked[below]) * (rank - below)


def median(values: Sequence[float]) -> float | None:
    """The middle value, or the mean of the two in the middle; None of no values."""
    return percentile(values, 50)


def spread(values: Iterable[float | None]) -> Spread | None:
    """Median and range of the known values; None if there are none."""
    here = known(values)
    middle = median(here)
    if middle is None:
        return None
    return Spread(n=len(here), median=middle, low=min(here), high=max(here))
