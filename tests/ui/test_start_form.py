"""The start form: what it dismisses with, and how it tells mistakes."""

from typing import Any

import pytest
from textual.app import App
from textual.events import Key
from textual.widgets import Static

from mlxcache_tui.core.commands import AttachServer, ServerSpec
from mlxcache_tui.core.flags import Flag, ServerHelp
from mlxcache_tui.ui.screens.start_form import DEFAULT_MODEL, StartForm, url_error
from mlxcache_tui.ui.widgets.chip import Chip
from mlxcache_tui.ui.widgets.fields import PlainInput
from support.until import until

SERVER = ServerHelp(
    mlx_lm="0.31.3",
    flags=(
        Flag(name="prompt_cache_size", takes_value=True, help="Maximum number of distinct KV caches"),
        Flag(name="prompt_cache_bytes", takes_value=True, help="Maximum size in bytes of the KV caches"),
        Flag(name="prefill_step_size", takes_value=True, default="2048", help="Step size (default: 2048)"),
        Flag(name="max_tokens", takes_value=True, default="512", help="Default maximum (default: 512)"),
        Flag(name="pipeline", takes_value=False, help="Use pipelining"),
    ),
)
OPEN = "open"


class FormApp(App[None]):
    """Opens the form and keeps its result."""

    def __init__(self, form: StartForm) -> None:
        super().__init__()
        self.form = form
        self.result: Any = OPEN

    def on_mount(self) -> None:
        self.push_screen(self.form, self._done)

    def _done(self, result: ServerSpec | AttachServer | None) -> None:
        self.result = result

    def field(self, name: str) -> PlainInput:
        return self.form.query_one(f"#{name}", PlainInput)

    def error(self, name: str) -> str:
        line = self.form.query_one(f"#{name}-error", Static)
        return str(line.content) if line.display else ""

    @property
    def ready(self) -> bool:
        return bool(self.form.is_mounted and self.form.query("#flag-prompt_cache_size"))


async def test_enter_alone_starts_the_default_model_with_the_servers_own_defaults() -> None:
    app = FormApp(StartForm(SERVER))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready and app.focused is app.field("model"))
        await pilot.press("enter")
        await until(pilot, lambda: app.result == ServerSpec(model=DEFAULT_MODEL, host="127.0.0.1", port=8080))


async def test_a_key_pressed_several_times_in_one_burst_starts_once() -> None:
    app = FormApp(StartForm(SERVER))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready and app.focused is app.field("model"))
        for _ in range(3):
            app.post_message(Key("enter", None))
        await until(pilot, lambda: app.result != OPEN)
        await pilot.pause()
        assert len(app.screen_stack) == 1
        assert app.return_code in (None, 0)


async def test_typed_flags_are_translated_and_the_rest_of_the_spec_is_kept() -> None:
    spec = ServerSpec(model="m", port=0, python="/py", keep=True, flags={"prompt_cache_size": "3", "max_tokens": "9"})
    app = FormApp(StartForm(SERVER, spec=spec))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        assert app.field("flag-prompt_cache_size").value == "3"
        assert app.field("more-flags").value == "--max-tokens 9"
        app.field("flag-prompt_cache_bytes").focus()
        await pilot.press(*"8GiB")
        app.field("more-flags").value += " --pipeline"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.result != OPEN)
    assert app.result == ServerSpec(
        model="m",
        port=0,
        python="/py",
        keep=True,
        flags={"max_tokens": "9", "pipeline": True, "prompt_cache_size": "3", "prompt_cache_bytes": "8589934592"},
    )


async def test_mistakes_are_told_at_their_fields_and_go_when_they_are_corrected() -> None:
    app = FormApp(StartForm(SERVER))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        app.field("port").value = "99999"
        app.field("flag-prompt_cache_size").value = "-1"
        app.field("more-flags").value = "--promt-cache-size 3 --kv-bits 4"
        await pilot.pause()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.error("port"))
        assert app.error("port") == "✗ the port is a number from 0 (any free one) to 65535"
        assert "whole number from 0 on, not '-1'" in app.error("flag-prompt_cache_size")
        assert "did you mean --prompt-cache-size?" in app.error("more-flags")
        assert "--kv-bits is not in mlx-lm 0.31.3: mlx-lm has it since 0.32" in app.error("more-flags")
        assert app.result == OPEN
        await until(pilot, lambda: app.focused is app.field("port"))
        await pilot.press("backspace", "0")
        await until(pilot, lambda: not app.error("port"))


async def test_what_this_version_lacks_is_named() -> None:
    app = FormApp(StartForm(SERVER))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        lines = [str(line.content) for line in app.form.query(".missing").results(Static)]
        assert "– --max-kv-size is not in mlx-lm 0.31.3: no released server has it" in lines
        assert "– --kv-bits is not in mlx-lm 0.31.3: mlx-lm has it since 0.32" in lines


async def test_the_form_can_be_used_while_the_server_is_asked_and_keeps_what_was_typed() -> None:
    app = FormApp(StartForm())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.form.is_mounted and app.focused is app.field("model"))
        app.field("model").value = "other"
        await app.form.show_server_help(SERVER)
        await until(pilot, lambda: app.ready)
        await pilot.press("enter")
        await until(pilot, lambda: app.result == ServerSpec(model="other"))


async def test_a_server_that_cannot_be_asked_is_one_line_in_place_of_the_flags() -> None:
    app = FormApp(StartForm(ServerHelp(error="mlx_lm is not installed for /py: install mlx-lm there")))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.form.is_mounted and app.form.query("#flags-error"))
        assert str(app.form.query_one("#flags-error", Static).content).startswith("mlx_lm is not installed")


async def test_the_demo_models_are_a_press_away() -> None:
    app = FormApp(StartForm(SERVER))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        app.form.query_one("#model-2", Chip).focus()
        await pilot.press("space")
        await until(pilot, lambda: app.field("model").value == "demo:tiny")
        assert "random weights" in str(app.form.query_one("#field-help", Static).content)


async def test_a_taken_port_offers_to_attach() -> None:
    app = FormApp(StartForm(SERVER, conflict="port 8080 is taken by python (pid 7)"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready and app.error("port"))
        assert app.error("port") == "✗ port 8080 is taken by python (pid 7)"
        await pilot.press("enter")
        await until(pilot, lambda: app.result == AttachServer(url="http://127.0.0.1:8080"))


async def test_a_taken_port_offers_another_one() -> None:
    app = FormApp(StartForm(SERVER, spec=ServerSpec(model="m", flags={"prompt_cache_size": "2"})))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready and app.focused is app.field("model"))
        app.form.show_port_conflict("port 8080 is taken")
        await pilot.pause()
        assert app.focused is app.field("model")
        app.form.query_one("#port-free").focus()
        await pilot.press("enter")
        await until(pilot, lambda: app.result == ServerSpec(model="m", port=0, flags={"prompt_cache_size": "2"}))


async def test_attaching_checks_the_address_and_takes_a_log_file() -> None:
    app = FormApp(StartForm(SERVER))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        app.field("attach-url").value = "localhost:8080"
        app.field("attach-url").focus()
        await pilot.press("enter")
        await until(pilot, lambda: "http://127.0.0.1:8080" in app.error("attach"))
        app.field("attach-url").value = "http://mac.local:9000/"
        app.field("attach-log").value = "/tmp/server.log"
        app.form.query_one("#attach").focus()
        await pilot.press("enter")
        await until(pilot, lambda: app.result != OPEN)
        assert app.result == AttachServer(url="http://mac.local:9000", log_path="/tmp/server.log")


async def test_escape_closes_without_a_server() -> None:
    app = FormApp(StartForm(SERVER))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.ready)
        await pilot.press("escape")
        await until(pilot, lambda: app.result is None)


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "ftp://x", "http://", "http://[::1", "http://x:99999", "http://x:0"]
)
def test_addresses_that_are_none_are_refused(url: str) -> None:
    assert url_error(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "https://mac.local", "http://[::1]:8080"])
def test_addresses_that_are_some_pass(url: str) -> None:
    assert url_error(url) == ""
