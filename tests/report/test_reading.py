"""What helps a stranger to read a report."""

from typing import get_args

import msgspec
import pytest

from mlxcache_tui.core.glossary import REASONS
from mlxcache_tui.core.results import ReasonResult, RunResult
from mlxcache_tui.core.views import ReasonKind
from mlxcache_tui.report.reading import WORDS, in_short, notes_lines, words_lines
from support.fake_engine import FakeEngine
from support.scenario_runs import POLICY, TWO_QUESTIONS, run_of

NOTES = """# Same policy, other question.
#
# Shows: the policy stands at the start,
# so it is read once.
# Look at: cached_tokens <b> and `a_<b>`.
#   run x --json y
#   run z
# Then a `quote.
"""


def test_the_figures_in_short() -> None:
    assert in_short(run_of()[0]) == [
        "- 72 % of the prompt tokens came from the cache (first ×1, hit ×3)",
        "- second \\| question: 3 at once took 54 ms each (slowest 83 ms); the last of 3 was done after 85 ms, while "
        "their times add up to 165 ms",
        "- hits saved about 793 ms of waiting, added up over the requests (estimate)",
        "- getting ready: the model was loaded in 1.50 s, the first request after that had a TTFT of 266 ms",
        "- memory of the server: 1 MB as the run began, 1 MB at its peak",
    ]


AT_ONCE = f"""
[policies]
returns = "{POLICY}"
[[steps]]
id = "cold"
policy = "returns"
before = "North. "
users = ["one", "two"]
concurrency = 2
[[steps]]
id = "warm"
policy = "returns"
before = "South. "
user = "Hello."
[[steps]]
id = "alone"
policy = "returns"
before = "South. "
user = "three"
[[steps]]
id = "again"
policy = "returns"
before = "West. "
user = "Hello."
[[steps]]
id = "burst"
policy = "returns"
before = "West. "
users = ["one", "two"]
concurrency = 2
"""
SECOND = 1_000_000_000


def timed(run: RunResult, seconds: dict[str, float], kinds: dict[str, str]) -> RunResult:
    """The run with other times and reasons, by step id; what was sent at once was at work all of the time."""
    steps = []
    for step in run.steps:
        took = seconds[step.id]
        requests = tuple(
            msgspec.structs.replace(
                request,
                e2e_s=took,
                sent_ns=0,
                end_ns=int(took * SECOND),
                reason=ReasonResult(kind=kinds[step.id], detail="", from_request=run.steps[3].requests[0].id),
            )
            for request in step.requests
        )
        steps.append(msgspec.structs.replace(step, requests=requests))
    return msgspec.structs.replace(run, steps=tuple(steps))


@pytest.mark.parametrize(
    ("wall", "said"),
    [(3.0, "1.3 times as fast in all"), (5.0, "25 % slower in all, a loss"), (4.0, "no faster in all")],
)
def test_what_sending_at_once_gave_in_all(wall: float, said: str) -> None:
    kinds = {"cold": "first", "warm": "first", "alone": "hit", "again": "first", "burst": "hit"}
    run = timed(run_of(AT_ONCE)[0], {"cold": 9.0, "warm": 5.0, "alone": 2.0, "again": 1.0, "burst": wall}, kinds)
    lines = [line for line in in_short(run) if line.startswith("- burst: ")]
    shown = f"{wall:.2f} s against 4.00 s for 2 one after the other (2 times 2.00 s alone): {said}"
    assert lines[1] == f"- burst: {shown}"
    (warmed,) = [line for line in in_short(run) if line.startswith("- warmed first: ")]
    assert warmed == (
        f"- warmed first: 1.00 s for again and {wall:.2f} s for burst, {wall + 1:.2f} s together, against "
        "9.00 s for cold"
    )


def test_what_was_reused_in_part_is_not_held_against_one_that_was_reused() -> None:
    kinds = {"cold": "first", "warm": "first", "alone": "hit", "again": "first", "burst": "hit"}
    run = timed(run_of(AT_ONCE)[0], {"cold": 9.0, "warm": 5.0, "alone": 2.0, "again": 1.0, "burst": 6.0}, kinds)
    *steps, burst = run.steps
    read = msgspec.structs.replace(burst.requests[1], reason=ReasonResult(kind="in_flight", detail=""))
    mixed = msgspec.structs.replace(burst, requests=(burst.requests[0], read))
    lines = [line for line in in_short(msgspec.structs.replace(run, steps=(*steps, mixed))) if "- burst: " in line]
    assert [line.split("(")[0] for line in lines] == ["- burst: 2 at once took 6.00 s each "]


def test_the_first_one_after_a_start_is_no_measure_for_a_burst() -> None:
    kinds = dict.fromkeys(("cold", "warm", "alone", "again", "burst"), "first")
    run = timed(run_of(AT_ONCE)[0], {"cold": 9.0, "warm": 5.0, "alone": 2.0, "again": 1.0, "burst": 6.0}, kinds)
    single = tuple(step for step in run.steps if step.id in ("alone", "burst"))
    run = msgspec.structs.replace(run, steps=single)
    assert any("one after the other" in line for line in in_short(run))
    started = msgspec.structs.replace(single[0].requests[0], first_after_start=True)
    first = msgspec.structs.replace(single[0], requests=(started,))
    assert not any(
        "one after the other" in line for line in in_short(msgspec.structs.replace(run, steps=(first, single[1])))
    )


def test_hits_are_compared_with_what_was_read_among_as_many_at_once() -> None:
    assert not any(line.startswith("- returns: ") for line in in_short(run_of()[0]))
    alone, _ = run_of(TWO_QUESTIONS.replace("concurrency = 3", ""))
    line = "- returns: TTFT 14 ms where its beginning was reused (n 3), 275 ms where it was read (n 1)"
    assert line in in_short(alone)


def test_what_was_thrown_out_is_counted() -> None:
    assert "- 3 entries were thrown out of the cache" in in_short(run_of(engine=FakeEngine(cache=2))[0])
    assert "- 1 entry was thrown out of the cache" in in_short(run_of(engine=FakeEngine(cache=4))[0])


def test_a_first_request_is_a_baseline_only_where_there_is_no_other() -> None:
    text = TWO_QUESTIONS.replace("warmup = true", "").replace("concurrency = 3", "")
    run, _ = run_of(text.replace('policy = "other"', 'policy = "returns"'))
    assert run.requests[0].first_after_start
    assert any("where it was read (n 1)" in line for line in in_short(run))


def test_a_baseline_that_was_the_first_after_a_start_is_marked() -> None:
    alone, _ = run_of(TWO_QUESTIONS.replace("concurrency = 3", ""))
    steps = [
        msgspec.structs.replace(
            step,
            requests=tuple(
                msgspec.structs.replace(request, first_after_start=request.policy == "returns")
                for request in step.requests
            ),
        )
        for step in alone.steps
    ]
    (line,) = [
        line for line in in_short(msgspec.structs.replace(alone, steps=tuple(steps))) if line.startswith("- returns: ")
    ]
    assert line.endswith("275 ms† where it was read (n 1)")


def test_a_warm_up_is_the_baseline_where_nothing_else_was_read() -> None:
    text = TWO_QUESTIONS.replace("concurrency = 3", "")
    run, _ = run_of(text.replace('policy = "other"', 'policy = "returns"'))
    (line,) = [line for line in in_short(run) if line.startswith("- returns: ")]
    assert line.endswith("where it was read (n 1, the warm-up)")


def test_nothing_measured_says_nothing() -> None:
    assert in_short(run_of(engine=FakeEngine(starts=False))[0]) == []


def test_the_authors_notes_are_paragraphs() -> None:
    run, _ = run_of(NOTES + TWO_QUESTIONS)
    assert notes_lines(run) == [
        "Same policy, other question.",
        "",
        "Shows: the policy stands at the start, so it is read once.",
        "",
        "Look at: cached_tokens \\<b\\> and `a_<b>`.",
        "",
        "```text",
        "run x --json y",
        "run z",
        "```",
        "",
        "Then a \\`quote.",
        "",
    ]
    assert notes_lines(msgspec.structs.replace(run, notes="")) == []


def test_every_reason_is_explained() -> None:
    assert set(REASONS) == set(get_args(ReasonKind)) - {"pending"}


def test_a_reason_that_is_not_known_is_explained_too() -> None:
    run, _ = run_of()
    (step, *_) = run.steps
    first = msgspec.structs.replace(step.requests[0], reason=ReasonResult(kind="unknown", detail=""))
    run = msgspec.structs.replace(run, steps=(msgspec.structs.replace(step, requests=(first,)),))
    assert f"- **unknown**: {REASONS['unknown']}" in words_lines([run])


def test_words_and_the_reasons_that_occur() -> None:
    lines = words_lines([run_of()[0]])
    assert all(any(line.startswith(f"- **{word}**") for line in lines) for word in WORDS)
    assert [line for line in lines if line.startswith(("- **hit", "- **first", "- **evicted"))] == [
        f"- **hit**: {REASONS['hit']}",
        f"- **first**: {REASONS['first']}",
    ]
