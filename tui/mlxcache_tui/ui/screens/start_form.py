"""The start form: a server of our own with checked flags, or one that runs already."""

import asyncio
from typing import Any, ClassVar
from urllib.parse import urlsplit

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import DescendantFocus
from textual.widgets import Button, Input, Label, Static

from mlxcache_tui.core.address import MAX_PORT
from mlxcache_tui.core.commands import AttachServer, ServerSpec
from mlxcache_tui.core.flags import (
    ServerHelp,
    check_flags,
    form_flags,
    missing_flags,
    option_of,
    split_flags,
)
from mlxcache_tui.core.text import clean
from mlxcache_tui.ui.screens.form import FormScreen
from mlxcache_tui.ui.widgets.chip import Chip
from mlxcache_tui.ui.widgets.fields import PlainInput

DEFAULT_MODEL = "mlx-community/Qwen3-4B-4bit"
MODELS = (
    (DEFAULT_MODEL, "Qwen3-4B 4 bit", "2.26 GB, fetched by mlx-lm on first use"),
    ("demo:smollm2", "demo smollm2", "a small real chat model, 98 MB, fetched once"),
    ("demo:tiny", "demo tiny", "random weights, no download, ready in seconds; the text is noise"),
)
FIELD_HELP = {
    "model": "A model's name on Hugging Face, a folder with an MLX model, or demo:smollm2 / demo:tiny.",
    "host": "The address that the server listens on; 127.0.0.1 lets only this machine in.",
    "port": "0 takes any free port.",
    "more-flags": "Any other flag of the server as on its command line: --max-tokens 256 --log-level DEBUG",
    "attach-url": "Where a server answers already. It is watched and never stopped.",
    "attach-log": "The file that the running server writes its log to, if it writes one.",
}


class StartForm(FormScreen[ServerSpec | AttachServer | None]):
    """Dismisses with what to start or to attach to, or None. Mistakes are shown at their field, before any launch."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel"),
        Binding("ctrl+s,f5", "start", "start"),  # after what was typed in front of it, so without priority
    ]
    DEFAULT_CSS = """
    StartForm {
        & > #form { max-width: 110; }
        & #flags { height: auto; }
        & .name { width: 22; color: $text-muted; }
        & .about { width: 1fr; padding-left: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        & .missing { color: $text-muted; padding-left: 2; text-wrap: nowrap; text-overflow: ellipsis; }
        & PlainInput { width: 1fr; }
        & #host { width: 18; }
        & #port { width: 8; }
        & #port-name { width: auto; padding: 0 1 0 2; color: $text-muted; }
        & .flag-value { width: 14; }
        & #models { padding-left: 22; }
        & #port-choices { display: none; padding-left: 2; }
        & #port-choices.-shown { display: block; }
        & #attach { margin: 0 0 0 2; }
        & #field-help { dock: bottom; height: 2; color: $text-muted; text-style: italic; }
    }
    """

    def __init__(
        self,
        server: ServerHelp | None = None,
        *,
        spec: ServerSpec | None = None,
        note: str = "",
        conflict: str = "",
        replaces: bool = False,
        attach_url: str | None = None,
    ) -> None:
        """`server` None: still being asked, see `show_server_help`. `spec` fills the fields; `note` heads the form.

        `replaces`: a server of ours is there, whose place the new one takes. `attach_url`: the one that is watched.
        """
        super().__init__()
        self._server = server
        self._spec = spec or ServerSpec(model=DEFAULT_MODEL)
        self._note = note
        self._conflict = conflict
        self._replaces = replaces
        self._attach_url = attach_url or f"http://{self._spec.host}:{self._spec.port or 8080}"
        self._drawing = asyncio.Lock()
        """The server's answer may come while the form is drawn for the first time."""
        self._values: dict[str | None, str] = {}
        """What each field held when it last changed."""

    def compose(self) -> ComposeResult:
        """Model, address, flags, then attaching; the focused field is explained at the bottom."""
        spec = self._spec
        with Vertical(id="form", classes="form") as form:
            verb = "restart" if self._replaces else "start"
            form.border_title = "Restart the server: its cache starts empty" if self._replaces else "Start a server"
            form.border_subtitle = f"tab ↑ ↓ fields · ^s {verb} · esc close"
            with VerticalScroll(id="fields", classes="form-fields", can_focus=False):
                if self._note:
                    yield Static(self._note, id="note", markup=False)
                with Horizontal(classes="row"):
                    yield Label("model", classes="name")
                    yield PlainInput(spec.model, id="model")
                with Horizontal(classes="row", id="models"):
                    for number, (_, label, about) in enumerate(MODELS):
                        yield Chip(label, id=f"model-{number}", tooltip=about)
                yield Static("", id="model-error", classes="error", markup=False)
                with Horizontal(classes="row"):
                    yield Label("host", classes="name")
                    yield PlainInput(spec.host, id="host")
                    yield Label("port", id="port-name")
                    yield PlainInput(str(spec.port), id="port", max_length=5, digits=True)
                yield Static("", id="port-error", classes="error", markup=False)
                with Horizontal(classes="row", id="port-choices"):
                    yield Chip("attach to it", id="port-attach")
                    yield Chip("start on another port", id="port-free")
                yield Vertical(id="flags")
                with Horizontal(classes="row"):
                    yield Label("more flags", classes="name")
                    yield PlainInput(id="more-flags", placeholder="--max-tokens 256 …")
                yield Static("", id="more-flags-error", classes="error", markup=False)
                with Horizontal(classes="row", id="buttons"):
                    yield Button(f"{verb.capitalize()} (^s)", id="start", variant="primary", compact=True)
                    yield Button("Close", id="cancel", compact=True)
                yield Static("Or attach to a server that runs already", classes="section")
                with Horizontal(classes="row"):
                    yield Label("address", classes="name")
                    yield PlainInput(self._attach_url, id="attach-url")
                with Horizontal(classes="row"):
                    yield Label("its log file", classes="name")
                    yield PlainInput(id="attach-log", placeholder="none")
                    yield Button("Attach", id="attach", compact=True)
                yield Static("", id="attach-error", classes="error", markup=False)
            yield Static("", id="field-help", markup=False)

    async def on_mount(self) -> None:
        """Draw the flags and start in the model's field."""
        await self._draw_flags()
        self._values.update({field.id: field.value for field in self.query(PlainInput)})
        if self._conflict:
            self.show_port_conflict(self._conflict)
            self.query_one("#port-attach").focus()
        else:
            self.query_one("#model").focus()

    async def show_server_help(self, server: ServerHelp) -> None:
        """The flags that the installed server has, once it has been asked."""
        if server != self._server:
            self._server = server
            await self._draw_flags()
            self._values.update({field.id: field.value for field in self.query(PlainInput)})

    def show_port_conflict(self, text: str) -> None:
        """The port is taken (`text` says by what): offer to attach there or to start on another port.

        The focus stays: it may come while a person types.
        """
        self._show_error("port", text)
        self.query_one("#port-choices").add_class("-shown")

    # --- the flags ---------------------------------------------------------------------------------------------------

    async def _draw_flags(self) -> None:
        async with self._drawing:
            await self._drawn_flags()

    async def _drawn_flags(self) -> None:
        box = self.query_one("#flags", Vertical)
        typed = self._flag_values()
        await box.remove_children()
        server = self._server
        if server is None:
            await box.mount(Static("asking the installed server for its flags …", classes="section", markup=False))
            return
        if server.error:
            await box.mount(Static(server.error, id="flags-error", classes="error -shown", markup=False))
            return
        title = f"Cache and concurrency flags of mlx-lm {server.mlx_lm or '(version unknown)'}"
        await box.mount(Static(title, classes="section", markup=False))
        for known, flag in form_flags(server):
            default = flag.default or known.default
            value = typed.get(flag.name) or self._spec.flags.get(flag.name, "")
            field = PlainInput(
                str(value), id=f"flag-{flag.name}", placeholder=default if default and default != "None" else "off"
            )
            field.add_class("flag-value")
            row = Horizontal(
                Label(flag.option, classes="name"),
                field,
                Static(flag.help, classes="about", markup=False),
                classes="row",
            )
            await box.mount(row, Static("", id=f"flag-{flag.name}-error", classes="error", markup=False))
        await box.mount(*(Static(f"– {line}", classes="missing", markup=False) for line in missing_flags(server)))
        self._fill_more_flags()

    def _fill_more_flags(self) -> None:
        shown = {flag.name for _, flag in form_flags(self._server or ServerHelp())}
        rest = {name: value for name, value in self._spec.flags.items() if name not in shown}
        field = self.query_one("#more-flags", PlainInput)
        if rest and not field.value:
            words = (option_of(name) if value is True else f"{option_of(name)} {value}" for name, value in rest.items())
            field.value = " ".join(words)

    def _flag_values(self) -> dict[str, str]:
        fields = self.query(".flag-value").results(PlainInput)
        return {(field.id or "").removeprefix("flag-"): clean(field.value).strip() for field in fields}

    def _checked_flags(self) -> dict[str, Any] | None:
        """The flags to start with; None after showing what is wrong with them."""
        typed, problem = split_flags(clean(self.query_one("#more-flags", PlainInput).value))
        server = self._server or ServerHelp()
        good, errors = check_flags({**typed, **self._flag_values()}, server)
        more = [problem] if problem else []
        for name, error in errors.items():
            if self.query(f"#flag-{name}") and name not in typed:
                self._show_error(f"flag-{name}", error)
            else:
                more.append(error)
        if more:
            self._show_error("more-flags", "; ".join(more))
        return None if problem or errors else good

    # --- handlers ----------------------------------------------------------------------------------------------------

    @on(DescendantFocus)
    def _field_entered(self, event: DescendantFocus) -> None:
        name = event.widget.id or ""
        flag = self._server.flag(name.removeprefix("flag-")) if self._server and name.startswith("flag-") else None
        text = flag.help if flag else FIELD_HELP.get(name, event.widget.tooltip or "")
        self.query_one("#field-help", Static).update(str(text))

    @on(Input.Changed)
    def _field_edited(self, event: Input.Changed) -> None:
        event.stop()
        # A field also tells its first value when it is mounted; that must not take away a line shown from the start.
        if event.value == self._values.get(event.input.id):
            return
        self._values[event.input.id] = event.value
        name = "attach" if (event.input.id or "").startswith("attach") else event.input.id or ""
        for error in self.query(f"#{name}-error").results(Static):
            error.remove_class("-shown")
        if name in ("host", "port"):
            self.query_one("#port-choices").remove_class("-shown")

    @on(Input.Submitted)
    def _field_entered_key(self, event: Input.Submitted) -> None:
        event.stop()
        if (event.input.id or "").startswith("attach"):
            self.action_attach()
        else:
            self.action_start()

    @on(Button.Pressed)
    def _button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        match event.button.id:
            case "start":
                self.action_start()
            case "attach":
                self.action_attach()
            case _:
                self.action_cancel()

    @on(Chip.Pressed)
    def _chip_pressed(self, event: Chip.Pressed) -> None:
        event.stop()
        name = event.chip.id or ""
        if name == "port-attach":
            self.dismiss(AttachServer(url=f"http://{self._value('host')}:{self._value('port')}"))
        elif name == "port-free":
            self.query_one("#port", PlainInput).value = "0"
            self.action_start()
        else:
            self.query_one("#model", PlainInput).value = MODELS[int(name.removeprefix("model-"))][0]

    def action_cancel(self) -> None:
        """Close without a server."""
        self.dismiss(None)

    def action_start(self) -> None:
        """Check everything and close with the spec, or show what is wrong at its field."""
        model, host, port = self._value("model"), self._value("host"), self._value("port")
        flags = self._checked_flags()
        mistakes = {}
        if not model:
            mistakes["model"] = "name a model"
        if not host:
            mistakes["port"] = "name the host to listen on, usually 127.0.0.1"
        elif not port.isdigit() or int(port) > MAX_PORT:
            mistakes["port"] = f"the port is a number from 0 (any free one) to {MAX_PORT}"
        for field, text in mistakes.items():
            self._show_error(field, text)
        if mistakes or flags is None:
            self._go_to_mistake()
        else:
            self.dismiss(msgspec.structs.replace(self._spec, model=model, host=host, port=int(port), flags=flags))

    def action_attach(self) -> None:
        """Check the address and close with it."""
        url, log = self._value("attach-url"), self._value("attach-log")
        error = url_error(url)
        if error:
            self._show_error("attach", error)
        else:
            self.dismiss(AttachServer(url=url.rstrip("/"), log_path=log or None))

    def _go_to_mistake(self) -> None:
        for line in self.query(".error.-shown").results(Static):
            fields = self.query(f"#{(line.id or '').removesuffix('-error')}").results(PlainInput)
            for field in fields:
                field.focus()
                return

    def _value(self, name: str) -> str:
        return clean(self.query_one(f"#{name}", PlainInput).value).strip()

    def _show_error(self, field: str, text: str) -> None:
        line = self.query_one(f"#{field}-error", Static)
        line.update(f"✗ {text}")
        line.add_class("-shown")
        line.scroll_visible(animate=False)


def url_error(url: str) -> str:
    """What is wrong with a server's address; empty if nothing is."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    return "" if fine else f"the address is written like http://127.0.0.1:8080, not {url!r}"
