"""Sizes, times and rates as a person reads them; and sizes as a person writes them."""

import re

_STEPS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_FACTORS = {
    "": 1,
    "B": 1,
    "K": 10**3,
    "KB": 10**3,
    "KIB": 2**10,
    "M": 10**6,
    "MB": 10**6,
    "MIB": 2**20,
    "G": 10**9,
    "GB": 10**9,
    "GIB": 2**30,
    "T": 10**12,
    "TB": 10**12,
    "TIB": 2**40,
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
UNKNOWN = "—"


def human_bytes(count: int | float | None) -> str:
    """`328 MB`, `1.25 GB`: powers of ten, as the server counts; `—` if unknown."""
    if count is None:
        return UNKNOWN
    for unit, factor in _STEPS:
        if abs(count) >= factor * 0.9995:
            return f"{_short(count / factor)} {unit}"
    return f"{int(count)} B"


def _short(value: float) -> str:
    """Three figures at the most, no trailing zeros behind a point."""
    if value >= 99.95:
        return f"{value:.0f}"
    text = f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".")


def human_duration(seconds: float | None) -> str:
    """`2 ms`, `310 ms`, `1.9 s`, `42 s`, `3 min 20 s`, `2 h 5 min`; `—` if unknown."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.00095 or seconds == 0 else f"{seconds * 1000:.1f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def seconds(value: float | None) -> str:
    """A time that is compared with another: three figures, `48 ms`, `1.62 s`, `120 s`; `—` if unknown."""
    if value is None:
        return UNKNOWN
    if value < 1:
        return f"{value * 1000:.0f} ms" if value >= 0.01 else f"{value * 1000:.1f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


def whole(value: float | None) -> str:
    """A count, thousands set apart; a mean between two counts keeps its first place; `—` if unknown."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def human_rate(per_second: float | None) -> str:
    """Tokens a second: `820`, `41.2`, `3.1`; `—` if unknown."""
    if per_second is None:
        return UNKNOWN
    return f"{per_second:.0f}" if per_second >= 99.95 else f"{per_second:.1f}"


def human_percent(ratio: float | None) -> str:
    """A ratio as `92 %`; never 100 % unless all of it, never 0 % unless none; `—` if unknown."""
    if ratio is None:
        return UNKNOWN
    percent = round(ratio * 100)
    if percent == 100 and ratio < 1:
        percent = 99
    if percent == 0 and ratio > 0:
        return "<1 %"
    return f"{percent} %"


def human_count(count: int | None) -> str:
    """A whole number as digits; `—` if unknown."""
    return UNKNOWN if count is None else str(count)


def parse_size(text: str) -> int:
    """Bytes from a size as people write it: `8GiB`, `8 GB`, `512M`, `1.5gb`, `8K`, `300000`.

    GB is 10⁹ and GiB 2³⁰. mlx_lm.server itself knows only digits with M, G, MB or GB and dies of anything else.

    Raises:
        ValueError: it cannot be read; the text says which forms can.
    """
    match = _SIZE.fullmatch(text)
    factor = _FACTORS.get(match.group(2).upper()) if match else None
    if match is None or factor is None:
        raise ValueError(f"“{text}” is not a size: write it like 8GB, 8GiB, 512MB or a number of bytes")
    return int(float(match.group(1)) * factor) if "." in match.group(1) else int(match.group(1)) * factor


def server_size(count: int) -> str:
    """A size in the form that every version of mlx_lm.server takes: plain digits."""
    return str(count)
