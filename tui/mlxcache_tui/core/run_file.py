"""The JSON of `run --json` (and of `export --to json`), as far as it is compared. Unknown is None."""

from typing import Any

import msgspec

SCHEMA = 1


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared of a request of a run's JSON."""

    step: str
    state: str
    step_id: str | None = None
    warmup: bool = False
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    ttft_s: float | None = None
    prefill_tps: float | None = None
    decode_tps: float | None = None
    e2e_s: float | None = None
    text: str = ""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """The server of a run's JSON."""

    mlx_lm: str | None = None
    mlx: str | None = None
    model: str | None = None
    observed: str | None = None
    flags: dict[str, Any] = {}


class Mlx(msgspec.Struct, frozen=True, kw_only=True):
    """MLX's peak, bytes."""

    peak_bytes: int | None = None


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a run's JSON, bytes."""

    peak_bytes: int | None = None
    mlx: Mlx | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a run's JSON. `evictions` None: not seen."""

    id: str
    evictions: int | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run's JSON, as far as it is compared."""

    schema: int
    scenario: str
    server: Server
    requests: tuple[Request, ...]
    evictions: tuple[Any, ...] = ()
    memory: Memory = Memory()
    steps: tuple[Step, ...] | None = None
    digest: str | None = None
    sweep: dict[str, Any] = {}


class _Several(msgspec.Struct):
    runs: tuple[Run, ...]


class _Head(msgspec.Struct):
    runs: Any = None
    schema: Any = None


def parse_runs(data: bytes) -> tuple[Run, ...]:
    """The runs in a file: one object, or several under `runs`.

    Raises:
        ValueError: it is no such JSON; the text says where and what was expected.
    """
    try:
        head = msgspec.json.decode(data, type=_Head)
        if head.schema != SCHEMA:
            raise ValueError(f"no run JSON: its schema is {head.schema}, expected {SCHEMA}")
        runs = (
            msgspec.json.decode(data, type=_Several).runs
            if head.runs is not None
            else (msgspec.json.decode(data, type=Run),)
        )
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"no run JSON: {error}") from error
    if not runs:
        raise ValueError("no run in it")
    return runs
