"""A viewer as a process of its own, so that it can be stopped: told what to do by lines on its standard input.

`send N POLICY PAUSE` sends N requests one after the other and answers with their TTFT; `see COUNT` waits until so many
requests are over and answers with what this viewer sees; the end of the input ends it. Answers are one JSON line each.
"""

import asyncio
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from mlxcache_tui.core import metrics
from mlxcache_tui.core.commands import AttachServer, Draft, SendRequest
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.engine.engine import Engine
from mlxcache_tui.engine.setup import open_engine

PATIENCE_S = 120.0


def text_of(policy: str) -> str:
    """A policy of some hundred tokens, different from its first word on."""
    return f"{policy} " + " ".join(f"rule {n} of {policy}: return it within {n} days." for n in range(20))


def over(state: SessionState, key: str) -> bool:
    return key in state.requests and state.requests[key].outcome is not None


async def send(engine: Engine, count: int, policy: str, pause_s: float) -> list[float | None]:
    ttft = []
    for number in range(count):
        key = engine.new_key()
        draft = Draft(user=f"question {number}", policy=policy, policy_text=text_of(policy), max_tokens=4)
        engine.submit(SendRequest(key=key, draft=draft))
        assert await engine.until(partial(over, key=key), PATIENCE_S)
        ttft.append(metrics.ttft_s(engine.state.requests[key]))
        await asyncio.sleep(pause_s)
    return ttft


def settled(state: SessionState, count: int) -> bool:
    ended = [r for r in state.requests.values() if r.number and r.outcome and r.reason and r.entries]
    return len(ended) >= count and len(state.cache.stored) <= (state.cache.max_count or 0)


async def see(engine: Engine, count: int) -> dict[str, Any]:
    assert await engine.until(lambda s: settled(s, count), PATIENCE_S), len(engine.state.requests)
    state = engine.state
    return {
        "requests": {
            r.key: [r.policy, r.prompt_tokens, r.cached_tokens, r.output_tokens, r.outcome, r.reason and r.reason.kind]
            for r in state.requests.values()
            if r.number
        },
        "ours": sorted(key for key, r in state.requests.items() if r.ours),
        "stored": sorted(state.cache.stored),
        "log": [row.text for row in state.log.rows if row.kind == "progress"],
        "notices": [notice.text for notice in state.notices],
    }


def tell(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def main(url: str, session: str, *, watch: bool) -> None:
    loop = asyncio.get_running_loop()
    start = AttachServer(url=url, watch_only=watch)
    async with open_engine(Settings(start=start, save_path=session)) as engine:
        assert await engine.until(lambda s: s.server.observed and s.server.phase == "ready", PATIENCE_S)
        tell("attached")
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            match line.split():
                case ["send", count, policy, pause]:
                    answer: Any = await send(engine, int(count), policy, float(pause))
                case ["see", count]:
                    answer = await see(engine, int(count))
                case ["try"]:
                    engine.submit(SendRequest(key=engine.new_key(), draft=Draft(user="May I?")))
                    await engine.until(lambda s: bool(s.notices), PATIENCE_S)
                    answer = [notice.text for notice in engine.state.notices]
                case _:
                    raise ValueError(line)
            tell(answer)


class ViewerProcess:
    """The test's end of a viewer."""

    def __init__(self, url: str, session: Path, *, watch: bool = False) -> None:
        command = [sys.executable, "-m", "support.viewer", url, str(session), *(["--watch"] if watch else [])]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
        )
        assert self.answer() == "attached"

    def ask(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def do(self, line: str) -> Any:
        self.ask(line)
        return self.answer()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], watch="--watch" in sys.argv))
