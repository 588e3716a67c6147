"""Asks a server whether it is there, whether it works and what it is. Short, quiet, never raises."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from mlxcache_tui.core.reply import one_line
from mlxcache_tui.sources.http import Reply, get

PROBE_SECONDS = 2.0
MAX_MODELS = 200


class Health(NamedTuple):
    """What a probe learned; None is unknown.

    `reachable`: something that speaks HTTP answered. `health`: status of /health (404 on servers without it).
    `models`: ids listed by /v1/models; None when it was not asked or gave nothing readable (mlx_lm answers 200 with an
    empty body when there is no Hugging Face cache). `software`: `mlx_lm`, `llama.cpp`, `vLLM` … a guess.
    `error`: one line when not reachable.
    """

    reachable: bool
    health: int | None = None
    health_text: str | None = None
    models: tuple[str, ...] | None = None
    software: str | None = None
    error: str | None = None

    @property
    def model(self) -> str | None:
        """The first model listed."""
        return self.models[0] if self.models else None

    @property
    def worker_dead(self) -> bool:
        """mlx_lm from 0.32 says so by itself; llama.cpp's 503 means that the model is still loading."""
        return self.health == 503 and self.health_text == "unavailable" and self.software in ("mlx_lm", None)


async def probe(
    url: str, *, models: bool = True, spare_mlx_lm: bool = False, timeout_s: float = PROBE_SECONDS
) -> Health:
    """Ask `/health`, and `/v1/models` unless `models` is false; `spare_mlx_lm`: or unless it is mlx_lm.

    mlx_lm searches its model folder for the models, and writes a traceback to its log if there is none: it is not asked
    again and again, nor where its process tells the model. Takes at most twice `timeout_s`, seconds.
    """
    health = await get(url, "/health", timeout_s)
    if isinstance(health, str):
        return Health(reachable=False, error=health)
    status = _field(health.body, "status")
    text = one_line(status, 80) if isinstance(status, str) else None
    asked = models and not (spare_mlx_lm and _software(health.headers, text, b"") == "mlx_lm")
    listed = await get(url, "/v1/models", timeout_s) if asked else "not asked"
    listing = listed if isinstance(listed, Reply) else None
    return Health(
        reachable=True,
        health=health.status,
        health_text=text,
        models=_model_ids(listing.body) if listing is not None and listing.status == 200 else None,
        software=_software(health.headers, text, listing.body if listing is not None else b""),
    )


def _software(headers: Mapping[str, str], health_text: str | None, models: bytes) -> str | None:
    server = headers.get("server", "")
    owners = {str(model.get("owned_by")) for model in _entries(models)}
    if "llama.cpp" in server or "llamacpp" in owners:
        return "llama.cpp"
    if "vllm" in owners:
        return "vLLM"
    if "library" in owners:
        return "Ollama"
    if "organization_owner" in owners:
        return "LM Studio"
    # Python's own HTTP server, and the words that mlx_lm's /health has.
    if server.startswith("BaseHTTP/") and health_text in ("ok", "unavailable"):
        return "mlx_lm"
    return one_line(server, 40) or None


def _model_ids(body: bytes) -> tuple[str, ...] | None:
    if not isinstance(_field(body, "data"), list):
        return None
    ids = [model["id"] for model in _entries(body) if isinstance(model.get("id"), str)]
    return tuple(one_line(name, 200) for name in ids[:MAX_MODELS])


def _entries(body: bytes) -> list[dict[str, Any]]:
    data = _field(body, "data")
    return [model for model in data if isinstance(model, dict)] if isinstance(data, list) else []


def _field(body: bytes, name: str) -> Any:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value.get(name) if isinstance(value, dict) else None
