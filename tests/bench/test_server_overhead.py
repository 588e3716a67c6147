"""What the observer and a viewer cost the server: TTFT and tokens per second against the plain server, within 1 %.

Two servers of the same model stand side by side, one plain and one observed with a viewer on it; each question goes to
both, in an order thrown by lot, and the two times make one pair. Single times scatter by tens of per cent on a shared
machine, so what is judged is the median of the pairs' ratios, with the interval that a bootstrap gives it. Each round
has new processes, since a process is faster or slower than its twin for its whole life (where its memory lies).

`MLXCACHE_BENCH_MODEL=smollm2` takes the real model (about 10 minutes) instead of the tiny one, whose prompts are read
in 10 ms: what costs 1 % there costs nothing on a model that somebody serves.
"""

import http.client
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import pytest

from bench.conftest import Budget, Figure
from bench.program import wait_for
from mlxcache_tui.models.blas import fast_blas
from mlxcache_tui.models.fetch import Kind, ensure_demo_model
from support.live_server import OBSERVE, Server, launched
from support.viewer import ViewerProcess

KIND: Kind = os.environ.get("MLXCACHE_BENCH_MODEL", "tiny")  # type: ignore[assignment]
ROUNDS, PAIRS, TOKENS = (3, 40, 24) if KIND == "smollm2" else (5, 150, 64)
RESAMPLES = 2_000
LIMIT = 1.01
POLICY = "The rules. " + " ".join(f"Rule {n}: an article is taken back within {n} days." for n in range(20))
PLAIN = """
import runpy, sys
sys.argv = ["mlx_lm.server", *sys.argv[sys.argv.index("--") + 1 :]]
runpy.run_module("mlx_lm.server", run_name="__main__")
"""


class Times(NamedTuple):
    """Of one streamed request: seconds to the first text, and tokens a second after it."""

    ttft_s: float
    tps: float


def ask(server: Server, question: str) -> Times:
    """One request, timed as its lines arrive."""
    messages = [{"role": "system", "content": POLICY}, {"role": "user", "content": question}]
    body = {"messages": messages, "max_tokens": TOKENS, "stream": True, "stream_options": {"include_usage": True}}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        connection.connect()
        start = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
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
    return Times(first - start, (count - 1) / (last - first))


@contextmanager
def pair(model: Path, folder: Path) -> Iterator[tuple[Server, Server]]:
    """A plain server, and an observed one with a viewer."""
    script = folder / "plain.py"
    script.write_text(PLAIN)
    with ExitStack() as stack:
        servers = []
        for name, how in (("plain", script), ("observed", OBSERVE)):
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mlxc-", dir="/tmp")))
            server = stack.enter_context(launched(model, place, script=how))
            wait_for(partial(_answers, server), f"the {name} server")
            servers.append(server)
        runtime = Path(os.environ["MLXCACHE_RUNTIME_DIR"])
        (runtime / f"{servers[1].port}.sock").symlink_to(servers[1].socket)
        viewer = ViewerProcess(f"http://127.0.0.1:{servers[1].port}", folder / f"{servers[1].port}.jsonl")
        stack.callback(viewer.close)
        viewer.do("see 0")
        yield servers[0], servers[1]


def _answers(server: Server) -> bool:
    try:
        ask(server, "Ready?")
    except OSError:
        return False
    return True


def interval(values: list[float]) -> tuple[float, float, float]:
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
    lot = random.Random(20261129)
    slower: list[float] = []
    fewer: list[float] = []
    for _ in range(ROUNDS):
        with pair(model, tmp_path) as servers:
            for number in range(PAIRS):
                times: dict[int, Times] = {}
                for which in lot.sample((0, 1), 2):
                    times[which] = ask(servers[which], f"Question {number}: how many days?")
                slower.append(math.log(times[1].ttft_s / times[0].ttft_s))
                fewer.append(math.log(times[0].tps / times[1].tps))
    figures = []
    for what, logs in (("TTFT", slower), ("time a token", fewer)):
        median, low, high = map(math.exp, interval(logs))
        note = f"90 % interval {low:.4f} to {high:.4f}, {len(logs)} pairs, {KIND}"
        figures.append(Figure(f"{what}, observed against plain", median, LIMIT, note=note))
    budget.judge(*figures)
