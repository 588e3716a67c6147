"""The earlier request that one is like is the one that a walk through all would find."""

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from mlxcache_tui.core import alike, bounds
from mlxcache_tui.core import events as ev
from mlxcache_tui.core.codec import text_id_of
from mlxcache_tui.core.reduce import apply
from mlxcache_tui.core.state import RequestState, SessionState
from support.story import Story

Asked = tuple[int, str, str | None, ev.Purpose]
ASKED: st.SearchStrategy[Asked] = st.tuples(
    st.integers(0, 9),
    st.sampled_from(["one", "two", "three"]),
    st.sampled_from(["known", "other", None]),
    st.sampled_from(["send", "readiness"]),
)


def found_by_walking(state: SessionState, request: RequestState) -> RequestState | None:
    labelled = None
    # In the order of telling: a warm-up that is told late is put in front of others, which are not moved among them.
    for known in sorted(state.requests.values(), key=lambda told: int(told.key[1:]), reverse=True):
        if known is request or known.purpose == "readiness" or known.composed_ns > request.composed_ns:
            continue
        if known.messages[0] == request.messages[0]:
            return known
        if labelled is None and known.policy == request.policy and request.policy in state.policies:
            labelled = known
    return labelled


@settings(max_examples=200, deadline=None)
@given(asked=st.lists(ASKED, max_size=12), kept=st.integers(1, 12))
def test_it_is_the_latest_with_the_same_beginning_else_of_the_same_policy(asked: list[Asked], kept: int) -> None:
    with patch.multiple(bounds, KEPT_REQUESTS=kept, LEAST_REQUESTS=1):
        state = SessionState()
        apply(state, ev.PolicyKnown(at_ns=0, origin="program", label="known", text="text"))
        for number, (at_ns, system, policy, purpose) in enumerate(asked):
            composed = ev.RequestComposed(
                at_ns=at_ns,
                origin="client",
                key=f"k{number}",
                purpose=purpose,
                path="/v1/chat/completions",
                messages=(("system", text_id_of(system)), ("user", text_id_of("question"))),
                policy=policy,
            )
            apply(state, composed)
            for request in state.requests.values():
                assert alike.earlier(state, request) is found_by_walking(state, request)
        listed = [key for keys in state.beginnings.values() for key in keys]
        assert sorted(listed) == sorted(key for key, r in state.requests.items() if r.purpose != "readiness")
        assert all(set(keys) <= set(state.requests) for keys in state.labelled.values())


def test_one_without_messages_is_like_nothing() -> None:
    state = SessionState()
    composed = ev.RequestComposed(
        at_ns=1, origin="client", key="a", purpose="send", path="/v1/completions", messages=(), policy="p"
    )
    apply(state, composed)
    assert alike.earlier(state, state.requests["a"]) is None
    assert not state.beginnings


def test_one_without_messages_has_a_reason_though_its_policy_was_sent() -> None:
    story = Story()
    story.server()
    story.tell(ev.PolicyKnown(at_ns=story.tick(), origin="program", label="returns", text="policy"))
    story.sent("a", entry=1)
    empty = ev.RequestComposed(
        at_ns=story.tick(),
        origin="client",
        key="b",
        purpose="send",
        path="/v1/completions",
        messages=(),
        policy="returns",
    )
    story.tell(empty)
    story.look_up("b", prompt=100)
    assert (reason := story.state.requests["b"].reason) is not None
    assert reason.kind == "first"
