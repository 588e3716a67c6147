"""The engine itself: one order of events, folds that are told, an end that leaves nothing."""

import asyncio
import threading
from pathlib import Path

import pytest

from mlxcache_tui.core.commands import Draft, SendRequest
from mlxcache_tui.core.events import Noticed, PolicyKnown, TextKept
from mlxcache_tui.core.reduce import Part, fold
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.engine import worker
from mlxcache_tui.engine.engine import Engine
from mlxcache_tui.engine.setup import open_engine
from mlxcache_tui.store.policies import Policy
from mlxcache_tui.store.recorder import Recorder
from mlxcache_tui.store.replay import read_session
from support.engines import ask, notices, until


def told(text: str) -> Noticed:
    return Noticed(at_ns=1, origin="program", level="info", pane="server", text=text)


async def test_events_of_many_threads_are_folded_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    async with Engine(Recorder(path)) as engine:

        def talk(name: str) -> None:
            for number in range(100):
                engine.emit(told(f"{name} {number}"))

        threads = [threading.Thread(target=talk, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        await until(engine, lambda state: state.notice_count == 400)
        for thread in threads:
            thread.join()
    assert fold(read_session(path).events) == engine.state


async def test_a_sessions_file_carries_the_policies_that_were_used_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    names = ("sent", "changed", "seen", "unused")
    policies = tuple(Policy(label=name, text=f"text of {name}", path=path) for name in names)
    async with Engine(Recorder(path), policies) as engine:

        async def asked(policy: str, text: str) -> None:
            key = engine.new_key()
            engine.submit(SendRequest(key=key, draft=Draft(user="?", policy=policy, policy_text=text)))
            await until(engine, lambda state: key in state.requests and state.requests[key].outcome is not None)

        await asked("sent", "text of sent")
        await asked("changed", "some other text")
        foreign = "You are kind. text of seen. Be brief."
        engine.emit(TextKept(at_ns=1, origin="observer", text_id="t", text=foreign))
        await asked("sent", "text of sent")
    events = read_session(path).events
    known = [event.label for event in events if isinstance(event, PolicyKnown)]
    assert known == ["sent", "changed", "seen"] == list(engine.state.policies)
    assert [request.policy for request in engine.state.requests.values()] == ["sent", "changed", "sent"]
    assert fold(events) == engine.state


async def test_a_scenarios_policy_is_not_taken_for_one_of_the_same_name() -> None:
    async with Engine(policies=(Policy(label="returns", text="text of the shop", path=Path("returns.md")),)) as engine:
        engine.emit(PolicyKnown(at_ns=1, origin="program", label="returns", text="text of the scenario"))
        key = engine.new_key()
        draft = Draft(user="?", policy="returns", policy_text="text of the scenario")
        engine.submit(SendRequest(key=key, draft=draft))
        await until(engine, lambda state: key in state.requests and state.requests[key].outcome is not None)
        assert engine.state.policies == {"returns": "text of the scenario"}


async def test_listeners_hear_what_changed_and_waiters_wake() -> None:
    heard: list[frozenset[Part]] = []
    async with Engine() as engine:
        await until(engine, lambda state: state.started != "")
        engine.listen(heard.append)
        engine.warn("careful")
        await until(engine, lambda state: state.notice_count == 1)
        assert frozenset({"notices"}) in heard
        assert not await engine.until(lambda state: state.notice_count > 1, 0.05)


async def test_a_request_without_a_server_fails_with_what_to_do() -> None:
    async with open_engine(Settings()) as engine:
        request = await ask(engine, "Hello?")
    assert (request.outcome, request.error) == ("failed", "no server yet: start one or attach to one")


async def test_a_text_is_told_again_when_no_request_had_it_lately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "TOLD_REQUESTS", 2)
    monkeypatch.setattr(worker, "KEPT_KEYS", 3)
    path = tmp_path / "session.jsonl"
    async with Engine(Recorder(path)) as engine:
        for user in ("one", "one", "two", "two", "two", "one", "one"):
            await ask(engine, user)
        assert len(engine._worker._mine) == 3
        assert len(engine._worker._told) == 2
    assert [event.text for event in read_session(path).events if isinstance(event, TextKept)] == ["one", "two", "one"]


async def test_keys_differ_between_sessions() -> None:
    one, two = Engine(), Engine()
    async with one, two:
        keys = {one.new_key(), one.new_key(), two.new_key()}
    assert len(keys) == 3


async def test_an_end_that_is_interrupted_still_ends(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    threads = set(threading.enumerate())
    entered = asyncio.Event()

    async def live() -> None:
        async with Engine(Recorder(path)) as engine:
            engine.submit(SendRequest(key=engine.new_key(), draft=Draft(user="Hello?")))
            entered.set()
            await asyncio.sleep(60)

    task = asyncio.ensure_future(live())
    await entered.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert read_session(path).events
    assert not [thread for thread in threading.enumerate() if thread.name == "mlxcache-sources"]
    # The consumer's own pool keeps one.
    assert all(thread.name.startswith("asyncio_") for thread in set(threading.enumerate()) - threads)


async def test_no_place_for_a_session_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MLXCACHE_STATE_DIR", str(tmp_path / "file"))
    async with open_engine(Settings()) as engine:
        await until(engine, lambda state: state.notice_count > 0)
        assert notices(engine).count("the session is not recorded") == 1
    async with open_engine(Settings(save_path=str(tmp_path / "file" / "x.jsonl"))) as engine:
        await until(engine, lambda state: state.notice_count > 0)
        assert notices(engine).count("the session is no longer recorded") == 1
