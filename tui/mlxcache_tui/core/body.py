"""A draft as it goes over the wire: address, body, headers of ours, the same as a curl command and as an event."""

import json
import re
import shlex
from typing import Any

from mlxcache_tui.core.codec import text_id_of
from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.events import RequestComposed, TextKept
from mlxcache_tui.core.text import clean

CHAT_PATH = "/v1/chat/completions"
META_BYTES = 2048
"""Longest value of the header `X-Mlxcache-Meta`, bytes."""


def endpoint(url: str, path: str) -> str:
    """The address of `path` on a server: `url` may lack `http://`, end with a slash or with `/v1`."""
    base = (url if "://" in url else f"http://{url}").rstrip("/")
    return base.removesuffix("/v1") + path


def shown_url(url: str) -> str:
    """The server's address as it may be shown, usable or not: without user name, password and query."""
    return clean(re.sub(r"(?<=://)[^/?#]*@|[?#].*", "", endpoint(url, "")))


def build_body(draft: Draft) -> tuple[str, dict[str, Any]]:
    """Path and body of the chat completion that a draft asks for.

    Nothing is sent that was not asked for: no seed (it takes the request off the server's batched path), no
    temperature, no template arguments. `draft.extra` adds keys and cannot replace those that the draft itself sets.
    """
    messages = [{"role": "system", "content": draft.system}] if draft.system else []
    messages += [{"role": role, "content": text} for role, text in (*draft.messages, ("user", draft.user))]
    body: dict[str, Any] = {
        "model": draft.model,
        "messages": messages,
        "max_tokens": draft.max_tokens,
        "stream": draft.stream,
    }
    if draft.temperature is not None:
        body["temperature"] = draft.temperature
    if draft.stream:
        body["stream_options"] = {**_table(draft.extra, "stream_options"), "include_usage": True}
    if draft.thinking is not None:
        arguments = _table(draft.extra, "chat_template_kwargs")
        body["chat_template_kwargs"] = {**arguments, "enable_thinking": draft.thinking}
    return CHAT_PATH, body | {name: value for name, value in draft.extra.items() if name not in body}


def composed_event(key: str, draft: Draft, at_ns: int) -> tuple[list[TextKept], RequestComposed]:
    """The events that say what a draft sends: its texts (each once), then the request that names them."""
    path, body = build_body(draft)
    kept: dict[str, TextKept] = {}
    messages = []
    for message in body.pop("messages"):
        text_id = text_id_of(message["content"])
        kept[text_id] = TextKept(at_ns=at_ns, origin="client", text_id=text_id, text=message["content"])
        messages.append((message["role"], text_id))
    composed = RequestComposed(
        at_ns=at_ns,
        origin="client",
        key=key,
        purpose=draft.purpose,
        path=path,
        messages=tuple(messages),
        params=body,
        policy=draft.policy,
        before=draft.before,
        after=draft.after,
        step=draft.step,
        scenario=draft.scenario,
        warmup=draft.warmup,
    )
    return list(kept.values()), composed


def meta_header(draft: Draft) -> str:
    """What the body does not tell a second viewer: ASCII JSON of at most `META_BYTES`, without long texts."""
    meta = {
        "policy": draft.policy,
        "purpose": draft.purpose,
        "step": draft.step,
        "warmup": draft.warmup,
        "before": draft.before,
        "after": draft.after,
    }
    text = _compact(meta)
    for names in (("before", "after"), ("policy", "step")):
        if len(text) > META_BYTES:
            meta = {name: value for name, value in meta.items() if name not in names}
            text = _compact(meta)
    return text


def as_curl(url: str, path: str, body: dict[str, Any]) -> str:
    """The request as one curl command for bash or zsh; printable in a terminal, whatever the texts hold."""
    data = json.dumps(body, ensure_ascii=False)
    # Controls, bidi marks and line separators in a text stay escaped: a pasted command must be what it looks like.
    data = "".join(mark if mark.isprintable() else _escaped(mark) for mark in data)
    words = ["curl", "-sS", *(["-N"] if body.get("stream") else []), endpoint(url, path)]
    words += ["-H", "Content-Type: application/json", "-d", data]
    return shlex.join(words)


def _compact(meta: dict[str, Any]) -> str:
    return json.dumps(meta, separators=(",", ":")).replace("\x7f", "\\u007f")


def _escaped(mark: str) -> str:
    """One character as JSON escapes (two for one outside the first plane)."""
    units = mark.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _table(extra: dict[str, Any], name: str) -> dict[str, Any]:
    value = extra.get(name)
    return value if isinstance(value, dict) else {}
