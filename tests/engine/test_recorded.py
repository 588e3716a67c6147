"""A recorded session has the form of a run; two of them, or two results, are the sides of a comparison."""

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from mlxcache_tui.core import bounds
from mlxcache_tui.core.compare_view import SessionRow
from mlxcache_tui.core.reduce import fold
from mlxcache_tui.engine.recorded import read_side, read_sides, recorded_sessions, run_of_session
from mlxcache_tui.report.json import to_json
from mlxcache_tui.report.markdown import to_markdown
from mlxcache_tui.store.paths import sessions_dir
from support.scenario_runs import run_of
from support.sessions import STARTED, told, write
from support.story import Story


def test_requests_of_one_policy_are_one_step_and_the_warm_up_is_none() -> None:
    story = told()
    run, state = run_of_session(story.events, "s")
    assert state == story.state
    assert [(step.name, len(step.requests)) for step in run.steps] == [("returns", 3), ("other", 1)]
    assert [step.evictions for step in run.steps] == [0, 1]
    assert (run.server.mode, run.server.observed, run.server.mlx_lm) == ("launched", "observer", "0.32.2")
    assert run.server.flags["prompt_cache_size"] == 2
    assert run.memory.peak_bytes == run.memory.start_bytes == 5_000_000
    assert len(run.evictions) == 1


def test_a_run_tells_of_more_requests_than_a_session_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "KEPT_REQUESTS", 2)
    monkeypatch.setattr(bounds, "LEAST_REQUESTS", 1)
    events = told().events
    assert len(fold(events).requests) == 2
    run, state = run_of_session(events, "s")
    assert [len(step.requests) for step in run.steps] == [3, 1]
    assert len(state.requests) == 5


def test_without_an_observer_evictions_are_not_known() -> None:
    events = [event for event in told().events if event.origin != "observer"]
    run, _ = run_of_session(events, "s")
    assert {step.evictions for step in run.steps} == {None}


def test_an_empty_session_is_an_empty_run() -> None:
    run, _ = run_of_session([], "s")
    assert run.steps == ()
    assert (run.server.mode, run.memory.mlx) == ("attached", None)


def test_requests_of_different_server_processes_are_never_one_step() -> None:
    story = told()
    story.server(pid=11, prompt_cache_size=7)  # nobody asked this one
    story.server(pid=12, prompt_cache_size=3, prompt_cache_bytes=300_000)
    story.sent("late", entry=9, system="policy", policy="returns")
    run, _ = run_of_session(story.events, "s")
    assert [(step.name, len(step.requests)) for step in run.steps] == [
        ("returns", 3),
        ("other", 1),
        ("returns (server 2)", 1),
    ]
    assert run.server.flags["prompt_cache_size"] == 2
    (later,) = run.server.later
    assert (later.since, later.flags["prompt_cache_size"]) == (5, 3)
    report = to_markdown([run])
    assert "since #5, server 2" in report
    assert "prompt_cache_size 3, prompt_cache_bytes 300 kB, loaded in 1.5" in report
    assert json.loads(to_json([run], several=False))["server"]["later"][0]["since"] == 5


def scenario_story(*scenarios: tuple[str, str] | None) -> Story:
    story = Story()
    story.tell(STARTED)
    story.server()
    for number, scenario in enumerate(scenarios):
        story.compose(f"s{number}", step="first", purpose="scenario", scenario=scenario)
        story.compose(f"s{number}", step="first", purpose="scenario", origin="observer")
    return story


def test_a_session_of_one_scenario_is_known_by_it() -> None:
    one, other = ("return-policy", "abc"), ("context-policies", "def")
    names = [
        run_of_session(scenario_story(*scenarios).events, "s")[0]
        for scenarios in ((one, one), (one, other), (one, None), (None,))
    ]
    assert [(run.scenario, run.digest) for run in names] == [one, *[("s", "none: a recorded session")] * 3]


# --- the list


async def rows(here: Path | None) -> list[SessionRow]:
    return [row async for row in recorded_sessions(here)]


async def test_the_session_on_the_screen_comes_first_then_the_newest(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        write(sessions_dir() / f"2026-11-0{day}.jsonl", told())
    found = await rows(sessions_dir() / "2026-11-02.jsonl")
    assert [row.wanted for row in found] == ["2026-11-02", "2026-11-03", "2026-11-01"]
    assert [row.here for row in found] == [True, False, False]
    assert (found[0].limits, found[0].requests, found[0].evictions) == ((2,), 4, 1)
    elsewhere = write(tmp_path / "saved.jsonl", told())
    assert (await rows(elsewhere))[0].wanted == str(elsewhere)


async def test_without_a_session_or_a_folder_the_list_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await rows(None) == []
    assert await rows(tmp_path / "not-written-yet.jsonl") == []
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("MLXCACHE_STATE_DIR", str(blocked / "state"))
    assert await rows(None) == []


# --- two sides


def json_file(path: Path, **changes: Any) -> Path:
    result, _ = run_of()
    whole = json.loads(to_json([result], several=False)) | changes
    path.write_text(json.dumps(whole))
    return path


def test_a_side_is_a_session_by_name_or_path_or_a_json(tmp_path: Path) -> None:
    write(sessions_dir() / "2026-one.jsonl", told())
    other = json_file(tmp_path / "r.json")
    one, two = read_sides("2026-one", str(other))
    assert (one.name, len(one.runs), len(one.runs[0].requests), one.note) == ("2026-one", 1, 4, "")
    assert one.when is not None
    assert two.runs[0].scenario == "two-questions"


def test_several_with_commas_make_a_side(tmp_path: Path) -> None:
    names = [str(json_file(tmp_path / f"{n}.json")) for n in range(4)]
    a, b = read_sides(",".join(names[:2]), ",".join(names[2:]))
    assert (len(a.runs), len(b.runs)) == (2, 2)
    with pytest.raises(ValueError, match="the same file"):
        read_sides(",".join(names[:2]), names[1])


def test_a_damaged_session_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", told())
    path.write_bytes(path.read_bytes()[:-3])
    side = read_side(str(path))
    assert side.runs[0].requests
    assert side.note.startswith(f"{path}: line")
    assert side.note.endswith("has no end: the recording was interrupted; what could be read is compared")


def test_a_result_of_a_run_that_was_stopped_is_told(tmp_path: Path) -> None:
    path = json_file(tmp_path / "r.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "interrupted": True}))
    stopped = "the run did not come to an end: stopped; what was measured is compared"
    assert read_side(str(path)).note == f"{path}: {stopped}"


@pytest.mark.parametrize(
    ("content", "told_of"),
    [
        (b"", "the file is empty"),
        (b"\x00\x01\x02 model", "neither a session nor a result of run --json"),
        (b"hello", "neither a session nor a result of run --json"),
        (b'{"a": 1}', "no run JSON: its schema is None, expected 1"),
        (b'{"schema": 1, "scena', "no run JSON: Input data was truncated"),
        (b'{"t":"Nope"}\n', "no session: no event in it is known to this version"),
        (b'{"t":"RequestComposed","at_ns":"x"}\n', "no session: line 1: "),
        (b'{"t":"Reques', "no session: line 1 has no end"),
    ],
)
def test_a_file_of_another_kind_is_told_in_one_line(tmp_path: Path, content: bytes, told_of: str) -> None:
    path = tmp_path / "x\x1b[2J.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(told_of)) as raised:
        read_side(str(path))
    assert str(raised.value).startswith(str(tmp_path / "x.json"))
    assert "\n" not in str(raised.value)


def test_what_is_not_there_or_no_file_is_told(tmp_path: Path) -> None:
    good = str(json_file(tmp_path / "r.json"))
    with pytest.raises(ValueError, match=r"none\.json: cannot be read: no such file"):
        read_sides(good, str(tmp_path / "none.json"))
    with pytest.raises(ValueError, match="is not a file"):
        read_sides(good, str(tmp_path))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="is not a file"):
        read_sides(str(pipe), good)


@pytest.mark.parametrize(
    ("wanted", "told_of"),
    [
        ("~nosuchuser/x", "~nosuchuser/x: cannot be read: no home is known for ~nosuchuser"),
        ("x" * 300, "cannot be read: file name too long"),
        ("a\0b", "no such file|null byte"),
        (",", "is not a file"),
    ],
)
def test_a_path_that_no_file_can_have_is_told(tmp_path: Path, wanted: str, told_of: str) -> None:
    good = str(json_file(tmp_path / "r.json"))
    for a, b in ((wanted, good), (good, wanted)):
        with pytest.raises(ValueError, match=told_of) as raised:
            read_sides(a, b)
        assert "\n" not in str(raised.value)


def test_a_folder_that_one_may_not_enter_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may enter every folder, so the refusal is made up."""
    real = Path.stat

    def stat(path: Path, **more: bool) -> os.stat_result:
        if "locked" in path.parts:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, **more)

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(ValueError, match=r"locked/r\.json: cannot be read: permission denied"):
        read_side(str(tmp_path / "locked" / "r.json"))


def test_more_commas_than_a_file_name_may_be_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"results-of-the-run-of-2026-11-29-number-{n}.json" for n in range(7)]
    for name in names:
        json_file(tmp_path / name)
    assert len(read_side(",".join(names)).runs) == 7


def test_the_same_file_twice_is_told_by_whatever_name(tmp_path: Path) -> None:
    kept = write(sessions_dir() / "2026-one.jsonl", told())
    (tmp_path / "link").symlink_to(kept)
    for other in ("2026-one", str(kept), str(tmp_path / "link")):
        with pytest.raises(ValueError, match="A and B are the same file"):
            read_sides("2026-one", other)
