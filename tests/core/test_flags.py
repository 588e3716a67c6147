"""Reading the server's flags from its help, and checking what a person gives for them."""

import argparse
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core.flags import (
    Flag,
    ServerHelp,
    are_sure,
    cache_limits,
    check_flags,
    form_flags,
    missing_flags,
    parse_help,
    split_flags,
)

# As mlx_lm.server 0.31.3 prints it to a narrow terminal, cut to a few flags.
HELP_031 = """\
usage: __main__.py [-h] [--model MODEL] [--host HOST] [--port PORT]
                   [--log-level {DEBUG,INFO,WARNING,ERROR,CRITICAL}]
                   [--trust-remote-code]
                   [--prompt-cache-size PROMPT_CACHE_SIZE]

MLX Http Server.

options:
  -h, --help            show this help message and exit
  --model MODEL         The path to the MLX model weights, tokenizer, and
                        config
  --host HOST           Host for the HTTP server (default: 127.0.0.1)
  --port PORT           Port for the HTTP server (default: 8080)
  --trust-remote-code   Enable trusting remote code for tokenizer
  --log-level {DEBUG,INFO,WARNING,ERROR,CRITICAL}
                        Set the logging level (default: INFO)
  --top-k TOP_K         Default top-k sampling (default: 0, disables top-k)
  --prefill-step-size PREFILL_STEP_SIZE
                        Step size for prefill processing (default: 2048)
  --prompt-cache-size PROMPT_CACHE_SIZE
                        Maximum number of distinct KV caches to hold in the
                        prompt cache
  --prompt-cache-bytes PROMPT_CACHE_BYTES
                        Maximum size in bytes of the KV caches
  --decode-concurrency DECODE_CONCURRENCY
                        When a request is batchable then decode that many
                        requests in parallel
  --pipeline            Use pipelining instead of tensor parallelism
"""
SERVER = ServerHelp(flags=parse_help(HELP_031), mlx_lm="0.31.3")


def test_flags_come_with_value_default_choices_and_help() -> None:
    assert [flag.name for flag in SERVER.flags][:5] == ["model", "host", "port", "trust_remote_code", "log_level"]
    assert SERVER.flag("help") is None
    assert SERVER.flag("prompt_cache_size") == Flag(
        name="prompt_cache_size",
        takes_value=True,
        help="Maximum number of distinct KV caches to hold in the prompt cache",
    )
    assert SERVER.flag("trust_remote_code") == Flag(
        name="trust_remote_code", takes_value=False, help="Enable trusting remote code for tokenizer"
    )
    level = SERVER.flag("log_level")
    assert level is not None
    assert (level.default, level.choices[0], level.takes_value) == ("INFO", "DEBUG", True)
    top_k = SERVER.flag("top_k")
    assert top_k is not None
    assert top_k.default == "0"


@pytest.mark.parametrize("head", ["-k K, --kv-bits K", "-k, --kv-bits K", "--kv-bits K, -k K", "--kv-bits, -k K"])
def test_a_short_name_beside_the_long_one_does_not_hide_the_value(head: str) -> None:
    flags = parse_help(f"options:\n  {head}  Bits. Default: None (full precision)\n")
    assert flags == (
        Flag(name="kv_bits", takes_value=True, default="None", help="Bits. Default: None (full precision)"),
    )


@given(width=st.integers(30, 300))
def test_any_width_that_argparse_wraps_at_gives_the_same_flags(width: int) -> None:
    parser = argparse.ArgumentParser(
        prog="server.py", formatter_class=lambda prog: argparse.HelpFormatter(prog, width=width)
    )
    parser.add_argument("--prompt-cache-size", type=int, default=10, help="Number of KV caches to hold (default: 10)")
    parser.add_argument("--log-level", choices=["DEBUG", "INFO"], default="INFO", help="The level (default: INFO)")
    parser.add_argument("--pipeline", action="store_true", help="Use pipelining")
    flags = parse_help(parser.format_help())
    assert [(flag.name, flag.takes_value, flag.default, flag.choices, flag.help) for flag in flags] == [
        ("prompt_cache_size", True, "10", (), "Number of KV caches to hold (default: 10)"),
        ("log_level", True, "INFO", ("DEBUG", "INFO"), "The level (default: INFO)"),
        ("pipeline", False, None, (), "Use pipelining"),
    ]


def test_text_that_is_no_help_has_no_flags() -> None:
    assert parse_help("") == ()
    assert parse_help("Traceback (most recent call last):\n  File x\nImportError: no") == ()


def test_the_form_shows_what_this_version_has_and_names_what_it_lacks() -> None:
    assert [flag.name for _, flag in form_flags(SERVER)] == [
        "prompt_cache_size",
        "prompt_cache_bytes",
        "decode_concurrency",
        "prefill_step_size",
    ]
    missing = missing_flags(SERVER)
    assert "--max-kv-size is not in mlx-lm 0.31.3: no released server has it" in missing
    assert "--kv-bits is not in mlx-lm 0.31.3: mlx-lm has it since 0.32" in missing
    assert missing_flags(ServerHelp(error="not installed")) == ()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("--prompt-cache-bytes", "8GiB", {"prompt_cache_bytes": "8589934592"}),
        ("prompt_cache_bytes", " 1.5gb ", {"prompt_cache_bytes": "1500000000"}),
        ("prompt-cache-bytes", "8K", {"prompt_cache_bytes": "8000"}),
        ("prompt_cache_bytes", "0", {"prompt_cache_bytes": "0"}),
        ("prompt_cache_size", 4, {"prompt_cache_size": "4"}),
        ("top_k", "0", {"top_k": "0"}),
        ("pipeline", True, {"pipeline": True}),
        ("pipeline", "yes", {"pipeline": True}),
        ("pipeline", "no", {}),
        ("log_level", "DEBUG", {"log_level": "DEBUG"}),
        ("prompt_cache_size", "", {}),
        ("prompt_cache_size", None, {}),
        ("pipeline", False, {}),
    ],
)
def test_good_values_are_translated(name: str, value: Any, expected: dict[str, Any]) -> None:
    assert check_flags({name: value}, SERVER) == (expected, {})


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("prompt_cache_bytes", "-1", "--prompt-cache-bytes is a size such as 512MB, 1.5GB or 8GiB, not '-1'"),
        ("prompt_cache_bytes", "abc", "--prompt-cache-bytes is a size such as 512MB, 1.5GB or 8GiB, not 'abc'"),
        ("prompt_cache_size", "-1", "--prompt-cache-size is a whole number from 0 on, not '-1'"),
        ("prompt_cache_size", "1.5", "--prompt-cache-size is a whole number from 0 on, not '1.5'"),
        ("prompt_cache_size", "²", "--prompt-cache-size is a whole number from 0 on, not '²'"),
        ("decode_concurrency", "0", "--decode-concurrency is a whole number from 1 on, not '0'"),
        ("log_level", "LOUD", "--log-level is one of DEBUG, INFO, WARNING, ERROR, CRITICAL, not 'LOUD'"),
        ("pipeline", "two", "--pipeline takes no value, got 'two'"),
        ("prompt_cache_size", True, "--prompt-cache-size needs a value"),
        ("max_kv_size", "4096", "--max-kv-size is not in mlx-lm 0.31.3: no released server has it"),
        ("promt_cache_size", "3", "mlx-lm 0.31.3 has no --promt-cache-size; did you mean --prompt-cache-size?"),
        ("xyzzy", "3", "mlx-lm 0.31.3 has no --xyzzy"),
        ("port", "80", "--port has a field of its own"),
    ],
)
def test_bad_values_are_refused_with_what_was_expected(name: str, value: Any, error: str) -> None:
    good, errors = check_flags({name: value}, SERVER)
    assert good == {}
    assert list(errors.values()) == [error]


def test_kv_bits_are_among_those_that_mlx_can_quantize_to() -> None:
    server = ServerHelp(flags=(Flag(name="kv_bits", takes_value=True), Flag(name="temp", takes_value=True)))
    assert check_flags({"kv_bits": "8", "temp": "0.5"}, server) == ({"kv_bits": "8", "temp": "0.5"}, {})
    assert check_flags({"kv_bits": "7", "temp": "hot"}, server)[1] == {
        "kv_bits": "--kv-bits is one of 2, 3, 4, 5, 6, 8, not '7'",
        "temp": "--temp is a number from 0 on, not 'hot'",
    }


def test_names_pass_when_the_server_could_not_be_asked_but_sizes_are_still_checked() -> None:
    unknown = ServerHelp(error="mlx_lm is not installed")
    assert check_flags({"some_flag": "x", "switch": True}, unknown) == ({"some_flag": "x", "switch": True}, {})
    assert check_flags({"prompt_cache_bytes": "lots"}, unknown)[0] == {}


def test_a_server_need_not_be_asked_for_what_all_have() -> None:
    assert are_sure(["prompt_cache_size", "--prompt-cache-bytes"])
    assert not are_sure(["prompt_cache_size", "kv_bits"])
    assert not are_sure(["max_kv_size"])


def test_typed_flags_are_split_like_a_command_line() -> None:
    assert split_flags("--temp 0.2 --pipeline --log-level=DEBUG --chat-template-args '{\"a\": 1}'") == (
        {"temp": "0.2", "pipeline": True, "log_level": "DEBUG", "chat_template_args": '{"a": 1}'},
        "",
    )
    assert split_flags("") == ({}, "")
    assert split_flags("8 --temp")[1] == "expected a flag such as --temp 0.2, got '8'"
    assert split_flags("--temp 'x")[1].startswith("flags cannot be read")


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        (
            ["x", "--prompt-cache-size", "2", "--prompt-cache-bytes=3MB"],
            {"prompt_cache_size": 2, "prompt_cache_bytes": 3_000_000},
        ),
        (["x", "--prompt-cache-size=4"], {"prompt_cache_size": 4}),
        (["x", "--prompt-cache-size", "many", "--prompt-cache-bytes"], {}),
        (["x", "prompt-cache-size", "2"], {}),
    ],
)
def test_the_limits_on_a_command_line(words: list[str], limits: dict[str, int]) -> None:
    assert cache_limits(words) == limits
