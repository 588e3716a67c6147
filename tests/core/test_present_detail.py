"""The detail view."""

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.present_detail import detail_view, request_markdown
from support.story import MS, Story


def test_everything_of_a_request() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1)
    view = detail_view(story.state, "a", "curl …")
    assert view is not None
    assert view.title == "#1 returns"
    assert [(message.role, message.text) for message in view.messages] == [("system", "policy"), ("user", "question")]
    assert [phase.name for phase in view.timeline] == ["wait", "prefill", "answer"]
    assert all(a.end_s == b.start_s for a, b in zip(view.timeline, view.timeline[1:], strict=False))
    assert view.answer == "yes"
    assert dict(view.facts)["served"] == "batched"


def test_thinking_has_a_bar_and_a_hint_of_its_own() -> None:
    story = Story()
    story.server()
    story.compose("a")
    story.answer("a", prompt=10, cached=0, finish="length", kind="reasoning")
    view = detail_view(story.state, "a", "")
    assert view is not None
    assert "turn thinking off" in view.hint
    assert view.reasoning == "yes"
    assert [phase.name for phase in view.timeline][-1] == "thinking"


def test_the_gaps_between_texts_are_told_while_it_is_written_and_when_it_is_over() -> None:
    story = Story()
    story.server()
    request = story.compose("a")
    story.tell(ev.FirstTokenArrived(at_ns=story.tick(), origin="client", key="a", kind="answer"))
    gaps = tuple(ms * MS for ms in (50, 3, 1, 2, 9))
    story.tell(ev.TextArrived(at_ns=story.tick(), origin="client", key="a", kind="answer", text="yes", gaps_ns=gaps))

    def told() -> tuple[str, str]:
        view = detail_view(story.state, "a", "")
        assert view is not None
        facts = dict(view.facts)
        return facts["gap between events, p50"], facts["gap between events, max"]

    assert told() == ("3 ms", "9 ms")
    story.end("a")
    assert told() == ("3 ms", "9 ms")
    assert (request.gaps.live, request.gaps.count) == (None, 5)


def test_an_unknown_request_has_no_detail() -> None:
    assert detail_view(Story().state, "nobody", "") is None


def test_a_request_as_a_file() -> None:
    story = Story()
    story.server()
    story.sent("a", entry=1)
    view = detail_view(story.state, "a", "curl …")
    assert view is not None
    text = request_markdown(view)
    assert "## system\n\npolicy" in text
    assert "## Answer\n\nyes" in text
