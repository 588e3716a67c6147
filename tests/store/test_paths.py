"""Where files lie, and who may reach them."""

import os
import socket
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mlxcache_tui.store import paths
from mlxcache_tui.store.paths import PathsError


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE", "CONFIG", "CACHE", "RUNTIME"):
        monkeypatch.setenv(f"MLXCACHE_{name}_DIR", str(tmp_path / name.lower()))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_homes_are_known_or_missing_as_a_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert paths.named_path("~/x") == tmp_path / "x"
    with pytest.raises(FileNotFoundError) as caught:
        paths.named_path("~nosuchuser/x")
    assert (caught.value.strerror, caught.value.filename) == ("no home is known for ~nosuchuser", "~nosuchuser/x")


def test_scenarios_are_those_of_the_checkout() -> None:
    assert (paths.scenarios_dir() / "policies" / "returns.md").is_file()


@pytest.mark.parametrize("name", ["state", "config", "cache", "runtime"])
def test_folders_are_made_private(name: str, tmp_path: Path) -> None:
    folder: Path = getattr(paths, f"{name}_dir")()
    assert folder == tmp_path / name
    assert mode(folder) == 0o700
    assert getattr(paths, f"{name}_dir")() == folder


def test_without_our_variables_the_systems_folders_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLXCACHE_STATE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    folder = paths.state_dir()
    assert folder.is_relative_to(tmp_path)
    assert folder.name == "mlxcache-tui"


def test_a_session_file_is_named_by_its_start() -> None:
    started = datetime(2026, 11, 29, 14, 48, 3, tzinfo=UTC)
    path = paths.session_path(started)
    assert path.parent == paths.sessions_dir()
    assert path.name.startswith("2026-11-29T14-48-03-")
    assert len(path.stem) == len("2026-11-29T14-48-03-abcd")
    assert path.suffix == ".jsonl"


def test_a_file_in_the_way_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(PathsError, match="MLXCACHE_STATE_DIR") as caught:
        paths.state_dir()
    assert "\n" not in str(caught.value)


def test_a_folder_that_may_not_be_written_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = paths.state_dir()
    # Root may write anywhere, so the system's answer is given.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PathsError, match=f"{folder} is not writable: set MLXCACHE_STATE_DIR"):
        paths.state_dir()


def test_the_usual_runtime_folder_is_short_enough_for_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLXCACHE_RUNTIME_DIR")
    monkeypatch.setattr(os, "getuid", lambda: 4_294_967_294)
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    own = os.stat_result((stat.S_IFDIR | 0o700, 0, 0, 0, 4_294_967_294, 0, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "lstat", lambda _: own)
    path = paths.socket_path(65_535)
    assert str(path) == "/tmp/mlxcache-tui-4294967294/65535.sock"
    assert len(os.fsencode(path)) < 104


def test_socket_and_log_of_a_port() -> None:
    assert paths.socket_path(8080).name == "8080.sock"
    assert paths.server_log_path(8080).name == "8080.log"
    with socket.socket(socket.AF_UNIX) as server:
        if len(os.fsencode(paths.socket_path(1))) < 104:
            server.bind(str(paths.socket_path(1)))


def test_a_runtime_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "runtime").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathsError, match="is a link"):
        paths.runtime_dir()


def test_a_runtime_folder_that_is_a_dangling_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runtime").symlink_to(tmp_path / "nowhere")
    with pytest.raises(PathsError, match="is not a folder"):
        paths.runtime_dir()


@pytest.mark.parametrize("bits", [0o701, 0o710, 0o770, 0o755, 0o777])
def test_a_runtime_folder_that_others_may_enter_is_refused(bits: int, tmp_path: Path) -> None:
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime").chmod(bits)
    with pytest.raises(PathsError, match="chmod 700"):
        paths.runtime_dir()


def test_somebody_elses_runtime_folder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    paths.runtime_dir()
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    with pytest.raises(PathsError, match="another user"):
        paths.socket_path(8080)


def test_a_runtime_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MLXCACHE_RUNTIME_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(PathsError, match="cannot make the folder"):
        paths.runtime_dir()
    monkeypatch.setenv("MLXCACHE_RUNTIME_DIR", str(tmp_path / "file"))
    with pytest.raises(PathsError, match="is not a folder"):
        paths.runtime_dir()
