"""Scenarios for the screen: found, run through all limits, paused, stopped, one step again; on the fake engine."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mlxcache_tui.core.commands import RestartServer, SendRequest, ServerSpec, StartServer
from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_check import check
from mlxcache_tui.core.summary import summarise
from mlxcache_tui.engine.runner import Runner
from mlxcache_tui.engine.scenarios import ScenarioRun, find_scenarios, open_scenario, save_reports
from mlxcache_tui.store.scenario_files import shipped_names
from support.fake_engine import FakeEngine
from support.scenario_runs import TWO_QUESTIONS

SPEC = ServerSpec(model="m", port=0, flags={"prompt_cache_size": "7", "kv_bits": "4"})
SWEEP = "\n[sweep]\nprompt_cache_size = [1, 3]\n"


def scenario(text: str = TWO_QUESTIONS) -> Scenario:
    return check(text, source="x.toml", name="x", read_policy=lambda file: file)


class Watched:
    """A run, with what it looked like at each change; `at` acts on it at one of them."""

    def __init__(self, engine: FakeEngine, text: str = TWO_QUESTIONS, spec: ServerSpec | None = SPEC) -> None:
        self.seen: list[tuple[str, str | None, int]] = []
        self.at: Callable[[ScenarioRun], None] = lambda _: None
        self.changed = asyncio.Event()
        self.run = ScenarioRun(engine, scenario(text), spec=spec, listener=self._heed)

    def _heed(self) -> None:
        last = ([run for run in self.run.runs if run.begun] or self.run.runs)[-1]
        self.seen.append((self.run.phase, last.step, last.finished))
        self.changed.set()
        self.at(self.run)

    async def until(self, holds: Callable[[ScenarioRun], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds(self.run):
                self.changed.clear()
                await self.changed.wait()


async def over(watched: Watched) -> ScenarioRun:
    watched.run.start()
    await watched.until(lambda run: run.phase == "over")
    return watched.run


def started(engine: FakeEngine) -> list[dict[str, object]]:
    return [command.spec.flags for command in engine.commands if isinstance(command, StartServer)]


async def test_a_run_tells_step_by_step_and_keeps_its_result() -> None:
    watched = Watched(engine := FakeEngine())
    run = await over(watched)
    (result,) = run.results
    assert [step.id for step in result.steps] == ["warm", "first", "second"]
    assert [len(run.runs[0].verdicts[name]) for name in ("warm", "first", "second")] == [0, 0, 2]
    for expected in [("running", "first", 0), ("running", "second", 3), ("over", None, 3)]:
        assert expected in watched.seen
    assert started(engine) == [{"prompt_cache_size": "7", "kv_bits": "4"}]


async def test_the_scenarios_flags_win_over_the_servers_and_the_sweeps_over_both() -> None:
    text = TWO_QUESTIONS.replace("[policies]", "[server]\nkv_group_size = 32\n[policies]") + SWEEP
    run = await over(Watched(engine := FakeEngine(), text))
    assert [flags["prompt_cache_size"] for flags in started(engine)] == [1, 3]
    assert all(flags["kv_group_size"] == 32 and flags["kv_bits"] == "4" for flags in started(engine))
    assert [result.combination for result in run.results] == [{"prompt_cache_size": 1}, {"prompt_cache_size": 3}]


async def test_an_attached_server_is_used_as_it_is() -> None:
    engine = FakeEngine()
    engine.attach()
    run = await over(Watched(engine, spec=None))
    assert not any(isinstance(command, StartServer | RestartServer) for command in engine.commands)
    assert run.results[0].server.mode == "attached"


async def test_pause_sends_nothing_until_it_goes_on() -> None:
    watched = Watched(engine := FakeEngine())
    watched.at = lambda run: run.pause() if run.runs[0].step == "first" else None
    watched.run.start()
    await watched.until(lambda run: run.phase == "paused")
    for _ in range(5):
        await asyncio.sleep(0)
    assert sum(isinstance(command, SendRequest) for command in engine.commands) == 1
    assert watched.run.refuses_again("warm") == "the scenario still runs: wait or stop it first"
    watched.at = lambda _: None
    watched.run.resume()
    await watched.until(lambda run: run.phase == "over")
    assert len(watched.run.results[0].requests) == 5


async def test_stop_keeps_what_was_measured_and_leaves_the_rest_of_the_sweep_out() -> None:
    watched = Watched(engine := FakeEngine(hangs=True), TWO_QUESTIONS + SWEEP)
    watched.run.start()
    await engine.was_asked.wait()
    watched.run.stop()
    assert watched.run.phase == "stopping"
    await watched.until(lambda run: run.phase == "over")
    run = watched.run
    assert [result.interrupted for result in run.results] == [True]
    assert [step.id for step in run.results[0].steps] == ["warm"]
    assert "warm" not in run.runs[0].verdicts
    assert not run.runs[1].begun


async def test_stop_while_paused() -> None:
    watched = Watched(FakeEngine())
    watched.at = lambda run: run.pause() if run.runs[0].step == "first" else None
    watched.run.start()
    await watched.until(lambda run: run.phase == "paused")
    await watched.run.close()
    assert watched.run.phase == "over"
    assert watched.run.results[0].interrupted


async def test_closing_a_run_that_hangs() -> None:
    watched = Watched(engine := FakeEngine(hangs=True))
    watched.run.start()
    await engine.was_asked.wait()
    await watched.run.close()
    assert watched.run.results[0].interrupted


async def test_close_before_anything_began() -> None:
    await Watched(FakeEngine()).run.close()


async def test_one_step_again_replaces_its_figures_and_judges_all_anew() -> None:
    watched = Watched(FakeEngine())
    run = await over(watched)
    before = run.results[0]
    assert run.refuses_again("first") == ""
    run.again("first")
    await watched.until(lambda run: run.phase == "over")
    after = run.results[0]
    assert [step.id for step in after.steps] == ["warm", "first", "second"]
    assert before.steps[1].requests[0].id == 2
    assert after.steps[1].requests[0].id == 6
    assert after.steps[1].requests[0].reason is not None
    assert after.steps[1].requests[0].reason.kind == "hit"
    # The new first question is no longer slower than the second one's.
    assert [verdict.wanted for verdict in after.expectations] != [verdict.wanted for verdict in before.expectations]
    assert not after.interrupted
    assert run.runs[0].again == {"first"}


async def test_one_step_again_long_after_counts_neither_the_waiting_nor_what_happened_meanwhile() -> None:
    one = msgspec.structs.replace(SPEC, flags={"prompt_cache_size": "1"})
    watched = Watched(engine := FakeEngine(), spec=one)
    run = await over(watched)
    before, steps = run.results[0], run.results[0].steps
    assert before.eviction_count == sum(step.evictions or 0 for step in steps) == 4
    engine.pass_by(minutes=10)
    run.again("second")
    await watched.until(lambda run: run.phase == "over")
    after = run.results[0]
    assert (summarise(after.requests).wall_s or 600) < 1
    assert after.memory.peak_bytes is not None
    assert after.memory.peak_bytes < 9_000_000
    # Those of the step that ran before stay, one of somebody else's meanwhile is not of the run.
    assert after.steps[2].evictions == 2
    assert after.eviction_count == len(after.evictions) == 6
    assert run.runs[0].whole is not None
    assert run.runs[0].whole.evictions == 6


async def test_a_step_that_was_stopped_can_run_again() -> None:
    watched = Watched(FakeEngine())
    watched.at = lambda run: run.pause() if run.runs[0].step == "first" else None
    watched.run.start()
    await watched.until(lambda run: run.phase == "paused")
    watched.at = lambda _: None
    await watched.run.close()
    run = watched.run
    assert "first" not in run.runs[0].verdicts
    run.again("first")
    await watched.until(lambda run: run.phase == "over")
    assert "first" in run.runs[0].verdicts
    assert run.results[0].interrupted  # the third one is still missing


async def test_what_cannot_run_again() -> None:
    watched = Watched(engine := FakeEngine(dies_at=1), CONTINUED)
    run = watched.run
    assert run.refuses_again("first") == "the scenario still runs: wait or stop it first"
    await over(watched)
    assert run.results[0].lost is not None
    assert run.refuses_again("first") == "the server is not ready"
    engine.attach()
    assert (
        run.refuses_again("second") == "the step continues first question, which was not finished: run that one again"
    )


CONTINUED = TWO_QUESTIONS.replace('policy = "returns"\nusers', 'continues = "first"\nusers')


async def test_a_step_is_refused_that_goes_on_with_one_that_was_stopped_before_anything_was_sent() -> None:
    watched = Watched(FakeEngine(), CONTINUED)
    watched.at = lambda run: run.pause() if run.runs[0].step == "first" else None
    run = watched.run
    run.start()
    await watched.until(lambda run: run.phase == "paused")
    watched.at = lambda _: None
    await run.close()
    assert (
        run.refuses_again("second") == "the step continues first question, which was not finished: run that one again"
    )
    run.again("first")
    await watched.until(lambda run: run.phase == "over")
    assert run.refuses_again("second") == ""


@pytest.mark.parametrize("again", [False, True])
async def test_a_run_that_breaks_is_over_and_says_so(monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    watched = Watched(engine := FakeEngine())
    if again:
        await over(watched)

    def broken(*_: object) -> None:
        raise KeyError("first")

    monkeypatch.setattr(Runner, "_send", broken)
    if again:
        watched.run.again("first")
    else:
        watched.run.start()
    await watched.until(lambda run: run.phase == "over")
    (progress,) = watched.run.runs
    assert (progress.step, progress.result is not None) == (None, True)
    assert "first" not in progress.verdicts
    (notice,) = engine.state.notices
    assert (notice.level, notice.text) == ("error", "the scenario broke: KeyError: 'first'")


async def test_a_run_that_is_stopped_before_it_began_is_over() -> None:
    watched = Watched(FakeEngine())
    watched.run.start()
    await watched.run.close()
    assert watched.run.phase == "over"


def test_shipped_and_own_scenarios_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLXCACHE_CONFIG_DIR", str(tmp_path))
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "mine.toml").write_text('[[steps]]\nuser = "q"\n')
    (folder / "wrong.toml").write_text('titel = "q"\n')
    mine, wrong, *shipped = find_scenarios()
    assert (mine.name, mine.own, mine.mistakes) == ("mine", True, ())
    assert mine.scenario is not None
    assert wrong.scenario is None
    assert "did you mean title?" in wrong.mistakes[0]
    assert tuple(found.name for found in shipped) == shipped_names()
    assert not any(found.own for found in shipped)


def test_without_a_folder_for_settings_those_that_ship_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MLXCACHE_CONFIG_DIR", str(tmp_path / "file"))
    assert len(find_scenarios()) == len(shipped_names())


def test_a_file_name_from_outside_is_cleaned(tmp_path: Path) -> None:
    found = open_scenario(str(tmp_path / "evil\x1b[2J.toml"))
    assert found.name.isprintable()
    assert all(line.isprintable() for line in found.mistakes)


def test_reports_are_saved_privately(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLXCACHE_STATE_DIR", str(tmp_path))
    saved, line = save_reports("x", [("md", "# report"), ("json", "{}")])
    assert saved
    for path in (tmp_path / "saved" / "x.md", tmp_path / "saved" / "x.json"):
        assert str(path) in line
        assert path.stat().st_mode & 0o077 == 0


def test_reports_that_cannot_be_saved_say_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MLXCACHE_STATE_DIR", str(tmp_path / "file"))
    saved, line = save_reports("x", [("md", "")])
    assert not saved
    assert "cannot make the folder" in line
    monkeypatch.setenv("MLXCACHE_STATE_DIR", str(tmp_path))
    (tmp_path / "saved").write_text("")
    assert save_reports("x", [("md", "")])[0] is False
