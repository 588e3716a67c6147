"""What a reply says: JSON of a stream event or of a whole body in, typed facts out. Pure, tolerant, never raises.

Servers differ in where they put things (`reasoning`, `reasoning_content`, `<think>` inside the answer; usage before or
after the finish, null or missing); all of that ends here. All text given out is cleaned.
"""

import json
import re
from typing import Any, NamedTuple

from mlxcache_tui.core.events import TextKind
from mlxcache_tui.core.text import clean, clean_block

ERROR_LENGTH = 300
"""Characters of a server's own error text that are shown."""


class Text(NamedTuple):
    """A piece of text. Empty when the event carried something of this kind that is not shown (a `<think>` tag)."""

    kind: TextKind
    text: str


class Held(NamedTuple):
    """The event carried text whose kind is not known yet (the first half of a tag); it comes with a later `Text`."""


class Finish(NamedTuple):
    """A choice ended; `reason` as the server words it (`stop`, `length`, `tool_calls` …)."""

    reason: str


class Usage(NamedTuple):
    """Token counts; None: missing or null."""

    prompt: int | None
    output: int | None
    cached: int | None


class Identity(NamedTuple):
    """Versions of an mlx_lm server, from `system_fingerprint`."""

    mlx_lm: str
    mlx: str
    platform: str


class Progress(NamedTuple):
    """Prefill: `done` of the `total` prompt tokens that were not cached."""

    done: int
    total: int


class Failure(NamedTuple):
    """An error that the server reports, or a reply without what makes it one; one line."""

    text: str


class Unreadable(NamedTuple):
    """A stream event that is not JSON; one line. At the end of a stream it may be half of an event."""

    text: str


class Done(NamedTuple):
    """`[DONE]`: the stream is complete."""


Fact = Text | Held | Finish | Usage | Identity | Failure | Unreadable | Done

_KEEPALIVE = re.compile(r"\s*keepalive (\d{1,12})/(\d{1,12})\s*", re.ASCII)
_VERSION = r"\d+\.\d+[0-9A-Za-z.+]*(?:-(?:dev|alpha|beta|rc|post|a|b)[0-9A-Za-z.+]*)?"
_FINGERPRINT = re.compile(rf"({_VERSION})-({_VERSION})-([A-Za-z]\w*-.+)", re.ASCII)


def progress_of(comment: str) -> Progress | None:
    """The prefill step in a comment `keepalive x/y`; None for any other comment."""
    match = _KEEPALIVE.fullmatch(comment)
    return Progress(int(match[1]), int(match[2])) if match else None


def identity_of(fingerprint: object) -> Identity | None:
    """The versions in an mlx_lm fingerprint `MLX_LM-MLX-PLATFORM…`; None for what other servers write there."""
    match = _FINGERPRINT.fullmatch(fingerprint) if isinstance(fingerprint, str) else None
    return Identity(match[1], match[2], one_line(match[3], 120)) if match else None


def error_text(value: object) -> str | None:
    """The message in an error body, as one line: `{"error": text or object}`, `{"message": …}` or `{"detail": …}`."""
    if isinstance(value, dict):
        for name in ("error", "message", "detail", "msg"):
            if value.get(name):
                return error_text(value[name])
        return None
    if isinstance(value, list):
        return error_text(value[0]) if value else None
    return one_line(str(value)) if value is not None else None


def one_line(text: str, length: int = ERROR_LENGTH) -> str:
    """Foreign text as one cleaned line, cut at `length` characters."""
    line = clean(" ".join(text[: length * 8].split()))
    return line if len(line) <= length else line[: length - 1] + "…"


def http_error_line(status: int, content_type: str, body: bytes) -> str:
    """One line for a reply whose status is an error, from a body of JSON, plain text, HTML or nothing."""
    head = f"HTTP {status}"
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return f"{head} with an empty body"
    if "html" in content_type or text[:15].lower().startswith(("<!doctype", "<html")):
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        return f"{head}, a web page" + (f": {one_line(title[1])}" if title else "") + "; is this the right URL?"
    value = _parse(body)
    message = error_text(value) if isinstance(value, dict) else None
    return f"{head}: {message or one_line(text)}"


class ReplyReader:
    """Reads one reply, streamed (`read_data` for each event, `close` at the end) or whole (`read_body`)."""

    def __init__(self) -> None:
        self._tags = _ThinkTags()
        self._tool_calls = 0

    def read_data(self, payload: bytes) -> list[Fact]:
        """The facts in the data of one stream event."""
        if payload.strip() == b"[DONE]":
            return [*self._tags.close(), Done()]
        value = _parse(payload)
        if not isinstance(value, dict):
            return [Unreadable(f"the server sent a stream event that is not JSON: {_excerpt(payload)}")]
        facts: list[Fact] = []
        if value.get("error") or value.get("object") == "error":
            facts.append(Failure(f"the server reported: {error_text(value) or _excerpt(payload)}"))
        choice = _first_choice(value)
        if choice is not None:
            facts += self._texts(choice.get("delta") or choice)
            facts += self._finish(choice)
        return facts + _common(value)

    def read_body(self, payload: bytes) -> list[Fact]:
        """The facts in a whole reply of status 200."""
        if not payload.strip():
            return [Failure("the server answered with an empty body")]
        value = _parse(payload)
        if not isinstance(value, dict):
            return [Failure(f"the server's answer is not JSON: {_excerpt(payload)}")]
        choice = _first_choice(value)
        if choice is None:
            message = error_text(value)
            return [Failure(f"the server reported: {message}" if message else "the server's answer has no choices")]
        facts: list[Fact] = [*self._texts(choice.get("message") or choice), *self._tags.close()]
        return facts + self._finish(choice) + _common(value)

    def close(self) -> list[Fact]:
        """Text that was held back when the stream ended without `[DONE]`."""
        return self._tags.close()

    def _texts(self, part: object) -> list[Fact]:
        if not isinstance(part, dict):
            return []
        facts: list[Fact] = []
        reasoning = part.get("reasoning_content") or part.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            facts.append(_text("reasoning", reasoning))
        content = _plain(part.get("content")) or _plain(part.get("text"))
        if content:
            facts += self._tags.feed(content)
        calls = part.get("tool_calls")
        if isinstance(calls, list) and calls:
            facts += self._tags.close()
            facts += [fact for call in calls if (fact := self._tool_call(call))]
        return facts

    def _tool_call(self, call: object) -> Text | None:
        """A tool call, or its next piece, as text `name arguments`; a new call begins a new line."""
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            return None
        name, arguments = function.get("name"), function.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
        if isinstance(name, str) and name:
            text = ("\n" if self._tool_calls else "") + f"{name} {text}"
            self._tool_calls += 1
        return _text("tool", text) if text else None

    def _finish(self, choice: dict[str, Any]) -> list[Fact]:
        reason = choice.get("finish_reason")
        if not isinstance(reason, str) or not reason:
            return []
        return [*self._tags.close(), Finish(one_line(reason, 40))]


class _ThinkTags:
    """Splits content at `<think>…</think>` where the content begins with it, tags cut anywhere.

    Only at the beginning, since a later `<think>` is an answer that speaks about the tag.
    """

    _OPEN, _CLOSE = "<think>", "</think>"

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""

    def feed(self, content: str) -> list[Fact]:
        content, self._held = self._held + content, ""
        if self._state == "start":
            return self._begin(content)
        if self._state == "answer":
            return [_text("answer", content)]
        return self._think(content)

    def close(self) -> list[Fact]:
        """Give out what is held; a tag that never became whole was text."""
        held, self._held = self._held, ""
        if not held:
            return []
        if self._state == "start":
            self._state = "answer"
        return [_text("reasoning" if self._state == "think" else "answer", held)]

    def _begin(self, content: str) -> list[Fact]:
        visible = content.lstrip()
        if visible.startswith(self._OPEN):
            self._state = "think"
            rest = visible.removeprefix(self._OPEN)
            return self._think(rest) if rest else [Text("reasoning", "")]
        if self._OPEN.startswith(visible) and len(content) < 256:
            self._held = content
            return [Held()]
        self._state = "answer"
        return [_text("answer", content)]

    def _think(self, content: str) -> list[Fact]:
        thought, tag, answer = content.partition(self._CLOSE)
        if tag:
            self._state = "answer"
            facts: list[Fact] = [_text("reasoning", thought)] if thought or not answer else []
            return [*facts, _text("answer", answer)] if answer else facts
        keep = _tag_start(content, self._CLOSE)
        self._held = content[keep:]
        return [_text("reasoning", content[:keep])]


def _tag_start(content: str, tag: str) -> int:
    """Where the end of `content` could be the first part of `tag`; its length if nowhere."""
    for size in range(min(len(tag) - 1, len(content)), 0, -1):
        if tag.startswith(content[-size:]):
            return len(content) - size
    return len(content)


def _common(value: dict[str, Any]) -> list[Fact]:
    facts: list[Fact] = []
    if (usage := _usage(value)) is not None:
        facts.append(usage)
    if (identity := identity_of(value.get("system_fingerprint"))) is not None:
        facts.append(identity)
    return facts


def _usage(value: dict[str, Any]) -> Usage | None:
    usage = value.get("usage")
    if not isinstance(usage, dict):
        return None
    details, timings = usage.get("prompt_tokens_details"), value.get("timings")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    if cached is None and isinstance(timings, dict):
        cached = _count(timings.get("cache_n"))  # llama.cpp's own place for it
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), cached)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _first_choice(value: dict[str, Any]) -> dict[str, Any] | None:
    choices = value.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index") in (0, None):
            return choice
    return None


def _plain(content: object) -> str:
    """Content that is a string, or a list of parts with a text each."""
    if isinstance(content, list):
        return "".join(_plain(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _text(kind: TextKind, text: str) -> Text:
    return Text(kind, clean_block(text))


def _excerpt(payload: bytes) -> str:
    return one_line(payload[:400].decode("utf-8", "replace"), 80)


def _parse(payload: bytes) -> object:
    """The JSON value, or None. The standard library's parser, since servers in Python write NaN and -Infinity."""
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return None
