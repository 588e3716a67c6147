"""The flags of the installed `mlx_lm.server`: read from its `--help`, and the values a person gives checked against it.

Sizes that the server does not understand (`8GiB`, `8K`, `-1`) end its start with a traceback, so every value is checked
and translated before a launch.
"""

import difflib
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from mlxcache_tui.core.units import parse_size, server_size

Kind = Literal["int", "size", "float", "text"]


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """One option of the server. `name` is the long name without dashes (`prompt_cache_size`); `default` if told."""

    name: str
    takes_value: bool
    default: str | None = None
    choices: tuple[str, ...] = ()
    help: str = ""

    @property
    def option(self) -> str:
        """As it is typed: `--prompt-cache-size`."""
        return option_of(self.name)


class ServerHelp(msgspec.Struct, frozen=True, kw_only=True):
    """What an installed server can be told. `error`: one line if it could not be asked (no flags then)."""

    flags: tuple[Flag, ...] = ()
    mlx_lm: str | None = None
    error: str = ""

    def flag(self, name: str) -> Flag | None:
        """The flag of this name, if this version has it."""
        return next((flag for flag in self.flags if flag.name == name), None)


class KnownFlag(msgspec.Struct, frozen=True, kw_only=True):
    """A cache or concurrency flag that people look for.

    `since` is the first release that has it (None: no release has). `default` is that of the released servers, for the
    flags whose help does not tell it. `least` and `among` are the values that make sense.
    """

    name: str
    kind: Kind
    since: str | None
    default: str | None = None
    least: int = 0
    among: tuple[int, ...] = ()


KNOWN_FLAGS: tuple[KnownFlag, ...] = (
    KnownFlag(name="prompt_cache_size", kind="int", since="0.31", default="10"),
    KnownFlag(name="prompt_cache_bytes", kind="size", since="0.31", default="no limit"),
    KnownFlag(name="decode_concurrency", kind="int", since="0.30.6", default="32", least=1),
    KnownFlag(name="prompt_concurrency", kind="int", since="0.30.6", default="8", least=1),
    KnownFlag(name="prefill_step_size", kind="int", since="0.31", least=1),
    KnownFlag(name="kv_bits", kind="int", since="0.32", among=(2, 3, 4, 5, 6, 8)),
    KnownFlag(name="kv_group_size", kind="int", since="0.32", among=(32, 64, 128)),
    KnownFlag(name="quantized_kv_start", kind="int", since="0.32"),
    KnownFlag(name="max_kv_size", kind="int", since=None, least=1),
)
"""The flags of the start form, in its order."""

KINDS: dict[str, Kind] = {
    **{known.name: known.kind for known in KNOWN_FLAGS},
    "max_tokens": "int",
    "num_draft_tokens": "int",
    "top_k": "int",
    "temp": "float",
    "top_p": "float",
    "min_p": "float",
}
FIRST_RELEASE = "0.31"
"""Flags that this release has need no question."""
OWN_FIELDS = ("model", "host", "port")
YES = ("true", "yes", "on", "1")
NO = ("false", "no", "off", "0")

_OPTION_LINE = re.compile(r"^ {1,4}(-\S.*)$")
_SPLIT = re.compile(r" {2,}")
_LONG = re.compile(r"--([A-Za-z][\w-]*)")
_NAMES = re.compile(r"(?:^|[\s,])--?[A-Za-z][\w-]*")
_CHOICES = re.compile(r"\{([^}]*)\}")
_DEFAULT = re.compile(r"\(default:\s*(?P<inside>[^,)]+)|\bdefault:\s*(?P<bare>[^\s(]+)", re.IGNORECASE)


def option_of(name: str) -> str:
    """`prompt_cache_size` as it is typed."""
    return "--" + name.replace("_", "-")


def name_of(option: str) -> str:
    """`--prompt-cache-size`, `prompt-cache-size` and `prompt_cache_size` are the same flag."""
    return option.strip().lstrip("-").replace("-", "_")


def parse_help(text: str) -> tuple[Flag, ...]:
    """The flags in what argparse prints for `--help`, in its order; `--help` itself is left out.

    Any width that argparse wrapped at will do, and both ways of writing two names (`-m M, --model M`, `-m, --model M`).
    """
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        option = _OPTION_LINE.match(line)
        if option:
            head, *rest = _SPLIT.split(option.group(1).rstrip(), maxsplit=1)
            found.append((head, rest))
        elif found and line.startswith("     ") and line.strip():
            found[-1][1].append(line.strip())
    flags = (_flag(head, " ".join(lines)) for head, lines in found)
    return tuple(flag for flag in flags if flag is not None and flag.name != "help")


def _flag(head: str, about: str) -> Flag | None:
    long = _LONG.search(head)
    if long is None:
        return None
    value = _NAMES.sub(" ", head).strip(" ,")
    choices = _CHOICES.search(value)
    default = _DEFAULT.search(about)
    return Flag(
        name=name_of(long.group(1)),
        takes_value=bool(value),
        default=(default.group("inside") or default.group("bare")).strip() if default else None,
        choices=tuple(part.strip() for part in choices.group(1).split(",")) if choices else (),
        help=about,
    )


def form_flags(server: ServerHelp) -> tuple[tuple[KnownFlag, Flag], ...]:
    """The cache and concurrency flags that this version has, in the form's order."""
    pairs = ((known, server.flag(known.name)) for known in KNOWN_FLAGS)
    return tuple((known, flag) for known, flag in pairs if flag is not None)


def missing_flags(server: ServerHelp) -> tuple[str, ...]:
    """A line for each flag that people look for and that this version lacks; nothing if the server was not asked."""
    if not server.flags:
        return ()
    return tuple(_missing(known, server) for known in KNOWN_FLAGS if server.flag(known.name) is None)


def missing_names(names: Iterable[str], server: ServerHelp) -> tuple[str, ...]:
    """A line for each of these flags that the server lacks; nothing if it was not asked."""
    return tuple(filter(None, (_name_error(name, server) for name in names)))


def _missing(known: KnownFlag, server: ServerHelp) -> str:
    since = f"mlx-lm has it since {known.since}" if known.since else "no released server has it"
    version = f"mlx-lm {server.mlx_lm}" if server.mlx_lm else "this version"
    return f"{option_of(known.name)} is not in {version}: {since}"


def cache_limits(words: Sequence[str]) -> dict[str, int]:
    """The prompt cache's limits in the words of a server's command line; what is not understood is left out."""
    found = {}
    for word, following in zip(words, (*words[1:], ""), strict=False):
        option, equals, value = word.partition("=")
        name, value = name_of(option), value if equals else following
        try:
            if name == "prompt_cache_size" and option.startswith("--"):
                found[name] = int(value)
            elif name == "prompt_cache_bytes" and option.startswith("--"):
                found[name] = parse_size(value)
        except ValueError:
            continue
    return found


def split_flags(line: str) -> tuple[dict[str, Any], str]:
    """Flags as typed on a command line (`--temp 0.2 --pipeline`, `--temp=0.2`): the values and an error line."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        return {}, f"flags cannot be read: {error}"
    values: dict[str, Any] = {}
    last: str | None = None
    for word in words:
        if word.startswith("--"):
            option, equals, value = word.partition("=")
            name = name_of(option)
            values[name] = value if equals else True
            last = None if equals else name
        elif last is not None:
            values[last], last = word, None
        else:
            return {}, f"expected a flag such as --temp 0.2, got {word!r}"
    return values, ""


def check_flags(values: dict[str, Any], server: ServerHelp) -> tuple[dict[str, Any], dict[str, str]]:
    """Flags ready for a launch, and an error line for each that is not, both by flag name.

    `values` are texts as typed (numbers and True pass too); an empty text, None and False leave the server's default.
    Sizes come back as digits, which each version reads alike. A name that this version lacks is refused; if the server
    could not be asked (`server.flags` is empty) names are let through.
    """
    good: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for given, value in values.items():
        name = name_of(given)
        text = value.strip() if isinstance(value, str) else value
        if text is None or text is False or text == "":
            continue
        error = _name_error(name, server)
        if not error:
            checked, error = _checked(name, text, server.flag(name))
        if error:
            errors[name] = error
        elif checked is not None:
            good[name] = checked
    return good, errors


def are_sure(names: Iterable[str]) -> bool:
    """Whether each server that the program works with has all of these, so that it need not be asked (seconds)."""
    sure = {known.name for known in KNOWN_FLAGS if known.since is not None and known.since <= FIRST_RELEASE}
    return all(name_of(name) in sure for name in names)


def _name_error(name: str, server: ServerHelp) -> str:
    if name in OWN_FIELDS:
        return f"{option_of(name)} has a field of its own"
    if not server.flags or server.flag(name):
        return ""
    known = next((known for known in KNOWN_FLAGS if known.name == name), None)
    if known:
        return _missing(known, server)
    near = difflib.get_close_matches(name, [flag.name for flag in server.flags], n=1)
    hint = f"; did you mean {option_of(near[0])}?" if near else ""
    version = f"mlx-lm {server.mlx_lm}" if server.mlx_lm else "the server"
    return f"{version} has no {option_of(name)}{hint}"


def _checked(name: str, value: Any, flag: Flag | None) -> tuple[Any, str]:
    """The value to start with (None: leave it out) and an error line."""
    option = option_of(name)
    if flag is not None and not flag.takes_value:
        return _switch(option, value)
    if value is True:
        return (None, f"{option} needs a value") if flag is not None else (True, "")
    text = str(value)
    if flag is not None and flag.choices and text not in flag.choices:
        return None, f"{option} is one of {', '.join(flag.choices)}, not {text!r}"
    return _typed(name, text)


def _switch(option: str, value: Any) -> tuple[Any, str]:
    word = str(value).lower()
    if word in YES:
        return True, ""
    return (None, "") if word in NO else (None, f"{option} takes no value, got {value!r}")


def _typed(name: str, text: str) -> tuple[str | None, str]:
    option = option_of(name)
    kind = KINDS.get(name, "size" if name.endswith("_bytes") else "text")
    known = next((known for known in KNOWN_FLAGS if known.name == name), None)
    if kind == "size":
        try:
            size = parse_size(text)
        except ValueError:
            size = -1
        return (
            (server_size(size), "")
            if size >= 0
            else (None, f"{option} is a size such as 512MB, 1.5GB or 8GiB, not {text!r}")
        )
    if kind == "int":
        least = known.least if known else 0
        number = int(text) if text.isascii() and text.isdigit() else -1
        if known and known.among and number not in known.among:
            return None, f"{option} is one of {', '.join(map(str, known.among))}, not {text!r}"
        return (
            (str(number), "")
            if number >= least
            else (None, f"{option} is a whole number from {least} on, not {text!r}")
        )
    if kind == "float":
        number_like = re.fullmatch(r"\d+(\.\d*)?|\.\d+", text)
        return (text, "") if number_like else (None, f"{option} is a number from 0 on, not {text!r}")
    return text, ""
