"""The JSON of `run --json` (and of `export --to json`), as far as it is compared. Unknown is None."""

from typing import Annotated, Any

import msgspec

from mlxcache_tui.core.foreign import cleaned
from mlxcache_tui.core.results import RunResult
from mlxcache_tui.core.text import clean_block

SCHEMA = 1
MOST = 10**15
"""No count, size or time is larger: 1 PB, or 30 million years. Beyond, reckoning would leave the floats."""
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
Figure = Annotated[float, msgspec.Meta(ge=0, le=MOST)]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared of a request of a run's JSON."""

    step: str
    state: str
    step_id: str | None = None
    warmup: bool = False
    prompt_tokens: Count | None = None
    cached_tokens: Count | None = None
    ttft_s: Figure | None = None
    prefill_tps: Figure | None = None
    decode_tps: Figure | None = None
    e2e_s: Figure | None = None
    text: str = ""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """The server of a run's JSON."""

    mlx_lm: str | None = None
    mlx: str | None = None
    model: str | None = None
    mode: str | None = None
    observed: str | None = None
    flags: dict[str, Any] = {}


class Mlx(msgspec.Struct, frozen=True, kw_only=True):
    """MLX's peak, bytes."""

    peak_bytes: Count | None = None


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a run's JSON, bytes."""

    peak_bytes: Count | None = None
    mlx: Mlx | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a run's JSON. `evictions` None: not seen."""

    id: str
    evictions: Count | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run's JSON, as far as it is compared."""

    schema: int
    scenario: str
    server: Server
    requests: tuple[Request, ...]
    started: str | None = None
    evictions: tuple[Any, ...] = ()
    memory: Memory = Memory()
    steps: tuple[Step, ...] | None = None
    digest: str | None = None
    sweep: dict[str, Any] = {}
    interrupted: bool = False
    lost: str | None = None

    @property
    def finished(self) -> bool:
        """Whether it came to its end: nobody stopped it, and the server stayed."""
        return not self.interrupted and self.lost is None


class _Several(msgspec.Struct):
    runs: tuple[Run, ...]


class _Head(msgspec.Struct):
    runs: Any = None
    schema: Any = None


def parse_runs(data: bytes) -> tuple[Run, ...]:
    """The runs in a file: one object, or several under `runs`. The file may be anyone's: its texts are cleaned.

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
        if not runs:
            raise ValueError("no run in it")
        return tuple(map(_harmless, runs))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"no run JSON: {error}") from error
    except RecursionError as error:
        raise ValueError("no run JSON: it is nested too deep") from error


def _harmless(run: Run) -> Run:
    """The run with its texts cleaned; answers keep their lines."""
    clean_run = msgspec.convert(cleaned(msgspec.to_builtins(run), block=False), Run)
    answers = [clean_block(request.text) for request in run.requests]
    requests = tuple(
        msgspec.structs.replace(request, text=text) for request, text in zip(clean_run.requests, answers, strict=True)
    )
    return msgspec.structs.replace(clean_run, requests=requests)


def run_of(result: RunResult) -> Run:
    """A run that was measured here, as its JSON would be read back."""
    fields = msgspec.to_builtins(result)
    requests = [msgspec.to_builtins(request) for request in result.requests]
    return msgspec.convert({**fields, "schema": SCHEMA, "requests": requests, "sweep": fields["combination"]}, type=Run)
