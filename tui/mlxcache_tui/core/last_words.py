"""Why a server ended or did not load, in one line, from the last lines that it printed."""

import re
from collections.abc import Sequence

_OBSERVER = "mlxcache observer: "
_DIED = "generation thread died: "
_USAGE = re.compile(r"^[\w.]+(?:\.py)?: error: (.+)")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?:\w*(?:Error|Exception)|KeyboardInterrupt|SystemExit)(?:: .*)?$")
_PATH = re.compile(r"^(?:[A-Za-z_]\w*\.)+(?=\w+(?::|$))")

_GRAVE = re.compile(
    r" - (?:ERROR|CRITICAL) - |^libc\+\+abi|terminate called|Insufficient Memory|Killed|^mlxcache observer: "
)
_USUAL = re.compile(r' - INFO - |"(?:GET|POST|OPTIONS) \S+ HTTP/')
MOST_TELLING = 3
"""Lines shown of what a server printed last."""

_MEANINGS: tuple[tuple[str, str], ...] = (
    (
        r"No module named '?mlx_lm",
        "mlx_lm is not installed for the Python that was to run it: install mlx-lm there, or choose another (--python)",
    ),
    (r"Address already in use", "its port was taken by another process meanwhile: choose another with --port"),
    (
        r"RepositoryNotFound|Repository Not Found|401 Client Error|Invalid username or password",
        "Hugging Face has no model of this name that you may read: check the name",
    ),
    (
        r"LocalEntryNotFound|appropriate snapshot folder|^Got: \w*(?:Connect|Timeout)|OfflineModeIsEnabled",
        "the model is not on this machine and could not be fetched from Hugging Face: check the name and the network",
    ),
    (r"No safetensors found in (?P<where>.+)", "there are no weights in {where}: it needs a .safetensors file"),
)
"""Errors that a person meets in the first minutes, with what they mean and what to do."""
_OF_MODELS = tuple(meaning for _, meaning in _MEANINGS[2:4])


def explain(error: str) -> str:
    """An error as a person understands it, where it is a known one; else as it is, without its module's name."""
    for pattern, meaning in _MEANINGS:
        if match := re.search(pattern, error):
            return meaning.format(**match.groupdict())
    return _PATH.sub("", error)


def model_error(error: str, model: str) -> str:
    """An error reply to a request that named a model which the server could not load; other errors as they are."""
    status, _, text = error.partition(": ")
    meaning = explain(text)
    if not status.startswith("HTTP ") or meaning not in _OF_MODELS:
        return error
    return f"{status}: {model} was not loaded: {meaning}; default_model is the one that the server was started with"


def telling(lines: Sequence[str]) -> tuple[str, ...]:
    """The few of the last lines that say what happened: errors, else the last ones that are not usual."""
    told = [line for line in lines if _EXCEPTION.match(line) or _USAGE.match(line) or _GRAVE.search(line)]
    others = [line for line in lines if not _USUAL.search(line)]
    return tuple((told or others)[-MOST_TELLING:])


def cause_of(lines: Sequence[str]) -> str | None:
    """The line that tells most, explained; None if nothing was printed. `lines` are cleaned, the newest last."""
    for line in reversed(lines):
        if line.startswith(_OBSERVER) and "cannot import" in line:
            return explain(line.removeprefix(_OBSERVER))
        if _DIED in line:
            return explain(line.split(_DIED, 1)[1])
        if usage := _USAGE.match(line):
            return explain(usage.group(1))
        if _EXCEPTION.match(line):
            return explain(line)
    return explain(lines[-1].strip()) if lines else None
