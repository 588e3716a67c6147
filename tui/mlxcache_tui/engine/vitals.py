"""What the server does as a whole: judged from the events that pass, and from what a look at it gives. No IO."""

from collections.abc import Callable

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.last_words import explain
from mlxcache_tui.core.text import short_model

SILENCE_S = 60.0
"""Seconds without a sign of life, while streamed requests wait, after which the server counts as not answering."""
SLOWER = 3.0
"""… or this many times the longest silence that it broke before: a big prefill step on a slow machine takes minutes."""
ASK_S = 10.0
"""Seconds of such silence after which an observed server is asked for its health (a line in its log each time)."""

_PHASED = (
    ev.ServerLaunched,
    ev.ObserverConnected,
    ev.ModelFetchProgressed,
    ev.ModelLoadStarted,
    ev.ModelLoaded,
    ev.ModelLoadFailed,
    ev.WorkerDied,
    ev.ServerExited,
)
"""Events that change the phase or its text by themselves, in the fold."""


class Vitals:
    """The phase of one server. `heed` it every event on its way out; it says what follows by `emit`."""

    def __init__(self, emit: Callable[[ev.AnyEvent], None], clock: Callable[[], int]) -> None:
        self._emit, self._clock = emit, clock
        self.begin(ours=False)

    def begin(self, *, ours: bool) -> None:
        """Another server from here on; `ours`: we start it and find out ourselves when it is ready."""
        self.phase: ev.ServerPhase = "none"
        self.ours = ours
        self.pid: int | None = None
        self.observed = False
        self.failure: str | None = None
        """The line of our last request that failed."""
        self._said: tuple[ev.ServerPhase, str] | None = None
        self._new_process()

    def _new_process(self) -> None:
        self._load_failure: str | None = None
        self.ready = False
        """Whether a request was answered, or the observer said that the model is loaded."""
        self.loading = False
        self.dead = False
        self._said_unavailable = False
        self._waiting: dict[str, bool] = {}
        """Our open requests: whether they are streamed, so that silence means something."""
        self._heard_ns = self._clock()
        self._longest_ns = 0

    def say(self, phase: ev.ServerPhase, text: str) -> None:
        """Tell the phase, if that is news."""
        self.phase = phase
        if self._said != (phase, text):
            self._said = (phase, text)
            self._emit(ev.ServerPhaseChanged(at_ns=self._clock(), origin="process", phase=phase, text=text))

    def process_is(self, pid: int) -> None:
        """The process behind the address, as seen from outside; another one than before starts from nothing."""
        if self.pid not in (None, pid):
            self._new_process()
            self._said, self.phase = None, "starting"
        self.pid = pid

    # --- what the events tell ---

    def heed(self, event: ev.AnyEvent) -> None:
        """Look at an event that was just told."""
        if isinstance(event, _PHASED):
            self._said = None
            self._heed_server(event)
        self._heed_request(event)
        if _is_work(event):
            self._hear()

    def _heed_server(self, event: ev.AnyEvent) -> None:
        match event:
            case ev.ObserverConnected(pid=pid):
                self.process_is(pid)
                self.observed = True
                if not self.ours:
                    self.phase = "starting"
            case ev.ModelLoadStarted():
                self.loading, self.phase = True, "loading"
            case ev.ModelLoaded(model=model):
                self.loading = self.dead = False
                self._load_failure = None
                if self.ready or not self.ours:
                    self._set_ready()
                else:
                    self.say("loading", f"{short_model(model)} is loaded: a first token is made to warm up")
            case ev.ModelLoadFailed(model=model, error=error):
                self._load_failed(model, explain(error))
            case ev.WorkerDied():
                self.dead, self.phase = True, "worker_dead"
                if self._load_failure is not None:
                    self.say("worker_dead", self._load_failure)
            case ev.ServerExited():
                self.phase, self.observed = "exited", False

    def _load_failed(self, model: str, why: str) -> None:
        self.loading = False
        line = f"{model} did not load: {why}"
        if self.ready:
            # Only the request that named this model fails; the next one loads the server's own again.
            self.say("ready", line)
        else:
            self.dead, self._load_failure = True, line
            self.say("worker_dead", line)

    def _heed_request(self, event: ev.AnyEvent) -> None:
        match event:
            case ev.ObserverLost():
                self.observed = False
            case ev.RequestComposed(key=key, origin="client", params=params):
                if not self._waiting:
                    self._heard_ns = self._clock()
                self._waiting[key] = params.get("stream") is True
            case ev.RequestEnded(origin="client"):
                self._waiting.pop(event.key, None)
                if event.outcome == "done":
                    self.dead = False
                    self._set_ready()
                elif event.error:
                    self.failure = event.error

    def _set_ready(self) -> None:
        self.ready = True
        self.say("ready", "")

    def _hear(self) -> None:
        now = self._clock()
        if self._waiting and self.ready:
            self._longest_ns = max(self._longest_ns, now - self._heard_ns)
        self._heard_ns = now
        if self.phase == "not_answering" and self.ready:
            self.say("ready", "")

    # --- what a look at it gives ---

    def _patience_s(self) -> float:
        return max(SILENCE_S, SLOWER * self._longest_ns / 1e9)

    def silent_s(self) -> float:
        """Seconds for which streamed requests of ours have waited without any sign of life; 0 if none waits.

        A reply that is not streamed is silent by its nature, and holds up others: nothing is judged beside one.
        """
        if not self._waiting or not all(self._waiting.values()):
            return 0.0
        return (self._clock() - self._heard_ns) / 1e9

    def check_silence(self) -> None:
        """Versions before 0.32 answer /health though the thread that generates is dead: nothing comes, for ever."""
        silent = self.silent_s()
        if self.phase == "ready" and silent > self._patience_s():
            self.say(
                "not_answering",
                f"no word on {len(self._waiting)} open requests for {silent:.0f} s: it is busy with something long, "
                "or its generation thread is dead; a restart ends the wait",
            )

    def held(self, pid: int) -> None:
        """Its process is stopped by a signal."""
        if self.phase not in ("exited", "worker_dead"):
            self.say("not_answering", f"the server process is stopped: kill -CONT {pid} lets it go on")

    def answered(self) -> None:
        """/health says that all is well, or there is none and something answers."""
        if self.phase == "worker_dead" and self._said_unavailable:
            # What was dead once does not come back: this is another process.
            self._new_process()
        elif self.dead or self.loading or self.phase == "exited":
            return
        if self.ours and not self.ready:
            return
        if self.phase != "ready" and self.silent_s() < self._patience_s():
            self.say("ready", "" if self.ready else "it answers; no completion was seen yet")

    def unavailable(self, why: str) -> None:
        """/health says 503."""
        if self.phase not in ("worker_dead", "exited"):
            self._said_unavailable = self.dead = True
            self.say("worker_dead", why)

    def unreachable(self, why: str, *, running: bool) -> None:
        """Nothing came back; `running`: its process is there nevertheless."""
        if self.phase in ("exited", "worker_dead") and self.ours:
            return
        if running:
            if self.ready or not self.ours:
                self.say("not_answering", why)
        elif not self.ours:
            self._new_process()
            self.observed = False
            self.say("unreachable", why)


def _is_work(event: ev.AnyEvent) -> bool:
    """Whether an event shows that the server works on requests; its memory and its access lines do not."""
    match event:
        case (
            ev.LookedUp()
            | ev.EntryInserted()
            | ev.RequestAdmitted()
            | ev.PrefillProgressed()
            | ev.FirstTokenArrived()
            | ev.TextArrived()
        ):
            return True
        case ev.RequestEnded(origin="client", outcome="done"):
            return True
        case ev.LogRead(lines=lines):
            return any(line.kind in ("progress", "cache") for line in lines)
    return False
