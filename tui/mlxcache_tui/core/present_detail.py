"""The detail view of one request: everything that is known of it."""

from mlxcache_tui.core import metrics
from mlxcache_tui.core.present import finish_hint, request_row
from mlxcache_tui.core.state import RequestState, SessionState
from mlxcache_tui.core.units import human_duration
from mlxcache_tui.core.views import DetailView, MessageView, Phase


def detail_view(state: SessionState, key: str, curl: str) -> DetailView | None:
    """Everything about one request; None if there is no such request. `curl`: the request as a command."""
    request = state.requests.get(key)
    if request is None:
        return None
    row = request_row(state, request)
    return DetailView(
        row=row,
        title=f"#{request.number} {request.policy}",
        answer=request.answer + request.tools,
        reasoning=request.reasoning,
        error=request.error or "",
        hint=_hint(request),
        evidence=_evidence(request),
        messages=tuple(MessageView(role=role, text=state.message_text(text_id)) for role, text_id in request.messages),
        timeline=_timeline(request, state.now_ns),
        facts=_facts(request),
        curl=curl,
    )


def _hint(request: RequestState) -> str:
    if finish_hint(request):
        return "ran out while thinking: all output tokens went into reasoning; raise max tokens or turn thinking off"
    if not request.ours and not (request.answer or request.tools or request.reasoning) and request.outcome is not None:
        return "sent by another client before this program watched: its text is not known"
    if request.outcome == "done" and not (request.answer or request.tools or request.reasoning):
        return "the answer is empty"
    return ""


def _evidence(request: RequestState) -> tuple[str, ...]:
    if request.reason is None:
        return ("not known yet",) if request.outcome is None else ()
    sure = "inferred: the server was not observed" if request.reason.inferred else ""
    return tuple(line for line in (request.reason.detail, *request.reason.evidence, sure) if line)


def _timeline(request: RequestState, now_ns: int) -> tuple[Phase, ...]:
    """The phases that are known, seconds since t0; one that is still going on ends now."""
    stamps = request.stamps
    if stamps.sent is None:
        return ()
    sent = stamps.sent
    end = stamps.finish or stamps.ended or now_ns
    marks = [("wait", stamps.admitted), ("prefill", stamps.first_token)]
    if stamps.first_answer != stamps.first_token:
        marks.append(("thinking", stamps.first_answer))
    marks.append(("answer", end))
    phases = []
    if stamps.connect_ns:
        phases.append(Phase(name="connect", start_s=-stamps.connect_ns / 1e9, end_s=0.0))
    start = sent
    for name, stamp in marks:
        stop = stamp if stamp is not None else end
        phases.append(Phase(name=name, start_s=(start - sent) / 1e9, end_s=(stop - sent) / 1e9))  # type: ignore[arg-type]
        start = stop
        if stamp is None:
            break
    return tuple(phases)


def _facts(request: RequestState) -> tuple[tuple[str, str], ...]:
    median, longest = (gap / 1e9 if gap is not None else None for gap in request.gaps.told())
    server_ttft = metrics.seconds(request.server.sent, request.server.first_token)
    pairs: list[tuple[str, str | None]] = [
        ("path", request.path),
        ("client", request.client_name if not request.ours else "this program"),
        ("step", request.step),
        ("status", str(request.status) if request.status is not None else None),
        ("finish reason", request.finish_reason),
        ("first visible output", _duration(metrics.ttfo_s(request))),
        ("server's own TTFT", _duration(server_ttft)),
        ("prefill", _duration(metrics.prefill_s(request))),
        ("gap between events, p50", _duration(median)),
        ("gap between events, max", _duration(longest)),
        ("served", request.lookup.path if request.lookup else None),
        ("parameters", ", ".join(f"{name}={value}" for name, value in request.params.items()) or None),
    ]
    return tuple((name, value) for name, value in pairs if value)


def _duration(seconds: float | None) -> str | None:
    return human_duration(seconds) if seconds is not None else None


def request_markdown(view: DetailView) -> str:
    """A request as a file for keeping: figures, reason, messages, answer, curl."""
    lines = [f"# {view.title}", "", *(f"- {name}: {value}" for name, value in view.facts)]
    lines += ["", "## Why", "", *view.evidence]
    for message in view.messages:
        lines += ["", f"## {message.role}", "", message.text]
    lines += ["", "## Answer", "", view.answer or view.error, "", "## curl", "", view.curl, ""]
    return "\n".join(lines)
