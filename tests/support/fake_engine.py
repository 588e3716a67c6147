"""An engine without a server: it answers each request by rule, through the real fold, and never waits for a clock.

Its "server" keeps the last `cache` prompts, first in first out; a token is one character; reading one costs 1 ms.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from mlxcache_tui.core import commands as cmd
from mlxcache_tui.core import events as ev
from mlxcache_tui.core.body import composed_event
from mlxcache_tui.core.difference import common_prefix
from mlxcache_tui.core.reduce import apply
from mlxcache_tui.core.state import SessionState

MS = 1_000_000
PATIENCE_S = 60.0
"""Seconds after which a wait for something that never happens fails its test."""


class FakeEngine:
    """Stands where the engine stands for the runner.

    Args:
        observed: whether the observer's events come as well.
        cache: how many prompts the server keeps.
        hangs: never answers a request (until it is cancelled).
        dies_at: the server dies instead of answering the request with this number.
        fails_at: that request is answered with status 500.
        starts: false lets every start fail.
        breaks: starting breaks in a way that nobody foresaw.
        trimmable: what is told of the model's cache.
    """

    def __init__(
        self,
        *,
        observed: bool = True,
        cache: int = 10,
        hangs: bool = False,
        dies_at: int | None = None,
        fails_at: int | None = None,
        starts: bool = True,
        breaks: bool = False,
        trimmable: bool | None = None,
    ) -> None:
        self.state = SessionState()
        self.commands: list[cmd.Command] = []
        self.most_open = 0
        self.was_asked = asyncio.Event()
        self._observed, self._cache, self._hangs, self._starts = observed, cache, hangs, starts
        self._breaks, self._trimmable = breaks, trimmable
        self._dies_at, self._fails_at = dies_at, fails_at
        self._now = 1_000 * MS
        self._keys = 0
        self._pid = 100
        self._entry = 0
        self._stored: deque[tuple[int, str, str]] = deque()
        self._open: dict[str, cmd.Draft] = {}
        self._todo: deque[Callable[[], None]] = deque()
        self._news = asyncio.Event()

    # --- what the runner uses ---

    def new_key(self) -> str:
        self._keys += 1
        return f"k{self._keys}"

    def emit(self, event: ev.AnyEvent) -> None:
        apply(self.state, event)

    def submit(self, command: cmd.Command) -> None:
        self.commands.append(command)
        match command:
            case cmd.StartServer(spec=spec):
                self._later(lambda: self._start(spec.flags))
            case cmd.RestartServer(flags=flags):
                self._later(lambda: self._start(flags))
            case cmd.SendRequest(key=key, draft=draft):
                self._send(key, draft)
            case cmd.CancelRequest(key=key):
                self._later(lambda: self._end(key, "cancelled"))

    async def until(self, done: Callable[[SessionState], bool], timeout_s: float | None = None) -> bool:
        while not done(self.state):
            if self._todo:
                self._todo.popleft()()
            elif timeout_s is not None:
                return False
            else:
                async with asyncio.timeout(PATIENCE_S):
                    await self._news.wait()
                self._news.clear()
        return True

    def _later(self, happens: Callable[[], None]) -> None:
        self._todo.append(happens)
        self._news.set()

    # --- the server ---

    def attach(self) -> None:
        """A server that runs already."""
        self._say(lambda at: ev.ServerTargeted(at_ns=at, origin="program", url="http://x", mode="attached"))
        self._say(lambda at: ev.ServerPhaseChanged(at_ns=at, origin="http", phase="ready"))

    def die(self) -> None:
        """The server dies when somebody waits for something next."""
        self._later(lambda: self._die(""))

    def pass_by(self, *, minutes: float) -> None:
        """Time goes by; somebody else's request needs much memory meanwhile, and throws the oldest prompt out."""
        self._memory(9_000_000)
        entry = self._stored.popleft()[0]
        self._say(
            lambda at: ev.EntryEvicted(at_ns=at, origin="observer", entry=entry, rule="count", limit=1, key="other")
        )
        self._memory(1_000_000)
        self._now += int(minutes * 60_000 * MS)

    def _say(self, event: Callable[[int], ev.AnyEvent], after_ms: float = 1) -> None:
        self._now += int(after_ms * MS)
        apply(self.state, event(self._now))

    def _start(self, flags: dict[str, object]) -> None:
        if self._breaks:
            self._say(lambda at: ev.SourceFailed(at_ns=at, origin="program", source="server", error="TypeError: x"))
            return
        if self._pid > 100 or not self._starts:
            end = ev.ServerPhaseChanged(at_ns=self._now, origin="process", phase="exited", text="stopped")
            apply(self.state, end)
        if not self._starts:
            text = "port 8080 is taken"
            self._say(lambda at: ev.ServerPhaseChanged(at_ns=at, origin="process", phase="exited", text=text))
            return
        self._pid += 1
        pid = self._pid
        self._stored.clear()
        size = flags.get("prompt_cache_size", self._cache)
        self._cache = int(str(size))
        self._say(lambda at: ev.ServerTargeted(at_ns=at, origin="program", url="http://x", mode="launched", model="m"))
        self._say(
            lambda at: ev.ServerLaunched(at_ns=at, origin="process", pid=pid, port=1, command=("x",), flags=flags)
        )
        if self._observed:
            self._say(
                lambda at: ev.ObserverConnected(
                    at_ns=at,
                    origin="observer",
                    protocol=1,
                    pid=pid,
                    mlx_lm="0.32.2",
                    mlx="0.32.4",
                    python="3.11",
                    hooks=(),
                    flags={"prompt_cache_size": size, "host": "127.0.0.1"},
                )
            )
            self._say(
                lambda at: ev.ModelLoaded(
                    at_ns=at,
                    origin="observer",
                    model="m",
                    seconds=1.5,
                    head_tokens=3,
                    trimmable=self._trimmable,
                )
            )
        self._say(lambda at: ev.ServerPhaseChanged(at_ns=at, origin="process", phase="ready"))
        self._memory(1_000_000)

    def _memory(self, size: int) -> None:
        self._say(lambda at: ev.MemorySampled(at_ns=at, origin="memory", pid=self._pid, source="pss", bytes=size))

    def _send(self, key: str, draft: cmd.Draft) -> None:
        texts, composed = composed_event(key, draft, self._now)
        events: list[ev.AnyEvent] = [*texts, composed]
        for event in events:
            apply(self.state, event)
        self.was_asked.set()
        self._say(lambda at: ev.RequestSent(at_ns=at, origin="client", key=key))
        self._open[key] = draft
        self.most_open = max(self.most_open, len(self._open))
        if not self._hangs:
            self._later(lambda: self._answer(key))

    def _answer(self, key: str) -> None:
        number = self.state.requests[key].number
        if number == self._dies_at:
            self._die(key)
        elif number == self._fails_at:
            self._end(key, "failed", status=500, error="HTTP 500: it broke")
        elif key in self._open:
            self._reply(key, self._open[key])

    def _die(self, key: str) -> None:
        pid = self._pid
        self._say(
            lambda at: ev.ServerExited(at_ns=at, origin="process", pid=pid, code=-9, signal="SIGKILL", tail=("last",))
        )
        self._end(key, "cut", error="the connection was closed")

    def _end(self, key: str, outcome: ev.Outcome, status: int | None = None, error: str | None = None) -> None:
        if self._open.pop(key, None) is not None:
            self._say(
                lambda at: ev.RequestEnded(
                    at_ns=at, origin="client", key=key, outcome=outcome, status=status, error=error
                )
            )

    def _reply(self, key: str, draft: cmd.Draft) -> None:
        prompt = draft.system + "|" + "|".join(text for _, text in draft.messages) + "|" + draft.user
        shared = [(common_prefix(prompt, text), entry) for entry, _, text in self._stored]
        cached, entry = max(shared, default=(0, None))
        cached = min(cached, len(prompt) - 1)
        answer = f"It is {'damaged' if 'damaged' in draft.user else 'opened'}."
        self._say(lambda at: ev.RequestAdmitted(at_ns=at, origin="client", key=key, status=200))
        if self._observed:
            self._look_up(key, prompt, cached, entry)
        self._say(
            lambda at: ev.FirstTokenArrived(at_ns=at, origin="client", key=key, kind="answer"), len(prompt) - cached
        )
        self._say(lambda at: ev.TextArrived(at_ns=at, origin="client", key=key, kind="answer", text=answer))
        self._say(lambda at: ev.FinishArrived(at_ns=at, origin="client", key=key, finish_reason="stop"), 10)
        self._say(
            lambda at: ev.UsageReported(
                at_ns=at,
                origin="client",
                key=key,
                prompt_tokens=len(prompt),
                output_tokens=5,
                cached_tokens=cached,
            )
        )
        self._end(key, "done")
        # The server stores what it read after the client has its answer.
        self._todo.appendleft(lambda: self._store(key, prompt))

    def _look_up(self, key: str, prompt: str, cached: int, entry: int | None) -> None:
        base = next((maker for known, maker, _ in self._stored if known == entry), None)
        run = ev.TokenRun(count=len(prompt), base=base, shared=cached)
        self._say(
            lambda at: ev.LookedUp(
                at_ns=at,
                origin="observer",
                key=key,
                tokens=run,
                cached_tokens=cached,
                how="trimmed" if cached else "none",
                entry=entry,
                path="batched",
            )
        )

    def _store(self, key: str, prompt: str) -> None:
        self._entry += 1
        entry = self._entry
        self._stored.append((entry, key, prompt))
        self._memory(1_000_000 + 1000 * entry)
        if not self._observed:
            while len(self._stored) > self._cache:
                self._stored.popleft()
            return
        self._say(lambda at: ev.RequestEnded(at_ns=at, origin="observer", key=key, outcome="done"))
        tokens = ev.TokenRun(count=len(prompt))
        self._say(
            lambda at: ev.EntryInserted(
                at_ns=at, origin="observer", entry=entry, type="assistant", tokens=tokens, bytes=len(prompt), key=key
            )
        )
        while len(self._stored) > self._cache:
            gone = self._stored.popleft()[0]
            limit = self._cache
            self._say(
                lambda at, gone=gone, limit=limit: ev.EntryEvicted(  # type: ignore[misc]
                    at_ns=at, origin="observer", entry=gone, rule="count", limit=limit, key=key
                )
            )
