"""What helps a stranger to read a report."""

from typing import get_args

import msgspec

from mlxcache_tui.core.glossary import REASONS
from mlxcache_tui.core.results import ReasonResult
from mlxcache_tui.core.views import ReasonKind
from mlxcache_tui.report.reading import WORDS, in_short, notes_lines, words_lines
from support.fake_engine import FakeEngine
from support.scenario_runs import TWO_QUESTIONS, run_of

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
