"""What the observer and a viewer cost the server: TTFT and tokens per second against the plain server, within 1 %.

One observed server with a viewer on it answers with its hooks and without them by turns, as `switched_server` lets it.
Two servers side by side do not tell: a process is faster or slower than its twin by several per cent for its whole life
(where its memory lies), which is more than is looked for. Single times scatter by tens of per cent on a shared machine,
so requests come in blocks of either kind, back to back, in an order thrown by lot; two blocks make a pair, and what is
judged is the median of the pairs' ratios, with the interval that a bootstrap gives it. The first request of a block is
not counted: what the one before it left to do falls into it.

`MLXCACHE_BENCH_MODEL=smollm2` takes the real model (about 10 minutes) instead of the tiny one, whose prompts are read
in 10 ms: what costs 1 % there costs nothing on a model that somebody serves.
"""

import http.client
import itertools
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import pytest

from bench import switched_server
from bench.conftest import Budget, Figure
from bench.program import wait_for
from bench.switched_server import PLAIN_HEADER
from mlxcache_tui.models.blas import fast_blas
from mlxcache_tui.models.fetch import Kind, ensure_demo_model
from support.live_server import Server, launched
from support.viewer import ViewerProcess

KIND: Kind = os.environ.get("MLXCACHE_BENCH_MODEL", "tiny")  # type: ignore[assignment]
ROUNDS, PAIRS, BLOCK, TOKENS = (1, 20, 2, 24) if KIND == "smollm2" else (3, 60, 4, 64)
SETTLED_S = 0.15
"""After a block the viewer has drawn its last request, and the server has stored it."""
RESAMPLES = 2_000
LIMIT = 1.01
POLICY = "The rules. " + " ".join(f"Rule {n}: an article is taken back within {n} days." for n in range(20))


class Times(NamedTuple):
    """Of a streamed request: seconds to the first text, and seconds a token after it."""

    ttft_s: float
    per_token_s: float


def ask(server: Server, number: int, *, plain: bool) -> Times:
    """One request, timed as its lines arrive. Each has a question of its own behind the one policy."""
    messages = [
        {"role": "system", "content": POLICY},
        {"role": "user", "content": f"Question {number:05d}: how many days?"},
    ]
    body = {"messages": messages, "max_tokens": TOKENS, "stream": True, "stream_options": {"include_usage": True}}
    headers = {"Content-Type": "application/json"} | ({PLAIN_HEADER: "1"} if plain else {})
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        connection.connect()
        start = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        first = last = 0.0
        count = 0
        for line in connection.getresponse():
            now = time.perf_counter()
            if not line.startswith(b"data: {"):
                continue
            event: dict[str, Any] = json.loads(line[6:])
            for choice in event["choices"]:
                if choice["delta"].get("content"):
                    first = first or now
                if choice.get("finish_reason"):
                    last = now
            count = (event.get("usage") or {}).get("completion_tokens", count)
    finally:
        connection.close()
    return Times(first - start, (last - first) / (count - 1))


@contextmanager
def watched(model: Path, folder: Path) -> Iterator[Server]:
    """A server that is observed, or not where a request says so, and a viewer of it."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mlxc-", dir="/tmp")))
        server = stack.enter_context(launched(model, place, script=Path(switched_server.__file__)))
        wait_for(partial(_answers, server), "the server")
        (Path(os.environ["MLXCACHE_RUNTIME_DIR"]) / f"{server.port}.sock").symlink_to(server.socket)
        viewer = ViewerProcess(f"http://127.0.0.1:{server.port}", folder / f"{server.port}.jsonl")
        stack.callback(viewer.close)
        viewer.do("see 0")
        yield server


def _answers(server: Server) -> bool:
    try:
        ask(server, 0, plain=False)
    except OSError:
        return False
    return True


def block(server: Server, numbers: Iterator[int], *, plain: bool) -> Times:
    """Requests of one kind back to back, the first one not counted: the median of each time."""
    time.sleep(SETTLED_S)
    _, *times = [ask(server, next(numbers), plain=plain) for _ in range(1 + BLOCK)]
    return Times(*(statistics.median(values) for values in zip(*times, strict=True)))


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median and its 90 % interval, by bootstrap."""
    lot = random.Random(1)
    medians = sorted(statistics.median(lot.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return statistics.median(values), medians[RESAMPLES // 20], medians[-RESAMPLES // 20]


def test_the_observer_costs_the_server_nothing_that_can_be_felt(
    tmp_path: Path, budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = Path(sys.executable)
    model = ensure_demo_model(KIND, python=python, report=lambda _: None, cancel=Event())
    for name, value in fast_blas(python).env.items() if KIND == "smollm2" else ():
        monkeypatch.setenv(name, value)
    lot, numbers = random.Random(20261129), itertools.count(1)
    ratios: list[Times] = []
    for _ in range(ROUNDS):
        with watched(model, tmp_path) as server:
            for plain in (True, False):  # each way once, so that neither of them finds its functions new
                block(server, numbers, plain=plain)
            for _ in range(PAIRS):
                times = {plain: block(server, numbers, plain=plain) for plain in lot.sample((True, False), 2)}
                ratios.append(Times(*(math.log(a / b) for a, b in zip(times[False], times[True], strict=True))))
    figures = []
    for what, logs in zip(("TTFT", "time a token"), zip(*ratios, strict=True), strict=True):
        median, low, high = map(math.exp, interval(logs))
        note = f"90 % interval {low:.4f} to {high:.4f}, {len(logs)} pairs, {KIND}"
        figures.append(Figure(f"{what}, observed against plain", median, LIMIT, note=note))
    budget.judge(*figures)
