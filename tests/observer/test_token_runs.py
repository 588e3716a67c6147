"""Token lists against earlier ones: the longest common start, found without comparing token by token."""

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.observer.observe import KEPT_PROMPTS, TOKEN, Fields, Prompts, common_bytes

tokens = st.lists(st.integers(-(2**40), 2**40), max_size=300)
few = st.lists(st.integers(0, 2), min_size=1, max_size=40)


def pack(values: list[int]) -> bytes:
    return b"".join(value.to_bytes(TOKEN, "little", signed=True) for value in values)


def shared(a: list[int], b: list[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def whole(run: Fields, known: dict[str, list[int]]) -> list[int]:
    start = known[run["base"]][: run["shared"]] if "base" in run else []
    assert len(start) == run.get("shared", 0)
    return start + list(run["new"])


@given(tokens, tokens, tokens)
def test_the_common_start_is_that_of_the_tokens(start: list[int], a: list[int], b: list[int]) -> None:
    left, right = start + a, start + b
    assert common_bytes(pack(left), pack(right)) == shared(left, right) * TOKEN


@given(st.lists(few, min_size=1, max_size=12))
def test_a_prompt_is_told_against_the_latest_of_the_most_similar(prompts: list[list[int]]) -> None:
    kept = Prompts()
    known: dict[str, list[int]] = {}
    for number, prompt in enumerate(prompts):
        run = kept.add(str(number), prompt)
        assert run["count"] == len(prompt)
        assert whole(run, known) == prompt
        best = max((shared(earlier, prompt), key) for key, earlier in {**known, "": []}.items())
        assert run.get("shared", 0) == best[0]
        if best[0]:
            latest = [key for key, earlier in known.items() if shared(earlier, prompt) == best[0]][-1]
            assert run["base"] == latest
        known[str(number)] = prompt


@given(few, few, st.booleans())
def test_an_entry_is_told_against_its_own_request(prompt: list[int], answer: list[int], named: bool) -> None:
    kept = Prompts()
    kept.add("other", [7, 7])
    kept.add("own", prompt)
    key, run = kept.entry_run("own" if named else None, prompt + answer)
    assert key == "own", "an entry that nobody claims belongs to the request whose prompt it begins with"
    assert run == {"count": len(prompt + answer), "new": answer, "base": "own", "shared": len(prompt)}
    key, checkpoint = kept.entry_run("own", prompt[:-1] or prompt)
    assert checkpoint["new"] == []


def test_only_the_last_prompts_are_kept() -> None:
    kept = Prompts()
    for number in range(KEPT_PROMPTS + 1):
        kept.add(str(number), [number])
    assert kept.first("0", 1) is None
    assert kept.first("1", 1) == [1]
    assert kept.entry_run("0", [0]) == ("0", {"count": 1, "new": [0]}), "written out when its base is gone"


def test_a_prompt_of_a_million_tokens_against_many_like_it_takes_no_time_to_speak_of() -> None:
    kept = Prompts()
    long = list(range(1_000_000))
    for number in range(3):
        run = kept.add(str(number), [*long, number])
    assert (run["base"], run["shared"], run["new"]) == ("1", 1_000_000, [2])
