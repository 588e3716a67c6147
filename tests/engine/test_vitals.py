"""The phase of the server, from events and looks, on a clock of the test's own."""

from typing import Any

import pytest

from mlxcache_tui.core import events as ev
from mlxcache_tui.engine.vitals import SILENCE_S, Vitals


class Watched:
    """Vitals with a clock; `tell` makes an event pass as the engine would."""

    def __init__(self, *, ours: bool) -> None:
        self.now = 0
        self.said: list[tuple[str, str]] = []
        self.vitals = Vitals(self._emit, lambda: self.now)
        self.vitals.begin(ours=ours)

    def _emit(self, event: ev.AnyEvent) -> None:
        if isinstance(event, ev.ServerPhaseChanged):
            self.said.append((event.phase, event.text))
        self.vitals.heed(event)

    def tell(self, event: type[ev.Event], origin: str = "observer", /, **fields: Any) -> None:
        self._emit(event(at_ns=self.now, origin=origin, **fields))  # type: ignore[arg-type]

    def connected(self, pid: int = 1) -> None:
        self.tell(ev.ObserverConnected, protocol=1, pid=pid, mlx_lm="1", mlx="1", python="3", hooks=())

    def loaded(self) -> None:
        self.tell(ev.ModelLoadStarted, model="m")
        self.tell(ev.ModelLoaded, model="m", seconds=1.0)

    def composed(self, key: str = "a", *, stream: bool = True) -> None:
        self.tell(
            ev.RequestComposed,
            "client",
            key=key,
            purpose="send",
            path="/v1/chat/completions",
            messages=(),
            params={"stream": stream},
        )

    def done(self, key: str = "a") -> None:
        self.tell(ev.RequestEnded, "client", key=key, outcome="done")

    def later(self, seconds: float) -> None:
        self.now += int(seconds * 1e9)

    @property
    def phase(self) -> str:
        return self.vitals.phase


@pytest.fixture
def ours() -> Watched:
    watched = Watched(ours=True)
    watched.vitals.say("starting", "starting m")
    return watched


@pytest.fixture
def theirs() -> Watched:
    return Watched(ours=False)


def ready(watched: Watched) -> Watched:
    watched.composed("warm")
    watched.done("warm")
    assert watched.phase == "ready"
    return watched


def test_ours_is_ready_with_its_first_answer_not_with_its_model(ours: Watched) -> None:
    ours.connected()
    ours.loaded()
    assert ours.phase == "loading"
    ours.vitals.answered()
    assert ours.phase == "loading"
    ready(ours)


def test_theirs_is_ready_by_the_observers_word(theirs: Watched) -> None:
    theirs.connected()
    assert theirs.phase == "starting"
    theirs.loaded()
    assert theirs.said[-1] == ("ready", "")


def test_theirs_without_an_observer_answers_first_and_is_proven_later(theirs: Watched) -> None:
    theirs.vitals.answered()
    assert theirs.said[-1] == ("ready", "it answers; no completion was seen yet")
    ready(theirs)
    assert theirs.said[-1] == ("ready", "")


def test_a_port_that_answers_while_the_model_loads_is_not_ready(theirs: Watched) -> None:
    theirs.connected()
    theirs.tell(ev.ModelLoadStarted, model="m")
    theirs.vitals.answered()
    assert theirs.phase == "loading"


def test_nothing_is_said_twice(theirs: Watched) -> None:
    for _ in range(3):
        theirs.vitals.unreachable("nobody", running=False)
    assert theirs.said == [("unreachable", "nobody")]


def test_the_cause_of_a_failed_load_outlives_the_death_of_the_thread(ours: Watched) -> None:
    ours.connected()
    ours.tell(ev.ModelLoadStarted, model="m")
    ours.tell(ev.ModelLoadFailed, model="m", error="FileNotFoundError: No safetensors found in /m")
    ours.tell(ev.WorkerDied, error="FileNotFoundError: No safetensors found in /m")
    assert ours.said[-1] == ("worker_dead", "m did not load: there are no weights in /m: it needs a .safetensors file")
    assert ours.vitals.dead


def test_another_model_that_does_not_load_is_no_death(ours: Watched) -> None:
    ours.connected()
    ours.loaded()
    ready(ours)
    ours.tell(ev.ModelLoadStarted, model="other")
    assert ours.phase == "loading"
    ours.tell(ev.ModelLoadFailed, model="other", error="no such model")
    assert ours.said[-1] == ("ready", "other did not load: no such model")
    assert not ours.vitals.dead


def test_a_thread_that_died_stays_dead_though_health_is_well(ours: Watched) -> None:
    ready(ours)
    ours.tell(ev.WorkerDied, error="boom")
    ours.vitals.answered()
    assert ours.phase == "worker_dead"


def test_unavailable_is_dead_until_another_process_answers(theirs: Watched) -> None:
    theirs.vitals.answered()
    theirs.vitals.unavailable("503")
    assert theirs.said[-1] == ("worker_dead", "503")
    theirs.vitals.answered()
    assert theirs.said[-1] == ("ready", "it answers; no completion was seen yet")


def test_silence_on_a_streamed_request_is_told_and_ends_with_the_next_word(ours: Watched) -> None:
    ready(ours)
    ours.later(500)
    ours.composed()
    ours.later(SILENCE_S - 1)
    ours.vitals.check_silence()
    assert ours.phase == "ready"
    ours.later(2)
    ours.vitals.check_silence()
    assert ours.phase == "not_answering"
    assert "no word on 1 open requests for 61 s" in ours.said[-1][1]
    assert "restart" in ours.said[-1][1]
    ours.vitals.answered()
    assert ours.phase == "not_answering"
    ours.tell(ev.TextArrived, "client", key="a", kind="answer", text="at last")
    assert ours.phase == "ready"


@pytest.mark.parametrize(
    "sign",
    [
        ev.PrefillProgressed(at_ns=0, origin="client", key="a", done=1, total=9),
        ev.LookedUp(
            at_ns=0,
            origin="observer",
            key="x",
            tokens=ev.TokenRun(count=1),
            cached_tokens=0,
            how="none",
            path="batched",
        ),
        ev.LogRead(at_ns=0, origin="log", lines=(ev.LogLine(text="Prompt processing", kind="progress"),)),
    ],
)
def test_any_sign_of_work_breaks_the_silence(sign: ev.AnyEvent, ours: Watched) -> None:
    ready(ours)
    ours.composed()
    ours.later(SILENCE_S - 5)
    ours.vitals.heed(sign)
    ours.later(10)
    ours.vitals.check_silence()
    assert ours.phase == "ready"


def test_memory_and_health_lines_are_no_sign_of_work(ours: Watched) -> None:
    ready(ours)
    ours.composed()
    ours.later(SILENCE_S + 1)
    ours.tell(ev.MlxMemorySampled, active=1, pool=1, peak=1)
    ours.tell(ev.LogRead, "log", lines=(ev.LogLine(text="GET /health", kind="access"),))
    ours.vitals.check_silence()
    assert ours.phase == "not_answering"


def test_a_slow_machine_gets_more_patience(ours: Watched) -> None:
    ready(ours)
    ours.composed()
    for done in (1, 2):
        ours.later(SILENCE_S - 5)
        ours.tell(ev.PrefillProgressed, "client", key="a", done=done, total=9)
    ours.later(2 * SILENCE_S)
    ours.vitals.check_silence()
    assert ours.phase == "ready"


def test_beside_a_reply_that_is_not_streamed_nothing_is_judged(ours: Watched) -> None:
    ready(ours)
    ours.composed("a")
    ours.composed("b", stream=False)
    ours.later(10 * SILENCE_S)
    ours.vitals.check_silence()
    assert ours.phase == "ready"
    assert ours.vitals.silent_s() == 0


def test_a_process_that_is_held_is_told_and_continues(ours: Watched) -> None:
    ready(ours)
    ours.vitals.held(7)
    assert ours.said[-1] == ("not_answering", "the server process is stopped: kill -CONT 7 lets it go on")
    ours.vitals.answered()
    assert ours.said[-1] == ("ready", "")


def test_an_exit_is_the_last_word(ours: Watched) -> None:
    ready(ours)
    ours.tell(ev.ServerExited, "process", pid=1, code=1)
    ours.vitals.unreachable("nobody", running=True)
    ours.vitals.answered()
    ours.vitals.held(1)
    assert ours.phase == "exited"
    assert ours.said[-1] == ("ready", "")


def test_ours_that_starts_is_not_called_silent(ours: Watched) -> None:
    ours.vitals.unreachable("does not answer", running=True)
    assert ours.phase == "starting"


def test_another_process_starts_from_nothing(theirs: Watched) -> None:
    theirs.connected(1)
    theirs.loaded()
    theirs.connected(1)
    assert theirs.vitals.ready
    theirs.connected(2)
    assert theirs.phase == "starting"
    assert not theirs.vitals.ready
    theirs.loaded()
    assert theirs.said[-1] == ("ready", "")


def test_a_process_seen_from_outside_that_changed_starts_from_nothing(theirs: Watched) -> None:
    theirs.vitals.process_is(1)
    theirs.vitals.answered()
    ready(theirs)
    theirs.vitals.process_is(1)
    assert theirs.vitals.ready
    theirs.vitals.process_is(2)
    theirs.vitals.answered()
    assert theirs.said[-1] == ("ready", "it answers; no completion was seen yet")


def test_what_was_lost_is_gone(theirs: Watched) -> None:
    theirs.connected(1)
    theirs.loaded()
    theirs.tell(ev.ObserverLost, "process")
    theirs.vitals.unreachable("nobody", running=False)
    assert (theirs.phase, theirs.vitals.observed, theirs.vitals.ready) == ("unreachable", False, False)
    theirs.vitals.unreachable("it holds the port", running=True)
    assert theirs.phase == "not_answering"


def test_the_line_of_a_failed_request_is_kept(ours: Watched) -> None:
    ours.composed()
    ours.tell(ev.RequestEnded, "client", key="a", outcome="failed", error="HTTP 400: no template")
    assert ours.vitals.failure == "HTTP 400: no template"
    assert not ours.vitals.ready
