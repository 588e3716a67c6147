"""A session without what people wrote: prompts, policies and answers become lengths and hashes, all figures stay.

Works on events, so that whatever is made of them (tables, reports, a session file to replay) is free of them too. Only
what is known to be harmless is kept: events of kinds that are not listed here, token ids, and log lines other than the
server's counters, progress and access lines do not get through.
"""

import hashlib
import re
from typing import Any, TypeVar

import msgspec

from mlxcache_tui.core import events as ev

S = TypeVar("S", bound=msgspec.Struct)
_KEPT = (
    ev.SessionStarted,
    ev.EventsLost,
    ev.ModelFetchProgressed,
    ev.RequestSent,
    ev.RequestAdmitted,
    ev.PrefillProgressed,
    ev.FirstTokenArrived,
    ev.FinishArrived,
    ev.UsageReported,
    ev.EntrySwallowed,
    ev.EntryEvicted,
    ev.CacheCounted,
    ev.MlxMemorySampled,
    ev.MemorySampled,
    ev.ObserverLost,
    ev.ServerIdentified,
    ev.ServerTargeted,
    ev.ModelLoadStarted,
    ev.ModelLoaded,
)
"""Kinds without anything of a prompt or an answer; of their texts only home folders are taken out."""
_TEXTS = ("error", "text", "url")
_MODELS = ("model", "adapter", "draft")
_HARMLESS_RECORDS = re.compile(
    r"Starting httpd at [\w.:\[\]-]+ on port \d+\.*"
    r"|(?:Prompt processing progress|Prompt Cache|KV Caches|- (?:assistant|user|system)):"
    r"(?:[ ,\d./]|seq|sequences|GB|latest|user|cache|tokens)*"
)
_ACCESS = re.compile(r'([\w.:]+ - - \[[\w/: ]+\] "[A-Z]+ )(/\S*)( HTTP/[\d.]+" [\d-]+ [\d-]+)')
"""An access line in three parts; the one in the middle is what a client asked for."""
_PATHS = frozenset(
    prefix + path for prefix in ("", "/v1") for path in ("/chat/completions", "/completions", "/models", "/health")
)
"""Paths of the server's API: any other is a client's own word."""
_ROLES = frozenset({"system", "user", "assistant", "tool", "developer", "prompt"})
_PARAMETERS = frozenset(
    {
        "adapters", "add_generation_prompt", "chat_template_kwargs", "draft_model", "enable_thinking",
        "frequency_penalty", "include_usage", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "min_p",
        "model", "n", "num_draft_tokens", "presence_penalty", "reasoning_effort", "repetition_context_size",
        "repetition_penalty", "response_format", "role_mapping", "seed", "stop", "stream", "stream_options",
        "temperature", "tool_choice", "tools", "top_k", "top_logprobs", "top_p", "user", "xtc_probability",
        "xtc_threshold",
    }
)  # fmt: skip
"""Keys of a request's body that have a meaning: any other is a client's own word."""
_TELLING = ": "
"""What stands behind it in a line of ours may be somebody else's words."""
_RECORD = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - [A-Z]+ - )(.*)", re.DOTALL)
_HOME = re.compile(r"(?<![\w.])/(?:home|Users)/[^/\s\"']+|(?<![\w.])/root(?=/)")
_ERROR_HEAD = re.compile(r"HTTP \d{3}: |the server reported: |[\w.]*(?:Error|Exception): ")
"""How a line begins whose rest is somebody else's words: the status, or the kind of a failure."""
_OUR_ERRORS = (
    "the stream ended ",
    "the server's answer is longer than ",
    "the server sent a stream event that is too long",
    "no server yet",
    "nothing answers at ",
    "the connection to ",
    "no connection to ",
)
"""How the lines begin that are all our own."""
_PATH = re.compile(r"(?<![\w:/])/(?!/)\S+(?: \S+)*?\.\w+|(?<![\w:/])/(?!/)\S+")
_A_PATH = "[a path]"
_NAMED_FLAGS = ("model", "draft_model", "host", "log_level")
"""Flags of the server whose words may be shown."""


class Redactor:
    """Takes events in order. `salt` makes its hashes its own: equal texts can be told within one export only."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._labels: dict[str, str] = {}
        self._models: set[str | None] = {"default_model"}
        """The server's own: another one in a request is a client's word."""
        self._pieces: dict[tuple[str, ev.Origin, ev.TextKind], list[str]] = {}

    def take(self, event: ev.AnyEvent) -> list[ev.AnyEvent]:
        """What of an event may be shown: none, one, or several events."""
        self._learn_models(event)
        match event:
            case ev.TextArrived(key=key, origin=origin, kind=kind, text=text):
                self._pieces.setdefault((key, origin, kind), []).append(text)
                return [_with(event, text="")]
            case ev.RequestEnded(key=key, origin=origin, error=error):
                return [*self._texts_of(key, origin, event.at_ns), _with(event, error=self._error(error))]
            case ev.CacheSnapshot(entries=entries):
                shown_entries = (_with(entry, model=self._model(entry.model)) for entry in entries)
                return [_with(event, entries=tuple(shown_entries))]
            case ev.ServerPhaseChanged(text=text) | ev.Noticed(text=text):
                return [_with(event, text=self._head(text))]
            case ev.ModelLoadFailed(error=error) | ev.SourceFailed(error=error):
                named = {"model": self._model(event.model)} if isinstance(event, ev.ModelLoadFailed) else {}
                return [_with(event, error=self._error(error), **named)]
            case ev.LookedUp() | ev.EntryInserted():
                return [_with(event, tokens=_with(event.tokens, new=()), model=self._model(event.model))]
            case ev.LogRead(lines=lines):
                return [_with(event, lines=tuple(map(self._line, lines)))]
            case _ if isinstance(event, _KEPT):
                shown: dict[str, Any] = {
                    name: _without_home(getattr(event, name)) for name in _TEXTS if hasattr(event, name)
                }
                if flags := getattr(event, "flags", None):
                    shown["flags"] = self._flags(flags)
                shown |= {name: self._model(getattr(event, name)) for name in _MODELS if hasattr(event, name)}
                if getattr(event, "log_path", None) is not None:
                    shown["log_path"] = _A_PATH
                return [_with(event, **shown)]
            case _:
                return self._written(event)

    def _written(self, event: ev.AnyEvent) -> list[ev.AnyEvent]:
        """Events with texts that somebody wrote. What is not known here is left out."""
        match event:
            case ev.TextKept(text_id=text_id, text=text):
                return [_with(event, text_id=self._hash(text_id), text=self.mark(text))]
            case ev.PolicyKnown(label=label, text=text):
                return [_with(event, label=self._label(label), text=self.mark(text))]
            case ev.RequestComposed():
                return [self._composed(event)]
            case ev.LogOwned(text=text):
                return [_with(event, text=self._message(text))]
            case ev.WorkerDied(error=error):
                return [_with(event, error=error.partition(":")[0])]
            case ev.ServerExited(tail=tail):
                return [_with(event, tail=tuple(self._line(ev.LogLine(text=line)).text for line in tail))]
            case ev.ServerLaunched(flags=flags):
                return [_with(event, command=(), flags=self._flags(flags))]
            case ev.ObserverConnected(flags=flags, log_path=log_path):
                return [_with(event, flags=self._flags(flags), log_path=_A_PATH if log_path is not None else None)]
        return []

    def _learn_models(self, event: ev.AnyEvent) -> None:
        if isinstance(event, ev.ServerTargeted | ev.ServerIdentified):
            self._models.add(event.model)
        if isinstance(event, ev.ServerLaunched | ev.ObserverConnected | ev.ServerIdentified) and event.flags:
            named = (event.flags.get(name) for name in ("model", "draft_model"))
            self._models |= {name for name in named if isinstance(name, str)}

    def _model(self, name: str | None) -> str | None:
        return _without_home(name) if name is None or name in self._models else self.mark(name)

    def _composed(self, event: ev.RequestComposed) -> ev.RequestComposed:
        return _with(
            event,
            path=_known_path(event.path),
            messages=tuple((self._role(role), self._hash(text_id)) for role, text_id in event.messages),
            params=self._parameters(event.params),
            policy=self._label(event.policy) if event.policy is not None else None,
            before=self.mark(event.before),
            after=self.mark(event.after),
        )

    def _role(self, role: str) -> str:
        return role if role in _ROLES else self.mark(role)

    def _label(self, label: str) -> str:
        """A policy's label is the name that somebody gave its file."""
        return self._labels.setdefault(label, f"policy {len(self._labels) + 1}")

    def _texts_of(self, key: str, origin: ev.Origin, at_ns: int) -> list[ev.AnyEvent]:
        """Each text of a request as one mark, where the request ends."""
        found = [name for name in self._pieces if name[:2] == (key, origin)]
        return [
            ev.TextArrived(at_ns=at_ns, origin=origin, key=key, kind=name[2], text=self.mark("".join(pieces)))
            for name in found
            if (pieces := self._pieces.pop(name))
        ]

    def _line(self, line: ev.LogLine) -> ev.LogLine:
        if line.kind == "bar":
            return line  # how far the fetching of files is
        match = _RECORD.match(line.text)
        head, message = match.groups() if match else ("", line.text)
        return _with(line, text=head + self._message(message))

    def _message(self, text: str) -> str:
        if access := _ACCESS.fullmatch(text):
            head, path, tail = access.groups()
            return head + _known_path(path) + tail
        return text if _HARMLESS_RECORDS.fullmatch(text) else self.mark(text)

    def _head(self, text: str) -> str:
        """A line of ours up to where it may go on in somebody else's words."""
        head, telling, rest = text.partition(_TELLING)
        return f"{_PATH.sub(_A_PATH, head)}{telling}{self.mark(rest)}"

    def _error(self, error: str | None) -> str | None:
        """A server's own words on a failure may repeat what it was sent."""
        if not error or error.startswith(_OUR_ERRORS):
            return _without_home(error)
        match = _ERROR_HEAD.match(error)
        head = match.group() if match else ""
        return head + self.mark(error.removeprefix(head))

    def _flags(self, flags: dict[str, Any]) -> dict[str, Any]:
        """The server's: numbers and switches as they are, words and lists as marks but for a few names."""
        return {
            name: _without_home(value) if name in _NAMED_FLAGS and isinstance(value, str) else self._value(value)
            for name, value in flags.items()
        }

    def _parameters(self, params: dict[str, Any]) -> dict[str, Any]:
        """A request's: the same, and of names those that are known; a model's if it is the server's own."""
        shown: dict[str, Any] = {}
        for name, value in params.items():
            known = name if name in _PARAMETERS else self.mark(name)
            if name == "chat_template_kwargs" and isinstance(value, dict):
                shown[known] = self._parameters(value)
            elif name == "model" and isinstance(value, str):
                shown[known] = self._model(value)
            else:
                shown[known] = self._value(value)
        return shown

    def _value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, bool | int | float) else self.mark(str(value))

    def mark(self, text: str) -> str:
        """What stands for a text: `[512 characters, a1b2c3d4e5f6]`; an empty one stays empty."""
        return f"[{len(text)} characters, {self._hash(text)}]" if text else ""

    def _hash(self, text: str) -> str:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=6).hexdigest()


def _with(value: S, **changes: Any) -> S:
    return msgspec.structs.replace(value, **changes)


def _known_path(path: str) -> str:
    """A path of the API without its query; of any other only that there was one."""
    bare = re.split("[?#]", path, maxsplit=1)[0]
    return bare if bare in _PATHS else _A_PATH


def _without_home(text: str | None) -> str | None:
    return _HOME.sub("~", text) if text else text
