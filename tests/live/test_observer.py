"""The observer inside the real mlx_lm.server: what it tells is what the server did."""

import http.client
import re
import socket
import time

import pytest

from mlxcache_tui.core.codec import text_id_of
from mlxcache_tui.core.events import (
    EntryInserted,
    EntrySwallowed,
    FinishArrived,
    FirstTokenArrived,
    LogOwned,
    LookedUp,
    MlxMemorySampled,
    ModelLoaded,
    ModelLoadStarted,
    ObserverConnected,
    PrefillProgressed,
    RequestAdmitted,
    RequestComposed,
    RequestEnded,
    RequestSent,
    TextArrived,
    TextKept,
    UsageReported,
)
from support.live_server import (
    PATIENCE_S,
    VERSION,
    Server,
    Start,
    Viewer,
    rules,
    since,
)

pytestmark = pytest.mark.mlx


# --- what it is in ---------------------------------------------------------------------------------------------------


def test_the_first_message_says_what_it_is_in(observed: Server, viewer: Viewer) -> None:
    hello = viewer.events[0]
    assert isinstance(hello, ObserverConnected)
    assert hello.pid == observed.process.pid
    assert hello.missing == (() if VERSION >= (0, 31, 2) else ("BatchGenerator.extract_cache",))
    assert hello.hooks
    assert hello.flags["prompt_cache_size"] == 10
    assert hello.flags["prompt_cache_bytes"] is None
    assert hello.flags["port"] == observed.port
    assert hello.log_path == str(observed.log)
    assert hello.mlx_lm
    assert hello.mlx
    assert observed.socket.stat().st_mode & 0o777 == 0o600


def test_the_model_is_told_to_a_viewer_that_comes_later(observed: Server, viewer: Viewer) -> None:
    (started,), (loaded,) = viewer.all(ModelLoadStarted), viewer.all(ModelLoaded)
    assert started.model == loaded.model == str(observed.model)
    assert started.at_ns <= loaded.at_ns
    assert loaded.layers == {"KVCache": sum(loaded.layers.values())}
    assert (loaded.trimmable, loaded.batchable, loaded.has_thinking) == (True, True, False)
    assert loaded.sliding_window is None
    assert loaded.weights_bytes is not None
    assert loaded.weights_bytes > 100_000
    assert loaded.head_tokens is not None
    assert loaded.head_tokens > 0


def test_memory_is_sampled_after_a_request(observed: Server, viewer: Viewer) -> None:
    before = len(viewer.all(MlxMemorySampled))
    observed.ask("How much?", rules("Memory", 100), key="mem")  # more than whatever it may push out
    viewer.wait(RequestEnded, "mem")
    sample = viewer.wait(MlxMemorySampled, count=before + 1)
    assert 0 < sample.active <= sample.peak


# --- one request -----------------------------------------------------------------------------------------------------


def test_the_second_question_on_a_policy_names_the_entry_that_it_used(observed: Server, viewer: Viewer) -> None:
    first = observed.ask("May I?", rules("Twice"), key="twice:1")
    second = observed.ask("It is broken. May I?", rules("Twice"), key="twice:2")
    viewer.wait(RequestEnded, "twice:2")
    made = viewer.all(EntryInserted, "twice:1")[-1]
    one, two = viewer.wait(LookedUp, "twice:1"), viewer.wait(LookedUp, "twice:2")
    assert (one.cached_tokens, two.cached_tokens) == (first.cached, second.cached)
    assert two.cached_tokens > 200
    assert (two.how, two.entry, two.path) == ("trimmed", made.entry, "batched")
    assert two.model == str(observed.model)
    assert (two.tokens.base, two.tokens.count) == ("twice:1", second.usage["prompt_tokens"])
    usage = viewer.wait(UsageReported, "twice:2")
    assert usage.prompt_tokens == second.usage["prompt_tokens"]
    assert usage.output_tokens == second.usage["completion_tokens"]
    assert usage.cached_tokens == second.cached


def test_the_events_of_a_request_are_in_the_order_of_its_life(observed: Server, viewer: Viewer) -> None:
    meta = {"policy": "life", "purpose": "scenario", "step": "a1", "warmup": True, "before": "b", "after": "a"}
    body = {"messages": [{"role": "user", "content": rules("Life")}], "max_tokens": 4, "stream": True, "top_p": 0.5}
    assert observed.post(body, key="life", meta=meta).status == 200
    end = viewer.wait(RequestEnded, "life")
    assert (end.outcome, end.status, end.error, end.output_tokens) == ("done", 200, None, 4)
    (composed,) = viewer.all(RequestComposed, "life")
    assert (composed.purpose, composed.policy, composed.step, composed.warmup) == ("scenario", "life", "a1", True)
    assert (composed.before, composed.after, composed.path) == ("b", "a", "/v1/chat/completions")
    assert composed.params == {"max_tokens": 4, "stream": True, "top_p": 0.5}
    assert composed.messages == (("user", text_id_of(rules("Life"))),)
    kinds = RequestSent, RequestAdmitted, PrefillProgressed, FirstTokenArrived, FinishArrived, RequestEnded
    stamps = [viewer.all(kind, "life")[0].at_ns for kind in kinds]
    assert stamps == sorted(stamps)
    usage = viewer.all(UsageReported, "life")[0]
    assert usage.prompt_tokens is not None
    assert usage.cached_tokens is not None
    assert viewer.all(PrefillProgressed, "life")[-1].total == usage.prompt_tokens - usage.cached_tokens
    of_it = [event for event in viewer.events if getattr(event, "key", None) == "life"]
    assert isinstance(of_it[0], RequestComposed)
    assert isinstance(of_it[-1], RequestEnded | EntryInserted | EntrySwallowed | LogOwned)
    assert viewer.all(TextArrived, "life"), "other viewers see the answer too"


def test_a_request_of_another_client_is_told_whole(observed: Server, viewer: Viewer) -> None:
    reply = observed.ask("Who are you?", rules("Foreign"), max_tokens=40)
    composed = viewer.wait(RequestComposed, fresh=True)
    viewer.wait(RequestEnded, composed.key)
    assert re.fullmatch(rf"o{observed.process.pid}\.\d+", composed.key)
    assert composed.purpose == "foreign"
    assert composed.client == "127.0.0.1 live-test/1"
    texts = {kept.text_id: kept.text for kept in viewer.all(TextKept)}
    named = [(role, texts[text_id]) for role, text_id in composed.messages]
    assert named == [("system", rules("Foreign")), ("user", "Who are you?")]
    told = viewer.all(TextArrived, composed.key)
    assert "".join(event.text for event in told if event.kind == "answer") == reply.text()
    # At most five a second, and the last at once; each is stamped a moment after it was due.
    assert all(event.at_ns - composed.at_ns >= 200_000_000 * count for count, event in enumerate(told[:-1]))
    assert viewer.wait(LookedUp, composed.key).tokens.count == reply.usage["prompt_tokens"]
    assert viewer.wait(FinishArrived, composed.key).finish_reason == "length"


def test_parts_of_a_message_are_one_text(observed: Server, viewer: Viewer) -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    observed.post({"messages": [{"role": "user", "content": parts}], "max_tokens": 1}, key="parts")
    assert viewer.wait(RequestComposed, "parts").messages == (("user", text_id_of("one two")),)
    assert viewer.wait(RequestEnded, "parts").outcome == "done"


def test_a_whole_reply(observed: Server, viewer: Viewer) -> None:
    reply = observed.ask("Whole?", rules("Whole"), stream=False)
    key = viewer.wait(RequestComposed, fresh=True).key
    assert viewer.wait(RequestEnded, key).outcome == "done"
    usage = viewer.wait(UsageReported, key)
    assert usage.prompt_tokens == reply.usage["prompt_tokens"]
    assert usage.output_tokens == reply.usage["completion_tokens"] == 4
    assert "".join(event.text for event in viewer.all(TextArrived, key)) == reply.text()
    assert viewer.wait(FinishArrived, key).finish_reason == "length"
    assert len(viewer.all(FirstTokenArrived, key)) == 1


def test_a_text_completion(observed: Server, viewer: Viewer) -> None:
    reply = observed.post({"prompt": rules("Text"), "max_tokens": 3}, key="text", path="/v1/completions")
    assert viewer.wait(RequestEnded, "text").outcome == "done"
    composed = viewer.wait(RequestComposed, "text")
    assert (composed.path, composed.messages) == ("/v1/completions", (("prompt", text_id_of(rules("Text"))),))
    assert viewer.wait(LookedUp, "text").tokens.count == reply.usage["prompt_tokens"]


def test_a_seed_takes_the_sequential_path(observed: Server, viewer: Viewer) -> None:
    first = observed.ask("Seed?", rules("Seed"), key="seed:1", seed=7)
    second = observed.ask("Seed again?", rules("Seed"), key="seed:2", seed=7)
    viewer.wait(RequestEnded, "seed:2")
    looked, usage = viewer.wait(LookedUp, "seed:2"), viewer.wait(UsageReported, "seed:2")
    assert looked.path == "sequential"
    made = viewer.wait(EntryInserted, "seed:1")
    assert (looked.entry, looked.cached_tokens) == (made.entry, second.cached)
    assert usage.cached_tokens == second.cached > 200
    assert viewer.wait(UsageReported, "seed:1").cached_tokens == first.cached
    assert viewer.wait(PrefillProgressed, "seed:2").done == 0


def test_the_lines_of_a_request_are_in_the_log(observed: Server, viewer: Viewer) -> None:
    observed.ask("Log?", rules("Log"), key="log")
    viewer.wait(RequestEnded, "log")
    owned = [event.text for event in viewer.all(LogOwned, "log")]
    assert any(text.startswith("Prompt processing progress: ") for text in owned)
    assert any(text.startswith(("Prompt Cache: ", "KV Caches: ")) for text in owned)
    await_lines(observed, {text for text in owned if "POST" not in text})


def test_the_access_line_of_a_request_is_in_the_log(observed: Server, viewer: Viewer) -> None:
    observed.ask("Access?", key="access", max_tokens=1)
    viewer.wait(RequestEnded, "access")
    (owned,) = [event.text for event in viewer.all(LogOwned, "access") if "POST" in event.text]
    await_lines(observed, {owned})


def await_lines(server: Server, texts: set[str]) -> None:
    """Wait until these lines are in the log: each is told before it is written."""
    deadline = time.monotonic() + PATIENCE_S
    while missing := texts - {message_of(line) for line in server.log_text().splitlines()}:
        assert time.monotonic() < deadline, missing
        time.sleep(0.02)


def message_of(line: str) -> str:
    """What a log line is known by: a logger line without its time and level, any other as it is."""
    parts = line.split(" - ", 2)
    return parts[2] if len(parts) == 3 and parts[1].isupper() else line


# --- requests that fail ----------------------------------------------------------------------------------------------


def test_a_wrong_model_is_404_in_the_servers_words(start: Start) -> None:
    server = start()
    with Viewer(server.socket) as viewer:
        viewer.greeted()
        reply = server.ask("Hi", model="no/such-model", key="wrong")
        end = viewer.wait(RequestEnded, "wrong")
        assert reply.status == 404
        assert (end.outcome, end.status, end.output_tokens) == ("failed", 404, None)
        assert end.error
        assert "\n" not in end.error
        assert end.error[:40] in reply.json["error"].replace("\n", " ")
        assert viewer.all(RequestComposed, "wrong")[0].params["model"] == "no/such-model"
        server.ask("Still there?", key="right")
        assert viewer.wait(RequestEnded, "right").outcome == "done"
        assert viewer.all(ModelLoaded)[-1].at_ns > end.at_ns, "the model was loaded again"


@since(0, 31, 2)
@pytest.mark.parametrize(
    ("key", "body", "path", "status", "error"),
    [
        ("bad:json", b'{"messages": [', None, 400, "Invalid JSON in request body"),
        ("bad:list", b"[1]", None, 400, "Request should be a JSON dictionary"),
        pytest.param(
            "bad:tokens",
            b'{"messages":[{"role":"user","content":"x"}],"max_tokens":0}',
            None,
            400,
            "max_tokens must be",
            marks=since(0, 32, 1),
        ),
        pytest.param("bad:none", b"{}", None, 400, "Request did not contain messages", marks=since(0, 32, 1)),
        ("bad:path", b"{}", "/v1/embeddings", 404, "Not Found"),
    ],
)
def test_a_refused_request(
    observed: Server, viewer: Viewer, key: str, body: bytes, path: str | None, status: int, error: str
) -> None:
    assert observed.post(body, key=key, path=path).status == status
    end = viewer.wait(RequestEnded, key)
    assert (end.outcome, end.status) == ("failed", status)
    assert end.error is not None
    assert end.error.startswith(error)
    (composed,) = viewer.all(RequestComposed, key)
    assert len(composed.messages) == (key == "bad:tokens")
    of_it = [event for event in viewer.events if getattr(event, "key", None) == key]
    assert isinstance(of_it[0], RequestComposed), "nothing is said of a request before it exists"


@since(0, 31, 2)
def test_a_body_without_its_length(observed: Server, viewer: Viewer) -> None:
    with socket.create_connection(("127.0.0.1", observed.port), timeout=PATIENCE_S) as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Mlxcache-Request: nolength\r\n\r\n")
        assert connection.recv(64).startswith(b"HTTP/1.0 411")
    end = viewer.wait(RequestEnded, "nolength")
    assert (end.outcome, end.status, end.error) == ("failed", 411, "Content-Length header is required")


def test_a_body_that_is_no_text_ends_without_a_reply(observed: Server, viewer: Viewer) -> None:
    with pytest.raises(http.client.RemoteDisconnected):
        observed.post(b"\xff\xfe{", key="bytes")
    end = viewer.wait(RequestEnded, "bytes")
    assert (end.outcome, end.status) == ("failed", None)
    assert end.error is not None
    assert end.error.startswith("UnicodeDecodeError")


def test_a_stream_that_the_server_breaks_off_is_cut(observed: Server, viewer: Viewer) -> None:
    assert observed.ask("Cut?", key="cut", stream_options={}).status == 200
    end = viewer.wait(RequestEnded, "cut")
    assert (end.outcome, end.status, end.error) == ("cut", 200, "KeyError: 'include_usage'")


def test_a_client_that_leaves_in_mid_answer(observed: Server, viewer: Viewer) -> None:
    connection = observed.open()
    body = b'{"messages":[{"role":"user","content":"Talk."}],"max_tokens":100000,"stream":true}'
    connection.request("POST", "/v1/chat/completions", body, {"X-Mlxcache-Request": "left"})
    response = connection.getresponse()
    viewer.wait(FirstTokenArrived, "left")
    response.close()
    connection.close()
    end = viewer.wait(RequestEnded, "left")
    assert (end.outcome, end.status) == ("cancelled", 200)
    assert end.output_tokens is not None
    assert 0 < end.output_tokens < 100_000
    observed.ask("Next?", key="left:next")
    assert viewer.wait(RequestEnded, "left:next").outcome == "done"


@since(0, 32, 1)
def test_strange_headers_and_texts_do_no_harm(observed: Server, viewer: Viewer) -> None:
    body = (
        b'{"messages":[{"role":"user","content":"a\\ud800b \\u001b[31m"}],"max_tokens":1,"x":NaN,"y":'
        + b"9" * 40
        + b"}"
    )
    assert observed.post(body, key="bad key!").status in (200, 404)
    composed = viewer.wait(RequestComposed, fresh=True)
    assert composed.key.startswith("o")
    viewer.wait(RequestEnded, composed.key)
    connection = observed.open()
    headers = {"X-Mlxcache-Request": "odd:meta", "X-Mlxcache-Meta": '{"policy": 5, "purpose": "evil", "warmup": "yes"'}
    connection.request("POST", "/v1/chat/completions", b"{}", headers)
    connection.getresponse().read()
    connection.close()
    odd = viewer.wait(RequestComposed, "odd:meta")
    assert (odd.policy, odd.purpose, odd.warmup) == (None, "foreign", False)
    assert not viewer.bad


def test_a_key_sent_twice_is_two_requests(observed: Server, viewer: Viewer) -> None:
    for _ in range(2):
        observed.ask("Again?", key="same", max_tokens=1)
    last = viewer.wait(RequestComposed, count=2, fresh=True)
    assert last.key != "same"
    assert viewer.wait(RequestEnded, last.key).outcome == "done"
    assert len(viewer.all(RequestEnded, "same")) == 1


def test_a_thinking_model_begins_with_its_reasoning(start: Start) -> None:
    server = start("tiny-thinking")
    with Viewer(server.socket) as viewer:
        viewer.greeted()
        loaded = viewer.wait(ModelLoaded)
        assert loaded.has_thinking is True
        for number, thinking in enumerate((True, False), 1):
            reply = server.ask(
                f"Think {thinking}?", rules("Think"), max_tokens=12, chat_template_kwargs={"enable_thinking": thinking}
            )
            composed = viewer.wait(RequestComposed, count=number, fresh=True)
            viewer.wait(RequestEnded, composed.key)
            told = viewer.all(TextArrived, composed.key)
            for kind, name in (("reasoning", "reasoning"), ("answer", "content")):
                assert "".join(event.text for event in told if event.kind == kind) == reply.text(name)
            kinds = [event.kind for event in viewer.all(FirstTokenArrived, composed.key)]
            assert len(kinds) == len(set(kinds))
            assert kinds[0] == ("reasoning" if reply.text("reasoning") else "answer")
