"""Random requests against a real observed server, and what the program folds compared with the server's own cache.

A plan is a list of steps made from a seed; running it gives the differences, in words. After a difference the plan is
shrunk: parts are left out for as long as a difference remains.
"""

import hashlib
import json
import random
import socket
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mlxcache_tui.core.events import (
    AnyEvent,
    CacheSnapshot,
    EntryEvicted,
    EntryInserted,
    LookedUp,
    RequestEnded,
    TokenRun,
    WorkerDied,
)
from mlxcache_tui.core.present import cache_view
from mlxcache_tui.core.reduce import apply
from mlxcache_tui.core.state import SessionState
from support.live_server import Server, Viewer, observed_server

SCRIPT = Path(__file__).with_name("truth_server.py")
SETTLE_S = 60.0
"""How long the program may take to be at one with a server that has come to rest, before it counts as a difference."""
POLICIES = 6
QUESTIONS = ("May I?", "It broke. May I?", "May I return it without a receipt?", "Why?", "もう一度", "Who pays 🙂?")
COUNTS = (1, 2, 2, 3, 4, 6, 10, 10, 0)
BYTES = (None, None, None, 150_000, 400_000, 1_000_000, 3_000_000)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: a policy (None: no system message), a question, and how it is sent."""

    policy: int | None
    question: int
    path: Literal["chat", "completions"] = "chat"
    stream: bool = True
    seed: int | None = None
    max_tokens: int = 3
    conversation: int | None = None
    cancel: Literal["prefill", "decode"] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Requests sent at once; with `limits` (count, bytes) the server is started anew before them."""

    asks: tuple[Ask, ...]
    limits: tuple[int, int | None] | None = None


def make_plan(seed: int, requests: int) -> list[Step]:
    """The steps of a seed, at least this many requests in all."""
    chance = random.Random(seed)
    steps = [Step((), (chance.choice(COUNTS[:-1]), chance.choice(BYTES)))]
    sent = 0
    while sent < requests:
        limits = (chance.choice(COUNTS), chance.choice(BYTES)) if chance.random() < 0.05 else None
        asks = tuple(_ask(chance) for _ in range(chance.choice((1, 1, 1, 1, 2, 3, 4))))
        steps.append(Step(asks, limits))
        sent += len(asks)
    return steps


def _ask(chance: random.Random) -> Ask:
    chat = chance.random() < 0.85
    cancel: Literal["prefill", "decode"] | None = None
    if chance.random() < 0.1:
        cancel = "prefill" if chance.random() < 0.5 else "decode"
    return Ask(
        policy=chance.randrange(POLICIES) if chance.random() < 0.9 else None,
        question=chance.randrange(len(QUESTIONS)),
        path="chat" if chat else "completions",
        stream=cancel is not None or chance.random() < 0.7,
        seed=chance.choice((None, None, None, None, None, 7)),
        max_tokens=2_000 if cancel == "decode" else chance.choice((1, 2, 3, 6)),
        conversation=chance.randrange(4) if chat and cancel is None and chance.random() < 0.3 else None,
        cancel=cancel,
    )


def policy_text(number: int) -> str:
    """Policies of different lengths; the last two share their first half."""
    lines = [f"Rule {line} of policy {number}: return it within {line} days." for line in range(4 + 5 * number)]
    if number >= POLICIES - 2:
        lines[: len(lines) // 2] = [f"Common rule {line}." for line in range(12)]
    return " ".join(lines)


def body_of(ask: Ask, before: list[dict[str, str]]) -> dict[str, Any]:
    """The body that is sent; `before` are the messages of its conversation so far."""
    body: dict[str, Any] = {"max_tokens": ask.max_tokens, "stream": ask.stream, "temperature": 0.0}
    if ask.stream:
        body["stream_options"] = {"include_usage": True}
    if ask.seed is not None:
        body["seed"] = ask.seed
    question = QUESTIONS[ask.question]
    policy = policy_text(ask.policy) if ask.policy is not None else ""
    if ask.path == "completions":
        return body | {"prompt": f"{policy} {question}"}
    start = before or ([{"role": "system", "content": policy}] if policy else [])
    return body | {"messages": [*start, {"role": "user", "content": question}]}


@dataclass
class Tally:
    """What a run did."""

    steps: int = 0
    requests: int = 0
    cancelled: int = 0
    hits: int = 0
    evictions: int = 0
    servers: int = 0
    deaths: int = 0
    comparisons: int = 0
    slowest_ms: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)


class Run:
    """A plan being run: one state for all its servers, as the program keeps it."""

    def __init__(self, model: Path, settle_s: float = SETTLE_S) -> None:
        self.tally = Tally()
        self._settle_s = settle_s
        self.state = SessionState()
        self._model = model
        self._limits: tuple[int, int | None] = (10, None)
        self._conversations: dict[int, list[dict[str, str]]] = {}
        self._number = 0
        self._servers = ExitStack()
        self._pool = self._servers.enter_context(ThreadPoolExecutor(4))
        self._running = ExitStack()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()
        self._servers.close()

    def start(self) -> None:
        """A server with the limits in force, its cache empty; the state goes on."""
        self._running.close()
        folder = Path(self._running.enter_context(tempfile.TemporaryDirectory(prefix="mlxc-", dir="/tmp")))
        count, size = self._limits
        flags = {"prompt_cache_size": count}
        if size is not None:
            flags["prompt_cache_bytes"] = size
        self._server = self._running.enter_context(observed_server(self._model, folder, script=SCRIPT, **flags))
        self._viewer = self._running.enter_context(Viewer(self._server.socket)).greeted()
        self._read = 0
        self._prompts: dict[str, tuple[int, ...]] = {}
        self._shas: dict[int, str] = {}
        self._operations: list[list[object]] = []
        self.tally.servers += 1

    def step(self, step: Step) -> list[str]:
        """Run one step; returns what differs afterwards."""
        if step.limits is not None:
            self._limits = step.limits
            self.start()
        keys = [f"t:{self._number + place}" for place in range(1, len(step.asks) + 1)]
        self._number += len(keys)
        sent = [self._pool.submit(self._send, ask, key) for ask, key in zip(step.asks, keys, strict=True)]
        while wait(sent, timeout=0.1).not_done and not self._worker_died():
            pass
        differences = self._settle(keys)
        if self._worker_died():
            # Before 0.32 its requests hang for ever: with the server they end.
            self.tally.deaths += 1
            self._server.process.kill()
            wait(sent)
            self.start()
            return differences
        for ask, key, usage in zip(step.asks, keys, [future.result() for future in sent], strict=True):
            differences += self._compare_usage(ask, key, usage)
        return differences

    def _worker_died(self) -> bool:
        """Whether the generation thread is gone, as it goes in some versions for a fault of their own."""
        return bool(self._viewer.all(WorkerDied))

    def _send(self, ask: Ask, key: str) -> dict[str, Any] | None:
        """Send one request; its usage, None where there is none (cancelled, or the worker died)."""
        before = self._conversations.get(ask.conversation, []) if ask.conversation is not None else []
        body = body_of(ask, before)
        path = "/v1/completions" if ask.path == "completions" else "/v1/chat/completions"
        if ask.cancel is not None:
            self._cancel(body, path, key, ask.cancel)
            return None
        reply = self._server.post(body, key=key, path=path)
        if reply.status != 200 or (ask.stream and not (reply.chunks and reply.chunks[-1].get("usage"))):
            return None
        if ask.conversation is not None:
            answer = {"role": "assistant", "content": reply.text() or "yes"}
            self._conversations[ask.conversation] = [*body["messages"], answer][-7:]
        return reply.usage

    def _cancel(self, body: dict[str, Any], path: str, key: str, when: Literal["prefill", "decode"]) -> None:
        connection = self._server.open()
        headers = {"Content-Type": "application/json", "X-Mlxcache-Request": key}
        connection.request("POST", path, json.dumps(body), headers)
        if when == "decode":
            response = connection.getresponse()
            while (line := response.readline()) and not line.startswith(b"data:"):
                pass
            response.close()
        connection.close()

    # comparing

    def _settle(self, keys: list[str]) -> list[str]:
        """Wait for the ends of the requests and for agreement; what still differs after a while is a difference."""
        self._viewer.until(
            lambda events: (
                any(isinstance(event, WorkerDied) for event in events)
                or set(keys) <= {event.key for event in events if isinstance(event, RequestEnded)}
            ),
            f"ends of {keys}",
        )
        began = time.monotonic()
        while True:
            told = ask_truth(self._server)
            self._fold()
            differences = self._compare(told)
            passed = time.monotonic() - began
            if not differences or passed > self._settle_s:
                self.tally.comparisons += 1
                self.tally.slowest_ms = max(self.tally.slowest_ms, passed * 1e3)
                return differences
            time.sleep(0.01)

    def _fold(self) -> None:
        while self._read < len(self._viewer.events):
            event = self._viewer.events[self._read]
            self._read += 1
            apply(self.state, event)
            self._note(event)

    def _note(self, event: AnyEvent) -> None:
        """The tokens behind the numbers, and the history as it was told."""
        match event:
            case LookedUp(key=key, tokens=run):
                self._prompts[key] = self._whole(run)
            case EntryInserted(entry=entry, tokens=run, type=kind):
                self._shas[entry] = sha(self._whole(run))
                self._operations.append(["insert", kind, self._shas[entry]])
            case EntryEvicted(entry=entry):
                self._operations.append(["pop", self._shas.get(entry, "?")])

    def _whole(self, run: TokenRun) -> tuple[int, ...]:
        start = self._prompts[run.base][: run.shared] if run.base is not None else ()
        whole = start + run.new
        assert len(whole) == run.count
        return whole

    def _compare(self, told: dict[str, Any]) -> list[str]:
        view, cache = cache_view(self.state), self.state.cache
        stored = [row for row in view.entries if row.gone is None]
        found: list[str] = []

        def same(what: str, ours: object, theirs: object) -> None:
            if ours != theirs:
                found.append(f"{what}: shown {ours}, the server has {theirs}")

        for kind in ("assistant", "user", "system"):
            rows = [[self._shas.get(r.entry, "?"), r.tokens, r.bytes] for r in stored if r.type == kind]
            same(f"{kind} entries", rows, told["entries"].get(kind, []))
        same("count", view.count, sum(map(len, told["entries"].values())))
        same("bytes", view.bytes, told["bytes"])
        same("next victim", [self._shas.get(r.entry) for r in stored if r.next_victim], [told["next"]][: len(stored)])
        same("limits", (cache.max_count, cache.max_bytes), self._limits)
        theirs = told["operations"]
        if (ours := self._operations) != theirs:
            at = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
            at = min(len(ours), len(theirs)) if at is None else at
            same(f"what was done, from {at} on", ours[at : at + 3], theirs[at : at + 3])
        return found

    def _compare_usage(self, ask: Ask, key: str, usage: dict[str, Any] | None) -> list[str]:
        self.tally.requests += 1
        request = self.state.requests.get(key)
        if request is None:
            return [f"{key} is not known"]
        self.tally.cancelled += ask.cancel is not None
        self.tally.evictions += len(request.evicted)
        self.tally.reasons[request.reason.kind if request.reason else "none"] += 1
        if request.reason is not None and request.reason.kind == "unknown":
            return [f"{key}: nothing is known of why, though all was seen: {request.reason.evidence}"]
        if usage is None:
            return []
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        self.tally.hits += cached > 20
        found = []
        if (request.prompt_tokens, request.cached_tokens) != (usage["prompt_tokens"], cached):
            found.append(
                f"{key}: shown {request.cached_tokens} of {request.prompt_tokens} cached, usage {cached} of {usage}"
            )
        if request.output_tokens != usage["completion_tokens"]:
            found.append(f"{key}: shown {request.output_tokens} tokens of output, usage {usage['completion_tokens']}")
        return found

    def late_viewer(self) -> list[str]:
        """A viewer that comes now must be told the same as the one that was there all the time."""
        with Viewer(self._server.socket) as viewer:
            viewer.greeted()
            (snapshot,) = viewer.all(CacheSnapshot)
        self._fold()  # the worker may have died in the last step: what is compared is the server after it
        ours = [(r.entry, r.type, r.tokens, r.bytes, r.key) for r in self.state.cache.stored.values()]
        late = [(e.entry, e.type, e.tokens, e.bytes, e.key) for e in snapshot.entries]
        return [] if ours == late else [f"a viewer that comes late is told {late}, not {ours}"]


def sha(tokens: tuple[int, ...]) -> str:
    """As `truth_server.sha`."""
    return hashlib.sha1(array("q", tokens).tobytes(), usedforsecurity=False).hexdigest()[:16]


def ask_truth(server: Server) -> dict[str, Any]:
    """What the server's own cache object holds now."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        asked.connect(str(server.socket.with_name("truth")))
        parts = []
        while part := asked.recv(1 << 16):
            parts.append(part)
    told: dict[str, Any] = json.loads(b"".join(parts))
    return told


def run_plan(model: Path, plan: list[Step], settle_s: float = SETTLE_S) -> tuple[list[str], Tally]:
    """Run the steps until one differs; the differences (none: all was equal) and what was done."""
    with Run(model, settle_s) as run:
        run.start()
        for step in plan:
            run.tally.steps += 1
            if found := run.step(step):
                return [f"after step {run.tally.steps}, {step}:", *found], run.tally
        return run.late_viewer(), run.tally


def shrink(plan: list[Step], fails: Callable[[list[Step]], bool], patience: int = 20) -> list[Step]:
    """A shorter plan that still fails, found with at most `patience` runs."""
    for shorter in _shorter(plan):
        if patience == 0:
            break
        patience -= 1
        if fails(shorter):
            return shrink(shorter, fails, patience)
    return plan


def _shorter(plan: list[Step]) -> Iterator[list[Step]]:
    size = len(plan) // 2
    while size:
        for start in range(0, len(plan), size):
            if left := plan[:start] + plan[start + size :]:
                yield left
        size //= 2
