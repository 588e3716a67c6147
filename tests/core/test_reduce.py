"""The fold as a whole: the server's life, restarts, notices; and that it is deterministic."""

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.reduce import apply, fold
from support.story import Story


def test_a_replay_gives_the_same_state() -> None:
    story = Story()
    story.server(prompt_cache_size=2)
    story.sent("a", entry=1)
    story.sent("b", entry=2, cached=90, base="a", shared=90)
    story.evict(1, "b")
    assert fold(story.events) == story.state


def test_another_process_is_a_restart_with_an_empty_cache() -> None:
    story = Story()
    story.server(pid=10)
    story.sent("a", entry=1)
    assert len(story.state.cache.stored) == 1
    story.server(pid=11)
    assert not story.state.cache.stored
    assert [mark.kind for mark in story.state.memory.marks] == ["restart"]
    assert story.state.server.epoch == 2


def test_the_observer_of_the_same_process_is_no_restart() -> None:
    story = Story()
    story.server()
    assert story.state.server.epoch == 1
    assert story.state.memory.marks.maxlen
    assert not story.state.memory.marks


def test_an_exit_tells_the_last_line_and_ends_foreign_requests() -> None:
    story = Story()
    story.server()
    story.compose("o1", origin="observer", purpose="foreign")
    story.tell(ev.ServerExited(at_ns=story.tick(), origin="process", pid=10, signal="SIGKILL", tail=("last words",)))
    assert story.state.server.phase == "exited"
    assert story.state.server.text == "the server ended with signal SIGKILL: last words"
    assert story.state.requests["o1"].outcome == "cut"


def test_a_stop_that_was_asked_for_is_no_failure() -> None:
    story = Story()
    story.server()
    story.tell(ev.ServerExited(at_ns=story.tick(), origin="process", pid=10, signal="SIGTERM", asked=True))
    assert story.state.server.text == "stopped"


def test_the_exit_of_an_older_process_changes_nothing() -> None:
    story = Story()
    story.server(pid=11)
    story.tell(ev.ServerExited(at_ns=story.tick(), origin="process", pid=10, code=0))
    assert story.state.server.phase == "ready"


def test_fetching_and_loading_are_told_apart() -> None:
    story = Story()
    start = ev.ServerLaunched(at_ns=story.tick(), origin="process", pid=1, port=1, command=())
    story.tell(start)
    story.tell(ev.ModelFetchProgressed(at_ns=story.tick(), origin="log", text="12 %", percent=12.0))
    assert (story.state.server.phase, story.state.server.fetch_percent) == ("fetching", 12.0)
    story.tell(ev.ModelLoadStarted(at_ns=story.tick(), origin="observer", model="m"))
    assert story.state.server.phase == "loading"


def test_a_dead_worker_is_told_with_what_to_do() -> None:
    story = Story()
    story.server()
    story.tell(ev.WorkerDied(at_ns=story.tick(), origin="observer", error="shape mismatch"))
    assert story.state.server.phase == "worker_dead"
    assert "restart" in story.state.server.text


def test_lost_events_and_failed_sources_become_lines() -> None:
    story = Story()
    story.tell(ev.EventsLost(at_ns=1, origin="observer", count=7))
    story.tell(ev.SourceFailed(at_ns=2, origin="program", source="memory", error="gone"))
    texts = [notice.text for notice in story.state.notices]
    assert "7 events" in texts[0]
    assert texts[1] == "memory stopped: gone"


def test_apply_names_the_parts_that_changed() -> None:
    story = Story()
    sample = ev.MemorySampled(at_ns=1, origin="memory", pid=1, source="pss", bytes=5)
    assert apply(story.state, sample) == {"memory"}
    assert story.state.memory.peak == 5


def test_an_unknown_figure_is_a_gap_not_a_nought() -> None:
    story = Story()
    for size in (5, None):
        story.tell(ev.MemorySampled(at_ns=story.tick(), origin="memory", pid=1, source="pss", bytes=size))
    assert [sample.bytes for sample in story.state.memory.samples] == [5, None]
    assert story.state.memory.peak == 5
