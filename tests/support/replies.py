"""Replies of real servers, oddities by their names: the bytes as they come, and what `test_exchange` expects of them.

An expected line is the time in ms, what it is and what it holds.
"""

import json
from typing import Any

FINGERPRINT = "0.32.2-0.32.4-Linux-6.1.0-x86_64"


def sse(*values: object) -> bytes:
    return b"".join(b"data: " + (v if isinstance(v, bytes) else json.dumps(v).encode()) + b"\n\n" for v in values)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": finish, "delta": fields}]}


def usage(prompt: int, output: int, cached: int | None = None) -> dict[str, Any]:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": output, **details}}


DONE = sse(b"[DONE]")


def body(**message: Any) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return json.dumps(usage(9, 2, 7) | {"choices": [choice]}).encode()


CASES: dict[str, tuple[list[bytes], list[str]]] = {
    "as mlx_lm 0.32 sends it": (
        [
            b": keepalive 2048/4012\n\n",
            b": keepalive 4012/4012\n\n",
            sse(delta(content="Yes", role="assistant") | {"system_fingerprint": FINGERPRINT}),
            sse(delta(content=", they"), delta(content=" can.")),
            sse(delta("stop", role="assistant"), usage(4100, 5, 88)) + DONE,
        ],
        [
            "0 admitted 200",
            "100 prefill 2048/4012",
            "200 prefill 4012/4012",
            "300 first answer",
            "300 mlx_lm 0.32.2 0.32.4 Linux-6.1.0-x86_64",
            "300 answer 'Yes' []",
            "400 answer ', they can.' [100, 0]",
            "500 finish stop",
            "500 usage 4100 5 88",
            "500 done 200",
        ],
    ),
    "42: comments before, between and after, with CRLF": (
        [
            b": keep-alive\r\n\r\n",
            sse(delta(content="a")).replace(b"\n", b"\r\n"),
            b":\r\n: x\r\n",
            sse(delta("stop", content="b")) + b": bye\n" + DONE,
        ],
        [
            "0 admitted 200",
            "200 first answer",
            "200 answer 'a' []",
            "400 answer 'b' [200]",
            "400 finish stop",
            "400 done 200",
        ],
    ),
    "42: comment inside an event": (
        [b"data: " + json.dumps(delta(content="a")).encode() + b"\n: keepalive 1/2\n\n" + DONE],
        [
            "0 admitted 200",
            "100 prefill 1/2",
            "100 first answer",
            "100 answer 'a' []",
            "100 finish None",
            "100 done 200",
        ],
    ),
    "44: role only first, the first token is the text": (
        [sse(delta(role="assistant")), sse(delta(content="")), sse(delta(content="a")), sse(delta("stop")) + DONE],
        ["0 admitted 200", "300 first answer", "300 answer 'a' []", "400 finish stop", "400 done 200"],
    ),
    "44: reasoning first, then the answer": (
        [sse(delta(reasoning="Hm")), sse(delta(reasoning="…")), sse(delta("stop", content="a")) + DONE],
        [
            "0 admitted 200",
            "100 first reasoning",
            "100 reasoning 'Hm' []",
            "200 reasoning '…' [100]",
            "300 first answer",
            "300 answer 'a' [100]",
            "300 finish stop",
            "300 done 200",
        ],
    ),
    "44: only a tool call": (
        [sse(delta("tool_calls", tool_calls=[{"function": {"name": "look", "arguments": "{}"}}])) + DONE],
        ["0 admitted 200", "100 first tool", "100 tool 'look {}' []", "100 finish tool_calls", "100 done 200"],
    ),
    "44: only usage": (
        [sse(usage(9, 0, 8)) + DONE],
        ["0 admitted 200", "100 usage 9 0 8", "100 done 200"],
    ),
    "47: usage before the finish is told with it": (
        [sse(delta(content="a")), sse(usage(9, 1)), sse(delta("stop")), DONE],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "300 finish stop",
            "200 usage 9 1 None",
            "400 done 200",
        ],
    ),
    "47: usage in every event is told once": (
        [
            sse(delta(content="a") | usage(9, 1) | delta(content="a")),
            sse(delta("stop", content="b") | {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}),
            DONE,
        ],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "200 answer 'b' [100]",
            "200 finish stop",
            "200 usage 9 2 None",
            "300 done 200",
        ],
    ),
    "47: no usage": (
        [sse(delta("stop", content="a")) + DONE],
        ["0 admitted 200", "100 first answer", "100 answer 'a' []", "100 finish stop", "100 done 200"],
    ),
    "49: no finish reason, told at the last text": (
        [sse(delta(content="a")), sse(usage(9, 1)) + DONE],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "100 finish None",
            "200 usage 9 1 None",
            "200 done 200",
        ],
    ),
    "finish told twice counts once": (
        [sse(delta("stop", content="a")), sse(delta("stop")), DONE],
        ["0 admitted 200", "100 first answer", "100 answer 'a' []", "100 finish stop", "300 done 200"],
    ),
    "50: think tags, the opening one cut": (
        [
            sse(delta(content="<thi")),
            sse(delta(content="nk>")),
            sse(delta(content="Hm")),
            sse(delta(content="</think>Yes")),
            DONE,
        ],
        [
            "0 admitted 200",
            "100 first reasoning",
            "200 reasoning '' [100]",
            "300 reasoning 'Hm' [100]",
            "400 first answer",
            "400 answer 'Yes' [100]",
            "400 finish None",
            "500 done 200",
        ],
    ),
    "50: what looked like a tag was text: first token when it came": (
        [sse(delta(content="<")), sse(delta(content="t")), sse(delta(content="b>")), sse(delta("stop")) + DONE],
        ["0 admitted 200", "100 first answer", "300 answer '<tb>' [100, 100]", "400 finish stop", "400 done 200"],
    ),
    "51: all spent on thinking": (
        [sse(delta(reasoning="Hm")), sse(delta("length"), usage(9, 1, 0)) + DONE],
        [
            "0 admitted 200",
            "100 first reasoning",
            "100 reasoning 'Hm' []",
            "200 finish length",
            "200 usage 9 1 0",
            "200 done 200",
        ],
    ),
    "text before and after a tool call keeps its order": (
        [
            sse(
                delta(content="a"),
                delta(tool_calls=[{"function": {"name": "f", "arguments": "{}"}}]),
                delta("stop", content="b"),
            )
            + DONE
        ],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "100 first tool",
            "100 tool 'f {}' [0]",
            "100 answer 'b' [0]",
            "100 finish stop",
            "100 done 200",
        ],
    ),
    "no [DONE] at the end": (
        [sse(delta(content="a"))],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "200 cut 200 the stream ended without [DONE]",
        ],
    ),
    "no [DONE], cut inside an event": (
        [sse(delta(content="a")) + sse(delta(content="b"))[:20]],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "200 cut 200 the stream ended without [DONE]",
        ],
    ),
    "no [DONE], cut inside a think tag": (
        [sse(delta(content="<think>a</th"))],
        [
            "0 admitted 200",
            "100 first reasoning",
            "100 reasoning 'a' []",
            "200 reasoning '</th' []",
            "200 cut 200 the stream ended without [DONE]",
        ],
    ),
    "[DONE] without its blank line": (
        [sse(delta("stop", content="a")) + b"data: [DONE]"],
        ["0 admitted 200", "100 first answer", "100 answer 'a' []", "100 finish stop", "200 done 200"],
    ),
    "nothing behind the headers": ([], ["0 admitted 200", "100 cut 200 the stream ended before anything came"]),
    "what comes after [DONE] is not read": (
        [DONE + sse(delta(content="a")), sse(delta(content="b"))],
        ["0 admitted 200", "100 done 200"],
    ),
    "an error in mid-stream, then the end": (
        [sse(delta(content="a")), sse({"error": {"message": "out of memory"}})],
        [
            "0 admitted 200",
            "100 first answer",
            "100 answer 'a' []",
            "300 failed 200 the server reported: out of memory",
        ],
    ),
    "an error without its blank line": (
        [b'data: {"error": "out of memory"}'],
        ["0 admitted 200", "200 failed 200 the server reported: out of memory"],
    ),
    "garbage is told once and the rest is read": (
        [sse(b"{nonsense") * 3, sse(delta("stop", content="a")) + DONE],
        [
            "0 admitted 200",
            "200 first answer",
            "200 answer 'a' []",
            "200 finish stop",
            "200 failed 200 the server sent a stream event that is not JSON: {nonsense",
        ],
    ),
    "an event that is too long": (
        [b"data: " + b"x" * (5 << 20) + b"\n\n" + DONE],
        ["0 admitted 200", "100 failed 200 the server sent a stream event that is too long to read"],
    ),
}

WHOLE_CASES: dict[str, tuple[dict[str, Any], list[bytes], list[str]]] = {
    "an answer in two parts": (
        {},
        [body(content="Yes", reasoning="Hm")[:30], body(content="Yes", reasoning="Hm")[30:]],
        [
            "0 admitted 200",
            "200 reasoning 'Hm' []",
            "200 answer 'Yes' []",
            "200 finish stop",
            "200 usage 9 2 7",
            "300 done 200",
        ],
    ),
    "no finish reason": (
        {},
        [b'{"choices": [{"message": {"content": "Yes"}}]}'],
        ["0 admitted 200", "100 answer 'Yes' []", "100 finish None", "200 done 200"],
    ),
    "a server that does not stream although asked": (
        {"streamed": True},
        [body(content="Yes")],
        ["0 admitted 200", "100 answer 'Yes' []", "100 finish stop", "100 usage 9 2 7", "200 done 200"],
    ),
    "empty body": ({}, [], ["0 admitted 200", "100 failed 200 the server answered with an empty body"]),
    "not JSON": ({}, [b"hello"], ["0 admitted 200", "200 failed 200 the server's answer is not JSON: hello"]),
    "cut JSON": (
        {},
        [b'{"choices": ['],
        ["0 admitted 200", '200 failed 200 the server\'s answer is not JSON: {"choices": ['],
    ),
    "a web page": (
        {"kind": "text/html"},
        [b"<html><title>Router</title>"],
        ["0 admitted 200", "200 failed 200 HTTP 200, a web page: Router; is this the right URL?"],
    ),
    "404 with JSON": (
        {"status": 404},
        [b'{"error": "generation', b' thread died"}'],
        ["0 admitted 404", "300 failed 404 HTTP 404: generation thread died"],
    ),
    "404 with plain text": (
        {"status": 404, "kind": "application/json"},
        [b"Not Found"],
        ["0 admitted 404", "200 failed 404 HTTP 404: Not Found"],
    ),
    "503 empty": ({"status": 503, "kind": ""}, [], ["0 admitted 503", "100 failed 503 HTTP 503 with an empty body"]),
    "204": ({"status": 204, "kind": ""}, [], ["0 admitted 204", "100 failed 204 HTTP 204 with an empty body"]),
    "a redirect": (
        {"status": 307, "location": "http://x/\x1b[2Jv1"},
        [],
        ["0 admitted 307", "100 failed 307 HTTP 307: the server redirects to http://x/v1; use that URL"],
    ),
    "an error body without end": (
        {"status": 500, "kind": "text/plain"},
        [b"x" * 40_000, b"x" * 40_000, b"never read"],
        ["0 admitted 500", "200 failed 500 HTTP 500: " + "x" * 299 + "…"],
    ),
}
