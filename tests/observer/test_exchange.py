"""What is told of one POST: its texts, its parameters, its end."""

import io
import json
import math
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.codec import text_id_of
from mlxcache_tui.observer import observe
from mlxcache_tui.observer.observe import ErrorTap, Exchange, Hub, bounded, messages_of, meta_of, one_line, text_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
    max_leaves=60,
)


@given(JSON)
def test_parameters_become_plain_json_of_bounded_size(value: Any) -> None:
    text = json.dumps(bounded(value, 500), allow_nan=False)
    assert len(text) < 20_000


@given(st.dictionaries(st.text(max_size=20), st.integers(-(2**62), 2**62) | st.text(max_size=50) | st.booleans()))
def test_small_parameters_are_left_as_they_are(value: dict[str, Any]) -> None:
    assert bounded(value) == value


def test_what_json_cannot_say_is_unknown_or_marked() -> None:
    assert bounded({"a": math.nan, "b": -math.inf, "c": 1.5}) == {"a": None, "b": None, "c": 1.5}
    assert bounded(10**30) == str(10**30)
    assert bounded("x" * 50, 30) == "x" * 22 + "[…]"
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    assert "[…]" in json.dumps(bounded(deep), ensure_ascii=False)


@given(st.text())
def test_the_name_of_a_text_is_the_one_that_the_viewer_gives_it(text: str) -> None:
    assert observe.text_id_of(text) == text_id_of(text)


@given(st.text())
def test_foreign_words_are_one_printable_line(text: str) -> None:
    line = one_line(text, 40)
    assert line.isprintable()
    assert len(line) <= 40


def test_parts_that_are_not_text_leave_a_mark() -> None:
    parts = [{"type": "text", "text": "see "}, {"type": "image_url", "image_url": {"url": "data:…"}}, {"type": "x"}, 7]
    assert text_of(parts) == "see [image][x][part]"
    assert text_of([{"type": "input_audio"}]) == "[audio]"
    assert text_of(None) == ""
    assert text_of({"odd": 1}) == "{'odd': 1}"


def test_messages_of_any_body() -> None:
    call = {"function": {"name": "look", "arguments": '{"a": 1}'}}
    body = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [call, 5]}, "odd"]}
    assert messages_of(body) == [("user", "q"), ("assistant", '[call look({"a": 1})][call ?()]'), ("?", "")]
    assert messages_of({"prompt": "p"}) == [("prompt", "p")]
    assert messages_of({"messages": 5}) == messages_of([1]) == messages_of(None) == []


@pytest.mark.parametrize("text", [None, "", "{", "[1]", "5", '{"policy": 1, "warmup": 1}', " " * 3000 + "{}"])
def test_a_bad_meta_header_says_nothing(text: str | None) -> None:
    assert meta_of(text) in ({}, {"warmup": False})


def test_a_good_meta_header_says_what_it_may() -> None:
    given = {"policy": "returns", "step": None, "before": "b", "after": "", "warmup": True, "purpose": "scenario"}
    told = meta_of(json.dumps(given | {"key": "evil"}))
    assert told == {"policy": "returns", "before": "b", "after": "", "warmup": True, "purpose": "scenario"}
    assert "purpose" not in meta_of('{"purpose": "evil"}')


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"error": "no\\nmodel"}', "no model"),
        (b'{"error": {"message": "deep"}}', "deep"),
        (b"Not Found", "Not Found"),
        (b"\xff{", "�{"),
        (b"", None),
    ],
)
def test_the_error_is_read_from_the_reply(body: bytes, error: str | None) -> None:
    file = io.BytesIO()
    tap = ErrorTap(file)
    tap.write(b"HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\n")
    tap.write(body)
    tap.flush()
    assert file.getvalue().endswith(body)
    assert tap.error() == error


def drained(hub: Hub) -> list[tuple[str, dict[str, Any]]]:
    events = []
    while not hub.queue.empty():
        _, kind, fields = hub.queue.get()
        events.append((kind, fields))
    return events


class Handler(SimpleNamespace):
    """As much of the server's handler as an exchange looks at."""

    def __init__(self, body: object = None, **headers: str) -> None:
        lines = Message()
        for name, value in headers.items():
            lines[name.replace("_", "-")] = value
        super().__init__(headers=lines, path="/v1/x", client_address=("1.2.3.4", 5), wfile=io.BytesIO(), body=body)


def begun(hub: Hub, body: object, ours: bool = False) -> tuple[Exchange, Handler]:
    handler = Handler(User_Agent="curl\x1b[2J/8")
    exchange = Exchange(hub, "k", ours, handler)
    handler.body = body
    return exchange, handler


def test_an_exchange_that_breaks_before_its_body_is_known_does_not_dangle() -> None:
    hub = Hub()
    handler = Handler(body={"messages": [{"role": "user", "content": "of the request before"}]})
    exchange = Exchange(hub, "k", False, handler)
    exchange.own_line("early")
    exchange.end(handler, ValueError("bad\nbytes"))
    (composed, first), (owned, _), (ended, last) = drained(hub)
    assert (composed, owned, ended) == ("_composed", "LogOwned", "RequestEnded")
    assert first["texts"] == []
    assert (last["outcome"], last["status"], last["error"]) == ("failed", None, "ValueError: bad bytes")
    assert last["output_tokens"] is None


def test_who_asks_is_told_harmlessly() -> None:
    hub = Hub()
    exchange, handler = begun(hub, {"messages": [], "stream": True, "top_p": 1})
    exchange.compose(handler)
    exchange.compose(handler)
    ((_, fields),) = drained(hub)
    assert fields["client"] == "1.2.3.4 curl [2J/8"
    assert fields["params"] == {"stream": True, "top_p": 1}


def test_a_refusal_ends_with_its_status_and_words() -> None:
    hub = Hub()
    exchange, handler = begun(hub, {})
    before = handler.wfile
    exchange.status_sent(handler, 400)
    handler.wfile.write(b'{"error": "no"}')
    exchange.end(handler, None)
    assert handler.wfile is before
    assert drained(hub)[-1][1] | {"key": "k"} == {
        "key": "k",
        "outcome": "failed",
        "status": 400,
        "error": "no",
        "output_tokens": None,
    }


@pytest.mark.parametrize(
    ("error", "outcome"), [(None, "done"), (BrokenPipeError(), "cancelled"), (KeyError("include_usage"), "cut")]
)
def test_how_an_answer_ends(error: BaseException | None, outcome: str) -> None:
    hub = Hub()
    exchange, handler = begun(hub, {"stream": True})
    exchange.admitted(SimpleNamespace(prompt=[1, 2, 3], prompt_cache_count=-1, initial_state="normal"))
    exchange.status_sent(handler, 200)
    exchange.progressed(9, 3)
    exchange.token(SimpleNamespace(text="a", finish_reason=None), True)
    exchange.replied("a", "", [], None)
    exchange.token(SimpleNamespace(text="b", finish_reason="length"), True)
    exchange.replied("b", "", [], None)
    exchange.end(handler, error)
    events = drained(hub)
    by_kind = dict(events)
    assert by_kind["PrefillProgressed"]["done"] == 3
    assert by_kind["UsageReported"] == {"key": "k", "prompt_tokens": 3, "output_tokens": 2, "cached_tokens": None}
    assert by_kind["RequestEnded"]["outcome"] == outcome
    assert by_kind["FinishArrived"]["finish_reason"] == "length", "from the token, as the reply never said it"
    assert "".join(fields["text"] for kind, fields in events if kind == "TextArrived") == "ab"
    assert [kind for kind, _ in events].count("FirstTokenArrived") == 1


def test_text_is_gathered_by_kind_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "ANSWER_CHARS", 25)
    hub = Hub()
    exchange, handler = begun(hub, {"stream": True})
    exchange.compose(handler)
    call = {"function": {"name": "f", "arguments": "{}"}}
    exchange.replied("", "think", [], None)  # the first piece goes at once
    exchange.replied("", "ing", [], None)
    exchange.replied("ans", "", [], None)
    exchange.replied("wer" * 5, "", [call], "tool_calls")
    told = [(fields["kind"], fields["text"]) for kind, fields in drained(hub) if kind == "TextArrived"]
    assert told == [("reasoning", "think"), ("reasoning", "ing"), ("answer", "answerwerwerwerwe")]


def test_the_text_of_a_viewers_request_is_told_to_the_other_viewers() -> None:
    hub = Hub()
    exchange, handler = begun(hub, {"stream": True}, ours=True)
    exchange.compose(handler)
    exchange.replied("a", "", [], "stop")
    assert [kind for kind, _ in drained(hub)] == ["_composed", "FirstTokenArrived", "TextArrived", "FinishArrived"]
