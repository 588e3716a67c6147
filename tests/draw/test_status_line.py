"""The status bar's line."""

import pytest

from mlxcache_tui.draw.spans import line_width, plain
from mlxcache_tui.draw.status_line import status_line
from support.views import status


def drawn(width: int = 120, **fields: object) -> str:
    return plain(status_line(status(**fields), width)).rstrip()


@pytest.mark.parametrize("width", [1, 5, 12, 20, 40, 60, 80, 120, 200])
def test_every_width_is_filled(width: int) -> None:
    for fields in ({}, {"phase": "fetching", "text": "model.safetensors", "fetch_percent": 42.0}, {"model": None}):
        assert line_width(status_line(status(**fields), width)) == width


def test_all_parts_where_there_is_room() -> None:
    line = drawn(evictions=1)
    assert line.startswith(" mlxcache-tui  Qwen3-4B-4bit  127.0.0.1:8080  mlx-lm 0.32.2  ● ready")
    assert line.endswith("reuse 92 % last  · 64 % session  · 1 eviction")


def test_the_phase_stays_to_the_last() -> None:
    assert drawn(80) == " Qwen3-4B-4bit  ● ready           reuse 92 % last  · 64 % session  · 2 evictions"
    assert drawn(34) == " ● ready           reuse 92 % last"
    assert drawn(10) == " ● ready"


def test_what_the_server_is_doing() -> None:
    assert "◉ busy 3" in drawn(busy=3)
    assert "↓ fetching 42 %  model.safetensors, 11 MB/s" in drawn(
        phase="fetching", fetch_percent=42.4, text="model.safetensors, 11 MB/s", reuse_last=None, reuse_session=None
    )
    assert "■ exited  killed by signal 9" in drawn(phase="exited", text="killed by signal 9")
    assert "loading  loading" not in drawn(phase="loading", text="loading")
    assert drawn(50, phase="unreachable", text="nothing answers at 127.0.0.1:8080; is it running?") == (
        " ✗ unreachable  nothing answers at 127.0.0.1:8080…"
    )


def test_what_it_cannot_see_or_do() -> None:
    assert "not observed" in drawn(observed="log")
    assert "watching only" in drawn(watch_only=True)


def test_unknown_parts_are_left_out() -> None:
    line = drawn(reuse_last=None, reuse_session=None, evictions=None, mlx_lm=None)
    assert line == " mlxcache-tui  Qwen3-4B-4bit  127.0.0.1:8080  ● ready"


def test_what_runs_already_is_connected_to_and_what_is_ours_starts() -> None:
    assert "◔ starting" in plain(status_line(status(phase="starting"), 120))
    assert "◔ connecting" in plain(status_line(status(phase="starting", ours=False), 120))


def test_a_text_that_is_too_long_ends_at_a_colon_rather_than_in_the_middle() -> None:
    taken = "port 8080 is taken by python (pid 7): attach with --url http://127.0.0.1:8080 or use --port"
    assert "■ exited  port 8080 is taken by python (pid 7)  " in drawn(80, phase="exited", text=taken)
    code = "code 1: a traceback that is much too long to stand beside the model in so narrow a terminal"
    assert "code 1: a traceback" in drawn(80, phase="exited", text=code)
