"""Probing a server: is it there, does it work, what is it. A probe never raises and never takes long."""

import asyncio
import json
import socket
from collections.abc import Callable

import pytest

from mlxcache_tui.sources.health import Health, probe
from support.stub_server import RESET, Received, Script, Step, head, serve

PATIENCE_S = 60.0
OK = b'{"status": "ok"}'


def answers(health: Script, models: Script) -> Callable[[Received], Script]:
    return lambda request: health if request.path == "/health" else models


def listing(*ids: object, owner: str | None = None) -> bytes:
    more = {} if owner is None else {"owned_by": owner}
    return json.dumps({"object": "list", "data": [{"id": name, "object": "model"} | more for name in ids]}).encode()


JSON = head(content_type="application/json")
UVICORN = JSON.replace(b"BaseHTTP/0.6 Python/3.12.4", b"uvicorn")
LLAMA = JSON.replace(b"BaseHTTP/0.6 Python/3.12.4", b"llama.cpp")
NO_SERVER = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"

CASES: dict[str, tuple[Script, Script, Health]] = {
    "mlx_lm": (
        [JSON, OK],
        [JSON, listing("a/b", "c")],
        Health(True, 200, "ok", ("a/b", "c"), "mlx_lm"),
    ),
    "mlx_lm without a model folder: 200 and nothing": (
        [JSON, OK],
        [JSON],
        Health(True, 200, "ok", None, "mlx_lm"),
    ),
    "mlx_lm whose model list breaks": ([JSON, OK], [RESET], Health(True, 200, "ok", None, "mlx_lm")),
    "mlx_lm with a dead worker": (
        [head("503 Service Unavailable", "application/json"), b'{"status": "unavailable"}'],
        [JSON, listing("a/b")],
        Health(True, 503, "unavailable", ("a/b",), "mlx_lm"),
    ),
    "llama.cpp while it loads": (
        [LLAMA.replace(b"200 OK", b"503 Service Unavailable"), b'{"error": {"code": 503, "message": "Loading model"}}'],
        [LLAMA.replace(b"200 OK", b"503 Service Unavailable")],
        Health(True, 503, None, None, "llama.cpp"),
    ),
    "llama.cpp without its header": (
        [NO_SERVER, OK],
        [NO_SERVER, listing("m", owner="llamacpp")],
        Health(True, 200, "ok", ("m",), "llama.cpp"),
    ),
    "vLLM: empty health": (
        [UVICORN],
        [UVICORN, listing("m", owner="vllm")],
        Health(True, 200, None, ("m",), "vLLM"),
    ),
    "LM Studio: no health": (
        [head("404 Not Found", "text/html"), b"<html>"],
        [NO_SERVER, listing("m", owner="organization_owner")],
        Health(True, 404, None, ("m",), "LM Studio"),
    ),
    "Ollama": (
        [head("404 Not Found", "text/plain"), b"404 page not found"],
        [NO_SERVER, listing("m", owner="library")],
        Health(True, 404, None, ("m",), "Ollama"),
    ),
    "another Python server is not mlx_lm": (
        [head("404 File not found", "text/html")],
        [head("404 File not found", "text/html")],
        Health(True, 404, None, None, "BaseHTTP/0.6 Python/3.12.4"),
    ),
    "says nothing about itself": ([NO_SERVER, b"[]"], [NO_SERVER, b'{"data": 3}'], Health(True, 200, None, None, None)),
    "odd model list": (
        [JSON, OK],
        [JSON, b'{"data": [3, {"id": 4}, {}, {"id": "a\\u001b[2J\\nb"}]}'],
        Health(True, 200, "ok", ("a b",), "mlx_lm"),
    ),
    "no models": ([JSON, OK], [JSON, listing()], Health(True, 200, "ok", (), "mlx_lm")),
    "too deep": ([JSON, b"[" * 100_000], [JSON, b"\xff"], Health(True, 200, None, None, "BaseHTTP/0.6 Python/3.12.4")),
}


@pytest.mark.parametrize("name", CASES)
async def test_what_a_probe_learns(name: str) -> None:
    health, models, expected = CASES[name]
    async with serve(answers(health, models)) as stub:
        assert await probe(stub.url, timeout_s=PATIENCE_S) == expected


def test_first_model_and_dead_worker() -> None:
    assert Health(True, models=("a", "b")).model == "a"
    assert Health(True, models=()).model is None
    assert Health(True).model is None
    assert Health(True, 503, "unavailable", software="mlx_lm").worker_dead
    assert not Health(True, 503, software="llama.cpp").worker_dead
    assert not Health(True, 200, "ok", software="mlx_lm").worker_dead


async def test_a_watcher_asks_only_for_health() -> None:
    async with serve([JSON, OK]) as stub:
        assert await probe(stub.url, models=False, timeout_s=PATIENCE_S) == Health(True, 200, "ok", None, "mlx_lm")
        assert [request.path for request in stub.requests] == ["/health"]


async def test_nothing_answers() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        health = await probe(url, timeout_s=PATIENCE_S)
    assert health == Health(False, error=f"nothing answers at {url}: start the server or choose another URL")


async def test_a_server_that_never_answers_is_given_up() -> None:
    async with serve([asyncio.Event()]) as stub:
        health = await probe(stub.url, timeout_s=0.05)
        if stub.requests:  # on a busy machine it may be given up before it was sent
            await stub.closed_by_client.wait()
    assert not health.reachable
    assert health.error is not None


async def test_a_body_that_drips_for_ever_is_given_up() -> None:
    drops: list[Step] = [b" ", 0.02]
    async with serve([JSON, *drops * 1000]) as stub:
        health = await probe(stub.url, timeout_s=0.2)
    assert not health.reachable
    assert health.error is not None
    assert stub.url in health.error


async def test_a_body_without_end_is_cut() -> None:
    async with serve([JSON, b" " * (3 << 20), asyncio.Event()]) as stub:
        assert (await probe(stub.url, models=False, timeout_s=PATIENCE_S)).reachable


@pytest.mark.parametrize(
    "url", ["http://", "http://[::1", "ftp://x", "http://a b", "http://x:99999", "http://a..b", ""]
)
async def test_an_address_that_is_none(url: str) -> None:
    health = await probe(url, timeout_s=1.0)
    assert not health.reachable
    assert health.error
    assert "\n" not in health.error


async def test_what_is_not_http() -> None:
    async with serve([b"220 mail ready\r\n\r\n"]) as stub:
        health = await probe(stub.url, timeout_s=PATIENCE_S)
    assert health.error is not None
    assert health.error.startswith(f"what answers at {stub.url} does not speak HTTP")
