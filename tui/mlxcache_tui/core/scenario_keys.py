"""The keys of a scenario file: what each may hold, said in words for a person.

The server flags are those of mlx_lm.server 0.31.2 to 0.32.2 that may differ between runs; where we listen is not a
scenario's business.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mlxcache_tui.core.units import parse_size

MAX_AT_ONCE = 256
MAX_REPEAT = 10_000
MAX_WAIT_S = 3600


class Key(NamedTuple):
    """What a key may hold: the words for a message, and the test."""

    expected: str
    accepts: Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_filled(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_line(value: Any) -> bool:
    # The ideographic space is not "printable" to Python, and common in Japanese titles.
    return _is_filled(value) and str(value).replace("\u3000", " ").isprintable()


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def whole(low: int, high: int | None = None) -> Key:
    """A whole number from `low`, to `high` if given."""
    words = f"a whole number from {low}" + (f" to {high}" if high is not None else "")

    def accepts(value: Any) -> bool:
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        return low <= value and (high is None or value <= high)

    return Key(words, accepts)


def number(low: float, high: float | None = None) -> Key:
    """A number from `low`, to `high` if given."""
    words = f"a number from {low:g}" + (f" to {high:g}" if high is not None else "")
    return Key(words, lambda value: _is_number(value) and low <= value and (high is None or value <= high))


def is_id(value: Any) -> bool:
    """A name that can stand in front of a metric: letters, digits, - and _, a letter first."""
    return isinstance(value, str) and value[:1].isalpha() and all(mark.isalnum() or mark in "-_" for mark in value)


def _is_size(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return value >= 0
    if not isinstance(value, str):
        return False
    try:
        return parse_size(value) >= 0
    except ValueError:
        return False


TEXT = Key("a text", _is_text)
FILLED = Key("a text that is not empty", _is_filled)
LINE = Key("one line of text without control characters", _is_line)
SWITCH = Key("true or false", _is_bool)
SIZE = Key("a size such as 512MB, 2GiB or a number of bytes", _is_size)
TEXTS = Key(
    "a list of texts that are not empty",
    lambda value: isinstance(value, list) and bool(value) and all(_is_filled(item) for item in value),
)

TOP_KEYS: Mapping[str, Key] = {
    "title": LINE,
    "about": TEXT,
    "needs": Key("'trimmable': a model whose cache can be cut back", lambda value: value == "trimmable"),
    "server": Key("a table [server] of server flags", _is_table),
    "defaults": Key("a table [defaults]", _is_table),
    "policies": Key("a table [policies]", _is_table),
    "steps": Key(
        "one or more [[steps]] tables",
        lambda value: isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value),
    ),
    "sweep": Key("a table [sweep] with lists of server flags", lambda value: isinstance(value, dict) and bool(value)),
}

DEFAULT_KEYS: Mapping[str, Key] = {
    "policy": FILLED,
    "before": TEXT,
    "after": TEXT,
    "concurrency": whole(1, MAX_AT_ONCE),
    "repeat": whole(1, MAX_REPEAT),
    "warmup": SWITCH,
    "max_tokens": whole(1),
    "temperature": number(0),
    "seed": whole(0),
    "stream": SWITCH,
    "model": FILLED,
    "chat_template_kwargs": Key("a table such as { enable_thinking = false }", _is_table),
    "wait": number(0, MAX_WAIT_S),
}

STEP_KEYS: Mapping[str, Key] = {
    "id": Key("a short name of letters, digits, - and _ that starts with a letter", is_id),
    "name": LINE,
    "user": FILLED,
    "users": TEXTS,
    **DEFAULT_KEYS,
    "continues": FILLED,
    "restart": Key(
        "true, or a table of server flags such as { prompt_cache_size = 10 }",
        lambda value: isinstance(value, bool | dict),
    ),
    "expect": TEXTS,
}

FLAG_KEYS: Mapping[str, Key] = {
    "prompt_cache_size": whole(0),
    "prompt_cache_bytes": SIZE,
    "decode_concurrency": whole(1),
    "prompt_concurrency": whole(1),
    "prefill_step_size": whole(1),
    "kv_bits": whole(1),
    "kv_group_size": whole(1),
    "quantized_kv_start": whole(0),
    "adapter_path": FILLED,
    "draft_model": FILLED,
    "num_draft_tokens": whole(1),
    "trust_remote_code": SWITCH,
    "chat_template": TEXT,
    "use_default_chat_template": SWITCH,
    "chat_template_args": Key(
        "a table, or a text of JSON such as '{\"enable_thinking\": false}'", lambda value: isinstance(value, str | dict)
    ),
    "temp": number(0),
    "top_p": number(0, 1),
    "top_k": whole(0),
    "min_p": number(0, 1),
    "max_tokens": whole(1),
    "pipeline": SWITCH,
    "log_level": Key(
        "DEBUG, INFO, WARNING, ERROR or CRITICAL",
        lambda value: value in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    ),
}
"""`model` is allowed in [server] alone: another model in the middle is a step's own `model` key."""
