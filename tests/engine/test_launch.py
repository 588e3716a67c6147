"""What is checked before a server is started; the processes are not the real server."""

import socket
import sys
import threading
from pathlib import Path

import pytest

from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.events import AnyEvent, ModelFetchProgressed
from mlxcache_tui.engine import launch as launching
from mlxcache_tui.engine.launch import LaunchError, flag_arguments, launch, resolve_model
from mlxcache_tui.models.blas import FastBlas
from mlxcache_tui.models.fetch import DemoModelError, DemoProgress
from mlxcache_tui.store.paths import runtime_dir, socket_path


@pytest.fixture(autouse=True)
def no_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "fast_blas", lambda _: FastBlas(None, "none", {}, "a test"))


async def resolved(model: str) -> str:
    return await resolve_model(ServerSpec(model=model), lambda _: None, lambda: 0, threading.Event())


async def refused(spec: ServerSpec) -> str:
    with pytest.raises(LaunchError) as raised:
        await launch(spec, "m")
    assert "\n" not in str(raised.value)
    return str(raised.value)


# --- the model -------------------------------------------------------------------------------------------------------


async def test_a_name_is_passed_on_as_it_is() -> None:
    assert await resolved("mlx-community/Qwen3-4B-4bit") == "mlx-community/Qwen3-4B-4bit"


async def test_a_folder_is_looked_at_first(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    for line in ("no model folder at", "it has no config.json", "it has no weights"):
        with pytest.raises(LaunchError, match=line):
            await resolved(str(folder))
        if line == "no model folder at":
            folder.mkdir()
        elif "config" in line:
            (folder / "config.json").write_text("{}")
    (folder / "model-00001-of-00002.safetensors").write_text("")
    assert await resolved(str(folder)) == str(folder)


async def test_the_home_folder_is_filled_in(tmp_path: Path) -> None:
    folder = Path.home() / "model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text("")
    assert await resolved("~/model") == str(folder)


async def test_a_demo_model_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    events: list[AnyEvent] = []

    def ensure(kind: str, *, python: Path, report: "object", cancel: threading.Event) -> Path:
        assert callable(report)
        report(DemoProgress("fetching", "fetching it", 50, 200))
        report(DemoProgress("ready", "it is ready"))
        return tmp_path / kind

    monkeypatch.setattr(launching, "ensure_demo_model", ensure)
    model = await resolve_model(ServerSpec(model="demo:tiny"), events.append, lambda: 5, threading.Event())
    assert model == str(tmp_path / "tiny")
    assert events == [
        ModelFetchProgressed(at_ns=5, origin="program", text="fetching it 50 B of 200 B", percent=25.0),
        ModelFetchProgressed(at_ns=5, origin="program", text="it is ready"),
    ]


async def test_a_demo_model_that_cannot_be_had_is_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def ensure(*_: object, **__: object) -> Path:
        raise DemoModelError("no network: --demo tiny needs no download")

    monkeypatch.setattr(launching, "ensure_demo_model", ensure)
    with pytest.raises(LaunchError, match="no network: --demo tiny needs no download"):
        await resolved("demo:smollm2")


# --- the launch ------------------------------------------------------------------------------------------------------


async def test_a_port_that_is_taken_leaves_nothing_behind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        line = await refused(ServerSpec(model="m", port=port))
    assert line.startswith(f"port {port} is taken by ")
    assert line.endswith(f"attach with --url http://127.0.0.1:{port} or use --port")
    assert [*runtime_dir().iterdir()] == []


@pytest.mark.parametrize("port", [-1, 65_536, 10**9])
async def test_a_number_that_is_no_port(port: int) -> None:
    line = await refused(ServerSpec(model="m", port=port))
    assert line == f"{port} is not a port: choose one from 1 to 65535, or 0 for any free one"


@pytest.mark.parametrize("value", ["-1", -1, "abc", "8Q", "1.2.3GB"])
async def test_a_size_that_cannot_be_read_is_refused(value: object) -> None:
    line = await refused(ServerSpec(model="m", port=0, flags={"prompt_cache_bytes": value}))
    assert line == f"--prompt-cache-bytes is a size such as 512MB, 1.5GB or 8GiB, not '{value}'"


async def test_a_python_that_is_not_there() -> None:
    line = await refused(ServerSpec(model="m", port=0, python="/no/python"))
    assert line == "the server cannot be started with /no/python: No such file or directory"
    assert [*runtime_dir().iterdir()] == []


async def test_a_host_that_is_not_here() -> None:
    line = await refused(ServerSpec(model="m", port=0, host="192.0.2.1"))
    assert line.startswith("192.0.2.1 is not an address of this machine")


async def test_a_runtime_folder_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MLXCACHE_RUNTIME_DIR", str(tmp_path / "file"))
    assert (await refused(ServerSpec(model="m", port=0))).startswith(f"no server is started: {tmp_path / 'file'}")


@pytest.mark.parametrize("keep", [False, True])
async def test_the_command_and_what_is_known_of_it(keep: bool) -> None:
    flags = {"prompt_cache_bytes": "8GiB", "prompt_cache_size": "2", "pipeline": True, "temp": "0.5"}
    launched = await launch(ServerSpec(model="demo:tiny", port=0, flags=flags, keep=keep), "/models/tiny")
    launched.child.kill()
    launched.child.release()
    while launched.child.poll() is None:
        pass
    assert launched.flags == {
        "prompt_cache_bytes": 8 << 30,
        "prompt_cache_size": 2,
        "pipeline": True,
        "temp": "0.5",
    }
    command = list(launched.command)
    assert command[0] == sys.executable
    assert ("--leash" in command) is not keep
    port = str(launched.port)
    cut = command.index("--")
    assert command[cut + 1 : cut + 7] == ["--model", "/models/tiny", "--host", "127.0.0.1", "--port", port]
    assert command[cut + 7 :] == [
        *("--prompt-cache-bytes", str(8 << 30), "--prompt-cache-size", "2", "--pipeline", "--temp", "0.5")
    ]
    assert launched.url == f"http://127.0.0.1:{port}"
    assert (launched.model, launched.blas) == ("demo:tiny", "none")


async def test_a_socket_left_by_a_killed_server_is_removed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
    socket_path(port).write_text("left")
    launched = await launch(ServerSpec(model="m", port=port), "m")
    launched.child.kill()
    launched.child.release()
    while launched.child.poll() is None:
        pass
    assert not launched.socket.exists()


def test_flags_as_words() -> None:
    assert flag_arguments({"a_b": 1, "on": True, "off": False, "none": None}) == ["--a-b", "1", "--on"]
