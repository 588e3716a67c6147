"""What is shared holds no piece of a prompt, a policy or an answer, and still folds to the same figures."""

from typing import get_type_hints

import msgspec
import pytest

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.codec import encode_event, text_id_of
from mlxcache_tui.core.present import Presenter
from mlxcache_tui.core.redact import _KEPT, Redactor
from mlxcache_tui.core.reduce import fold
from support.sessions import QUESTION, SECRET, told

WORDS = ("zebra", "Thursday", "Ottilie", "teapot", "yes")


def redacted(events: list[ev.AnyEvent], salt: bytes = b"x") -> list[ev.AnyEvent]:
    redactor = Redactor(salt)
    return [shown for event in events for shown in redactor.take(event)]


def test_no_word_of_a_person_or_a_model_is_left() -> None:
    text = b"".join(map(encode_event, redacted(told().events))).decode()
    for word in WORDS:
        assert word not in text
    for secret in (SECRET, QUESTION):
        assert text_id_of(secret) not in text


def test_all_figures_stay() -> None:
    story = told()
    rows = Presenter().rows(fold(redacted(story.events)))
    plain = Presenter().rows(story.state)
    for shown, row in zip(rows, plain, strict=True):
        assert msgspec.structs.replace(shown, why=row.why, policy=row.policy) == row


def test_an_answer_is_one_mark_with_its_length() -> None:
    state = fold(redacted(told().events))
    answer = state.requests["a"].answer
    assert answer.startswith("[3 characters, ")
    assert answer == state.requests["b"].answer


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("HTTP 400: zebra", "HTTP 400: ["),
        ("ValueError: zebra", "ValueError: ["),
        ("jinja2.exceptions.TemplateError: zebra", "jinja2.exceptions.TemplateError: ["),
        ("the server reported: zebra", "the server reported: ["),
        ("zebra without any head", "["),
        ("the stream ended without [DONE]", "the stream ended without [DONE]"),
        ("nothing answers at http://127.0.0.1:1: start it", "nothing answers at http://127.0.0.1:1: start it"),
    ],
)
@pytest.mark.parametrize("origin", ["client", "observer"])
def test_the_words_of_a_failure_are_not_the_servers(error: str, kept: str, origin: ev.Origin) -> None:
    (shown,) = redacted([ev.RequestEnded(at_ns=1, origin=origin, key="a", outcome="failed", error=error)])
    assert isinstance(shown, ev.RequestEnded)
    assert shown.error is not None
    assert shown.error.startswith(kept)
    assert "zebra" not in shown.error


@pytest.mark.parametrize(
    "event",
    [
        ev.ServerPhaseChanged(at_ns=1, origin="process", phase="ready", text="the warm-up failed: HTTP 400: zebra"),
        ev.Noticed(at_ns=1, origin="program", level="error", pane="server", text="the scenario broke: KeyError: zebra"),
        ev.SourceFailed(at_ns=1, origin="program", source="log", error="ValueError: zebra"),
        ev.ModelLoadFailed(at_ns=1, origin="observer", model="m", error="ValueError: zebra"),
        ev.LogRead(
            at_ns=1,
            origin="log",
            lines=(
                ev.LogLine(text='127.0.0.1 - - [29/Nov/2026 20:17:45] code 400, message Bad ("zebra")', kind="access"),
                ev.LogLine(text='127.0.0.1 - - [29/Nov/2026 20:17:45] "GET /v1?q=zebra HTTP/1.1" 200 -', kind="access"),
                ev.LogLine(text="2026-11-29 14:48:18,123 - INFO - Prompt Cache: zebra", kind="cache"),
            ),
        ),
        ev.RequestComposed(
            at_ns=1, origin="client", key="a", purpose="send", path="/", messages=(), policy="p",
            params={"user": "5550100", "metadata": {"zebra": 1}, "tools": [{"zebra": 1}]},
        ),
    ],
)  # fmt: skip
def test_what_lines_of_ours_repeat_is_not_shown(event: ev.AnyEvent) -> None:
    text = b"".join(map(encode_event, redacted([event]))).decode()
    assert "zebra" not in text
    assert "5550100" not in text


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-29 14:48:18,123 - INFO - Prompt Cache: 12 sequences, 0.31 GB",
        "2026-11-29 14:48:18,123 - INFO - - assistant: 12 sequences, 0.31 GB",
        "2026-11-29 14:48:18,123 - INFO - KV Caches: 4 seq, 1.25 GB, latest user cache 310 tokens",
        "2026-11-29 14:48:18,123 - INFO - Prompt processing progress: 2048/4012",
        "2026-11-29 14:48:18,123 - INFO - Starting httpd at 127.0.0.1 on port 8080...",
        '127.0.0.1 - - [29/Nov/2026 20:17:45] "POST /v1/chat/completions HTTP/1.1" 200 -',
    ],
)
def test_the_servers_own_counters_stay(text: str) -> None:
    (shown,) = redacted([ev.LogRead(at_ns=1, origin="log", lines=(ev.LogLine(text=text),))])
    assert isinstance(shown, ev.LogRead)
    assert shown.lines[0].text == text


def test_a_snapshot_names_no_home() -> None:
    entry = ev.EntryState(entry=1, type="user", tokens=1, bytes=1, inserted_ns=1, model="/home/ottilie/models/m")
    event = ev.CacheSnapshot(at_ns=1, origin="observer", entries=(entry,), max_count=1, max_bytes=None, bytes=1)
    url, model = "http://127.0.0.1:1", "/home/ottilie/models/m"
    targeted = ev.ServerTargeted(at_ns=1, origin="program", url=url, mode="launched", model=model)
    _, shown = redacted([targeted, event])
    assert isinstance(shown, ev.CacheSnapshot)
    assert shown.entries[0].model == "~/models/m"


def test_the_names_of_policies_and_of_files_are_not_told() -> None:
    events: list[ev.AnyEvent] = [
        ev.PolicyKnown(at_ns=1, origin="program", label="Kunde Ottilie", text="x"),
        ev.RequestComposed(
            at_ns=1, origin="client", key="a", purpose="send", path="/", messages=(), policy="Kunde Ottilie"
        ),
        ev.Noticed(
            at_ns=1, origin="program", level="info", pane="server", text="policy /a/b/zebra file.txt left out: it is"
        ),
    ]
    policy, request, notice = redacted(events)
    assert isinstance(policy, ev.PolicyKnown)
    assert isinstance(request, ev.RequestComposed)
    assert isinstance(notice, ev.Noticed)
    assert policy.label == request.policy == "policy 1"
    assert notice.text.startswith("policy [a path] left out: [")


def test_equal_texts_are_equal_within_one_export_only() -> None:
    assert Redactor(b"x").mark("yes") == Redactor(b"x").mark("yes")
    assert Redactor(b"x").mark("yes") != Redactor(b"y").mark("yes")
    assert Redactor(b"x").mark("") == ""


def test_token_ids_and_kinds_that_are_not_known_do_not_get_through() -> None:
    look = ev.LookedUp(
        at_ns=1, origin="observer", key="a", tokens=ev.TokenRun(count=2, new=(7, 8)), cached_tokens=0, how="none",
        path="batched",
    )  # fmt: skip

    class Later(ev.Event, frozen=True, kw_only=True):
        words: str

    (shown,) = redacted([look])
    assert isinstance(shown, ev.LookedUp)
    assert shown.tokens == ev.TokenRun(count=2)
    assert Redactor(b"x").take(Later(at_ns=1, origin="observer", words=SECRET)) == []  # type: ignore[arg-type]


def test_of_the_log_only_what_is_known_to_be_harmless_stays() -> None:
    lines = (
        ev.LogLine(text="2026-11-29 14:48:18,123 - INFO - Prompt Cache: 1 sequences, 0.31 GB", kind="cache"),
        ev.LogLine(text=f"2026-11-29 14:48:18,123 - DEBUG - {SECRET}", kind="record"),
        ev.LogLine(text=SECRET, kind="traceback"),
    )
    (shown,) = redacted([ev.LogRead(at_ns=1, origin="log", lines=lines)])
    assert isinstance(shown, ev.LogRead)
    assert shown.lines[0] == lines[0]
    assert shown.lines[1].text.startswith("2026-11-29 14:48:18,123 - DEBUG - [45 characters, ")
    assert shown.lines[2].text.startswith("[45 characters, ")


def test_a_log_line_and_its_owner_still_find_each_other() -> None:
    text = f"served {QUESTION}"
    events: list[ev.AnyEvent] = [
        *told().events,
        ev.LogOwned(at_ns=9, origin="observer", key="a", text=text),
        ev.LogRead(at_ns=9, origin="log", lines=(ev.LogLine(text=f"2026-11-29 14:48:18,123 - INFO - {text}"),)),
    ]
    assert fold(redacted(events)).log.rows[-1].request == 1


def test_home_folders_and_parameters_in_words_are_taken_out() -> None:
    launched = ev.ServerLaunched(
        at_ns=1, origin="process", pid=1, port=1, command=("/home/ada/python",),
        flags={"model": "/Users/ada/models/m", "prompt_cache_size": 2, "chat_template": SECRET, "x": [SECRET]},
    )  # fmt: skip
    (shown,) = redacted([launched])
    assert isinstance(shown, ev.ServerLaunched)
    assert shown.command == ()
    assert shown.flags["model"] == "~/models/m"
    assert shown.flags["prompt_cache_size"] == 2
    assert "ada" not in str(shown)
    assert "zebra" not in str(shown)


def test_what_a_dead_worker_said_is_cut_to_its_kind() -> None:
    events: list[ev.AnyEvent] = [
        ev.WorkerDied(at_ns=1, origin="observer", error=f"ValueError: {SECRET}"),
        ev.ServerExited(at_ns=2, origin="process", pid=1, tail=(SECRET,)),
    ]
    died, exited = redacted(events)
    assert isinstance(died, ev.WorkerDied)
    assert isinstance(exited, ev.ServerExited)
    assert died.error == "ValueError"
    assert "zebra" not in exited.tail[0]


def test_a_new_field_with_words_in_an_event_that_is_kept_has_to_be_looked_at() -> None:
    """Words of these fields were looked at: names, versions, our own lines, and what is cleaned of home folders."""
    known = {
        "error",
        "text",
        "model",
        "adapter",
        "draft",
        "url",
        "log_path",
        "program",
        "started",
        "mode",
        "source",
        "pane",
        "level",
        "phase",
        "rate",
        "mlx_lm",
        "mlx",
        "platform",
        "software",
        "flags",
        "key",
        "rule",
        "kind",
        "finish_reason",
        "by_type",
        "entries",
        "layers",
        "pressure",
        "origin",
    }
    for kind in _KEPT:
        for name, hint in get_type_hints(kind).items():
            if "str" in str(hint) or "Any" in str(hint) or "Literal" in str(hint) or "Struct" in str(hint):
                assert name in known, f"{kind.__name__}.{name}: may it hold what somebody wrote?"


def test_what_a_client_chose_is_not_shown() -> None:
    story = told()
    path, roles = "/v1/chat/completions?k=zebra", ("zebra", "developer")
    story.tell(
        ev.RequestComposed(
            at_ns=story.tick(),
            origin="observer",
            key="z",
            purpose="send",
            path=path,
            messages=tuple((role, text_id_of(QUESTION)) for role in roles),
            params={"model": "zebra/m", "zebra": 1, "chat_template_kwargs": {"zebra": True, "enable_thinking": False}},
        )
    )
    for kind in (ev.ModelLoadStarted, ev.ModelLoaded):
        more = {"seconds": 1.0, "draft": "zebra/d"} if kind is ev.ModelLoaded else {}
        told_load = kind(at_ns=story.tick(), origin="observer", model="zebra/m", adapter="zebra/a", **more)  # type: ignore[arg-type]
        story.tell(told_load)
    story.look_up("z", prompt=10, model="zebra/m")
    line = ev.LogLine(text='127.0.0.1 - - [29/Nov/2026 20:17:45] "POST /zebra/x HTTP/1.1" 404 -', kind="access")
    story.tell(ev.LogRead(at_ns=story.tick(), origin="log", lines=(line,)))
    url, log = "http://127.0.0.1:8080", "/var/log/zebra.log"
    story.tell(ev.ServerTargeted(at_ns=story.tick(), origin="program", url=url, mode="attached", log_path=log))
    events = redacted(story.events)
    assert b"zebra" not in b"".join(map(encode_event, events))
    composed = next(event for event in events if isinstance(event, ev.RequestComposed) and event.key == "z")
    assert composed.path == "/v1/chat/completions"
    assert composed.messages[1][0] == "developer"
    assert composed.params["chat_template_kwargs"]["enable_thinking"] is False


def test_the_servers_own_model_and_paths_stay() -> None:
    events = redacted(told().events)
    assert {event.model for event in events if isinstance(event, ev.ModelLoaded | ev.LookedUp)} == {"m"}
    assert {event.path for event in events if isinstance(event, ev.RequestComposed)} == {"/v1/chat/completions"}
    line = '127.0.0.1 - - [29/Nov/2026 20:17:45] "GET {} HTTP/1.1" 200 -'
    told_line = ev.LogRead(at_ns=1, origin="log", lines=(ev.LogLine(text=line.format("/health?a=1"), kind="access"),))
    (shown,) = redacted([told_line])
    assert isinstance(shown, ev.LogRead)
    assert shown.lines[0].text == line.format("/health")
