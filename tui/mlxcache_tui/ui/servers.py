"""What the person does with servers: the form, start, attach, restart, stop; and telling them when one is lost."""

import asyncio
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from textual.worker import Worker, WorkerError

from mlxcache_tui.core import commands as cmd
from mlxcache_tui.core.events import ServerPhase
from mlxcache_tui.core.flags import OWN_FIELDS, split_flags
from mlxcache_tui.core.present import status_view
from mlxcache_tui.core.state import ServerState, SessionState
from mlxcache_tui.core.views import StatusView
from mlxcache_tui.ui.screens.start_form import StartForm
from mlxcache_tui.ui.widgets.composer import Composer
from mlxcache_tui.ui.widgets.request_table import RequestTable

if TYPE_CHECKING:
    from mlxcache_tui.ui.app import MonitorApp

STARTING: tuple[ServerPhase, ...] = ("none", "starting", "fetching")
GONE: tuple[ServerPhase, ...] = ("none", "exited", "unreachable")
BAD: tuple[ServerPhase, ...] = ("exited", "unreachable", "worker_dead", "not_answering")


class Servers:
    """The server's side of the app."""

    def __init__(self, app: "MonitorApp") -> None:
        self._app = app
        start = app.settings.start
        self._spec = start if isinstance(start, cmd.ServerSpec) else None
        self._phase: ServerPhase = "none"
        self._asking: Worker[None] | None = None
        """Asks the installed server for its flags."""
        self._opened = asyncio.Event()
        """The engine is there, which can ask."""

    @property
    def spec(self) -> cmd.ServerSpec | None:
        """How our server is started; None: there is none of ours."""
        return self._spec

    def expected(self) -> StatusView | None:
        """What the status line shows of the server that was asked for before anything is heard of it."""
        start = self._app.settings.start
        if start is None:
            return None
        if isinstance(start, cmd.ServerSpec):
            server = ServerState(phase="starting", mode="launched", model=start.model)
        else:
            server = ServerState(phase="starting", mode="attached")
        return status_view(SessionState(server=server))

    def open_form(self, note: str = "", conflict: str = "") -> None:
        """The start form, filled with what runs now."""
        server = self._app.engine.state.server if self._app.engine is not None else None
        runs = server is not None and server.mode == "launched" and server.phase not in GONE
        form = StartForm(
            spec=running_spec(self._spec, server) if runs and server is not None else self._spec,
            note=note,
            conflict=conflict,
            replaces=runs,
            attach_url=server.url if server is not None and server.mode == "attached" else None,
        )
        self._app.push_screen(form, self._chosen)
        self._asking = self._app.run_worker(self._ask_flags(form), group="server-help", exclusive=True)

    def engine_opened(self) -> None:
        """What waited for the engine goes on: the form may be open since before."""
        self._opened.set()

    async def close(self) -> None:
        """Let nobody be asked when the program ends: it takes seconds, and is a process of its own."""
        if self._asking is not None:
            self._asking.cancel()
            with suppress(WorkerError):
                await self._asking.wait()

    async def _ask_flags(self, form: StartForm) -> None:
        await self._opened.wait()
        assert self._app.engine is not None
        server_help = await self._app.engine.server_help(self._spec.python if self._spec else None)
        if form.is_attached:
            await form.show_server_help(server_help)

    def _chosen(self, choice: "cmd.ServerSpec | cmd.AttachServer | None") -> None:
        if self._asking is not None:
            self._asking.cancel()  # the form that the answer was for is closed
        if isinstance(choice, cmd.ServerSpec):
            self._spec = choice
            self._app.submit(cmd.StartServer(spec=choice))
        elif choice is not None:
            self._spec = None
            self._app.submit(choice)

    def restart(self) -> None:
        """Our server again, with the same flags."""
        self._app.submit(cmd.RestartServer())

    def stop(self) -> None:
        """Our server ends."""
        self._app.submit(cmd.StopServer())

    def heed(self, state: SessionState) -> None:
        """Tell once when the server is lost; open the form where a port is taken; pass on what the model can do."""
        server = state.server
        loaded = server.loaded
        composer = self._app.monitor.query_one(Composer)
        composer.set_thinking_available(loaded.thinking_switch if loaded else None)
        composer.set_watch_only(server.watch_only)
        self._app.monitor.query_one(RequestTable).set_watch_only(server.watch_only)
        if server.phase == self._phase:
            return
        before, self._phase = self._phase, server.phase
        if server.phase in BAD and server.text != "stopped":
            taken = server.text.startswith("port ")
            if server.phase == "exited" and taken and isinstance(form := self._app.screen, StartForm):
                form.show_port_conflict(server.text)
            elif server.phase == "exited" and before in STARTING and self._app.screen is self._app.monitor:
                # What was asked for did not start: it stands in the form, to be mended.
                self.open_form(conflict=server.text if taken else "", note="" if taken else server.text)
            else:
                self._app.notify(server.text, title="server", severity="error", markup=False)


def running_spec(spec: cmd.ServerSpec | None, server: ServerState) -> cmd.ServerSpec:
    """As our server was started last: a scenario may have started it with other flags than the person did."""
    words = server.command[server.command.index("--") + 1 :] if "--" in server.command else ()
    values, _ = split_flags(shlex.join(words))
    flags = {name: value for name, value in values.items() if name not in OWN_FIELDS}
    known = spec or cmd.ServerSpec(model=server.model or "", port=server.port or 0)
    return msgspec.structs.replace(known, flags=flags)
