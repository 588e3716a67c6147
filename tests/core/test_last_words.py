"""The cause of a server's end, found in what it printed last."""

import pytest

from mlxcache_tui.core.last_words import cause_of, explain, model_error, telling

TRACEBACK = ("Traceback (most recent call last):", '  File "server.py", line 3, in main', "    run()")


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ((), None),
        (("only this",), "only this"),
        ((*TRACEBACK, "ValueError: bad shape", "127.0.0.1 - - GET /health"), "ValueError: bad shape"),
        ((*TRACEBACK, "mlx.core.SomeError: deep"), "SomeError: deep"),
        (
            ("2026-11-29 16:56:41,797 - ERROR - mlx_lm.server generation thread died: out of words", *TRACEBACK),
            "out of words",
        ),
        (
            ("usage: mlx_lm.server [-h]", "mlx_lm.server: error: unrecognized arguments: --x 1"),
            "unrecognized arguments: --x 1",
        ),
        (
            (*TRACEBACK, "OSError: [Errno 98] Address already in use"),
            "its port was taken by another process meanwhile: choose another with --port",
        ),
    ],
)
def test_the_line_that_tells_most(lines: tuple[str, ...], cause: str | None) -> None:
    assert cause_of(lines) == cause


def test_a_python_without_mlx_lm_is_told_with_what_to_do() -> None:
    for line in (
        "mlxcache observer: /x/python cannot import mlx_lm.server (ModuleNotFoundError: No module named 'mlx_lm')",
        "/x/python: No module named mlx_lm",
        "ModuleNotFoundError: No module named 'mlx_lm'",
    ):
        assert "install mlx-lm there" in (cause_of((line,)) or explain(line))


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (
            "LocalEntryNotFoundError: Got: ConnectError: [Errno -2] Name or service not known",
            "check the name and the network",
        ),
        ("huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error.", "has no model of this name"),
        ("FileNotFoundError: No safetensors found in /models/x", "there are no weights in /models/x"),
    ],
)
def test_what_people_meet_first_is_explained(error: str, meaning: str) -> None:
    assert meaning in explain(error)


def test_an_unknown_error_stays_as_it_is() -> None:
    assert explain("RuntimeError: [metal] odd") == "RuntimeError: [metal] odd"


@pytest.mark.parametrize(
    "text",
    [
        "Got: ConnectError: [Errno 111] Connection refused An error happened while trying to locate files",
        "An error happened … and we cannot find the appropriate snapshot folder for the specified revision",
    ],
)
def test_a_model_that_a_request_names_in_vain_is_named_with_what_to_do(text: str) -> None:
    assert model_error(f"HTTP 404: {text}", "some/model") == (
        "HTTP 404: some/model was not loaded: the model is not on this machine and could not be fetched from Hugging "
        "Face: check the name and the network; default_model is the one that the server was started with"
    )
    assert model_error("HTTP 404: no such path", "some/model") == "HTTP 404: no such path"
    assert model_error("the connection was closed", "some/model") == "the connection was closed"


def test_of_the_last_lines_those_that_tell_something_are_shown() -> None:
    lines = ("127.0.0.1 - - GET /health", *TRACEBACK, "ValueError: bad shape", "127.0.0.1 - - POST /v1")
    assert telling(lines) == ("ValueError: bad shape",)
    assert telling(("one", "two", "three", "four")) == ("two", "three", "four")
    usual = "2026-11-30 00:47:23,629 - INFO - - user: 0 sequences", '127.0.0.1 - - [x] "POST /v1/x HTTP/1.1" 200 -'
    assert telling(("what it said", *usual)) == ("what it said",)
    assert telling(usual) == ()
