"""The fold as a whole: the server's life, restarts, notices; and that it is deterministic."""

from typing import get_args

import msgspec

from mlxcache_tui.core import events as ev
from mlxcache_tui.core import reduce
from mlxcache_tui.core.present import cache_view
from mlxcache_tui.core.reduce import apply, fold
from support.story import Story


def test_a_replay_gives_the_same_state() -> None:
    story = Story()
    story.server(prompt_cache_size=2)
    story.sent("a", entry=1)
    story.sent("b", entry=2, cached=90, base="a", shared=90)
    story.evict(1, "b")
    assert fold(story.events) == story.state


def test_every_kind_of_event_is_folded() -> None:
    assert set(reduce._FOLDS) == set(get_args(ev.AnyEvent))


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


def test_what_went_to_a_server_elsewhere_is_no_earlier_request() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1)
    target = ev.ServerTargeted(at_ns=story.tick(), origin="program", url="http://127.0.0.1:9", mode="attached")
    story.tell(target)
    story.compose("b")
    story.look_up("b", prompt=100)
    reason = story.state.requests["b"].reason
    assert reason is not None
    assert reason.kind == "first"
    assert not story.state.cache.warm_before


def connected(pid: int, missing: tuple[str, ...] = (), **flags: object) -> ev.ObserverConnected:
    return ev.ObserverConnected(
        at_ns=1, origin="observer", protocol=1, pid=pid, mlx_lm="9.9", mlx=None, python="3", hooks=(), missing=missing,
        flags=flags,
    )  # fmt: skip


def test_entries_that_cannot_be_watched_are_not_said_to_be_known() -> None:
    state = fold([connected(1, missing=("PromptTrie.add", "MLX memory"))])
    assert state.server.observed
    assert state.cache.known == "unknown"
    assert "mlx-lm 9.9 has nothing to watch it by: PromptTrie.add, MLX memory" in state.notices[0].text
    assert "entries of mlx-lm 9.9 cannot be watched" in cache_view(state).note
    assert fold([connected(1)]).cache.known == "observer"


def test_entries_that_cannot_be_watched_are_inferred_where_the_rule_is_known() -> None:
    story = Story()
    story.server(observed=False)
    story.tell(msgspec.structs.replace(connected(10, missing=("PromptTrie.add",)), mlx_lm="0.30.7"))
    story.compose("a")
    story.tell(ev.RequestEnded(at_ns=story.tick(), origin="client", key="a", outcome="done"))
    view = cache_view(story.state)
    assert view.known == "inferred"
    assert [row.made_by for row in view.entries] == [1]


def test_a_request_of_ours_is_inferred_once_though_the_observer_tells_of_it_too() -> None:
    story = Story()
    story.server(observed=False)
    story.tell(msgspec.structs.replace(connected(10, missing=("PromptTrie.add",)), mlx_lm="0.30.7"))
    story.compose("a")
    counts = list(story.state.cache.inferred.counts)
    story.tell(ev.RequestSent(at_ns=story.tick(), origin="observer", key="a"))
    assert story.state.cache.inferred.counts == counts == [0]


def test_somebody_elses_server_that_was_started_anew_has_its_own_flags() -> None:
    target = ev.ServerTargeted(at_ns=1, origin="program", url="http://x", mode="attached")
    state = fold([target, connected(1, prompt_cache_size=3), connected(2, prompt_cache_size=5)])
    assert state.server.flags == {"prompt_cache_size": 5}


def test_a_server_that_runs_already_is_connected_to_until_it_answers() -> None:
    target = ev.ServerTargeted(at_ns=1, origin="program", url="http://x", mode="attached")
    ready = ev.ServerPhaseChanged(at_ns=2, origin="process", phase="ready")
    assert fold([target]).server.phase == "starting"
    assert fold([target, ready]).server.phase == "ready"


def test_another_clients_request_whose_end_was_lost_is_not_open_for_ever() -> None:
    story = Story()
    story.server()
    story.compose("o1", origin="observer", purpose="foreign")
    story.compose("o2", origin="observer", purpose="foreign")
    story.tell(ev.EventsLost(at_ns=story.tick(), origin="observer", count=9))
    assert story.state.requests["o1"].outcome == "cut"
    story.tell(ev.PrefillProgressed(at_ns=story.tick(), origin="observer", key="o2", done=1, total=2))
    assert (story.state.requests["o2"].outcome, story.state.requests["o2"].error) == (None, None)


def test_an_exit_tells_its_cause_and_ends_foreign_requests() -> None:
    story = Story()
    story.server()
    story.compose("o1", origin="observer", purpose="foreign")
    tail = ("Traceback (most recent call last):", "ValueError: last words", "a line behind it")
    story.tell(ev.ServerExited(at_ns=story.tick(), origin="process", pid=10, code=1, tail=tail))
    assert story.state.server.phase == "exited"
    assert story.state.server.text == "the server ended with exit code 1: ValueError: last words"
    assert story.state.requests["o1"].outcome == "cut"


def test_a_kill_from_outside_is_not_explained_by_the_log() -> None:
    story = Story()
    story.server()
    story.tell(ev.ServerExited(at_ns=story.tick(), origin="process", pid=10, signal="SIGKILL", tail=("GET /health",)))
    assert "ended from outside (SIGKILL" in story.state.server.text
    assert "health" not in story.state.server.text


def test_a_watched_server_that_is_gone_leaves_no_foreign_request_open() -> None:
    story = Story()
    story.server()
    story.compose("o1", origin="observer", purpose="foreign")
    story.tell(ev.ServerPhaseChanged(at_ns=story.tick(), origin="process", phase="unreachable", text="gone"))
    assert story.state.requests["o1"].outcome == "cut"


def test_another_process_behind_a_watched_address_is_seen_by_its_memory() -> None:
    story = Story()
    story.tell(ev.ServerTargeted(at_ns=story.tick(), origin="program", url="http://h:1", mode="attached"))
    story.tell(ev.ServerPhaseChanged(at_ns=story.tick(), origin="process", phase="ready"))
    for pid, size in ((10, 5), (10, None), (11, 6)):
        story.tell(ev.MemorySampled(at_ns=story.tick(), origin="memory", pid=pid, source="pss", bytes=size))
    assert (story.state.server.pid, story.state.server.epoch) == (11, 2)
    assert [mark.kind for mark in story.state.memory.marks] == ["restart"]
    assert story.state.server.phase == "ready"


def test_a_launch_tells_the_limits_before_the_observer_does() -> None:
    story = Story()
    flags = {"prompt_cache_size": 2}
    story.tell(ev.ServerLaunched(at_ns=story.tick(), origin="process", pid=1, port=1, command=(), flags=flags))
    assert story.state.cache.max_count == 2
    story.tell(ev.ServerLaunched(at_ns=story.tick(), origin="process", pid=2, port=1, command=()))
    assert story.state.cache.max_count is None


def test_a_model_that_is_fetched_whole_is_loaded_next() -> None:
    story = Story()
    story.tell(ev.ServerLaunched(at_ns=story.tick(), origin="process", pid=1, port=1, command=()))
    for percent in (50.0, 100.0):
        story.tell(ev.ModelFetchProgressed(at_ns=story.tick(), origin="log", text="a file", percent=percent))
    assert (story.state.server.phase, story.state.server.fetch_percent) == ("loading", None)


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


def test_watching_another_server_believes_nothing_of_the_first() -> None:
    story = Story()
    story.server(pid=10)
    story.sent("a", entry=1)
    story.tell(ev.ServerTargeted(at_ns=story.tick(), origin="program", url="http://other:1", mode="attached"))
    state = story.state
    assert (state.server.pid, state.server.observed, state.server.loaded, state.server.flags) == (None, False, None, {})
    assert not state.cache.stored
    assert state.cache.known == "unknown"
    epoch = state.server.epoch
    story.tell(ev.MemorySampled(at_ns=story.tick(), origin="memory", pid=5, source="pss", bytes=1))
    assert (state.server.pid, state.server.epoch) == (5, epoch)
    assert not state.memory.marks
