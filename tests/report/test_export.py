"""Each format holds every request, and a redacted one nothing that anybody wrote."""

import csv
import io
import json

import pytest

from mlxcache_tui.core.codec import decode_event
from mlxcache_tui.report.export import FORMATS, Format, export
from support.sessions import QUESTION, SECRET, told


@pytest.mark.parametrize("to", FORMATS)
def test_a_redacted_export_holds_no_word_of_anybody(to: Format) -> None:
    text, _ = export(told().events, "s", to, redact=b"salt")
    for word in ("zebra", "Thursday", "Ottilie", "teapot"):
        assert word not in text


def test_the_table_has_a_row_a_request_and_unknown_is_empty() -> None:
    text, _ = export(told().events, "s", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["id"] for row in rows] == ["1", "2", "4", "3"]
    assert rows[1]["reason"] == "hit"
    assert rows[1]["cached_tokens"] == "90"
    assert rows[2]["cached_tokens"] == ""
    assert rows[2]["error"] == f"HTTP 500: cannot answer {QUESTION}"
    assert rows[0]["warmup"] == "false"


def test_a_text_is_no_formula() -> None:
    story = told()
    story.compose("e", user="=HYPERLINK(1)")
    text, _ = export(story.events, "s", "csv")
    assert "'=HYPERLINK(1)" in text


def test_the_json_is_a_run_with_its_texts() -> None:
    whole = json.loads(export(told().events, "s", "json")[0])
    assert whole["schema"] == 1
    assert [request["id"] for request in whole["requests"]] == [1, 2, 4, 3]
    assert whole["policies"] == {"returns": SECRET}
    assert whole["messages"]["2"][-1] == {"role": "user", "text": QUESTION}
    assert any("Prompt processing" in line for line in whole["log"])


def test_the_report_and_the_session() -> None:
    assert "# Session s" in export(told().events, "s", "markdown")[0]
    lines = export(told().events, "s", "session")[0].splitlines()
    assert [decode_event(line.encode()) for line in lines] == told().events


def test_the_trace_says_what_it_leaves_out() -> None:
    text, note = export(told().events, "s", "mooncake")
    assert [json.loads(line)["input_length"] for line in text.splitlines()] == [100, 100, 100]
    assert note == "1 requests are left out: their lengths are not known"
