"""Every reason on the real server through the whole engine, and beside it the near miss that must not be it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mlxcache_tui.core.commands import Draft, RestartServer, ServerSpec
from mlxcache_tui.core.forecast import forecast
from mlxcache_tui.core.lens import PromptTexts, lens_view
from mlxcache_tui.core.state import Reason, RequestState
from mlxcache_tui.core.units import human_duration
from mlxcache_tui.core.warnings import warnings
from mlxcache_tui.engine.engine import Engine
from mlxcache_tui.engine.measure import settled
from support.engines import TINY, cancel, running, send, until
from support.live_server import since

pytestmark = pytest.mark.mlx


def policy(name: str, rules: int = 24) -> str:
    """A text that differs from its first word on."""
    return f"{name} " + " ".join(f"rule {n} of {name}: return it within {n} days." for n in range(rules))


@asynccontextmanager
async def engine_on(kind: str = "tiny", **flags: Any) -> AsyncIterator[Engine]:
    """A ready server with these flags."""
    async with running(ServerSpec(model=f"demo:{kind}", port=0, python=TINY.python, flags=flags)) as engine:
        await until(engine, lambda state: state.server.phase == "ready" and state.server.loaded is not None)
        yield engine


async def over(engine: Engine, key: str) -> RequestState:
    """Wait until a request is over for the client and the server, and what it stored is told."""

    def ended(state: Any) -> bool:
        request = state.requests.get(key)
        return request is not None and request.outcome is not None and request.server.ended is not None

    await until(engine, ended)
    request = engine.state.requests[key]
    if request.outcome == "done" and engine.state.cache.max_count and request.lookup is not None:
        await until(engine, lambda state: settled(state, key))
    return request


async def ask(engine: Engine, user: str, system: str = "", **more: Any) -> RequestState:
    return await over(engine, send(engine, user, system, **more))


def reason(request: RequestState) -> Reason:
    assert request.reason is not None
    return request.reason


def kind(request: RequestState) -> str:
    return reason(request).kind


async def test_first_hit_and_diverged() -> None:
    async with engine_on() as engine:
        first = await ask(engine, "Is it opened?", policy("Alpha"))
        assert kind(first) == "first"
        other = await ask(engine, "Is it opened?", policy("Beta"))
        assert kind(other) == "first", "the template's head alone is no hit"
        trimmed = await ask(engine, "It is damaged.", policy("Alpha"))
        assert (kind(trimmed), reason(trimmed).from_request) == ("hit", first.number)
        assert any("cut back" in line for line in reason(trimmed).evidence)
        again = await ask(engine, "It is damaged.", policy("Alpha"))
        assert kind(again) == "hit"
        assert any("last token of a prompt is always read again" in line for line in reason(again).evidence)
        longer = await ask(engine, "It is damaged. " * 300, policy("Alpha"))
        assert kind(longer) == "hit", "a long question behind a reused policy"
        shared = policy("Gamma")
        await ask(engine, "May I?", f"{shared} In shop one.")
        near = await ask(engine, "May I?", f"{shared} In shop two.")
        assert kind(near) == "hit", "what changes stands behind the policy"
        await ask(engine, "May I?", f"{policy('Delta', 6)} {policy('One', 30)}")
        document = await ask(engine, "May I?", f"{policy('Delta', 6)} {policy('Two', 30)}")
        assert kind(document) == "diverged"
        assert any("One rule 0" in line for line in reason(document).evidence)


async def test_volatile_text_in_front_diverges_and_the_lens_shows_where() -> None:
    async with engine_on() as engine:
        returns = next(policy for policy in engine.policies if policy.label == "returns").text
        first = await ask(engine, "May I?", returns, before="Today is Monday.")
        second = await ask(engine, "May I?", returns, before="Now it is Friday.")
        assert (kind(second), reason(second).from_request) == ("diverged", first.number)
        assert any("stands behind it, unchanged" in line for line in reason(second).evidence)
        assert second.cached_tokens
        used = [record.used_by for record in engine.state.cache.records.values()]
        assert not any(second.number in numbers for numbers in used), "the template's head is no use of an entry"
        view = lens_view(engine.state, second.key, None, PromptTexts())
        assert view is not None
        assert view.exact
        assert (view.other_number, view.tokens, view.cached) == (
            first.number,
            second.prompt_tokens,
            second.cached_tokens,
        )
        assert view.here.startswith("“Now")
        assert view.there.startswith("“Today")
        whole = "".join(part.text for part in view.parts)
        assert whole.count(returns.strip()) == 1
        assert sum(part.tokens or 0 for part in view.parts) == second.prompt_tokens


@pytest.mark.parametrize("before", ["", "Monday morning it is. ", "Zebra. "])
async def test_a_text_that_is_no_known_policy_is_found_behind_other_text(before: str) -> None:
    async with engine_on() as engine:
        first = await ask(engine, "May I?", f"It is 10:32. {policy('Alpha')}")
        second = await ask(engine, "May I?", f"{before}{policy('Alpha')}")
        assert (kind(second), reason(second).from_request) == ("diverged", first.number)
        assert reason(second).detail == f"differs from #{first.number} at message 0, char 0"
        assert any("with other text in front: they are read again" in line for line in reason(second).evidence)
        assert kind(await ask(engine, "May I?", f"{policy('Beta')} rule 1 of Alpha: return it.")) == "first"


@since(0, 31, 2)
@pytest.mark.parametrize(("model", "size"), [("tiny", 1), ("tiny-sliding", 10)])
async def test_a_difference_in_front_is_the_reason_whatever_became_of_the_entry(model: str, size: int) -> None:
    async with engine_on(model, prompt_cache_size=size) as engine:
        first = await ask(engine, "May I?", f"Case 17, of today. {policy('Alpha')}")
        await ask(engine, "May I?", policy("Beta"))
        back = await ask(engine, "May I?", f"Case 98, of today. {policy('Alpha')}")
        assert (kind(back), reason(back).from_request) == ("diverged", first.number)
        assert "here: Case ▸98, of today. Alpha rule 0 of Alpha: ret…" in reason(back).evidence
        assert reason(back).detail == f"differs from #{first.number} at message 0, char 5"
        behind = f"{policy('Gamma')} Case "
        await ask(engine, "May I?", f"{behind}17.")
        await ask(engine, "May I?", policy("Beta"))
        near = await ask(engine, "May I?", f"{behind}98.")
        assert kind(near) == ("evicted" if size == 1 else "not_trimmable")


async def test_a_hit_names_what_more_there_was_and_who_threw_it_out() -> None:
    async with engine_on(prompt_cache_size=2) as engine:
        long = f"{policy('Alpha')} {policy('More', 20)}"
        first = await ask(engine, "May I?", long)
        second = await ask(engine, "May I?", policy("Alpha"))
        third = await ask(engine, "Is it damaged?", policy("Alpha"))
        assert [eviction.made_by for eviction in third.evicted] == [first.number]
        again = await ask(engine, "May I?", long)
        found = reason(again)
        assert (found.kind, found.evicted_by, found.rule) == ("hit", third.number, "count")
        assert found.from_request in (second.number, third.number)
        lost = f" more lost: #{first.number} evicted by #{third.number} (count 2)"
        assert found.detail.endswith(lost)
        assert any("yet read anew: its entry" in line for line in found.evidence)
        view = lens_view(engine.state, again.key, None, PromptTexts())
        assert view is not None
        assert view.other_number == first.number
        whole = await ask(engine, "May I?", long)
        assert reason(whole).detail == f"hit: {whole.cached_tokens} tokens of #{again.number}"


async def test_wide_characters_come_back_whole() -> None:
    async with engine_on() as engine:
        text = "返品ポリシー: 30日以内に未開封の製品を返品できます。🎁 " * 20
        await ask(engine, "返品できますか?", text)
        second = await ask(engine, "返金できますか?", text)
        view = lens_view(engine.state, second.key, None, PromptTexts())
        assert view is not None
        assert text.strip() in "".join(part.text for part in view.parts)
        assert "金" in view.here[:3]
        assert "品" in view.there[:3]


async def test_extended_is_a_conversation_that_goes_on() -> None:
    async with engine_on() as engine:
        first = await ask(engine, "May I?", policy("Alpha"), max_tokens=1)
        record = engine.state.cache.records[first.entries[-1]]
        turn = (("user", "May I?"), ("assistant", first.answer))
        second = await ask(engine, "And now?", policy("Alpha"), messages=turn)
        assert kind(second) == "hit"
        assert second.lookup is not None
        assert second.lookup.how in ("extended", "trimmed")
        assert second.lookup.cached_tokens <= record.tokens


@since(0, 31, 2)
async def test_several_at_once_are_in_flight_and_one_after_the_other_are_not() -> None:
    async with engine_on(prefill_step_size=64) as engine:
        # The server takes in requests twice a second while it reads: the first must take longer than that.
        long = policy("Alpha", 300)
        # … and be stored after the others are looked up, also where it is read in no time: it has much to say.
        first = send(engine, "May I?", long, max_tokens=1000)
        await until(engine, lambda state: first in state.requests and bool(state.requests[first].prefill_done))
        others = [send(engine, "May I?", long) for _ in range(2)]
        requests = [await over(engine, key) for key in (first, *others)]
        assert [kind(request) for request in requests] == ["first", "in_flight", "in_flight"]
        assert [reason(request).from_request for request in requests[1:]] == [requests[0].number] * 2
        for request in requests[1:]:
            assert request.lookup is not None
            assert requests[0].lookup is not None
            begun = human_duration((request.lookup.at_ns - requests[0].lookup.at_ns) / 1e9)
            stored = engine.state.cache.records[requests[0].entries[0]].inserted_ns
            after = human_duration((stored - request.lookup.at_ns) / 1e9)
            number = requests[0].number
            assert (
                reason(request).detail == f"#{number} was still in flight: begun {begun} before, stored {after} after"
            )
            assert f"its prompt was stored {after} after this look-up" in reason(request).evidence[-1]
        assert kind(await ask(engine, "May I?", long)) == "hit"


async def test_a_restart_and_what_is_new_after_it() -> None:
    async with engine_on() as engine:
        first = await ask(engine, "May I?", policy("Alpha"))
        other = await ask(engine, "May I?", "Alpha rule 0 of another kind. " + policy("Beta"))
        engine.submit(RestartServer())
        await until(engine, lambda state: state.server.epoch == 2 and state.server.phase == "ready")
        again = await ask(engine, "Is it damaged?", policy("Alpha"))
        assert (kind(again), reason(again).from_request) == ("restarted", first.number)
        near = await ask(engine, "Is it damaged?", "Alpha rule 0 of another kind. " + policy("Beta"))
        assert (kind(near), reason(near).from_request) == ("restarted", other.number)
        assert kind(await ask(engine, "May I?", policy("Alpha"))) == "hit"
        assert kind(await ask(engine, "May I?", policy("Gamma"))) == "first"


async def test_evicted_by_count_and_the_forecast_said_so() -> None:
    async with engine_on(prompt_cache_size=2) as engine:
        first = await ask(engine, "May I?", policy("Alpha"))
        await ask(engine, "May I?", policy("Beta"))
        draft = Draft(user="May I?", policy_text=policy("Gamma"))
        (line,) = forecast(engine.state, draft, PromptTexts()).more
        assert f"(#{first.number})" in line
        third = await ask(engine, "May I?", policy("Gamma"))
        assert [eviction.made_by for eviction in third.evicted] == [first.number]
        back = await ask(engine, "Is it damaged?", policy("Alpha"))
        found = reason(back)
        assert (found.kind, found.evicted_by, found.rule) == ("evicted", third.number, "count")
        assert any("goes first, used or not" in line for line in found.evidence)
        assert kind(await ask(engine, "Is it opened?", policy("Alpha"))) == "hit"


@since(0, 31, 2)
async def test_the_forecast_is_what_happens() -> None:
    async with engine_on(prompt_cache_size=3) as engine:
        texts = PromptTexts()
        seen = []
        for number, (name, user) in enumerate(
            [
                ("Alpha", "May I?"),
                ("Beta", "May I?"),
                ("Alpha", "Is it damaged?"),
                ("Alpha", "May I?"),
                ("Gamma", "So?"),
            ]
        ):
            draft = Draft(user=user, policy_text=policy(name), max_tokens=4)
            said = forecast(engine.state, draft, texts)
            victim = next((line for line in said.more if line.startswith("✂")), "")
            request = await ask(engine, user, policy(name))
            reused = int(said.text.split("≈")[1].split()[0]) if said.text.startswith("would reuse") else 0
            cached = request.cached_tokens or 0
            assert abs(reused - cached) <= 2 or cached < 12, (number, said.text, cached)
            gone = [eviction.made_by for eviction in request.evicted]
            assert bool(gone) == bool(victim), (number, victim, gone)
            if gone:
                assert f"(#{gone[0]}" in victim.replace("(the warm-up", "(#0"), (number, victim, gone)
            seen.append(bool(gone))
        assert True in seen
        assert False in seen


async def test_evicted_by_bytes_when_the_next_one_joins() -> None:
    async with engine_on(prompt_cache_bytes=450_000) as engine:
        await ask(engine, "May I?", policy("Alpha"))
        await ask(engine, "May I?", policy("Beta"))
        await ask(engine, "May I?", policy("Gamma"))
        assert engine.state.cache.evictions
        back = await ask(engine, "Is it damaged?", policy("Alpha"))
        assert (kind(back), reason(back).rule) == ("evicted", "bytes")
    async with engine_on(prompt_cache_bytes=40_000_000) as engine:
        await ask(engine, "May I?", policy("Alpha"))
        await ask(engine, "May I?", policy("Beta"))
        assert kind(await ask(engine, "Is it damaged?", policy("Alpha"))) == "hit"


@since(0, 31, 2)
async def test_cancelled_while_it_was_read_and_later_than_that() -> None:
    async with engine_on(prefill_step_size=64) as engine:
        long = policy("Alpha", 400)
        key = send(engine, "May I?", long)
        await until(engine, lambda state: key in state.requests and bool(state.requests[key].prefill_done))
        cancel(engine, key)
        first = await over(engine, key)
        assert first.outcome == "cancelled"
        second = await ask(engine, "May I?", long)
        assert (kind(second), reason(second).from_request) == ("cancelled", first.number)
        key = send(engine, "And now?", long, max_tokens=2000)
        await until(
            engine, lambda state: state.requests[key].client.first_token is not None if key in state.requests else False
        )
        cancel(engine, key)
        await over(engine, key)
        assert kind(await ask(engine, "And now?", long)) == "hit"


@since(0, 31, 2)
async def test_sequential_and_not_trimmable_and_what_checkpoints_save() -> None:
    async with engine_on("tiny-sliding") as engine:
        assert any(warning.name == "three-places" for warning in warnings(engine.state))
        await ask(engine, "May I?", policy("Alpha"), extra={"seed": 1})
        seeded = await ask(engine, "Is it damaged?", policy("Alpha"), extra={"seed": 1})
        assert kind(seeded) == "sequential"
        batched = await ask(engine, "Is it damaged?", policy("Beta"))
        assert kind(batched) == "first"
        assert kind(await ask(engine, "May I?", policy("Beta"))) == "hit", "the system checkpoint"
        preamble = policy("Gamma", 30)
        await ask(engine, "May I?", f"{preamble} {policy('One', 6)}")
        cut = await ask(engine, "May I?", f"{preamble} {policy('Two', 6)}")
        assert kind(cut) == "not_trimmable"


async def test_a_trimmable_model_finds_its_prefix_on_the_sequential_path_too() -> None:
    async with engine_on(prompt_cache_bytes=300_000) as engine:
        for name in ("Alpha", "Beta", "Gamma"):
            await ask(engine, "May I?", policy(name), extra={"seed": 1})
        assert kind(await ask(engine, "Is it damaged?", policy("Alpha"), extra={"seed": 1})) == "hit"
        (over_limit,) = (warning for warning in warnings(engine.state) if warning.name == "limit-sequential")
        assert "not applied on the sequential path" in over_limit.text


@pytest.mark.parametrize("size", [0, 1])
async def test_a_cache_of_size_nought_is_disabled_and_one_of_size_one_is_not(size: int) -> None:
    async with engine_on(prompt_cache_size=size) as engine:
        await ask(engine, "May I?", policy("Alpha"))
        second = await ask(engine, "Is it damaged?", policy("Alpha"))
        assert kind(second) == ("hit" if size else "disabled")


async def test_other_template_arguments_change_the_tail_only() -> None:
    """mlx-lm #1803: not a miss; the evidence names the argument."""
    async with engine_on("tiny-thinking") as engine:
        await ask(engine, "May I?", policy("Alpha"), thinking=True)
        second = await ask(engine, "May I?", policy("Alpha"), thinking=False)
        assert kind(second) == "hit"
        assert any(
            line.startswith("chat_template_kwargs: {'enable_thinking': False} here") for line in reason(second).evidence
        )


async def test_another_model_has_a_cache_of_its_own(tiny_model: Any) -> None:
    async with engine_on() as engine:
        first = await ask(engine, "May I?", policy("Alpha"))
        other = str(await asyncio.to_thread(tiny_model, "tiny-thinking"))
        second = await ask(engine, "Is it damaged?", policy("Alpha"), model=other)
        assert (kind(second), reason(second).from_request) == ("model_changed", first.number)
        third = await ask(engine, "May I again?", policy("Alpha"), model=other)
        assert kind(third) == "hit"
