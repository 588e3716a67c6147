"""The list of sessions counts as the fold does, without folding."""

import errno
import fcntl
import os
import time
from pathlib import Path

import pytest

from mlxcache_tui.core.present import status_view
from mlxcache_tui.store import sessions
from mlxcache_tui.store.paths import sessions_dir
from mlxcache_tui.store.recorder import Recorder
from mlxcache_tui.store.replay import read_session
from mlxcache_tui.store.sessions import age_days, list_sessions, session_file, session_info, started_text
from support.sessions import told, write


def test_the_figures_are_those_of_the_fold(tmp_path: Path) -> None:
    story = told()
    info = session_info(write(tmp_path / "s.jsonl", story))
    view = status_view(story.state)
    assert info.reuse == view.reuse_session
    assert info.evictions == view.evictions == 1
    assert (info.requests, info.prompt_cache_sizes) == (4, (2,))
    assert (info.server, info.model, info.mlx_lm) == ("http://127.0.0.1:8080", "m", "0.32.2")
    assert info.started == "2026-11-29T14:48:03+01:00"
    assert not info.recording


def test_it_is_told_up_to_the_line_that_is_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", told())
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if b'"key":"c"' in line)
    for damaged in (b"\x00\x00\n", b'{"t":"LogRead","at_n\n', b'{"t":"RequestComposed","at_ns":"late"}\n'):
        path.write_bytes(b"".join([*lines[:at], damaged, *lines[at:]]))
        info = session_info(path)
        assert (info.damaged_line, info.requests, info.evictions) == (at + 1, 2, 0)
        damage = read_session(path).damage
        assert damage is not None
        assert damage.startswith(f"line {at + 1}: ")
    path.write_bytes(b"".join(lines)[:-5])
    assert session_info(path).damaged_line is None, "it may still be being written"


def test_those_that_only_warm_are_told_beside_the_others(tmp_path: Path) -> None:
    story = told()
    for key in ("w1", "w2"):
        story.compose(key, purpose="warm", warmup=True)
    info = session_info(write(tmp_path / "s.jsonl", story))
    assert (info.requests, info.warmed) == (4, 2)
    assert info.requests + info.warmed == max(request.number for request in story.state.requests.values())


def test_the_limits_are_those_that_requests_met(tmp_path: Path) -> None:
    story = told()
    for size in (7, 3):  # nobody asked the first of them
        story.server(pid=size, prompt_cache_size=size)
    story.compose("late")
    assert session_info(write(tmp_path / "s.jsonl", story)).prompt_cache_sizes == (2, 3)


def test_a_file_is_being_recorded_until_its_recorder_ends(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    recorder = Recorder(path)
    for event in told().events:
        recorder.append(event)
    assert session_info(path).recording
    recorder.close()
    assert not session_info(path).recording


@pytest.mark.parametrize(("age_s", "recording"), [(0, True), (60, False)])
def test_without_locks_the_last_write_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_s: float, recording: bool
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    path = write(tmp_path / "s.jsonl", told())
    os.utime(path, (0, time.clock_gettime(time.CLOCK_REALTIME) - age_s))
    assert session_info(path).recording is recording


def test_the_age_is_that_of_the_last_write(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", told())
    os.utime(path, (0, time.clock_gettime(time.CLOCK_REALTIME) - 3 * 86_400))
    assert age_days(session_info(path)) == pytest.approx(3, abs=0.01)


def test_a_damaged_or_foreign_file_is_listed_with_what_is_known(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        b'\x00\xff\n{"t":"RequestComposed","at_ns":"late"}\n{"t":"SessionStarted","at_ns":1,"started":"\\u001b[2J"}\n'
    )
    info = session_info(path)
    assert (info.requests, info.reuse, info.evictions, info.server) == (0, None, None, None)
    assert "\x1b" not in str(info.started)
    assert started_text(info.started) is None


@pytest.mark.parametrize(
    "odd",
    [
        b'"tokens":{"count":"9"},"cached_tokens":1',
        b'"tokens":{"count":9},"cached_tokens":"1"',
        b'"tokens":[],"cached_tokens":-1',
        b'"tokens":{"count":%s},"cached_tokens":1' % (b"9" * 400),
    ],
)
def test_an_odd_figure_is_passed_over(odd: bytes) -> None:
    lines = (b'{"t":"RequestComposed","at_ns":1', b'{"t":"LookedUp","at_ns":2,' + odd, b'{"t":"RequestEnded","at_ns":3')
    path = sessions_dir() / "odd.jsonl"
    path.write_bytes(b"".join(line + b',"key":"k"}\n' for line in lines))
    (info,) = list_sessions()
    assert (info.name, info.requests, info.reuse) == ("odd", 1, None)


def test_one_bad_file_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bad", "good"):
        write(sessions_dir() / f"{name}.jsonl", told())
    real = sessions.session_info

    def info(path: Path) -> sessions.SessionInfo:
        if path.stem == "bad":
            raise TypeError("nobody thought of this")
        return real(path)

    monkeypatch.setattr(sessions, "session_info", info)
    assert [info.name for info in list_sessions()] == ["good"]


def test_sessions_are_found_by_name_or_path(tmp_path: Path) -> None:
    kept = write(sessions_dir() / "2026-one.jsonl", told())
    other = write(tmp_path / "two.jsonl", told())
    assert session_file("2026-one") == kept
    assert session_file("2026-one.jsonl") == kept
    assert session_file(str(other)) == other
    assert [info.name for info in list_sessions()] == ["2026-one"]
