"""The runner on an engine without a server: what it sends, waits for, measures, and keeps when things go wrong."""

import asyncio
from datetime import UTC, datetime

import pytest

from mlxcache_tui.core.commands import CancelRequest, RestartServer, SendRequest, ServerSpec, StartServer
from mlxcache_tui.core.events import MemorySampled
from mlxcache_tui.core.results import RunResult
from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_check import check
from mlxcache_tui.engine.progress import Progress, RequestFinished, ServerFound, StepFinished, StepStarted
from mlxcache_tui.engine.runner import Runner
from mlxcache_tui.report.markdown import to_markdown
from mlxcache_tui.report.text import run_lines
from support.fake_engine import FakeEngine

POLICY = "The policy says that opened accessories can be returned only if they arrived damaged. " * 3
HEAD = f'[policies]\nreturns = "{POLICY}"\nother = "{POLICY[::-1]}"\n'
SPEC = ServerSpec(model="m", port=0, flags={})
NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

TWO_QUESTIONS = """
[[steps]]
id = "first"
name = "first question"
policy = "returns"
user = "It is opened."
[[steps]]
id = "second"
policy = "returns"
user = "It came damaged."
expect = ["cached_ratio >= 0.5", "reason == 'hit'", "ttft_s < first.ttft_s", "text contains 'Damaged'"]
"""


def scenario(text: str) -> Scenario:
    return check(HEAD + text, source="x.toml", name="x", read_policy=lambda file: file)


async def run(
    text: str, engine: FakeEngine | None = None, *, spec: ServerSpec | None = SPEC
) -> tuple[RunResult, FakeEngine, list[Progress]]:
    engine = engine or FakeEngine()
    told: list[Progress] = []
    runner = Runner(engine, scenario(text), spec=spec, clock=lambda: NOON, listener=told.append)
    return await runner.run(), engine, told


def sent(engine: FakeEngine) -> list[SendRequest]:
    return [command for command in engine.commands if isinstance(command, SendRequest)]


async def test_two_questions_on_one_policy() -> None:
    result, engine, told = await run(TWO_QUESTIONS)
    assert result.held
    assert [verdict.held for verdict in result.expectations] == [True] * 4
    first, second = result.requests
    assert (first.step, first.step_id, first.policy, first.state) == ("first question", "first", "returns", "done")
    assert first.reason is not None
    assert first.reason.kind == "first"
    assert second.reason is not None
    assert (second.reason.kind, second.reason.from_request) == ("hit", 1)
    assert first.first_after_start
    assert not second.first_after_start
    assert second.question == "It came damaged."
    assert result.server.mode == "launched"
    assert result.server.observed == "observer"
    assert result.server.flags == {"prompt_cache_size": 10}
    assert result.memory.source == "pss"
    assert (result.memory.start_bytes, result.memory.end_bytes) == (1_000_000, 1_002_000)
    assert [type(progress) for progress in told if not isinstance(progress, RequestFinished)][-4:] == [
        StepStarted,
        StepFinished,
        StepStarted,
        StepFinished,
    ]
    assert engine.state.policies["returns"] == POLICY


async def test_an_expectation_that_fails_says_by_how_much() -> None:
    result, _, _ = await run(TWO_QUESTIONS.replace("cached_ratio >= 0.5", "cached_ratio >= 1"))
    assert not result.held
    failed = [verdict for verdict in result.expectations if not verdict.held]
    assert len(failed) == 1
    assert "expected >= 1" in failed[0].why


async def test_a_fresh_server_for_each_run_with_the_spec_given() -> None:
    _, engine, _ = await run(TWO_QUESTIONS)
    assert engine.commands[0] == StartServer(spec=SPEC)


async def test_evictions_belong_to_the_step_that_caused_them() -> None:
    text = """
    [[steps]]
    id = "a"
    policy = "returns"
    user = "q"
    [[steps]]
    id = "b"
    policy = "other"
    users = ["q", "r"]
    expect = ["evictions == 1"]
    [[steps]]
    id = "a2"
    policy = "returns"
    user = "r"
    expect = ["reason == 'evicted'", "evictions == 1"]
    """
    result, _, _ = await run(text, FakeEngine(cache=2))
    assert [step.evictions for step in result.steps] == [0, 1, 1]
    assert [(gone.policy, gone.made_by, gone.caused_by, gone.rule) for gone in result.evictions] == [
        ("returns", 1, 3, "count"),
        ("other", 2, 4, "count"),
    ]
    assert result.expectations[0].held


async def test_without_an_observer_evictions_are_unknown_and_never_held() -> None:
    engine = FakeEngine(observed=False)
    text = TWO_QUESTIONS.replace("\"text contains 'Damaged'\"", '"evictions == 0"')
    result, _, _ = await run(text, engine)
    assert [step.evictions for step in result.steps] == [None, None]
    verdict = result.expectations[-1]
    assert (verdict.held, verdict.measured) == (False, None)
    assert "unknown" in verdict.why


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (2, 2), (4, 4), (9, 6)])
async def test_concurrency_is_how_many_are_in_flight(concurrency: int, most: int) -> None:
    text = f"""
    [[steps]]
    id = "burst"
    policy = "returns"
    users = ["a", "b", "c"]
    repeat = 2
    concurrency = {concurrency}
    """
    result, engine, _ = await run(text)
    assert engine.most_open == most
    assert [request.question for request in result.requests] == ["a", "b", "c", "a", "b", "c"]


async def test_variables_are_filled_for_each_request() -> None:
    text = """
    [[steps]]
    id = "s"
    before = "{{today}} {{uuid}}"
    users = ["{{n}}", "{{ n }} {{other"]
    """
    _, engine, _ = await run(text)
    drafts = [command.draft for command in sent(engine)]
    assert [draft.user for draft in drafts] == ["1", "2 {{other"]
    assert all(draft.before.startswith("2026-11-29 ") for draft in drafts)
    assert drafts[0].before != drafts[1].before


async def test_a_step_continues_another_with_its_answer() -> None:
    text = """
    [[steps]]
    id = "a"
    policy = "returns"
    users = ["damaged?", "opened?"]
    [[steps]]
    id = "b"
    continues = "a"
    users = ["why 1?", "why 2?"]
    [[steps]]
    id = "c"
    continues = "b"
    users = ["so 1?", "so 2?"]
    """
    _, engine, _ = await run(text)
    last = sent(engine)[-2].draft
    assert (last.policy, last.policy_text, last.user) == ("returns", POLICY, "so 1?")
    assert last.messages == (
        ("user", "damaged?"),
        ("assistant", "It is damaged."),
        ("user", "why 1?"),
        ("assistant", "It is opened."),
    )


async def test_a_restart_changes_flags_and_empties_the_cache() -> None:
    text = TWO_QUESTIONS.replace('user = "It came', 'restart = { prompt_cache_size = 3 }\nuser = "It came')
    text = text.replace("reason == 'hit'", "reason == 'restarted'")
    result, engine, _ = await run(text)
    assert RestartServer(flags={"prompt_cache_size": 3}) in engine.commands
    second = result.steps[1]
    assert (second.restarted, second.load_s, second.flags) == (True, 1.5, {"prompt_cache_size": 3})
    assert second.requests[0].first_after_start
    assert result.expectations[1].held
    assert result.server.flags == {"prompt_cache_size": 10}


async def test_seed_and_template_arguments_go_into_the_body() -> None:
    text = """
    [defaults]
    seed = 7
    [[steps]]
    id = "s"
    user = "q"
    chat_template_kwargs = { enable_thinking = false }
    max_tokens = 3
    stream = false
    warmup = true
    """
    _, engine, _ = await run(text)
    draft = sent(engine)[0].draft
    assert draft.extra == {"seed": 7, "chat_template_kwargs": {"enable_thinking": False}}
    assert (draft.max_tokens, draft.stream, draft.warmup, draft.purpose) == (3, False, True, "scenario")


async def test_a_server_that_does_not_start_is_lost() -> None:
    result, _, _ = await run(TWO_QUESTIONS, FakeEngine(starts=False))
    assert result.lost == "port 8080 is taken"
    assert result.requests == ()
    assert result.server.mode == "launched"


async def test_of_a_server_that_was_not_reached_no_memory_is_told() -> None:
    engine = FakeEngine(starts=False)
    engine.emit(MemorySampled(at_ns=1, origin="memory", pid=1, source="pss", bytes=1_000))
    result, _, _ = await run(TWO_QUESTIONS, engine)
    assert (result.reached, result.memory.peak_bytes, result.memory.source) == (False, None, None)


async def test_a_start_that_breaks_does_not_wait_for_ever() -> None:
    result, _, _ = await run(TWO_QUESTIONS, FakeEngine(breaks=True))
    assert result.lost == "server stopped: TypeError: x"


async def test_a_server_that_dies_in_the_middle_keeps_what_was_measured() -> None:
    result, _, _ = await run(TWO_QUESTIONS, FakeEngine(dies_at=2))
    assert result.lost is not None
    assert "SIGKILL" in result.lost
    assert result.lost_lines == ("last",)
    assert [request.state for request in result.requests] == ["done", "cut"]
    assert result.expectations == ()


async def test_a_server_that_dies_while_a_step_waits_ends_the_run() -> None:
    engine = FakeEngine()

    def heed(progress: Progress) -> None:
        if isinstance(progress, StepStarted) and progress.step.id == "second":
            engine.die()

    waits = scenario(TWO_QUESTIONS.replace('id = "second"', 'id = "second"\nwait = 3600'))
    runner = Runner(engine, waits, spec=SPEC, clock=lambda: NOON, listener=heed)
    async with asyncio.timeout(60):
        result = await runner.run()
    assert result.lost is not None
    assert "SIGKILL" in result.lost
    assert [request.state for request in result.requests] == ["done"]
    assert [step.id for step in result.steps] == ["first"]


async def test_a_server_that_dies_while_the_run_is_paused_ends_it() -> None:
    engine, paused = FakeEngine(), asyncio.Event()

    def heed(progress: Progress) -> None:
        if isinstance(progress, StepFinished):
            runner.pause()
            paused.set()

    runner = Runner(engine, scenario(TWO_QUESTIONS), spec=SPEC, clock=lambda: NOON, listener=heed)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(runner.run())
        await paused.wait()
        engine.die()
    assert task.result().lost is not None
    assert len(task.result().requests) == 1


async def test_what_comes_of_another_model_is_told_before_anything_is_sent() -> None:
    text = TWO_QUESTIONS.replace('id = "second"', 'id = "second"\nmodel = "some/model"')
    _, _, told = await run(text)
    notes = [progress.text for progress in told if isinstance(progress, ServerFound)]
    assert notes[0].startswith("second: asks for the model some/model; the server drops m, loads that one")
    assert told.index(ServerFound(text=notes[0])) < next(
        index for index, progress in enumerate(told) if isinstance(progress, StepStarted)
    )


@pytest.mark.parametrize("trimmable", [True, False])
async def test_what_needs_a_cache_that_can_be_cut_back_is_judged_only_on_one(trimmable: bool) -> None:
    failing = TWO_QUESTIONS.replace("cached_ratio >= 0.5", "cached_ratio >= 1")
    text = 'needs = "trimmable"\n' + HEAD + failing
    told: list[Progress] = []
    needy = check(text, source="x.toml", name="x", read_policy=lambda file: file)
    runner = Runner(FakeEngine(trimmable=trimmable), needy, spec=SPEC, clock=lambda: NOON, listener=told.append)
    result = await runner.run()
    assert (result.held, len(result.expectations), result.interrupted) == (not trimmable, 4 * trimmable, False)
    notes = [progress.text for progress in told if isinstance(progress, ServerFound)]
    assert notes == ([] if trimmable else [result.unjudged])
    assert ("not judged" in "\n".join(run_lines(result))) != trimmable
    assert ("not judged" in to_markdown([result])) != trimmable


async def test_a_failed_request_is_not_held_unless_it_was_expected() -> None:
    result, _, _ = await run(TWO_QUESTIONS, FakeEngine(fails_at=1))
    assert not result.held
    assert [request.id for request in result.unexpected_failures()] == [1]
    text = """
    [[steps]]
    id = "s"
    user = "q"
    expect = ["state == 'failed'", "status == 500"]
    """
    result, _, _ = await run(text, FakeEngine(fails_at=1))
    assert result.held


async def test_an_interrupted_run_cancels_what_is_open_and_keeps_what_was_measured() -> None:
    engine = FakeEngine(hangs=True)
    told: list[Progress] = []
    runner = Runner(engine, scenario(TWO_QUESTIONS), spec=SPEC, clock=lambda: NOON, listener=told.append)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(runner.run())
        await engine.was_asked.wait()
        task.cancel()
    result = task.result()
    assert result.interrupted
    assert CancelRequest(key="k1") in engine.commands
    assert [request.state for request in result.requests] == ["cancelled"]
    assert result.unexpected_failures() == ()


async def test_a_paused_run_sends_nothing_until_it_goes_on() -> None:
    engine = FakeEngine()
    runner = Runner(engine, scenario(TWO_QUESTIONS), spec=SPEC, clock=lambda: NOON, listener=lambda _: None)
    runner.pause()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(runner.run())
        for _ in range(5):
            await asyncio.sleep(0)
        assert sent(engine) == []
        runner.resume()
    assert task.result().held


async def test_an_attached_server_is_compared_with_the_scenario() -> None:
    engine = FakeEngine(observed=False)
    engine.attach()
    result, _, _ = await run("[server]\nprompt_cache_size = 2\n" + TWO_QUESTIONS, engine, spec=None)
    assert result.server.mode == "attached"
    assert result.server.differences == {"prompt_cache_size": (2, None)}
    assert not any(isinstance(command, StartServer) for command in engine.commands)


async def test_flags_that_win_over_the_scenario_are_told() -> None:
    spec = ServerSpec(model="m", port=0, flags={"prompt_cache_size": 5})
    text = "[server]\nmodel = 'other'\nprompt_cache_size = 2\npipeline = false\n" + TWO_QUESTIONS
    result, _, _ = await run(text, spec=spec)
    assert result.server.differences == {"model": ("other", "m"), "prompt_cache_size": (2, 5)}


async def test_a_step_can_be_run_again() -> None:
    engine = FakeEngine()
    runner = Runner(engine, scenario(TWO_QUESTIONS), spec=SPEC, clock=lambda: NOON, listener=lambda _: None)
    await runner.run()
    await runner.run_step(runner.scenario.steps[0])
    result = runner.result()
    assert [request.id for request in result.requests] == [3, 2]
    assert len(result.expectations) == 4
