"""What goes over the wire for a draft, as a body, as a curl command, as events."""

import json
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.body import META_BYTES, as_curl, build_body, composed_event, endpoint, meta_header, shown_url
from mlxcache_tui.core.codec import decode_event, encode_event, text_id_of
from mlxcache_tui.core.commands import Draft

PLAIN: dict[str, Any] = {
    "model": "default_model",
    "messages": [{"role": "user", "content": "May I?"}],
    "max_tokens": 128,
    "stream": True,
    "stream_options": {"include_usage": True},
}

CASES: dict[str, tuple[Draft, dict[str, Any]]] = {
    "the least: no seed, no temperature, no template arguments": (Draft(user="May I?"), PLAIN),
    "a policy between two texts": (
        Draft(user="May I?", before="Hello.", policy_text="No.", after="Bye."),
        PLAIN
        | {"messages": [{"role": "system", "content": "Hello.\n\nNo.\n\nBye."}, {"role": "user", "content": "May I?"}]},
    ),
    "a continued conversation": (
        Draft(user="And now?", policy_text="No.", messages=(("user", "May I?"), ("assistant", "No."))),
        PLAIN
        | {
            "messages": [
                {"role": "system", "content": "No."},
                {"role": "user", "content": "May I?"},
                {"role": "assistant", "content": "No."},
                {"role": "user", "content": "And now?"},
            ]
        },
    ),
    "not streamed": (
        Draft(user="May I?", stream=False),
        {name: value for name, value in PLAIN.items() if name != "stream_options"} | {"stream": False},
    ),
    "temperature 0 is sent": (Draft(user="May I?", temperature=0.0), PLAIN | {"temperature": 0.0}),
    "thinking off": (
        Draft(user="May I?", thinking=False),
        PLAIN | {"chat_template_kwargs": {"enable_thinking": False}},
    ),
    "thinking beside other template arguments": (
        Draft(
            user="May I?", thinking=True, extra={"chat_template_kwargs": {"style": "short", "enable_thinking": False}}
        ),
        PLAIN | {"chat_template_kwargs": {"style": "short", "enable_thinking": True}},
    ),
    "template arguments that are no table": (
        Draft(user="May I?", thinking=True, extra={"chat_template_kwargs": 3}),
        PLAIN | {"chat_template_kwargs": {"enable_thinking": True}},
    ),
    "template arguments alone": (
        Draft(user="May I?", extra={"chat_template_kwargs": {"enable_thinking": False}}),
        PLAIN | {"chat_template_kwargs": {"enable_thinking": False}},
    ),
    "extra keys add and do not replace": (
        Draft(user="May I?", extra={"seed": 7, "stream": False, "messages": [], "top_p": 0.5}),
        PLAIN | {"seed": 7, "top_p": 0.5},
    ),
    "stream options are kept, usage is always asked for": (
        Draft(user="May I?", extra={"stream_options": {"include_usage": False, "x": 1}}),
        PLAIN | {"stream_options": {"x": 1, "include_usage": True}},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_draft_becomes_this_body(name: str) -> None:
    draft, body = CASES[name]
    assert build_body(draft) == ("/v1/chat/completions", body)


def test_composed_names_each_text_once_and_survives_the_session_file() -> None:
    draft = Draft(
        user="No.", policy_text="No.", policy="returns", before="", step="a1", warmup=True, purpose="scenario",
        temperature=0.5, extra={"seed": 1},
    )  # fmt: skip
    texts, composed = composed_event("r1", draft, 42)
    text_id = text_id_of("No.")
    assert [(text.text_id, text.text, text.at_ns, text.origin) for text in texts] == [(text_id, "No.", 42, "client")]
    assert composed.messages == (("system", text_id), ("user", text_id))
    assert composed.params == {
        "model": "default_model",
        "max_tokens": 128,
        "stream": True,
        "temperature": 0.5,
        "stream_options": {"include_usage": True},
        "seed": 1,
    }
    assert (composed.policy, composed.step, composed.warmup, composed.purpose) == ("returns", "a1", True, "scenario")
    assert (composed.key, composed.path, composed.at_ns) == ("r1", "/v1/chat/completions", 42)
    assert decode_event(encode_event(composed)) == composed


ENDPOINTS = {
    "http://127.0.0.1:8080": "http://127.0.0.1:8080/v1/models",
    "http://127.0.0.1:8080/": "http://127.0.0.1:8080/v1/models",
    "http://127.0.0.1:8080/v1": "http://127.0.0.1:8080/v1/models",
    "http://127.0.0.1:8080/v1/": "http://127.0.0.1:8080/v1/models",
    "127.0.0.1:8080": "http://127.0.0.1:8080/v1/models",
    "https://example.com/llm/v1": "https://example.com/llm/v1/models",
    "http://[::1]:8080": "http://[::1]:8080/v1/models",
}


@pytest.mark.parametrize("url", ENDPOINTS)
def test_addresses_as_people_write_them(url: str) -> None:
    assert endpoint(url, "/v1/models") == ENDPOINTS[url]


def test_a_shown_address_has_no_secret() -> None:
    assert shown_url("http://me:secret@host:1/v1?key=secret#x") == "http://host:1/v1"
    assert shown_url("host:8080/") == "http://host:8080"
    assert shown_url("http://[::1") == "http://[::1"


def test_meta_is_compact_ascii() -> None:
    draft = Draft(user="u", policy="Rückgabe\x7f\n", before="b", after="a", step="s", purpose="warm", warmup=True)
    text = meta_header(draft)
    assert text.isascii()
    assert text.isprintable()
    assert ", " not in text
    assert json.loads(text) == {
        "policy": "Rückgabe\x7f\n",
        "purpose": "warm",
        "step": "s",
        "warmup": True,
        "before": "b",
        "after": "a",
    }


def test_meta_leaves_out_long_texts_first_and_then_long_names() -> None:
    long = "é" * 400
    kept = json.loads(meta_header(Draft(user="u", policy="returns", before=long, after="a", step="s")))
    assert kept == {"policy": "returns", "purpose": "send", "step": "s", "warmup": False}
    kept = json.loads(meta_header(Draft(user="u", policy=long, step="s")))
    assert kept == {"purpose": "send", "warmup": False}


@given(st.text(), st.text(), st.text())
def test_meta_always_fits(policy: str, before: str, step: str) -> None:
    text = meta_header(Draft(user="u", policy=policy * 20, before=before * 50, step=step))
    assert len(text) <= META_BYTES
    assert text.isascii()
    assert text.isprintable()


def test_curl_reads_as_a_person_would_write_it() -> None:
    _, body = build_body(Draft(user="日本 is fine", max_tokens=1, stream=False))
    assert as_curl("127.0.0.1:8080/v1", "/v1/chat/completions", body) == (
        "curl -sS http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' -d "
        """'{"model": "default_model", "messages": [{"role": "user", "content": "日本 is fine"}], """
        """"max_tokens": 1, "stream": false}'"""
    )


@given(
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(['it\'s "!!" $(x) `y` \\n \n', "@file", "a\u202eb\x9b2J🙂"])
)
def test_curl_splits_back_into_the_same_body_and_is_printable(user: str) -> None:
    path, body = build_body(Draft(user=user))
    command = as_curl("http://127.0.0.1:8080", path, body)
    assert command.isprintable()
    words = shlex.split(command)
    assert words[:4] == ["curl", "-sS", "-N", "http://127.0.0.1:8080/v1/chat/completions"]
    assert json.loads(words[-1]) == body


def test_curl_of_half_a_surrogate_pair() -> None:
    _, body = build_body(Draft(user="a\ud83d"))
    assert "a\\ud83d" in as_curl("http://x", "/p", body)
