"""The server process: its leash, its output, its end. With small programs in the server's place."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlxcache_tui.core.settings import API_KEY_VARIABLE
from mlxcache_tui.sources.child import Child, command_of, exit_of, is_held, model_of, server_python

ENDS_WITH_STDIN = "import sys; print('begun', flush=True); sys.stdin.read(); print('let go', flush=True)"
SLEEPS = "import time; print('begun', flush=True); time.sleep(600)"


def until(holds: Callable[[], object], limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def started(log: Path) -> Iterator[Callable[..., Child]]:
    children: list[Child] = []

    def start(code: str, *words: str, leash: bool = True) -> Child:
        child = Child([sys.executable, "-c", code, *words], log_path=log, env={"OURS": "1"}, leash=leash)
        children.append(child)
        until(lambda: child.poll() is not None or child.last_lines())
        return child

    yield start
    for child in children:
        child.kill()
        child.release()
        until(lambda: child.poll() is not None)  # noqa: B023 - called at once


def test_the_leash_ends_it(started: Callable[..., Child]) -> None:
    child = started(ENDS_WITH_STDIN)
    child.release()
    until(lambda: child.poll() == 0)
    assert child.last_lines() == ("begun", "let go")
    assert not child.stopping


def test_without_a_leash_its_input_is_empty(started: Callable[..., Child]) -> None:
    child = started(ENDS_WITH_STDIN, leash=False)
    until(lambda: child.poll() == 0)


def test_it_is_ended_politely_and_hard(started: Callable[..., Child]) -> None:
    child = started(SLEEPS)
    child.terminate()
    until(lambda: child.poll() == -signal.SIGTERM)
    assert child.stopping
    child = started(SLEEPS)
    child.kill()
    until(lambda: child.poll() == -signal.SIGKILL)


def test_a_server_does_not_get_the_key(started: Callable[..., Child], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY_VARIABLE, "s3cret")
    child = started("import os; print(f'environment: {dict(os.environ)}', flush=True)")
    until(lambda: child.poll() == 0)
    assert "OURS" in child.last_lines()[-1]
    assert "s3cret" not in child.last_lines()[-1]


def test_one_that_ended_by_itself_was_not_stopped(started: Callable[..., Child]) -> None:
    child = started("print('over', flush=True)")
    until(lambda: child.poll() == 0)
    child.terminate()
    assert not child.stopping


def test_one_that_is_stopped_by_a_signal_is_seen_and_ends_too(started: Callable[..., Child]) -> None:
    child = started(SLEEPS)
    assert not is_held(child.pid)
    os.kill(child.pid, signal.SIGSTOP)
    until(lambda: is_held(child.pid))
    child.terminate()
    until(lambda: child.poll() == -signal.SIGTERM)
    assert not is_held(child.pid)


def test_it_has_its_own_session_and_our_environment(started: Callable[..., Child], log: Path) -> None:
    child = started("import os; print(os.getsid(0) == os.getpid(), os.environ['OURS'], flush=True)")
    until(lambda: child.poll() == 0)
    assert child.last_lines() == ("True 1",)
    assert log.stat().st_mode & 0o777 == 0o600


def test_its_last_words_are_cleaned_and_few(started: Callable[..., Child]) -> None:
    child = started("print('\\x1b[2J' + 'a\\n' * 30 + '\\nend', flush=True)")
    until(lambda: child.poll() == 0)
    assert child.last_lines(3) == ("a", "a", "end")
    assert len(child.last_lines()) == 20
    assert "\x1b" not in "".join(child.last_lines(100))


def test_a_log_of_before_is_replaced_never_followed(started: Callable[..., Child], log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    log.symlink_to(other)
    child = started("print('new', flush=True)")
    until(lambda: child.poll() == 0)
    assert other.read_text() == "mine"
    assert child.last_lines() == ("new",)


def test_a_program_that_is_not_there_leaves_nothing(log: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Child(["/no/such/program"], log_path=log, env={}, leash=True)
    assert not log.exists()


def test_one_that_is_let_go_runs_on_without_a_warning(log: Path) -> None:
    child = Child([sys.executable, "-c", SLEEPS], log_path=log, env={}, leash=False)
    pid = child.pid
    child.let_go()
    del child
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_the_model_on_a_command_line(started: Callable[..., Child]) -> None:
    assert model_of(command_of(started(SLEEPS, "--model", "acme/x", "--port", "1").pid)) == "acme/x"
    assert model_of(command_of(started(SLEEPS, "--model=acme/y").pid)) == "acme/y"
    assert model_of(command_of(started(SLEEPS, "--model").pid)) is None
    assert model_of(command_of(2**22 + 1)) is None


def test_an_exit_status_is_a_code_or_a_signal() -> None:
    assert exit_of(3) == (3, None)
    assert exit_of(-9) == (None, "SIGKILL")
    assert exit_of(-200) == (None, "200")


def test_the_python_for_the_server() -> None:
    assert server_python(None) == sys.executable
    assert server_python("/x") == "/x"
