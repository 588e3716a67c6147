"""What a run tells while it goes on, in order."""

import msgspec

from mlxcache_tui.core.expect import Verdict
from mlxcache_tui.core.results import RequestResult, StepResult
from mlxcache_tui.core.scenario import Step


class StepStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A step begins."""

    step: Step


class ServerWaited(msgspec.Struct, frozen=True, kw_only=True):
    """The server is not ready yet; `text` says what it does."""

    text: str


class ServerFound(msgspec.Struct, frozen=True, kw_only=True):
    """The server is ready. `text` says what one must know of it before anything is sent: which one is used and what its
    cache holds, if it was not started for the run; what comes of its model."""

    text: str


class RequestFinished(msgspec.Struct, frozen=True, kw_only=True):
    """A request ended, in whatever way."""

    result: RequestResult


class StepFinished(msgspec.Struct, frozen=True, kw_only=True):
    """A step was measured and judged."""

    result: StepResult
    verdicts: tuple[Verdict, ...]


Progress = StepStarted | ServerWaited | ServerFound | RequestFinished | StepFinished
