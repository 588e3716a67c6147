"""The sender and the probe against the real mlx_lm.server on a tiny random model."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.events import (
    Event,
    FinishArrived,
    FirstTokenArrived,
    PrefillProgressed,
    RequestAdmitted,
    RequestEnded,
    RequestSent,
    ServerIdentified,
    TextArrived,
    UsageReported,
)
from mlxcache_tui.models.fetch import ensure_demo_model
from mlxcache_tui.sources.health import probe
from mlxcache_tui.sources.http import Sender
from support.live_server import free_port

pytestmark = pytest.mark.mlx

READY_S = 120.0
REPLY_S = 120.0
POLICY = " ".join(f"Rule {number}: accessories may be returned within {number} days." for number in range(1, 41))
E = TypeVar("E", bound=Event)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a plain server, without our observer and without a model folder of Hugging Face."""
    folder = tmp_path_factory.mktemp("server")
    model = ensure_demo_model("tiny", python=Path(sys.executable), report=lambda _: None)
    port = free_port()
    command = [sys.executable, "-m", "mlx_lm", "server", "--model", str(model), "--port", str(port)]
    env = os.environ | {"HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
    try:
        url = f"http://127.0.0.1:{port}"
        if not asyncio.run(_ready(url)):
            pytest.fail(f"the server did not become ready:\n{(folder / 'log').read_text()[-2000:]}")
        yield url
    finally:
        process.kill()
        process.wait()


async def _ready(url: str) -> bool:
    """Whether the server completes a request in time: the open port alone does not mean that the model is there."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if (await send(url, Draft(user="Hi", max_tokens=1))).one(RequestEnded).outcome == "done":
            return True
        await asyncio.sleep(0.1)
    return False


class Requests(list[Event]):
    """The events of a run of requests."""

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        (event,) = self.all(kind)
        return event

    def text(self) -> str:
        return "".join(event.text for event in self.all(TextArrived))


async def send(url: str, *drafts: Draft) -> Requests:
    """Send the drafts at once and wait for all."""
    events = Requests()
    sender = Sender(url, events.append, time.monotonic_ns)
    async with asyncio.timeout(REPLY_S):
        await asyncio.gather(*(sender.send(f"r{number}", draft) for number, draft in enumerate(drafts)))
    return events


async def test_a_streamed_answer_has_every_stamp_in_order(server: str) -> None:
    events = await send(server, Draft(user="May I?", policy_text=f"Streamed. {POLICY}", max_tokens=8))
    assert events.one(RequestEnded).outcome == "done"
    assert events.one(RequestAdmitted).status == 200
    usage, finish = events.one(UsageReported), events.one(FinishArrived)
    assert usage.prompt_tokens is not None
    assert usage.cached_tokens is not None
    assert (usage.output_tokens, finish.finish_reason) == (8, "length")
    assert events.all(PrefillProgressed)[-1].total == usage.prompt_tokens - usage.cached_tokens
    marks = [
        events.one(RequestSent).at_ns,
        events.one(RequestAdmitted).at_ns,
        events.all(PrefillProgressed)[0].at_ns,
        events.all(FirstTokenArrived)[0].at_ns,
        finish.at_ns,
        usage.at_ns,
        events.one(RequestEnded).at_ns,
    ]
    assert marks == sorted(marks)
    identity = events.one(ServerIdentified)
    assert identity.software == "mlx_lm"
    assert identity.mlx_lm is not None
    assert identity.mlx_lm[0].isdigit()


async def test_the_second_question_on_a_policy_reuses_it(server: str) -> None:
    policy = f"Twice. {POLICY}"
    first = await send(server, Draft(user="May I?", policy_text=policy, max_tokens=2))
    second = await send(server, Draft(user="It came damaged. May I?", policy_text=policy, max_tokens=2))
    cached = second.one(UsageReported).cached_tokens
    prompt = second.one(UsageReported).prompt_tokens
    assert first.one(UsageReported).cached_tokens is not None
    assert cached is not None
    assert prompt is not None
    assert cached / prompt > 0.5


async def test_a_whole_answer(server: str) -> None:
    events = await send(server, Draft(user="May I?", max_tokens=4, stream=False))
    assert events.one(RequestEnded).outcome == "done"
    assert events.one(UsageReported).output_tokens == 4
    assert events.one(FinishArrived).finish_reason == "length"
    assert not events.all(FirstTokenArrived)


async def test_streamed_and_whole_answers_are_the_same_text(server: str) -> None:
    streamed = await send(server, Draft(user="Same?", max_tokens=12))
    whole = await send(server, Draft(user="Same?", max_tokens=12, stream=False))
    assert streamed.text()
    assert streamed.text() == whole.text()


async def test_a_seed_is_served_too(server: str) -> None:
    events = await send(server, Draft(user="May I?", max_tokens=2, extra={"seed": 7}))
    assert events.one(RequestEnded).outcome == "done"
    assert events.all(PrefillProgressed)[0].done == 0  # the sequential path begins at 0


async def test_four_at_once(server: str) -> None:
    events = await send(server, *(Draft(user=f"Number {n}?", policy_text=POLICY, max_tokens=4) for n in range(4)))
    assert [end.outcome for end in events.all(RequestEnded)] == ["done"] * 4
    assert {usage.output_tokens for usage in events.all(UsageReported)} == {4}


async def test_a_bad_parameter_is_400_in_the_servers_words(server: str) -> None:
    end = (await send(server, Draft(user="May I?", max_tokens=0))).one(RequestEnded)
    assert (end.outcome, end.status, end.error) == ("failed", 400, "HTTP 400: max_tokens must be at least 1")


async def test_a_wrong_model_is_404_and_the_default_still_answers(server: str) -> None:
    end = (await send(server, Draft(user="May I?", model="no/such-model"))).one(RequestEnded)
    assert (end.outcome, end.status) == ("failed", 404)
    assert end.error is not None
    assert end.error.startswith("HTTP 404: ")
    assert "\n" not in end.error
    assert (await send(server, Draft(user="May I?", max_tokens=1))).one(RequestEnded).outcome == "done"


async def test_cancel_in_mid_answer(server: str) -> None:
    events = Requests()
    first_text = asyncio.Event()

    def emit(event: Event) -> None:
        events.append(event)
        if isinstance(event, TextArrived):
            first_text.set()

    sending = Sender(server, emit, time.monotonic_ns).send("r1", Draft(user="Talk.", max_tokens=100_000))
    task = asyncio.get_running_loop().create_task(sending)
    async with asyncio.timeout(REPLY_S):
        await first_text.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    end = events.one(RequestEnded)
    assert (end.outcome, end.status) == ("cancelled", 200)
    assert (await send(server, Draft(user="Still there?", max_tokens=1))).one(RequestEnded).outcome == "done"


async def test_what_a_probe_learns(server: str) -> None:
    health = await probe(server, timeout_s=REPLY_S)
    assert health.reachable
    assert (health.health, health.software) == (200, "mlx_lm")
    # 0.32.2 answers 200 with an empty body where there is no model folder of Hugging Face.
    assert health.models is None or health.model
    assert not health.worker_dead
