"""What a face (screen, headless run) may ask of the engine. Imperative; answered by events."""

from typing import Any

import msgspec

from mlxcache_tui.core.events import Purpose

DEFAULT_MODEL = "default_model"
"""The server's own word for the model that it was started with."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A request as written by a person or a scenario, before it has a body.

    The system message is `before` + the policy's text + `after`; empty parts add nothing; without any there
    is no system message. `messages` are further (role, text) pairs between it and `user` (a continued conversation).
    `thinking`: None leaves the template's default. `extra` are further keys of the body (seed, chat_template_kwargs …).
    `scenario`: name and digest of the one that it belongs to.
    """

    user: str
    policy: str | None = None
    policy_text: str = ""
    before: str = ""
    after: str = ""
    messages: tuple[tuple[str, str], ...] = ()
    max_tokens: int = 128
    stream: bool = True
    thinking: bool | None = None
    temperature: float | None = None
    model: str = DEFAULT_MODEL
    extra: dict[str, Any] = {}
    purpose: Purpose = "send"
    step: str | None = None
    scenario: tuple[str, str] | None = None
    warmup: bool = False

    @property
    def system(self) -> str:
        """The system message as it is sent."""
        return "\n\n".join(part for part in (self.before, self.policy_text, self.after) if part)


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a server: the model (a name, a folder, or `demo:KIND`), port (0: any free one) and its flags.

    `flags` maps the server's long option names without dashes (`prompt_cache_size`) to values; True is a bare switch.
    `python` is the interpreter that has mlx_lm (None: this one).
    """

    model: str
    host: str = "127.0.0.1"
    port: int = 8080
    flags: dict[str, Any] = {}
    python: str | None = None
    keep: bool = False


class SendRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Send one request under the key given (made by `engine.new_key`)."""

    key: str
    draft: Draft


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Close the connection of a request of ours that is still open."""

    key: str


class StartServer(msgspec.Struct, frozen=True, kw_only=True):
    """Start a server of our own and watch it (a running one of ours is stopped first)."""

    spec: ServerSpec


class RestartServer(msgspec.Struct, frozen=True, kw_only=True):
    """Stop our server and start it again, with these flags changed (None removes a flag)."""

    flags: dict[str, Any] = {}


class StopServer(msgspec.Struct, frozen=True, kw_only=True):
    """Stop our server. One that we did not start is let alone."""


class AttachServer(msgspec.Struct, frozen=True, kw_only=True):
    """Watch a server that runs already, with its log file if one is named."""

    url: str
    log_path: str | None = None
    watch_only: bool = False


Command = SendRequest | CancelRequest | StartServer | RestartServer | StopServer | AttachServer
