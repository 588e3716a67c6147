"""Run mlx_lm.server and tell viewers what its prompt cache and its requests do.

    PYTHON observe.py --socket PATH [--leash] [--log-path PATH] -- <flags of mlx_lm.server>

One file, standard library and the installed mlx_lm only, so that it runs under another Python (3.10 or newer) and with
another mlx-lm than the viewer's. It wraps functions of the installed server and changes nothing of what they do.

How it keeps out of the server's way: a hook stamps the time and puts a small tuple on a queue; the `Hub` thread does
the rest (comparing token lists, encoding, sending). Sending never waits: a viewer that does not read loses events, and
is told how many. An error in a hook is told once and the server's own code goes on; a hook that cannot be set in this
mlx-lm version is named as missing. No hook keeps a reference to a KV cache or an array.

The lines that go out are events of `core/events/`: one JSON object a line, its kind in `t`, origin `observer`.
"""

import argparse
import atexit
import collections
import functools
import hashlib
import importlib
import itertools
import json
import logging
import os
import platform
import queue
import re
import select
import signal
import socket
import stat
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

PROTOCOL = 1
HISTORY_EVENTS = 20_000
HISTORY_BYTES = 16 << 20
TEXT_BYTES = 64 << 20
VIEWER_BYTES = 8 << 20
VIEWERS = 16
SEND_BYTES = 256 << 10
QUEUE_EVENTS = 100_000
BATCH_EVENTS = 500
KEPT_PROMPTS = 200
TOLD_REQUESTS = 200
KEPT_PROMPT_BYTES = 32 << 20
ANSWER_CHARS = 64 << 10
PARAM_CHARS = 16 << 10
META_BYTES = 2 << 10
TEXT_EVERY_NS = 200_000_000
SAMPLE_EVERY_S = 1.0
GATHER_S = 0.02
"""The hub waits this long after a first event: what comes in bursts is done in one go, while the server computes."""
GREET_AFTER_S = 10.0
"""A viewer that connects before the server has read its flags is greeted then, or after this time without them."""
LEASH_PATIENCE_S = 1.0
EXIT_USAGE = 2
EXIT_NO_SERVER = 3

KEY_HEADER = "X-Mlxcache-Request"
META_HEADER = "X-Mlxcache-Meta"
KEY_FORM = re.compile(r"[A-Za-z0-9:._-]{1,64}")
KEY_ATTRIBUTE = "mlxcache_key"
SEEN_KEYS = 10_000
ENTRY_ATTRIBUTE = "mlxcache_entry"
ENTRIES_HOOKS = {"PromptTrie.add", "CacheOrder.push"}
"""Without one of these hooks nothing is known of the entries, and no snapshot of them is sent."""
CONTROL_MARKS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {ord("\\"): "\\\\"}
"""As the HTTP server writes control characters in its access lines."""
PURPOSES = ("send", "scenario", "readiness", "warm", "foreign")
TOKEN = array("q").itemsize
"""Bytes of one token as it is kept here: prompts with images have ids beyond 32 bits."""

NO_LIMIT = 1 << 62
STARTED_NS = time.monotonic_ns()
Fields = dict[str, Any]

# --- small things ----------------------------------------------------------------------------------------------------


def one_line(text: str, limit: int = 300) -> str:
    """Text from outside as one printable line of at most `limit` characters."""
    text = text[: 4 * limit]
    if not text.isprintable():
        text = "".join(mark if mark.isprintable() else " " for mark in text)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def error_line(error: BaseException) -> str:
    """An exception as one line."""
    text = one_line(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str).encode


def encode(kind: str, at_ns: int, fields: Fields) -> bytes:
    """One event as one line. Lone surrogates, which JSON bodies may carry, become question marks."""
    event = {"t": kind, "at_ns": at_ns, "origin": "observer", **fields}
    return to_json(event).encode("utf-8", "replace") + b"\n"


def text_id_of(text: str) -> str:
    """The name of a message text, as `core.codec.text_id_of` gives it."""
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]


def bounded(value: Any, chars: int = PARAM_CHARS) -> Any:
    """A copy of a JSON value with at most about `chars` characters in it, six levels deep, and no NaN."""
    left = [chars]

    def walk(item: Any, depth: int) -> Any:
        left[0] -= 8
        if left[0] < 0:
            return "[…]"
        if item is None or isinstance(item, bool):
            return item
        if isinstance(item, int):
            return item if -(1 << 63) <= item < 1 << 63 else one_line(str(item), 100)
        if isinstance(item, float):
            return item if item - item == 0 else None
        if isinstance(item, (dict, list, tuple)) and depth == 0:
            return "[…]"
        if isinstance(item, dict):
            return {str(name)[:100]: walk(part, depth - 1) for name, part in item.items() if left[0] >= 0}
        if isinstance(item, (list, tuple)):
            return [walk(part, depth - 1) for part in item if left[0] >= 0]
        text = item if isinstance(item, str) else str(item)
        kept = text[: left[0]]
        left[0] -= len(kept)
        return kept if len(kept) == len(text) else kept + "[…]"

    return walk(value, 6)


class Here(threading.local):
    """What this thread is doing: the request that it serves, and whether on the sequential path."""

    exchange: "Exchange | None" = None
    key: str | None = None
    single: bool = False


here = Here()


class Guard:
    """`with guard:` around code of ours inside the server: an error is told once and goes no further."""

    def __init__(self, hub: "Hub", name: str) -> None:
        self._hub, self._name, self._told = hub, name, False

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.tell(error)
        return True

    def tell(self, error: Exception) -> None:
        """Say what went wrong, once."""
        if not self._told:
            self._told = True
            self._hub.notice(f"the observer's hook {self._name} failed ({error_line(error)}); the server goes on")


# --- token lists -----------------------------------------------------------------------------------------------------


def common_bytes(a: bytes, b: bytes) -> int:
    """Length of the common start of two token arrays, in bytes, a multiple of `TOKEN`."""
    size, low, step = min(len(a), len(b)), 0, 64 * TOKEN
    while low < size:
        high = min(low + step, size)
        if a[low:high] != b[low:high]:
            break
        low, step = high, step * 2
    else:
        return size
    while high - low > TOKEN:
        middle = low + (high - low) // (2 * TOKEN) * TOKEN
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


class Prompts:
    """The tokens of the last requests, to say of a new one what it shares with which."""

    def __init__(self) -> None:
        self._kept: collections.OrderedDict[str, bytes] = collections.OrderedDict()
        self._bytes = 0

    def add(self, key: str, tokens: list[int]) -> Fields:
        """Keep a prompt; returns it as a `TokenRun` against the most similar earlier one (of equals the latest)."""
        data = array("q", tokens).tobytes()
        base, shared = self._closest(data)
        self._bytes += len(data) - len(self._kept.pop(key, b""))
        self._kept[key] = data
        while len(self._kept) > 1 and (len(self._kept) > KEPT_PROMPTS or self._bytes > KEPT_PROMPT_BYTES):
            self._bytes -= len(self._kept.popitem(last=False)[1])
        return _run(tokens, base, shared)

    def entry_run(self, key: str | None, tokens: list[int]) -> tuple[str | None, Fields]:
        """The request that made an entry (if not known: the one whose prompt fits), and the entry as a `TokenRun`."""
        data = array("q", tokens).tobytes()
        if key is None:
            for candidate, prompt in reversed(self._kept.items()):
                if prompt.startswith(data) or data.startswith(prompt):
                    key = candidate
                    break
        if key is None or key not in self._kept:
            return key, _run(tokens, None, 0)
        return key, _run(tokens, key, common_bytes(self._kept[key], data) // TOKEN)

    def first(self, key: str, count: int) -> list[int] | None:
        """The first tokens of a kept prompt."""
        data = self._kept.get(key)
        return None if data is None else array("q", data[: count * TOKEN]).tolist()

    def _closest(self, data: bytes) -> tuple[str | None, int]:
        base, best = None, 0
        start = data[:TOKEN]
        for key, prompt in reversed(self._kept.items()):
            if best == len(data):
                break
            if prompt.startswith(start):
                base, best = key, common_bytes(prompt, data)
                start = data[: best + TOKEN]
        return base, best // TOKEN


def _run(tokens: list[int], base: str | None, shared: int) -> Fields:
    run: Fields = {"count": len(tokens), "new": tokens[shared:]}
    return run | {"base": base, "shared": shared} if shared else run


# --- what a viewer that comes late is told ---------------------------------------------------------------------------


class Entries:
    """The stored entries, folded from the same events that viewers get."""

    def __init__(self) -> None:
        self._entries: dict[int, Fields] = {}
        self._bytes = 0

    def insert(self, state: Fields, replaced: int | None) -> None:
        self.remove(replaced)
        self._entries[state["entry"]] = state
        self._bytes += state["bytes"]

    def remove(self, entry: int | None) -> None:
        gone = self._entries.pop(entry, None) if entry is not None else None
        self._bytes -= gone["bytes"] if gone else 0

    def totals(self) -> tuple[int, int]:
        """Entries and their bytes."""
        return len(self._entries), self._bytes

    def snapshot(self) -> Fields:
        return {"entries": list(self._entries.values()), "bytes": self._bytes}


class History:
    """The last events and the message texts, bounded by count and bytes."""

    STICKY = ("ModelLoaded", "ModelLoadFailed", "WorkerDied")

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts
        self._lines: collections.deque[tuple[int, str, bytes, str | None, str | None]] = collections.deque()
        self._bytes = 0
        self._numbers = itertools.count()
        self._sticky: dict[str, tuple[int, bytes]] = {}
        self._texts: collections.OrderedDict[str, tuple[bytes, int]] = collections.OrderedDict()
        self._requests = 0
        self._text_bytes = 0

    def add(self, kind: str, line: bytes, fields: Fields) -> None:
        base = fields["tokens"].get("base") if "tokens" in fields else None
        number = next(self._numbers)
        self._lines.append((number, kind, line, fields.get("key"), base))
        self._bytes += len(line)
        self._requests += kind == "RequestComposed"
        while len(self._lines) > HISTORY_EVENTS or self._bytes > HISTORY_BYTES:
            self._bytes -= len(self._lines.popleft()[2])
        if kind in self.STICKY:
            if kind == "ModelLoaded":
                self._sticky.pop("ModelLoadFailed", None)
            self._sticky[kind] = (number, line)

    def knows_text(self, text_id: str) -> bool:
        """Whether viewers have the text. One that no request had lately they may have let go."""
        if text_id not in self._texts:
            return False
        line, used = self._texts[text_id]
        self._texts[text_id] = line, self._requests
        self._texts.move_to_end(text_id)
        return self._requests - used <= TOLD_REQUESTS

    def add_text(self, text_id: str, line: bytes) -> None:
        self._text_bytes += len(line) - len(self._texts.pop(text_id, (b"", 0))[0])
        self._texts[text_id] = line, self._requests
        while self._text_bytes > TEXT_BYTES:
            self._text_bytes -= len(self._texts.popitem(last=False)[1][0])

    def greeting(self) -> Iterator[bytes]:
        """Texts, then events; token runs whose base is no longer told of are written out in full where possible."""
        yield from (line for line, _ in self._texts.values())
        told: set[str | None] = set()
        for _, kind, line, key, base in self._lines:
            yield self._without_base(line) if base is not None and base not in told else line
            if kind == "LookedUp":
                told.add(key)
        first = self._lines[0][0] if self._lines else 0
        yield from (line for number, line in self._sticky.values() if number < first)

    def _without_base(self, line: bytes) -> bytes:
        event = json.loads(line)
        run = event["tokens"]
        start = self._prompts.first(run["base"], run["shared"])
        if start is None or len(start) < run["shared"]:
            return line
        event["tokens"] = {"count": run["count"], "new": start + run["new"]}
        return to_json(event).encode() + b"\n"


class Viewer:
    """One connected viewer: what was not sent to it yet, and how much it lost."""

    def __init__(self, connection: socket.socket, greeting: list[bytes]) -> None:
        connection.setblocking(False)
        self.connection = connection
        self._pending = collections.deque(greeting)
        self.size = self._greeting = sum(map(len, greeting))
        self.lost = 0

    @property
    def behind(self) -> bool:
        return bool(self._pending)

    @property
    def ready_again(self) -> bool:
        """It lost events and has read most of the rest by now."""
        return self.lost > 0 and self.size < VIEWER_BYTES // 2

    def add(self, line: bytes) -> None:
        if self.lost or self.size + len(line) > VIEWER_BYTES + self._greeting:
            self.lost += 1
        else:
            self.put(line)

    def put(self, line: bytes) -> None:
        self._pending.append(line)
        self.size += len(line)

    def flush(self) -> bool:
        """Send what it takes now; False when it has gone."""
        try:
            while self._pending:
                block = self._block()
                sent = self.connection.send(block)
                self.size -= sent
                self._greeting = min(self._greeting, self.size)
                if sent < len(block):
                    self._pending.appendleft(block[sent:])
        except BlockingIOError:
            self._pending.appendleft(block)
        except OSError:
            return False
        return True

    def _block(self) -> bytes:
        parts, size = [], 0
        while self._pending and size < SEND_BYTES:
            parts.append(self._pending.popleft())
            size += len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def has_left(self) -> bool:
        try:
            return self.connection.recv(4096) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


# --- the hub: the one thread that encodes and sends ------------------------------------------------------------------


class Hub:
    """Takes what the hooks put on the queue, in order, and tells every viewer."""

    def __init__(self, log_path: str | None = None) -> None:
        self.queue: queue.SimpleQueue[tuple[int, str, Fields]] = queue.SimpleQueue()
        self.hooks: list[str] = []
        self.missing: list[str] = []
        self.memory: Callable[[], Fields] | None = None
        self.versions: Fields = {"mlx_lm": None, "mlx": None}
        self._log_path = log_path
        self._overflow = 0
        self._prompts = Prompts()
        self._entries = Entries()
        self._history = History(self._prompts)
        self._names = TokenNames()
        self._names_guard = Guard(self, "token names")
        self._viewers: list[Viewer] = []
        self._waiting: list[socket.socket] = []
        self._flags: Fields | None = None
        self._max_count: int | None = None
        self._max_bytes: int | None = None
        self._differs_told = False
        self._sampled_at = 0.0
        self._last_sample: Fields | None = None
        self._guard = Guard(self, "hub")
        self._inner: dict[str, Callable[[int, Fields], None]] = {
            "_viewer": self._take_viewer,
            "_flags": self._take_flags,
            "_limits": self._take_limits,
            "_composed": self._take_composed,
            "_lookup": self._take_lookup,
            "_tokenizer": self._take_tokenizer,
            "_cache": self._take_cache,
        }

    # called from any thread

    def tell(self, kind: str, at_ns: int | None = None, /, **fields: Any) -> None:
        """An event for the viewers (or, with a leading underscore, news for this hub). Never waits."""
        if self.queue.qsize() < QUEUE_EVENTS:
            self.queue.put((time.monotonic_ns() if at_ns is None else at_ns, kind, fields))
        else:
            self._overflow += 1

    def notice(self, text: str) -> None:
        self.tell("Noticed", level="warning", pane="server", text=text)

    def start(self) -> None:
        threading.Thread(target=self._run, name="mlxcache-hub", daemon=True).start()

    # the thread

    def _run(self) -> None:
        while True:
            item = self._next()
            left = BATCH_EVENTS
            while item is not None:
                with self._guard:
                    self._take(*item)
                left -= 1
                # A burst of long texts is sent while it is worked off, so that a viewer that reads loses nothing.
                if left == 0 or any(viewer.size > SEND_BYTES for viewer in self._viewers):
                    break
                item = self._waiting_item()
            with self._guard:
                self._tick()

    def _next(self) -> tuple[int, str, Fields] | None:
        slow = [viewer for viewer in self._viewers if viewer.behind]
        if slow:
            item = self._waiting_item()
            if item is None:
                poll = select.poll()
                for viewer in slow:
                    poll.register(viewer.connection, select.POLLOUT)
                poll.poll(10)
            return item or self._waiting_item()
        try:
            item = self.queue.get(timeout=max(0.01, self._sampled_at + SAMPLE_EVERY_S - time.monotonic()))
        except queue.Empty:
            return None
        time.sleep(GATHER_S)
        return item

    def _waiting_item(self) -> tuple[int, str, Fields] | None:
        try:
            return self.queue.get_nowait()
        except queue.Empty:
            return None

    def _take(self, at_ns: int, kind: str, fields: Fields) -> None:
        inner = self._inner.get(kind)
        if inner is not None:
            inner(at_ns, fields)
            return
        self._send(kind, at_ns, fields)
        if kind == "RequestEnded":
            self._sample()

    def _send(self, kind: str, at_ns: int, fields: Fields) -> None:
        line = encode(kind, at_ns, fields)
        self._history.add(kind, line, fields)
        self._broadcast(line)

    def _broadcast(self, line: bytes) -> None:
        for viewer in self._viewers:
            viewer.add(line)

    def _tick(self) -> None:
        now = time.monotonic()
        if self._waiting and (self._flags is not None or now * 1e9 - STARTED_NS > GREET_AFTER_S * 1e9):
            waiting, self._waiting = self._waiting, []
            for connection in waiting:
                self._greet(connection)
        if self._overflow:
            count, self._overflow = self._overflow, 0
            self._broadcast(encode("EventsLost", time.monotonic_ns(), {"count": count}))
        second = now - self._sampled_at >= SAMPLE_EVERY_S
        if second:
            self._sampled_at = now
            self._sample()
        for viewer in list(self._viewers):
            if viewer.ready_again:
                self._tell_loss(viewer)
            if not viewer.flush() or (second and viewer.has_left()):
                self._viewers.remove(viewer)
                viewer.connection.close()

    def _tell_loss(self, viewer: Viewer) -> None:
        now = time.monotonic_ns()
        viewer.put(encode("EventsLost", now, {"count": viewer.lost}))
        viewer.lost = 0
        for line in self._snapshot(now):
            viewer.put(line)

    def _sample(self) -> None:
        sample = self.memory() if self.memory else None
        if sample is not None and sample != self._last_sample:
            self._last_sample = sample
            self._send("MlxMemorySampled", time.monotonic_ns(), sample)

    # viewers

    def _take_viewer(self, _: int, fields: Fields) -> None:
        self._waiting.append(fields["connection"])

    def _greet(self, connection: socket.socket) -> None:
        if len(self._viewers) >= VIEWERS:
            connection.close()
            return
        now = time.monotonic_ns()
        hello: Fields = {
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "python": platform.python_version(),
            "hooks": self.hooks,
            "missing": self.missing,
            "flags": self._flags or {},
            "log_path": self._log_path,
            "started_ns": STARTED_NS,
            **self.versions,
        }
        greeting = [encode("ObserverConnected", now, hello), *self._names.greeting(now), *self._history.greeting()]
        greeting += self._snapshot(now)
        self._viewers.append(Viewer(connection, greeting))

    def _snapshot(self, now: int) -> list[bytes]:
        known = not ENTRIES_HOOKS.isdisjoint(self.hooks) and self._max_count is not None
        limits = {"max_count": self._max_count, "max_bytes": self._max_bytes}
        return [encode("CacheSnapshot", now, {**self._entries.snapshot(), **limits})] if known else []

    # news from the hooks that need work before they are events

    def _take_flags(self, _: int, fields: Fields) -> None:
        self._flags = bounded(fields["flags"])
        size, limit = fields["flags"].get("prompt_cache_size"), fields["flags"].get("prompt_cache_bytes")
        self._max_count = size if isinstance(size, int) else self._max_count
        self._max_bytes = limit if isinstance(limit, int) else self._max_bytes

    def _take_limits(self, _: int, fields: Fields) -> None:
        self._max_count = fields["max_count"]
        if fields["max_bytes"] < NO_LIMIT:
            self._max_bytes = fields["max_bytes"]

    def _take_composed(self, at_ns: int, fields: Fields) -> None:
        named = []
        for role, text in fields.pop("texts"):
            text_id = text_id_of(text)
            if not self._history.knows_text(text_id):
                line = encode("TextKept", at_ns, {"text_id": text_id, "text": text})
                self._history.add_text(text_id, line)
                self._broadcast(line)
            named.append((role, text_id))
        params = fields.pop("params")
        tools = params.get("tools")
        if isinstance(tools, list) and len(repr(tools[:20])) > PARAM_CHARS // 4:
            params = {**params, "tools": len(tools)}
        self._send("RequestComposed", at_ns, {**fields, "messages": named, "params": bounded(params)})
        self._send("RequestSent", at_ns, {"key": fields["key"]})

    def _take_tokenizer(self, _: int, fields: Fields) -> None:
        self._names.tokenizer = fields["tokenizer"]

    def _take_lookup(self, at_ns: int, fields: Fields) -> None:
        model, tokens = fields["model"], fields["tokens"]
        with self._names_guard:
            if line := self._names.line(at_ns, model, tokens):
                self._broadcast(line)
        self._send("LookedUp", at_ns, {**fields, "tokens": self._prompts.add(fields["key"], fields["tokens"])})

    def _take_cache(self, at_ns: int, fields: Fields) -> None:
        key = fields["key"]
        for kind, change in fields["changes"]:
            if kind == "EntryInserted":
                key, run = self._prompts.entry_run(key, change["tokens"])
                change = {**change, "key": key, "tokens": run}
                state = {name: change[name] for name in ("entry", "type", "bytes", "key", "model", "trimmable")}
                self._entries.insert({**state, "tokens": run["count"], "inserted_ns": at_ns}, change["replaced"])
            else:
                if change.get("rule") == "bytes" and self._max_bytes is not None:
                    # trim_to is called with what the running requests leave of the limit; a person knows the limit.
                    change = {**change, "limit": self._max_bytes}
                change = {**change, "key": key}
                self._entries.remove(change["entry"])
            self._send(kind, at_ns, change)
        if self._entries.totals() != fields["totals"] and not self._differs_told:
            self._differs_told = True
            self.notice("the entries that the observer saw differ from the server's own count of its prompt cache")


# --- one HTTP exchange, in the thread that serves it -----------------------------------------------------------------


def text_of(content: Any) -> str:
    """A message's content as text: parts joined, a part that is not text as a mark such as `[image]`."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list):
        return str(bounded(content, 1000))
    pieces = []
    for part in content:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            pieces.append(part["text"])
        else:
            kind = str(part.get("type", "part")) if isinstance(part, dict) else "part"
            pieces.append(f"[{one_line(kind.removeprefix('input_').removesuffix('_url'), 20)}]")
    return "".join(pieces)


def messages_of(body: Any) -> list[tuple[str, str]]:
    """(role, text) of every message of a body; a text completion has one of the role `prompt`."""
    if not isinstance(body, dict):
        return []
    messages = body.get("messages")
    if not isinstance(messages, list):
        return [("prompt", text_of(body["prompt"]))] if "prompt" in body else []
    found = []
    for message in messages:
        known = message if isinstance(message, dict) else {}
        text = text_of(known.get("content"))
        calls = known.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            text += call_text(function if isinstance(function, dict) else {})
        found.append((one_line(str(known.get("role", "?")), 32), text))
    return found


def call_text(function: Fields) -> str:
    """A tool call as text."""
    return (
        f"[call {one_line(str(function.get('name', '?')), 80)}({one_line(str(function.get('arguments', '')), 2000)})]"
    )


def meta_of(text: str | None) -> Fields:
    """What the header of a viewer of ours says of its request; anything wrong in it is passed over."""
    try:
        given = json.loads(text) if text and len(text) <= META_BYTES else {}
    except ValueError:
        return {}
    if not isinstance(given, dict):
        return {}
    meta: Fields = {name: given[name] for name in ("policy", "step", "before", "after") if type(given.get(name)) is str}
    if given.get("purpose") in PURPOSES:
        meta["purpose"] = given["purpose"]
    return meta | {"warmup": given.get("warmup") is True}


class ErrorTap:
    """The reply's file of a failing request: passes everything on and remembers the start of it."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.seen = b""

    def write(self, data: Any) -> Any:
        if len(self.seen) < 8192:
            self.seen += bytes(data[:8192])
        return self.file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def error(self) -> str | None:
        """The error of a JSON body, else the body itself."""
        head, _, body = self.seen.partition(b"\r\n\r\n")
        text = body.decode("utf-8", "replace") if head.startswith(b"HTTP/") else self.seen.decode("utf-8", "replace")
        try:
            told = json.loads(text)
        except ValueError:
            return one_line(text) or None
        told = told.get("error", told) if isinstance(told, dict) else told
        told = told.get("message", told) if isinstance(told, dict) else told
        return one_line(str(told)) or None


class Exchange:
    """One POST from its first line to its end. All methods run in the thread that serves it."""

    def __init__(self, hub: Hub, key: str, ours: bool, handler: Any) -> None:
        self.key = key
        self._hub = hub
        self._ours = ours
        self._started = time.monotonic_ns()
        self._stale_body = getattr(handler, "body", None)
        self._composed = False
        self._streams = False
        self._context: Any = None
        self._status: int | None = None
        self._tap: ErrorTap | None = None
        self._output = 0
        self._finish: str | None = None
        self._finish_told = False
        self._kinds: set[str] = set()
        self._pieces: list[tuple[str, str, int]] = []
        self._piece_ns = self._flush_ns = 0
        self._text_left = ANSWER_CHARS
        self._early_lines: list[tuple[int, str]] = []

    def own_line(self, text: str) -> None:
        """A log line of this request; told after the request itself."""
        self._early_lines.append((time.monotonic_ns(), text))
        if self._composed:
            self._tell_lines()

    def _tell_lines(self) -> None:
        lines, self._early_lines = self._early_lines, []
        for at_ns, text in lines:
            self._hub.tell("LogOwned", at_ns, key=self.key, text=text)

    def compose(self, handler: Any) -> None:
        """Say what is asked for, as soon as the body is known."""
        if self._composed:
            return
        self._composed = True
        body = getattr(handler, "body", None)
        body = None if body is self._stale_body else body
        self._streams = isinstance(body, dict) and bool(body.get("stream"))
        known = body if isinstance(body, dict) else {}
        meta = meta_of(handler.headers.get(META_HEADER)) if self._ours else {}
        agent = handler.headers.get("User-Agent") or ""
        self._hub.tell(
            "_composed",
            self._started,
            **{"purpose": "foreign", **meta},
            key=self.key,
            path=one_line(handler.path, 200),
            texts=messages_of(body),
            params={name: value for name, value in known.items() if name not in ("messages", "prompt")},
            client=one_line(f"{handler.client_address[0]} {agent}", 200),
        )
        self._tell_lines()

    def status_sent(self, handler: Any, status: int) -> None:
        self._status = status
        if status >= 400 and self._tap is None:
            self._tap = handler.wfile = ErrorTap(handler.wfile)

    def admitted(self, context: Any) -> None:
        self._context = context
        self._hub.tell("RequestAdmitted", key=self.key, status=200)

    def progressed(self, done: int, total: int) -> None:
        self._hub.tell("PrefillProgressed", key=self.key, done=min(done, total), total=total)

    def token(self, piece: Any, replies_seen: bool) -> None:
        """A token came from the generation thread."""
        self._output += 1
        self._finish = piece.finish_reason or self._finish
        if not self._kinds and not (self._streams and replies_seen) and piece.text:
            state = getattr(piece, "state", None) or getattr(self._context, "initial_state", None)
            self._first("reasoning" if state == "reasoning" else "answer")

    def replied(self, text: str, reasoning: str, calls: list[Any], finish: str | None) -> None:
        """The server made a piece of its reply (the whole of it, if not streamed)."""
        now = time.monotonic_ns()
        called = "".join(call_text(call.get("function", {})) for call in calls) if calls else ""
        for kind, piece in (("reasoning", reasoning), ("answer", text), ("tool", called)):
            if piece:
                if self._streams and kind not in self._kinds:
                    self._first(kind)
                self._pieces.append((kind, piece, now - self._piece_ns if self._piece_ns else 0))
                self._piece_ns = now
        if finish is not None or now - self._flush_ns >= TEXT_EVERY_NS:
            self._flush()
            self._flush_ns = now
        if finish is not None:
            self._finished(finish)

    def _first(self, kind: str) -> None:
        self._kinds.add(kind)
        self._hub.tell("FirstTokenArrived", key=self.key, kind=kind)

    def _finished(self, reason: str | None) -> None:
        self._finish_told = True
        self._hub.tell("FinishArrived", key=self.key, finish_reason=reason)

    def _flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        for kind, group in itertools.groupby(pieces, key=lambda piece: piece[0]):
            parts = list(group)
            text = "".join(part for _, part, _ in parts)[: self._text_left]
            self._text_left -= len(text)
            if text:
                gaps = [gap for _, _, gap in parts if gap] if self._streams else []
                self._hub.tell("TextArrived", key=self.key, kind=kind, text=text, gaps_ns=gaps)

    def end(self, handler: Any, error: BaseException | None) -> None:
        """Say how it ended; nothing is left dangling, whatever went wrong."""
        if self._tap is not None:
            handler.wfile = self._tap.file
        self.compose(handler)
        self._flush()
        if self._context is not None:
            if self._finish is not None and not self._finish_told:
                self._finished(self._finish)
            cached = getattr(self._context, "prompt_cache_count", -1)
            self._hub.tell(
                "UsageReported",
                key=self.key,
                prompt_tokens=len(self._context.prompt),
                output_tokens=self._output,
                cached_tokens=cached if cached >= 0 else None,
            )
        outcome, text = self._outcome(error)
        output = self._output if self._context is not None else None
        self._hub.tell(
            "RequestEnded", key=self.key, outcome=outcome, status=self._status, error=text, output_tokens=output
        )

    def _outcome(self, error: BaseException | None) -> tuple[str, str | None]:
        if self._tap is not None:
            return "failed", self._tap.error()
        if error is None:
            return ("done", None) if self._status is not None else ("failed", "the server sent no reply")
        if isinstance(error, ConnectionError):
            return "cancelled", "the client went away"
        return ("cut" if self._context is not None else "failed"), error_line(error)


# --- the prompt cache, in the generation thread ----------------------------------------------------------------------


class CacheWatch:
    """What one call of the prompt cache did, pieced together from the calls that it makes to its own trie."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.cli_args: Any = None
        self._numbers = itertools.count(1)
        self._by_cache: dict[int, str] = {}
        self._by_uid: dict[int, str] = {}
        self._by_tokens: dict[tuple[Any, bytes], int] = {}
        self._begin()

    def _begin(self) -> None:
        self._changes: list[tuple[str, Fields]] = []
        self._inserted: int | None = None
        self._length = 0
        self._replaced: int | None = None
        self._prefixes: list[int | None] = []
        self._key: str | None = None
        self._cache: Any = None
        self._max_count = self._max_bytes = NO_LIMIT
        self._found: Any = None
        self._used: tuple[int | None, str] = (None, "none")

    # which request

    def batched(self, uids: list[int], *_: Any, **__: Any) -> None:
        """The request being served joined the batch under this number."""
        if here.key is not None and len(uids) == 1:
            self._by_uid[uids[0]] = here.key
            if len(self._by_uid) > 1000:
                del self._by_uid[next(iter(self._by_uid))]

    def extracted(self, caches: dict[int, Any], *_: Any) -> None:
        """These caches are about to be stored as checkpoints. Their identities are noted, never the caches."""
        for uid, (cache, _) in caches.items():
            if uid in self._by_uid:
                self._by_cache[id(cache)] = self._by_uid[uid]

    def stepped(self, result: Any, *_: Any) -> None:
        """The batch made a step: requests that end hand over their cache to be stored."""
        self._by_cache.clear()
        # Before 0.31.2 there is one list; now what is read and what is generated come apart.
        responses = result[1] if isinstance(result, tuple) else result or ()
        for response in responses:
            if response.finish_reason is not None:
                key = self._by_uid.pop(response.uid, None)
                if key is not None:
                    self._by_cache[id(response.prompt_cache)] = key

    def _name_of(self, model: Any) -> str | None:
        """A model key as one string. Before 0.31.3 its parts may be `default_model`: what the flags say."""
        if self.cli_args is not None and isinstance(model, tuple) and "default_model" in model:
            names = load_names(self.cli_args, *model)
            model = (names["model"], names["adapter"], names["draft"])
        return model_name(model)

    # look-up

    def begin_lookup(self, *_: Any) -> None:
        self._begin()

    def searched(self, result: Any, *_: Any) -> None:
        self._found = result

    def got(self, entry: Any, _trie: Any, _model: Any, tokens: Any) -> None:
        if self._found is not None:
            ways = (("exact", self._found.exact), ("trimmed", self._found.longer), ("extended", self._found.shorter))
            how = next((name for name, way in ways if tokens is way), "none")
            # The trie also calls an entry of one token, which cannot be its `shorter`, a longer one.
            how = "extended" if how == "trimmed" and len(tokens) == self._found.common_prefix else how
            self._used = (getattr(entry, ENTRY_ATTRIBUTE, None), how)

    def end_lookup(self, result: Any, _cache: Any, model: Any, tokens: list[int]) -> None:
        entry, how = self._used if result[0] is not None else (None, "none")
        self._begin()
        if here.key is not None:
            self._hub.tell(
                "_lookup",
                key=here.key,
                tokens=list(tokens),
                cached_tokens=len(tokens) - len(result[1]),
                how=how,
                entry=entry,
                path="sequential" if here.single else "batched",
                model=self._name_of(model),
            )

    # changes

    def begin_insert(self, cache: Any, _model: Any, _tokens: Any, prompt_cache: Any, **_: Any) -> None:
        self._begin()
        self._key = self._by_cache.pop(id(prompt_cache), here.key if here.single else None)
        self._cache, self._max_count, self._max_bytes = cache, cache.max_size, cache.max_bytes

    def begin_trim(self, cache: Any, *, n_sequences: int | None = None, n_bytes: int | None = None) -> None:
        self._begin()
        self._key = here.key
        self._cache = cache
        self._max_count = NO_LIMIT if n_sequences is None else max(0, n_sequences)
        self._max_bytes = NO_LIMIT if n_bytes is None else max(0, n_bytes)

    def added(self, previous: Any, _trie: Any, model: Any, tokens: list[int], entry: Any) -> None:
        self._add(model, tokens, entry, entry.cache_type, getattr(previous, ENTRY_ATTRIBUTE, None))

    def _add(self, model: Any, tokens: list[int], entry: Any, kind: str, replaced: int | None) -> None:
        self._inserted = next(self._numbers)
        setattr(entry, ENTRY_ATTRIBUTE, self._inserted)
        fields: Fields = {
            "entry": self._inserted,
            "type": kind,
            "tokens": tokens,
            "bytes": int(entry.nbytes),
            "model": self._name_of(model),
            "trimmable": all(layer.is_trimmable() for layer in entry.prompt_cache),
            "replaced": replaced,
        }
        self._changes.append(("EntryInserted", fields))

    def swallowed(self, gone: list[Any], *_: Any) -> None:
        for _, entry in gone:
            change = {"entry": getattr(entry, ENTRY_ATTRIBUTE), "by": self._inserted}
            self._changes.append(("EntrySwallowed", change))

    def popped(self, entry: Any, *_: Any) -> None:
        if self._cache is not None:
            self._evict(getattr(entry, ENTRY_ATTRIBUTE))

    def _evict(self, entry: int | None) -> None:
        """The limit threw an entry out: the count limit, if there were too many just before, else the byte limit."""
        by_count = len(self._cache) + 1 > self._max_count
        rule, limit = ("count", self._max_count) if by_count else ("bytes", self._max_bytes)
        self._changes.append(("EntryEvicted", {"entry": entry, "rule": rule, "limit": limit}))

    # changes before 0.31.2: the class keeps its entries by itself, so they are followed by its two queues

    def begin_queueing(self, cache: Any, model: Any, tokens: list[int], prompt_cache: Any, *_: Any, **__: Any) -> None:
        self.begin_insert(cache, model, tokens, prompt_cache)
        self._length = len(tokens)

    def unqueued(self, _: None, _order: Any, model: Any, tokens: list[int]) -> None:
        """A prefix of what is being inserted makes room, or the identical sequence does, to be queued anew."""
        entry = self._by_tokens.pop(tokens_key(model, tokens), None)
        if len(tokens) == self._length:
            self._replaced = entry
        else:
            self._prefixes.append(entry)

    def queued(self, _: None, _order: Any, model: Any, tokens: list[int], checkpoint: bool = False) -> None:
        entry = self._cache._get(model, tokens)
        self._add(model, tokens, entry, "user" if checkpoint else "assistant", self._replaced)
        for prefix in self._prefixes:
            self._changes.append(("EntrySwallowed", {"entry": prefix, "by": self._inserted}))
        if self._inserted is not None:
            self._by_tokens[tokens_key(model, tokens)] = self._inserted

    def dequeued(self, gone: tuple[Any, list[int]], *_: Any) -> None:
        self._evict(self._by_tokens.pop(tokens_key(*gone), None))

    def end_change(self, _error: BaseException | None, cache: Any, *_: Any, **__: Any) -> None:
        changes, key = self._changes, self._key
        self._begin()
        if changes:
            self._hub.tell("_cache", key=key, changes=changes, totals=(len(cache), int(cache.nbytes)))


def tokens_key(model: Any, tokens: list[int]) -> tuple[Any, bytes]:
    """What an entry is known by where its object is not at hand."""
    return model, hashlib.sha1(array("q", tokens).tobytes(), usedforsecurity=False).digest()


def model_name(model: Any) -> str | None:
    """A model key of the server, (path, adapter, draft), as one string."""
    if not isinstance(model, tuple) or not model:
        return None if model is None else str(model)
    parts = [f"{word} {part}" for word, part in zip(("adapter", "draft"), model[1:], strict=False) if part]
    return " + ".join([str(model[0]), *parts])


# --- the model -------------------------------------------------------------------------------------------------------


def layers_of(model: Any) -> list[Any]:
    """The layers of a fresh cache, those inside others too."""
    make = importlib.import_module("mlx_lm.models.cache").make_prompt_cache
    waiting, found = list(make(model)), []
    while waiting:
        layer = waiting.pop(0)
        inner = getattr(layer, "caches", None)
        if isinstance(inner, (list, tuple)):
            waiting[:0] = inner
        else:
            found.append(layer)
    return found


def cache_facts(model: Any) -> Fields:
    """Layers by class; whether entries can always be cut back (a window cannot once it has wrapped)."""
    layers = layers_of(model)
    windows = [layer.max_size for layer in layers if isinstance(getattr(layer, "max_size", None), int)]
    return {
        "layers": dict(collections.Counter(type(layer).__name__ for layer in layers)),
        "trimmable": not windows and all(layer.is_trimmable() for layer in layers),
        "sliding_window": min(windows) if windows else None,
    }


def weights_bytes(*models: Any) -> int:
    flatten = importlib.import_module("mlx.utils").tree_flatten
    return sum(int(array.nbytes) for model in models if model is not None for _, array in flatten(model.parameters()))


def thinking_facts(tokenizer: Any) -> Fields:
    template = tokenizer.chat_template
    text = json.dumps(template) if isinstance(template, (dict, list)) else template
    switch = "enable_thinking" in text if isinstance(text, str) else None
    return {"has_thinking": bool(tokenizer.has_thinking), "thinking_switch": switch}


def head_facts(tokenizer: Any, template_args: Any) -> Fields:
    """Tokens that two prompts share through the template alone: texts that differ from their first letter on."""
    if not getattr(tokenizer, "has_chat_template", True):
        return {}
    extra = template_args if isinstance(template_args, dict) else {}

    def shared(*pair: list[Fields]) -> int:
        sides = []
        for messages in pair:
            tokens = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, **extra)
            sides.append(array("q", tokens["input_ids"] if hasattr(tokens, "keys") else tokens).tobytes())
        return common_bytes(*sides) // TOKEN

    texts = ("Zebras run.", "9 plums fell")
    systems = [[{"role": "system", "content": text}, {"role": "user", "content": text}] for text in texts]
    users = [[{"role": "user", "content": text}] for text in texts]
    return {"head_tokens_no_system": shared(*users), "head_tokens": shared(*systems)}


def model_facts(provider: Any, hub: Hub) -> Fields:
    """All that can be told of the loaded model; what cannot is left out (unknown)."""
    facts: Fields = {}
    parts: dict[str, Callable[[], Fields]] = {
        "layers": lambda: cache_facts(provider.model),
        "weights": lambda: {"weights_bytes": weights_bytes(provider.model, provider.draft_model)},
        "batching": lambda: {
            "batchable": bool(provider.is_batchable) and getattr(provider.cli_args, "kv_bits", None) is None
        },
        "thinking": lambda: thinking_facts(provider.tokenizer),
        "template": lambda: head_facts(provider.tokenizer, getattr(provider.cli_args, "chat_template_args", None)),
    }
    for name, part in parts.items():
        with Guard(hub, f"model facts ({name})"):
            facts.update(part())
    return facts


# --- hooks -----------------------------------------------------------------------------------------------------------


def wrapped(original: Any, guard: Guard, before: Any, after: Any, ended: Any) -> Any:
    """`original` with ours around it: `before(*args)`; then `after(result, *args)`, or always `ended(error, *args)`."""

    @functools.wraps(original)
    def plain(*args: Any, **kwargs: Any) -> Any:
        # Not `with guard`: some of these run for each token, and entering and leaving it costs as much as our own work.
        if before is not None:
            try:
                before(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on
                guard.tell(error)
        result = original(*args, **kwargs)
        if after is not None:
            try:
                after(result, *args, **kwargs)
            except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on
                guard.tell(error)
        return result

    @functools.wraps(original)
    def closed(*args: Any, **kwargs: Any) -> Any:
        error = None
        try:
            return plain(*args, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            with guard:
                ended(error, *args, **kwargs)
            del error

    return plain if ended is None else closed


class Hooks:
    """Sets the hooks: each wraps one function of the server, ours guarded, the original called as it was."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._watch = CacheWatch(hub)
        self._numbers = itertools.count(1)
        self._keys: collections.OrderedDict[str, None] = collections.OrderedDict()
        self._load_started = 0

    def install(self, server: Any, cache: Any) -> None:
        """Wrap what this version of mlx_lm has.

        Args:
            server: the module `mlx_lm.server`.
            cache: the module that defines `PromptTrie` (`mlx_lm.models.cache`).
        """
        groups: dict[str, Callable[[], None]] = {
            "requests": lambda: self._hook_requests(getattr(server, "APIHandler", None)),
            "generator": lambda: self._hook_generator(
                getattr(server, "ResponseGenerator", None), getattr(server, "BatchGenerator", None)
            ),
            "cache": lambda: self._hook_cache(
                getattr(server, "LRUPromptCache", None), getattr(cache, "PromptTrie", None)
            ),
            "model": lambda: self._hook_model(getattr(server, "ModelProvider", None)),
            "log": self._hook_log,
        }
        for name, hook in groups.items():
            with Guard(self._hub, f"group {name}"):
                hook()

    def _set(
        self,
        owner: Any,
        label: str,
        before: Any = None,
        after: Any = None,
        ended: Any = None,
        around: Callable[[Any, Guard], Any] | None = None,
    ) -> bool:
        """Wrap the function that `label` (Class.name) names; False, and noted as missing, where there is none."""
        name = label.partition(".")[2]
        original = getattr(owner, name, None) if owner is not None else None
        if not callable(original):
            self._hub.missing.append(label)
            return False
        guard = Guard(self._hub, label)
        new = around(original, guard) if around is not None else wrapped(original, guard, before, after, ended)
        setattr(owner, name, new)
        self._hub.hooks.append(label)
        return True

    # requests, in the threads of the HTTP server

    def _hook_requests(self, handler: Any) -> None:
        if self._set(handler, "APIHandler.do_POST", before=self._begin_exchange, ended=self._end_exchange):
            self._set(handler, "APIHandler.validate_model_parameters", before=self._compose)
            self._set(handler, "APIHandler.handle_completion", before=self._compose)
            self._set(handler, "APIHandler.send_response", before=self._send_response)
            self._set(handler, "APIHandler.generate_response", before=self._generate_response)
            self._set(handler, "APIHandler.log_message", before=self._log_message)

    def _begin_exchange(self, handler: Any) -> None:
        given = handler.headers.get(KEY_HEADER) or ""
        ours = KEY_FORM.fullmatch(given) is not None and given not in self._keys
        key = given if ours else f"o{os.getpid()}.{next(self._numbers)}"
        self._keys[key] = None
        if len(self._keys) > SEEN_KEYS:
            self._keys.popitem(last=False)
        here.key, here.exchange = key, Exchange(self._hub, key, ours, handler)

    def _end_exchange(self, error: BaseException | None, handler: Any) -> None:
        exchange, here.exchange = here.exchange, None
        try:
            if exchange is not None:
                exchange.end(handler, error)
        finally:
            here.key = None

    def _compose(self, handler: Any, *_: Any) -> None:
        if here.exchange is not None:
            here.exchange.compose(handler)

    def _send_response(self, handler: Any, code: Any, *_: Any) -> None:
        if here.exchange is not None:
            here.exchange.compose(handler)
            here.exchange.status_sent(handler, int(code))

    def _generate_response(self, _handler: Any, text: Any, finish_reason: Any, *_: Any, **named: Any) -> None:
        if here.exchange is not None:
            reasoning, calls = named.get("reasoning_text"), named.get("tool_calls")
            here.exchange.replied(text or "", reasoning or "", calls or [], finish_reason)

    def _log_message(self, handler: Any, form: Any, *args: Any) -> None:
        if here.exchange is not None:
            text = (str(form) % args).translate(CONTROL_MARKS)
            self._own_line(f"{handler.address_string()} - - [{handler.log_date_time_string()}] {text}")

    # the generator: called by the HTTP threads, running in its own

    def _hook_generator(self, generator: Any, batch: Any) -> None:
        self._set(generator, "ResponseGenerator.generate", around=self._observed_generate)
        self._set(generator, "ResponseGenerator._generate", ended=self._generator_ended)
        self._set(generator, "ResponseGenerator._tokenize", before=self._tokenize)
        self._set(generator, "ResponseGenerator._serve_single", before=self._begin_single, ended=self._end_single)
        insert = "insert_segments" if hasattr(batch, "insert_segments") else "insert"
        self._set(batch, f"BatchGenerator.{insert}", after=self._watch.batched)
        self._set(batch, "BatchGenerator.extract_cache", after=self._watch.extracted)
        self._set(batch, "BatchGenerator.next", before=self._begin_step, after=self._watch.stepped)

    def _observed_generate(self, original: Any, guard: Guard) -> Any:
        """The one hook that changes what goes in and comes out: progress and tokens pass through the exchange."""
        replies_seen = "APIHandler.generate_response" in self._hub.hooks

        def observed(exchange: Exchange, tokens: Any) -> Iterator[Any]:
            for token in tokens:
                try:
                    exchange.token(token, replies_seen)
                except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on
                    guard.tell(error)
                yield token

        def telling(exchange: Exchange, callback: Any) -> Any:
            def progress(done: Any, total: Any) -> Any:
                with guard:
                    exchange.progressed(int(done), int(total))
                return callback(done, total)

            return progress

        @functools.wraps(original)
        def generate(generator: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            exchange = here.exchange
            if exchange is None:
                return original(generator, request, *args, **kwargs)
            with guard:
                setattr(request, KEY_ATTRIBUTE, exchange.key)
                if callable(kwargs.get("progress_callback")):
                    kwargs["progress_callback"] = telling(exchange, kwargs["progress_callback"])
            result = original(generator, request, *args, **kwargs)
            with guard:
                context, tokens = result
                exchange.admitted(context)
                return context, observed(exchange, tokens)
            return result

        return generate

    def _generator_ended(self, error: BaseException | None, *_: Any) -> None:
        if error is not None:
            self._hub.tell("WorkerDied", error=error_line(error))

    def _tokenize(self, _generator: Any, _tokenizer: Any, request: Any, *_: Any) -> None:
        here.key = getattr(request, KEY_ATTRIBUTE, None)

    def _begin_single(self, *_: Any) -> None:
        here.single = True

    def _end_single(self, *_: Any) -> None:
        here.single, here.key = False, None

    def _begin_step(self, *_: Any) -> None:
        here.key = None

    # the prompt cache, in the generation thread

    def _hook_cache(self, cache: Any, trie: Any) -> None:
        watch = self._watch
        self._set(cache, "LRUPromptCache.__init__", after=self._cache_made)
        self._set(cache, "LRUPromptCache.fetch_nearest_cache", before=watch.begin_lookup, after=watch.end_lookup)
        if trie is None and cache is not None:
            self._hook_queues(cache, getattr(cache, "CacheOrder", None))
            return
        self._set(trie, "PromptTrie.search", after=watch.searched)
        self._set(trie, "PromptTrie.get", after=watch.got)
        if self._set(trie, "PromptTrie.add", after=watch.added):
            self._set(trie, "PromptTrie.pop_prefixes", after=watch.swallowed)
            self._set(trie, "PromptTrie.pop", after=watch.popped)
            self._set(cache, "LRUPromptCache.insert_cache", before=watch.begin_insert, ended=watch.end_change)
            self._set(cache, "LRUPromptCache.trim_to", before=watch.begin_trim, ended=watch.end_change)

    def _hook_queues(self, cache: Any, order: Any) -> None:
        """Before 0.31.2 the cache is its own trie, and tells its queues what comes and goes (before 0.31.0: nobody)."""
        watch = self._watch
        self._set(cache, "LRUPromptCache._search", after=watch.searched)
        self._set(cache, "LRUPromptCache._get", after=watch.got)
        if self._set(order, "CacheOrder.push", after=watch.queued):
            self._set(order, "CacheOrder.remove", after=watch.unqueued)
            self._set(order, "CacheOrder.pop", after=watch.dequeued)
            self._set(cache, "LRUPromptCache.insert_cache", before=watch.begin_queueing, ended=watch.end_change)
            self._set(cache, "LRUPromptCache.trim_to", before=watch.begin_trim, ended=watch.end_change)

    def _cache_made(self, _result: None, cache: Any, *_: Any, **__: Any) -> None:
        self._hub.tell("_limits", max_count=int(cache.max_size), max_bytes=int(cache.max_bytes))

    # the model

    def _hook_model(self, provider: Any) -> None:
        self._set(provider, "ModelProvider.__init__", before=self._flags_known)
        if hasattr(provider, "_load"):
            self._set(provider, "ModelProvider._load", before=self._load_begins, ended=self._load_ended)
        else:
            # One function decides whether to load, and loads.
            self._set(provider, "ModelProvider.load", before=self._load_asked, ended=self._load_ended)

    def _flags_known(self, _provider: Any, cli_args: Any, *_: Any) -> None:
        self._watch.cli_args = cli_args
        self._hub.tell("_flags", flags=dict(vars(cli_args)))

    def _load_begins(self, provider: Any, *args: Any, **named: Any) -> None:
        self._load_started = time.monotonic_ns()
        self._hub.tell("ModelLoadStarted", **load_names(provider.cli_args, *args, **named))

    def _load_asked(self, provider: Any, model: Any, *args: Any, **named: Any) -> None:
        loaded = provider.model_key[0] if provider.model_key else None
        default = provider.cli_args.model
        self._load_started = 0
        if (default if loaded == "default_model" else loaded) != (default if model == "default_model" else model):
            self._load_begins(provider, model, *args, **named)

    def _load_ended(self, error: BaseException | None, provider: Any, *args: Any, **named: Any) -> None:
        if not self._load_started:
            return
        seconds = (time.monotonic_ns() - self._load_started) / 1e9
        names = load_names(provider.cli_args, *args, **named)
        if error is not None:
            self._hub.tell("ModelLoadFailed", model=names["model"], error=error_line(error))
        else:
            self._hub.tell("_tokenizer", tokenizer=getattr(provider, "tokenizer", None))
            self._hub.tell("ModelLoaded", **names, seconds=seconds, **model_facts(provider, self._hub))

    # the log

    def _hook_log(self) -> None:
        guard, make = Guard(self._hub, "log records"), logging.getLogRecordFactory()

        def make_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = make(*args, **kwargs)
            # At DEBUG the server logs each token and whole bodies: too much to say of each line whose it is.
            if here.key is not None and record.levelno >= logging.INFO:
                with guard:
                    for line in record.getMessage().split("\n")[:20]:
                        self._own_line(line)
            return record

        logging.setLogRecordFactory(make_record)
        self._hub.hooks.append("log records")

    def _own_line(self, text: str) -> None:
        if here.exchange is not None:
            here.exchange.own_line(text)
        elif here.key is not None:
            self._hub.tell("LogOwned", key=here.key, text=text)


def load_names(cli_args: Any, model: Any, adapter: Any = None, draft: Any = None, **others: Any) -> Fields:
    """The arguments of a load, by position or by name, as an event's fields; `default_model` is what the flags say."""
    given = (
        ("model", "model", model),
        ("adapter", "adapter_path", adapter or others.get("adapter_path")),
        ("draft", "draft_model", draft or others.get("draft_model_path")),
    )
    names: Fields = {}
    for name, flag, value in given:
        value = getattr(cli_args, flag, None) if value == "default_model" else value
        names[name] = None if value is None else str(value)
    return names


def memory_reader(core: Any) -> Callable[[], Fields] | None:
    """A function that reads MLX's own counters, where this version has them."""
    names = {"active": "get_active_memory", "pool": "get_cache_memory", "peak": "get_peak_memory"}
    readers = {field: getattr(core, name, None) for field, name in names.items()}
    if not all(callable(reader) for reader in readers.values()):
        return None
    return lambda: {field: int(reader()) for field, reader in readers.items() if reader is not None}


# --- what tokens say (in the hub's thread) ---------------------------------------------------------------------------


def byte_letters() -> dict[str, int]:
    """The letters that byte-level vocabularies write bytes with: printable ones stand for themselves (GPT-2's rule)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(256 + index): byte for index, byte in enumerate(others)}


BYTE_LETTERS = byte_letters()
BYTE_TABLE = dict.fromkeys(range(0x80, 0x100), "\uffff") | {ord(key): chr(byte) for key, byte in BYTE_LETTERS.items()}
"""For `translate`, byte by byte; what bytes are not written with becomes a character that is none."""
BYTE_PIECE = re.compile("<0x([0-9A-F]{2})>")


def piece_bytes(piece: str, byte_level: bool) -> bytes:
    """The bytes that a piece of a vocabulary stands for."""
    if byte_level:
        try:
            return piece.translate(BYTE_TABLE).encode("latin-1")
        except UnicodeEncodeError:
            # A token added to the vocabulary is written as it is, with letters that bytes are not written with.
            return piece.encode("utf-8", "replace")
    byte = BYTE_PIECE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.replace("\u2581", " ").encode("utf-8", "replace")


class TokenNames:
    """What each token says, told once to the viewers, and to one that comes late in its greeting."""

    def __init__(self) -> None:
        self.tokenizer: Any = None
        self._told: dict[str | None, dict[int, str]] = {}

    def line(self, at_ns: int, model: str | None, tokens: list[int]) -> bytes | None:
        """An event with the tokens of a prompt that were not told of before; None if there are none."""
        told = self._told.setdefault(model, {})
        # A token of an image has a number beyond any vocabulary.
        new = [token for token in set(tokens).difference(told) if 0 <= token < 1 << 31]
        if not new or self.tokenizer is None:
            return None
        # The letter of the blank is in every byte-level vocabulary, and in no other.
        blank = self.tokenizer.convert_tokens_to_ids("\u0120")
        byte_level = blank is not None and self.tokenizer.convert_ids_to_tokens(blank) == "\u0120"
        pieces = zip(new, self.tokenizer.convert_ids_to_tokens(new), strict=True)
        told.update((token, piece_bytes(piece, byte_level).hex()) for token, piece in pieces if isinstance(piece, str))
        pairs = [(token, told[token]) for token in new if token in told]
        return encode("TokensNamed", at_ns, {"pairs": pairs, "model": model})

    def greeting(self, now: int) -> list[bytes]:
        """All that was told so far."""
        return [
            encode("TokensNamed", now, {"pairs": list(told.items()), "model": model})
            for model, told in self._told.items()
            if told
        ]


# --- process ---------------------------------------------------------------------------------------------------------


class SocketError(Exception):
    """The socket cannot be had; one line."""


def listen(path: Path) -> socket.socket:
    """A listening socket of mode 0600; a stale file in its place is replaced.

    Raises:
        SocketError: the folder is not private, the path is in use or cannot be bound.
    """
    try:
        folder = path.parent.stat()
        if folder.st_uid != os.geteuid() or stat.S_IMODE(folder.st_mode) & 0o077:
            raise SocketError(f"the folder {path.parent} is not private (its mode must be 0700)")
        if path.exists():
            _remove_stale(path)
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            server.bind(str(path))
            server.listen(8)
        except OSError:
            server.close()
            raise
        finally:
            os.umask(mask)
    except OSError as error:
        raise SocketError(f"cannot listen on {path}: {error}") from error
    return server


def _remove_stale(path: Path) -> None:
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise SocketError(f"{path} exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
    raise SocketError(f"another server is observed on {path}")


def accept_viewers(server: socket.socket, hub: Hub) -> None:
    """Hand every connection to the hub, for ever."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            time.sleep(0.1)
            continue
        hub.tell("_viewer", connection=connection)


def hold_leash(remove: Callable[[], None]) -> None:
    """End this process as soon as the other end of standard input is closed, however its holder ended.

    Standard input itself becomes empty, so that nothing that asks a question can take the leash's place.

    Raises:
        OSError: there is no standard input.
    """
    leash = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def wait() -> None:
        try:
            while os.read(leash, 4096):
                pass
        except OSError:
            pass
        remove()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(LEASH_PATIENCE_S)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=wait, name="mlxcache-leash", daemon=True).start()


def complain(text: str) -> None:
    sys.stderr.write(f"mlxcache observer: {text}\n")
    sys.stderr.flush()


def main() -> None:
    """See the module's first lines."""
    parser = argparse.ArgumentParser(prog="observe.py", description="Run mlx_lm.server and tell viewers what it does.")
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--leash", action="store_true", help="end when standard input is closed")
    parser.add_argument("--log-path", help="where this process's output goes, to tell viewers")
    parser.add_argument("flags", nargs="*", help="flags of mlx_lm.server, after --")
    arguments = parser.parse_args()
    path: Path = arguments.socket
    owned: list[Path] = []

    def remove() -> None:
        while owned:
            owned.pop().unlink(missing_ok=True)

    if arguments.leash:
        try:
            hold_leash(remove)
        except OSError as error:
            complain(f"--leash needs a pipe as standard input ({error})")
            sys.exit(EXIT_USAGE)
    try:
        server = importlib.import_module("mlx_lm.server")
        core = importlib.import_module("mlx.core")
    except ImportError as error:
        complain(f"{sys.executable} cannot import mlx_lm.server ({error_line(error)}); install mlx-lm for this Python")
        sys.exit(EXIT_NO_SERVER)
    try:
        listener = listen(path)
    except SocketError as error:
        complain(f"{error}; the server runs unobserved")
    else:
        owned.append(path)
        atexit.register(remove)
        observe(server, core, listener, arguments.log_path)
    sys.argv = ["mlx_lm.server", *arguments.flags]
    server.main()


def observe(server: Any, core: Any, listener: socket.socket, log_path: str | None) -> None:
    """Set the hooks and start telling."""
    hub = Hub(log_path)
    package = importlib.import_module("mlx_lm")
    hub.versions = {"mlx_lm": getattr(package, "__version__", None), "mlx": getattr(core, "__version__", None)}
    hub.memory = memory_reader(core)
    (hub.hooks if hub.memory else hub.missing).append("MLX memory")
    Hooks(hub).install(server, importlib.import_module("mlx_lm.models.cache"))
    hub.start()
    threading.Thread(target=accept_viewers, args=(listener, hub), name="mlxcache-accept", daemon=True).start()


if __name__ == "__main__":
    main()
