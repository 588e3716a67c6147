"""What replies say: every place where servers put text, usage and errors, and garbage that must not raise."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.reply import (
    Done,
    Fact,
    Failure,
    Finish,
    Held,
    Identity,
    Progress,
    ReplyReader,
    Text,
    Unreadable,
    Usage,
    error_text,
    http_error_line,
    identity_of,
    progress_of,
)

FINGERPRINT = "0.32.2-0.32.4-Linux-6.1.0-x86_64-with-glibc2.36-cpu"
IDENTITY = Identity("0.32.2", "0.32.4", "Linux-6.1.0-x86_64-with-glibc2.36-cpu")


def chunk(delta: object, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "finish_reason": finish, "delta": delta}],
        **more,
    }


def body(message: object, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": finish, "message": message}], **more}


def tool(name: str | None, arguments: object) -> dict[str, Any]:
    return {"index": 0, "type": "function", "id": "1", "function": {"name": name, "arguments": arguments}}


STREAM_CASES: dict[str, tuple[object, list[Fact]]] = {
    # 44: what is a first token and what is not
    "role only": (chunk({"role": "assistant"}), []),
    "empty content": (chunk({"role": "assistant", "content": ""}), []),
    "null content": (chunk({"role": "assistant", "content": None}), []),
    "null delta": (chunk(None), []),
    "delta that is no object": (chunk([3]), []),
    "answer": (chunk({"content": "Yes"}), [Text("answer", "Yes")]),
    "everything empty, as before 0.31.2": (
        chunk({"role": "assistant", "content": "", "reasoning": "", "tool_calls": []}),
        [],
    ),
    "text completion": ({"choices": [{"index": 0, "text": "Yes", "finish_reason": None}]}, [Text("answer", "Yes")]),
    "content in parts": (
        chunk({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 3]}),
        [Text("answer", "ab")],
    ),
    # 50: three places for reasoning (the tags have tests of their own)
    "reasoning": (chunk({"reasoning": "Hm"}), [Text("reasoning", "Hm")]),
    "reasoning_content": (chunk({"reasoning_content": "Hm"}), [Text("reasoning", "Hm")]),
    "both names at once are one text": (
        chunk({"reasoning": "Hm", "reasoning_content": "Hm"}),
        [Text("reasoning", "Hm")],
    ),
    "reasoning and answer": (
        chunk({"reasoning": "Hm", "content": "Yes"}),
        [Text("reasoning", "Hm"), Text("answer", "Yes")],
    ),
    "reasoning that is no text": (chunk({"reasoning": {"effort": 1}}), []),
    # tool calls
    "tool call as mlx_lm sends it": (
        chunk({"tool_calls": [tool("look", '{"a": 1}')]}),
        [Text("tool", 'look {"a": 1}')],
    ),
    "tool call with an object": (chunk({"tool_calls": [tool("look", {"a": 1})]}), [Text("tool", 'look {"a": 1}')]),
    "two tool calls": (
        chunk({"tool_calls": [tool("look", "{}"), tool("take", "{}")]}),
        [Text("tool", "look {}"), Text("tool", "\ntake {}")],
    ),
    "piece of arguments": (chunk({"tool_calls": [tool(None, '"a')]}), [Text("tool", '"a')]),
    "broken tool calls": (chunk({"tool_calls": [3, {"function": 4}, {}, tool(None, "")]}), []),
    # 49: finish
    "finish": (chunk({}, "stop"), [Finish("stop")]),
    "finish with text": (chunk({"content": "!"}, "length"), [Text("answer", "!"), Finish("length")]),
    "empty finish": (chunk({}, ""), []),
    "finish of another type": (chunk({}, 3), []),  # type: ignore[arg-type]
    # 47, 13: usage
    "usage as mlx_lm sends it": (
        {
            "object": "chat.completion",
            "choices": [],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 7}},
        },
        [Usage(9, 2, 7)],
    ),
    "usage in the finish event": (
        chunk({}, "stop", usage={"prompt_tokens": 9, "completion_tokens": 2}),
        [Finish("stop"), Usage(9, 2, None)],
    ),
    "usage null": (chunk({"content": "a"}, usage=None), [Text("answer", "a")]),
    "cached 0": ({"choices": [], "usage": {"prompt_tokens_details": {"cached_tokens": 0}}}, [Usage(None, None, 0)]),
    "cached null": (
        {"choices": [], "usage": {"prompt_tokens_details": {"cached_tokens": None}}},
        [Usage(None, None, None)],
    ),
    "details null": ({"choices": [], "usage": {"prompt_tokens_details": None}}, [Usage(None, None, None)]),
    "details empty": ({"choices": [], "usage": {"prompt_tokens_details": {}}}, [Usage(None, None, None)]),
    "details missing": ({"choices": [], "usage": {"prompt_tokens": 3}}, [Usage(3, None, None)]),
    "counts of other types": (
        {"choices": [], "usage": {"prompt_tokens": "9", "completion_tokens": True}},
        [Usage(None, None, None)],
    ),
    "negative counts": (
        {"choices": [], "usage": {"prompt_tokens": -1, "completion_tokens": 2.0}},
        [Usage(None, None, None)],
    ),
    "llama.cpp's own place": (
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}, "timings": {"cache_n": 8}},
        [Usage(9, 2, 8)],
    ),
    # fingerprints
    "fingerprint": (chunk({}, system_fingerprint=FINGERPRINT), [IDENTITY]),
    "fingerprint of another server": (chunk({}, system_fingerprint="b5000-abcdef"), []),
    # errors in the middle
    "error text": ({"error": "out of memory"}, [Failure("the server reported: out of memory")]),
    "error object": (
        {"error": {"message": "too\nlong", "code": 500}},
        [Failure("the server reported: too long")],
    ),
    "error without words": ({"error": {"code": 500}}, [Failure('the server reported: {"error": {"code": 500}}')]),
    "error object of old vLLM": (
        {"object": "error", "message": "no"},
        [Failure("the server reported: no")],
    ),
    # shapes
    "no choices key": ({}, []),
    "choices null": ({"choices": None}, []),
    "choices of other things": ({"choices": [1, None]}, []),
    "second choice is left out": ({"choices": [{"index": 1, "delta": {"content": "b"}}]}, []),
    "not a number, as Python writes it": (
        json.dumps(chunk({"content": "a"}, logprobs=float("-inf"))).encode(),
        [Text("answer", "a")],
    ),
    "DONE": (b"[DONE]", [Done()]),
    "DONE with spaces": (b" [DONE] ", [Done()]),
    # cleaned
    "escape sequences": (chunk({"content": "a\x1b[31mb\x00c\td\ne"}), [Text("answer", "ab␀c    d\ne")]),
    "half a surrogate pair": (b'{"choices":[{"delta":{"content":"a\\ud83d"}}]}', [Text("answer", "a�")]),
    "escape in the finish reason": (chunk({}, "st\x1b[2Jop"), [Finish("stop")]),
}


@pytest.mark.parametrize("name", STREAM_CASES)
def test_a_stream_event_says(name: str) -> None:
    event, facts = STREAM_CASES[name]
    payload = event if isinstance(event, bytes) else json.dumps(event).encode()
    assert ReplyReader().read_data(payload) == facts


BODY_CASES: dict[str, tuple[object, list[Fact]]] = {
    "answer": (
        body({"role": "assistant", "content": "Yes"}, usage={"prompt_tokens": 5, "completion_tokens": 1}),
        [Text("answer", "Yes"), Finish("stop"), Usage(5, 1, None)],
    ),
    # 51: all tokens spent on thinking; null on 0.32.2, absent on 0.31.3
    "only thinking, content null": (
        body({"content": None, "reasoning": "Hm"}, "length"),
        [Text("reasoning", "Hm"), Finish("length")],
    ),
    "only thinking, content absent": (
        body({"reasoning_content": "Hm"}, "length"),
        [Text("reasoning", "Hm"), Finish("length")],
    ),
    "thinking inside content": (
        body({"content": "<think>\nHm\n</think>\n\nYes"}),
        [Text("reasoning", "\nHm\n"), Text("answer", "\n\nYes"), Finish("stop")],
    ),
    "thinking never closed": (
        body({"content": "<think>Hm</th"}, "length"),
        [Text("reasoning", "Hm"), Text("reasoning", "</th"), Finish("length")],
    ),
    "tool call": (
        body({"content": None, "tool_calls": [tool("look", "{}")]}, "tool_calls"),
        [Text("tool", "look {}"), Finish("tool_calls")],
    ),
    "text completion": (
        {"choices": [{"index": 0, "text": "Yes", "finish_reason": "length"}], "system_fingerprint": FINGERPRINT},
        [Text("answer", "Yes"), Finish("length"), IDENTITY],
    ),
    "no finish": (body({"content": "Yes"}, None), [Text("answer", "Yes")]),
    "error with status 200": ({"error": {"message": "no"}}, [Failure("the server reported: no")]),
    "no choices": ({"object": "list"}, [Failure("the server's answer has no choices")]),
    "empty choices": ({"choices": []}, [Failure("the server's answer has no choices")]),
    "empty body": (b"", [Failure("the server answered with an empty body")]),
    "blank body": (b"\r\n ", [Failure("the server answered with an empty body")]),
    "not JSON": (b"hello \x1b[2J", [Failure("the server's answer is not JSON: hello ")]),
    "a list": ([1], [Failure("the server's answer is not JSON: [1]")]),
    "too deep": (b"[" * 200_000, [Failure("the server's answer is not JSON: " + "[" * 79 + "…")]),
}


@pytest.mark.parametrize("name", BODY_CASES)
def test_a_whole_body_says(name: str) -> None:
    value, facts = BODY_CASES[name]
    payload = value if isinstance(value, bytes) else json.dumps(value).encode()
    assert ReplyReader().read_body(payload) == facts


def test_garbage_in_a_stream_is_one_clear_line() -> None:
    assert ReplyReader().read_data(b'{"choices": [\n') == [
        Unreadable('the server sent a stream event that is not JSON: {"choices": [')
    ]


def test_pieces_of_one_tool_call_are_joined_and_a_second_call_begins_a_line() -> None:
    reader = ReplyReader()
    calls = [tool("look", ""), tool(None, '{"a"'), tool(None, ": 1}"), tool("take", "{}")]
    facts = [fact for call in calls for fact in reader.read_data(json.dumps(chunk({"tool_calls": [call]})).encode())]
    assert "".join(fact.text for fact in facts if isinstance(fact, Text)) == 'look {"a": 1}\ntake {}'


def read_content(pieces: list[str]) -> list[Fact]:
    reader = ReplyReader()
    facts: list[Fact] = []
    for piece in pieces:
        facts += reader.read_data(json.dumps(chunk({"content": piece})).encode())
    return facts + reader.close()


def texts_of(facts: list[Fact]) -> dict[str, str]:
    """The text of each kind that has any."""
    joined: dict[str, str] = {}
    for fact in facts:
        if isinstance(fact, Text) and fact.text:
            joined[fact.kind] = joined.get(fact.kind, "") + fact.text
    return joined


THINK_CASES: dict[str, tuple[str, dict[str, str]]] = {
    "thinking, then answer": ("<think>Hm</think>Yes", {"reasoning": "Hm", "answer": "Yes"}),
    "white space in front": ("\n <think>Hm</think>Yes", {"reasoning": "Hm", "answer": "Yes"}),
    "empty thinking": ("<think>\n\n</think>\n\nYes", {"reasoning": "\n\n", "answer": "\n\nYes"}),
    "never closed": ("<think>Hm, so", {"reasoning": "Hm, so"}),
    "never closed, half a tag": ("<think>Hm</thi", {"reasoning": "Hm</thi"}),
    "a smaller sign inside": ("<think>a < b </b></think>c", {"reasoning": "a < b </b>", "answer": "c"}),
    "half an opening tag": ("<thin", {"answer": "<thin"}),
    "another tag": ("<thing>x", {"answer": "<thing>x"}),
    "the tag later in the answer": ("Use <think>x</think>", {"answer": "Use <think>x</think>"}),
    "a second thought": ("<think>a</think>b<think>c", {"reasoning": "a", "answer": "b<think>c"}),
    "a closing tag without an opening one": ("a</think>b", {"answer": "a</think>b"}),
    "only white space": ("\n \n", {"answer": "\n \n"}),
}


@pytest.mark.parametrize("name", THINK_CASES)
def test_think_tags_whole_or_letter_by_letter(name: str) -> None:
    content, expected = THINK_CASES[name]
    assert texts_of(read_content([content])) == expected
    assert texts_of(read_content(list(content))) == expected


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "/", "think", ">", "a", " ", "\n"]), max_size=12),
    st.lists(st.integers(0, 60), max_size=8),
)
def test_think_tags_cut_anywhere_give_the_same_text(parts: list[str], cuts: list[int]) -> None:
    content = "".join(parts)
    places = sorted({min(cut, len(content)) for cut in cuts} | {0, len(content)})
    pieces = [content[start:end] for start, end in pairwise(places)]
    assert texts_of(read_content(pieces)) == texts_of(read_content([content]))


def test_text_whose_kind_is_open_is_held_and_said_so() -> None:
    assert read_content(["<thi", "nk>", "Hm"]) == [Held(), Text("reasoning", ""), Text("reasoning", "Hm")]


def test_white_space_without_end_is_not_held_without_end() -> None:
    assert texts_of(read_content([" " * 300, "<think>"])) == {"answer": " " * 300 + "<think>"}


def test_held_text_comes_out_before_a_finish_a_tool_call_and_the_end() -> None:
    for last in (chunk({}, "stop"), chunk({"tool_calls": [tool("look", "{}")]})):
        reader = ReplyReader()
        reader.read_data(json.dumps(chunk({"content": "<th"})).encode())
        assert reader.read_data(json.dumps(last).encode())[0] == Text("answer", "<th")
    reader = ReplyReader()
    reader.read_data(json.dumps(chunk({"content": "<th"})).encode())
    assert reader.read_data(b"[DONE]") == [Text("answer", "<th"), Done()]


PROGRESS_CASES: dict[str, Progress | None] = {
    "keepalive 2048/4012": Progress(2048, 4012),
    "keepalive 0/1 ": Progress(0, 1),
    "keep-alive": None,  # 42: comments without numbers
    "keepalive": None,
    "keepalive 1/": None,
    "keepalive -1/2": None,
    "keepalive ٣/٤": None,
    "keepalive " + "9" * 40 + "/1": None,
    "": None,
}


@pytest.mark.parametrize("comment", PROGRESS_CASES)
def test_comments_that_are_progress(comment: str) -> None:
    assert progress_of(comment) == PROGRESS_CASES[comment]


FINGERPRINT_CASES: dict[str, Identity | None] = {
    FINGERPRINT: IDENTITY,
    "0.31.3-0.31.1-macOS-15.1-arm64-arm-64bit-applegpu_g16s": Identity(
        "0.31.3", "0.31.1", "macOS-15.1-arm64-arm-64bit-applegpu_g16s"
    ),
    "0.33.0.dev20261101+a1b2c3-0.33.0rc1-macOS-26.0-arm64": Identity(
        "0.33.0.dev20261101+a1b2c3", "0.33.0rc1", "macOS-26.0-arm64"
    ),
    "0.33.0-dev1-0.32.4-Linux-6.1.0-x86_64": Identity("0.33.0-dev1", "0.32.4", "Linux-6.1.0-x86_64"),
    "b5000-abcdef": None,
    "fp_44709d6fcb": None,
    "vllm-0.10.0-tp1-1234": None,
    "fp_ollama": None,
    "0.32.2": None,
    "0.32.2-0.32.4": None,
    "": None,
}


@pytest.mark.parametrize("fingerprint", FINGERPRINT_CASES)
def test_versions_in_a_fingerprint(fingerprint: str) -> None:
    assert identity_of(fingerprint) == FINGERPRINT_CASES[fingerprint]


def test_a_fingerprint_that_is_no_text() -> None:
    assert identity_of(None) is None
    assert identity_of(3) is None


HTTP_ERROR_CASES: dict[str, tuple[int, str, bytes, str]] = {
    # 52: 404 JSON from 0.30.6 on, plain text before
    "JSON text": (404, "application/json", b'{"error": "Repository Not Found"}', "HTTP 404: Repository Not Found"),
    "JSON object": (400, "application/json", b'{"error": {"message": "bad", "code": 400}}', "HTTP 400: bad"),
    "FastAPI text": (404, "application/json", b'{"detail": "Not Found"}', "HTTP 404: Not Found"),
    "FastAPI list": (
        422,
        "application/json",
        b'{"detail": [{"loc": ["body"], "msg": "missing"}]}',
        "HTTP 422: missing",
    ),
    "JSON without words": (500, "application/json", b'{"status": 1}', 'HTTP 500: {"status": 1}'),
    "JSON with an empty list": (500, "application/json", b'{"detail": []}', 'HTTP 500: {"detail": []}'),
    "plain text": (404, "application/json", b"Not Found", "HTTP 404: Not Found"),
    "several lines with escapes": (500, "text/plain", b"a\n\x1b[31mb\x00", "HTTP 500: a b␀"),
    "empty": (503, "", b"", "HTTP 503 with an empty body"),
    "blank": (503, "", b" \r\n", "HTTP 503 with an empty body"),
    "web page": (
        502,
        "text/html; charset=utf-8",
        b"<html><head><title>502 Bad\nGateway</title></head></html>",
        "HTTP 502, a web page: 502 Bad Gateway; is this the right URL?",
    ),
    "web page by its look": (404, "", b"<!DOCTYPE html><p>", "HTTP 404, a web page; is this the right URL?"),
    "very long": (500, "text/plain", b"x" * 9000, "HTTP 500: " + "x" * 299 + "…"),
    "not UTF-8": (500, "text/plain", b"caf\xe9", "HTTP 500: caf�"),
}


@pytest.mark.parametrize("name", HTTP_ERROR_CASES)
def test_an_error_status_in_one_line(name: str) -> None:
    status, content_type, payload, line = HTTP_ERROR_CASES[name]
    assert http_error_line(status, content_type, payload) == line


def test_error_text_of_nothing() -> None:
    assert error_text(None) is None
    assert error_text({}) is None


KEYS = (
    *("choices", "delta", "message", "content", "usage", "error", "index", "tool_calls", "function", "text"),
    *("prompt_tokens_details", "reasoning", "finish_reason", "name", "arguments", "timings", "object"),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(json_values)
def test_no_json_raises(value: object) -> None:
    payload = json.dumps(value).encode()
    ReplyReader().read_data(payload)
    ReplyReader().read_body(payload)
    http_error_line(500, "application/json", payload)


@given(st.binary(max_size=80))
def test_no_bytes_raise(payload: bytes) -> None:
    ReplyReader().read_data(payload)
    ReplyReader().read_body(payload)
    http_error_line(500, "", payload)
