"""A recorded session for other tools: a table, the JSON of a run with its texts, a report, a request trace."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from mlxcache_tui.core.codec import encode_event
from mlxcache_tui.core.events import AnyEvent
from mlxcache_tui.core.mooncake import BLOCK_SIZE, trace_rows
from mlxcache_tui.core.redact import Redactor
from mlxcache_tui.core.results import RequestResult
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.engine.recorded import run_of_session
from mlxcache_tui.report.json import run_object
from mlxcache_tui.report.markdown import to_markdown

Format = Literal["csv", "json", "markdown", "mooncake", "session"]
FORMATS: tuple[Format, ...] = ("csv", "json", "markdown", "mooncake", "session")
COLUMNS = (
    "id", "step", "policy", "state", "status", "warmup", "prompt_tokens", "cached_tokens", "cached_source",
    "cached_ratio", "output_tokens", "wait_s", "ttft_s", "prefill_s", "prefill_tps", "decode_tps", "e2e_s",
    "finish_reason", "reason", "detail", "from_request", "evicted_by", "rule", "question", "text", "reasoning", "error",
)  # fmt: skip
_OF_REASON = {"reason": "kind", "detail": "detail", "from_request": "from_request", "evicted_by": "evicted_by"}
_FORMULA = ("=", "+", "-", "@")


def redacted(events: Sequence[AnyEvent], salt: bytes) -> tuple[AnyEvent, ...]:
    """The events without prompts and answers."""
    redactor = Redactor(salt)
    return tuple(shown for event in events for shown in redactor.take(event))


def export(
    events: Sequence[AnyEvent], name: str, to: Format, *, redact: bytes | None = None, block_size: int = BLOCK_SIZE
) -> tuple[str, str | None]:
    """The session in a format, and a line on what could not be told. `redact`: the salt, None leaves texts as they are.

    A trace holds lengths and numbers of blocks only, redacted or not: it is made from the events as they were.
    """
    shown = redacted(events, redact) if redact is not None else events
    if to == "session":
        return b"".join(map(encode_event, shown)).decode(), None
    run, state = run_of_session(shown, name)
    if to == "csv":
        return _csv(run.requests), None
    if to == "json":
        return _json(run_object(run), state), None
    if to == "markdown":
        return to_markdown([run]), None
    rows, left_out = trace_rows(events, state, block_size)
    note = f"{left_out} requests are left out: their lengths are not known" if left_out else None
    return "".join(json.dumps(row) + "\n" for row in rows), note


def _csv(requests: Sequence[RequestResult]) -> str:
    """A row a request, names of the run JSON; unknown is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for request in requests:
        writer.writerow([_cell(_value(request, column)) for column in COLUMNS])
    return text.getvalue()


def _value(request: RequestResult, column: str) -> Any:
    if column in _OF_REASON or column == "rule":
        return getattr(request.reason, _OF_REASON.get(column, column)) if request.reason else None
    return getattr(request, column)


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _json(run: dict[str, Any], state: SessionState) -> str:
    """The run's object, then what only a session has: policies, messages, the log that was kept, notices."""
    requests = [request for request in state.requests.values() if request.number]
    whole = {
        **run,
        "policies": state.policies,
        "messages": {
            str(request.number): [
                {"role": role, "text": state.message_text(text_id)} for role, text_id in request.messages
            ]
            for request in requests
        },
        "log": [row.text for row in state.log.rows],
        "notices": [notice.text for notice in state.notices],
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"
