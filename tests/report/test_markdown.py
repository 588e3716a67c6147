"""The Markdown report: what each question of tuning is answered by."""

import msgspec

from mlxcache_tui.report.markdown import to_markdown
from support.fake_engine import FakeEngine
from support.scenario_runs import TWO_QUESTIONS, run_of


def section(report: str, title: str) -> list[str]:
    """The lines of one section."""
    lines = report.split("\n")
    start = next(index for index, line in enumerate(lines) if line.startswith("#") and title in line)
    rest = lines[start + 1 :]
    end = next((index for index, line in enumerate(rest) if line.startswith(("#", "---"))), len(rest))
    return [line for line in rest[:end] if line]


def test_conditions_leave_the_warm_up_to_its_own_table() -> None:
    report = to_markdown([run_of()[0]])
    conditions = section(report, "Conditions")
    assert [line.split(" | ")[0] for line in conditions[2:]] == ["| first question", "| second \\| question"]
    assert "43 ms (17 ms to 72 ms)" in conditions[3]
    assert section(report, "Warm-up")[2].startswith("| warm† | 1 |")


def test_at_once_tells_wall_time_from_the_sum() -> None:
    rows = section(to_markdown([run_of()[0]]), "At once")
    assert rows[2].startswith("| first question | 1 | 1 |")
    assert "| 85 ms | 165 ms | 176 |" in rows[3]
    assert "The sum of their times is not a time that passed." in rows[4]
    alone = run_of(TWO_QUESTIONS.replace("concurrency = 3", ""))[0]
    assert "### At once" not in to_markdown([alone])


def test_reasons_evictions_memory() -> None:
    report = to_markdown([run_of(engine=FakeEngine(cache=2))[0]])
    assert "| #3 | second \\| question | returns | 263 of 276 | hit | hit: 263 tokens of #2 |" in report
    assert section(report, "Evictions")[2] == "| other | assistant | 264 | 264 B | #1 | #3 | prompt_cache_size |"
    assert any("server process (pss)" in line for line in section(report, "Memory"))


def test_evictions_that_cannot_be_seen_are_unknown() -> None:
    report = to_markdown([run_of(engine=FakeEngine(observed=False))[0]])
    assert section(report, "Evictions") == ["Unknown: the server's cache could not be seen."]


def test_verdicts_say_by_how_much() -> None:
    report = to_markdown([run_of()[0]])
    rows = section(report, "1 of 2 held")
    assert rows[2].startswith("| held |")
    assert rows[3].startswith("| **failed** |")
    assert "`ttft_s < 0.01 * first.ttft_s` | 43 ms, 40 ms too much |" in rows[3]


def test_answers_stand_beside_their_questions_and_do_no_harm() -> None:
    answers = section(to_markdown([run_of()[0]]), "Answers")
    assert "**#5 second | question**: Is it \\<late\\>?" in answers
    assert "> It is damaged." in answers


def test_a_failed_request_is_a_verdict_and_an_answer() -> None:
    report = to_markdown([run_of(engine=FakeEngine(fails_at=2))[0]])
    assert "| **failed** | first question | #2 answers | failed: HTTP 500: it broke |" in report
    assert "> *HTTP 500: it broke*" in report
    row = next(line for line in section(report, "Conditions") if line.startswith("| first question"))
    assert row.split(" | ")[1:7] == ["1 (1 failed)", "—", "—", "—", "—", "—"]


def test_a_sweep_has_one_row_a_limit_and_a_plot() -> None:
    runs = [run_of(combination={"prompt_cache_size": size})[0] for size in (1, 2, 4)]
    report = to_markdown(runs)
    rows = section(report, "One row a limit")
    assert rows[0] == "**reuse is the same under every limit: 72 %**"
    assert rows[1].startswith("| prompt_cache_size | reuse |")
    assert [row.split(" | ")[0] for row in rows[3:6]] == ["| 1", "| 2", "| 4"]
    plot = rows[rows.index("```text") + 1 : rows.index("```")]
    assert max(map(len, plot)) <= 78
    assert any("reuse of prompt tokens" in row for row in plot)


def test_a_sweep_that_was_cut_concludes_nothing_and_shows_nothing_that_was_not_measured() -> None:
    runs = [run_of(combination={"prompt_cache_size": size})[0] for size in (1, 2)]
    never = msgspec.structs.replace(runs[1], steps=(), evictions=(), expectations=(), interrupted=True)
    report = to_markdown([msgspec.structs.replace(run, planned=3) for run in (runs[0], never)])
    rows = section(report, "One row a limit")
    assert rows[0] == "**cut after 1 of 3 limits: which one is enough cannot be said**"
    assert rows[4].startswith("| 2 (cut) | — | — | — | — | — |")
    last = report[report.rindex("## Same policy") :]
    assert "nothing was measured" in last
    assert "### Evictions" not in last


def test_several_scenarios_have_a_heading_each() -> None:
    other = run_of(TWO_QUESTIONS.replace("Same policy, other question", "Another"))[0]
    report = to_markdown([run_of()[0], other])
    assert report.startswith("# Same policy, other question\n")
    assert report.count("## What was run") == 2


def test_a_server_that_died_is_said() -> None:
    report = to_markdown([run_of(engine=FakeEngine(dies_at=3))[0]])
    assert "**the server was lost:**" in report
    assert "SIGKILL" in report


def test_no_request_at_all_is_no_crash() -> None:
    report = to_markdown([run_of(engine=FakeEngine(starts=False))[0]])
    assert "port 8080 is taken" in report


def test_limits_are_as_a_person_reads_them() -> None:
    run = msgspec.structs.replace(run_of()[0], combination={"draft_model": None, "prompt_cache_bytes": 8_000_000})
    assert ": draft_model off, prompt_cache_bytes 8 MB" in to_markdown([run])
