"""Events as a story: a test says what server and client did, and gets the state that the program makes of it."""

from dataclasses import dataclass, field
from typing import Any, Literal

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.codec import text_id_of
from mlxcache_tui.core.reduce import apply
from mlxcache_tui.core.state import Reason, RequestState, SessionState

MS = 1_000_000
HEAD = 7
"""Tokens that the story's chat template puts in front of every system message."""


@dataclass
class Story:
    """One observed server and its requests. Tokens are whole numbers made from the texts' words."""

    state: SessionState = field(default_factory=SessionState)
    now: int = 1_000 * MS
    events: list[ev.AnyEvent] = field(default_factory=list)

    def tell(self, event: ev.AnyEvent) -> None:
        """Fold one event."""
        self.events.append(event)
        apply(self.state, event)

    def tick(self, ms: float = 1) -> int:
        """Let time pass; returns the new now."""
        self.now += int(ms * MS)
        return self.now

    def server(
        self, *, pid: int = 10, model: str = "m", observed: bool = True, trimmable: bool = True, **flags: Any
    ) -> None:
        """A server of ours that is ready."""
        flags = {"prompt_cache_size": 10, "prompt_cache_bytes": None, **flags}
        url = "http://127.0.0.1:8080"
        self.tell(ev.ServerTargeted(at_ns=self.tick(), origin="program", url=url, mode="launched", model=model))
        self.tell(ev.ServerLaunched(at_ns=self.tick(), origin="process", pid=pid, port=8080, command=("x",)))
        if observed:
            self.tell(
                ev.ObserverConnected(
                    at_ns=self.tick(),
                    origin="observer",
                    protocol=1,
                    pid=pid,
                    mlx_lm="0.32.2",
                    mlx="0.32.4",
                    python="3.11",
                    hooks=("all",),
                    flags=flags,
                )
            )
            self.tell(
                ev.ModelLoaded(
                    at_ns=self.tick(),
                    origin="observer",
                    model=model,
                    seconds=1.5,
                    weights_bytes=1_000_000,
                    trimmable=trimmable,
                    head_tokens=HEAD,
                    head_tokens_no_system=HEAD,
                )
            )
        self.tell(ev.ServerPhaseChanged(at_ns=self.tick(), origin="process", phase="ready"))

    def compose(
        self,
        key: str,
        user: str = "question",
        *,
        system: str | None = "policy",
        policy: str | None = "returns",
        origin: ev.Origin = "client",
        purpose: ev.Purpose = "send",
        **more: Any,
    ) -> RequestState:
        """A request comes into being and its first byte is written."""
        messages = [("system", system)] if system is not None else []
        messages.append(("user", user))
        for _, text in messages:
            self.tell(ev.TextKept(at_ns=self.tick(), origin=origin, text_id=text_id_of(text), text=text))
        self.tell(
            ev.RequestComposed(
                at_ns=self.tick(),
                origin=origin,
                key=key,
                purpose=purpose,
                path="/v1/chat/completions",
                messages=tuple((role, text_id_of(text)) for role, text in messages),
                policy=policy,
                **more,
            )
        )
        self.tell(ev.RequestSent(at_ns=self.tick(), origin=origin, key=key))
        return self.state.requests[key]

    def look_up(
        self,
        key: str,
        *,
        prompt: int,
        cached: int = 0,
        base: str | None = None,
        shared: int = 0,
        entry: int | None = None,
        how: Literal["exact", "extended", "trimmed", "none"] | None = None,
        path: Literal["batched", "sequential"] = "batched",
        model: str = "m",
    ) -> None:
        """The server searches its cache for the request."""
        self.tell(
            ev.LookedUp(
                at_ns=self.tick(),
                origin="observer",
                key=key,
                tokens=ev.TokenRun(count=prompt, base=base, shared=shared),
                cached_tokens=cached,
                how=how or ("trimmed" if cached else "none"),
                entry=entry,
                path=path,
                model=model,
            )
        )

    def store(
        self, entry: int, key: str, tokens: int, *, kind: ev.EntryType = "assistant", size: int = 1_000, **more: Any
    ) -> None:
        """The server stores an entry."""
        self.tell(
            ev.EntryInserted(
                at_ns=self.tick(),
                origin="observer",
                entry=entry,
                type=kind,
                tokens=ev.TokenRun(count=tokens, base=key, shared=tokens),
                bytes=size,
                key=key,
                **more,
            )
        )

    def evict(self, entry: int, key: str, *, rule: Literal["count", "bytes"] = "count", limit: int = 2) -> None:
        """The server throws an entry out."""
        self.tell(ev.EntryEvicted(at_ns=self.tick(), origin="observer", entry=entry, rule=rule, limit=limit, key=key))

    def answer(
        self,
        key: str,
        *,
        prompt: int | None = None,
        cached: int | None = None,
        output: int = 3,
        origin: ev.Origin = "client",
        finish: str | None = "stop",
        kind: ev.TextKind = "answer",
    ) -> None:
        """The whole reply of a streamed request, 10 ms from event to event."""
        self.tell(ev.RequestAdmitted(at_ns=self.tick(10), origin=origin, key=key, status=200))
        self.tell(ev.FirstTokenArrived(at_ns=self.tick(10), origin=origin, key=key, kind=kind))
        self.tell(
            ev.TextArrived(at_ns=self.tick(10), origin=origin, key=key, kind=kind, text="yes", gaps_ns=(0, 10 * MS))
        )
        self.tell(ev.FinishArrived(at_ns=self.tick(10), origin=origin, key=key, finish_reason=finish))
        if prompt is not None:
            self.tell(
                ev.UsageReported(
                    at_ns=self.tick(),
                    origin=origin,
                    key=key,
                    prompt_tokens=prompt,
                    cached_tokens=cached,
                    output_tokens=output,
                )
            )
        self.end(key, origin=origin)

    def end(
        self, key: str, outcome: ev.Outcome = "done", *, origin: ev.Origin = "client", error: str | None = None
    ) -> None:
        """The request is over."""
        self.tell(ev.RequestEnded(at_ns=self.tick(), origin=origin, key=key, outcome=outcome, error=error))

    def sent(
        self, key: str, *, prompt: int = 100, entry: int, system: str = "policy", policy: str = "returns", **look: Any
    ) -> None:
        """A whole request that ends well and leaves one entry."""
        self.compose(key, system=system, policy=policy)
        self.look_up(key, prompt=prompt, **look)
        self.store(entry, key, prompt + 3)
        self.answer(key, prompt=prompt, cached=look.get("cached", 0))


def reason(story: Story, key: str) -> Reason:
    """What a request was told for a reason; it must have one."""
    found = story.state.requests[key].reason
    assert found is not None
    return found
