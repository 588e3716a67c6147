"""What the person does with requests: send, again, cancel, warm, open, copy, save."""

import asyncio
import sys
from typing import TYPE_CHECKING

import msgspec

from mlxcache_tui.core import commands as cmd
from mlxcache_tui.core.bounds import KEPT_REQUESTS
from mlxcache_tui.core.by_policy import warming_drafts
from mlxcache_tui.core.forecast import forecast
from mlxcache_tui.core.lens import PromptTexts, lens_view
from mlxcache_tui.core.views import DetailView
from mlxcache_tui.ui.screens.detail import DetailScreen
from mlxcache_tui.ui.widgets.composer import Composer
from mlxcache_tui.ui.widgets.request_table import RequestTable

if TYPE_CHECKING:
    from mlxcache_tui.ui.app import MonitorApp


class Requests:
    """The requests' side of the app."""

    def __init__(self, app: "MonitorApp") -> None:
        self._app = app
        self._drafts: dict[str, cmd.Draft] = {}
        self._detail_key: str | None = None
        self._texts = PromptTexts()

    @property
    def sent_any(self) -> bool:
        """Whether anything was sent from here."""
        return bool(self._drafts)

    def send(self, count: int) -> None:
        """Send the composer's draft, `count` copies at once."""
        draft = self._app.monitor.query_one(Composer).draft()
        self._send(*(draft for _ in range(count)))

    def _send(self, *drafts: cmd.Draft) -> None:
        engine = self._app.engine
        if engine is None:
            return
        if engine.state.server.mode == "launched" and engine.state.server.phase == "starting":
            # Nothing listens yet: it would fail at once.
            self._app.notify("not sent: the server is still starting", severity="warning", markup=False)
            return
        for draft in drafts:
            key = engine.new_key()
            self._drafts[key] = draft
            if len(self._drafts) > KEPT_REQUESTS:
                del self._drafts[next(iter(self._drafts))]
            engine.submit(cmd.SendRequest(key=key, draft=draft))
            self._app.monitor.query_one(RequestTable).follow(key)

    def send_again(self) -> None:
        """The selected request of ours once more; without one, the last that was sent."""
        key = self._app.monitor.query_one(RequestTable).cursor_key
        draft = self._drafts.get(key) if key else None
        if draft is None:
            text = "the selected request was not written here: select one of ours" if key else "nothing was sent yet"
            self._app.notify(text, severity="warning", markup=False)
            return
        self._send(draft)

    def warm(self) -> None:
        """Read the composer's policy into the cache: one output token."""
        draft = self._app.monitor.query_one(Composer).draft()
        self._send(msgspec.structs.replace(draft, max_tokens=1, purpose="warm", warmup=True))

    def warm_again(self) -> None:
        """What was warm before the server was restarted: one output token each."""
        engine = self._app.engine
        drafts = warming_drafts(engine.state) if engine is not None else ()
        if not drafts:
            self._app.notify("nothing was warm before that is not warm now", severity="warning", markup=False)
        self._send(*drafts)

    def cancel(self) -> None:
        """The selected request if it is open, else all open ones of ours."""
        engine = self._app.engine
        if engine is None:
            return
        open_keys = [key for key, request in engine.state.open.items() if request.ours]
        selected = self._app.monitor.query_one(RequestTable).cursor_key
        for key in [selected] if selected in open_keys else open_keys:
            if key is not None:
                engine.submit(cmd.CancelRequest(key=key))
        if not open_keys:
            self._app.notify("no request of ours is open", severity="warning", markup=False)

    def forecast(self) -> None:
        """What would happen if the composer's text were sent now; the program's last changes find no composer."""
        if (engine := self._app.engine) is not None:
            for composer in self._app.monitor.query(Composer):
                composer.show_forecast(forecast(engine.state, composer.draft(), self._texts))

    # --- the detail view ---

    def open_detail(self, key: str) -> None:
        """Open a request."""
        view = self._view(key)
        if view is not None:
            self._detail_key = key
            self._app.push_screen(self._app.make_detail(view))

    def refresh_detail(self, screen: DetailScreen) -> None:
        """Show the open request as it stands now; one that the state has let go stays as it was."""
        engine = self._app.engine
        view = self._view(self._detail_key) if self._detail_key else None
        if view is not None:
            screen.show(view)
        elif engine is not None and not engine.state.let_go:
            screen.show_gone()

    def show_lens(self, key: str, against: str | None) -> None:
        """Put the prompt of the open request into the detail view, beside another one."""
        engine, screen = self._app.engine, self._app.screen
        if engine is not None and isinstance(screen, DetailScreen) and key == self._detail_key:
            screen.show_lens(lens_view(engine.state, key, against, self._texts))

    def move_detail(self, by: int) -> None:
        """Go on to the next or the previous request."""
        engine, screen = self._app.engine, self._app.screen
        if engine is None or self._detail_key is None or not isinstance(screen, DetailScreen):
            return
        keys = list(engine.state.requests)
        # Let go, it is older than all that are there; else a replay went back to before it was sent.
        elsewhere = -1 if engine.state.let_go else len(keys)
        at = (keys.index(self._detail_key) if self._detail_key in keys else elsewhere) + by
        if 0 <= at < len(keys):
            self._detail_key = keys[at]
            self.refresh_detail(screen)

    def _view(self, key: str) -> DetailView | None:
        return self._app.engine.detail(key) if self._app.engine else None

    def copied(self, text: str) -> None:
        """The terminal was asked to copy (OSC 52). On a Mac at its own terminal, whose program ignores that: pbcopy."""
        self._app.notify("curl copied to the terminal's clipboard; w saves it to a file", markup=False)
        if sys.platform == "darwin":
            self._app.run_worker(_pbcopy(text), group="copy", exclusive=True)

    def save(self, view: DetailView) -> None:
        """Write a request to a file in the state folder."""
        if (engine := self._app.engine) is not None:
            self._say(*engine.save_detail(view))

    def save_picture(self) -> None:
        """Save what the screen shows, which may be private, in the folder of saved files."""
        if (engine := self._app.engine) is not None:
            self._say(*engine.save("screen.svg", self._app.export_screenshot()))

    def _say(self, worked: bool, line: str) -> None:
        self._app.notify(line, severity="information" if worked else "error", markup=False)


async def _pbcopy(text: str) -> None:
    process = await asyncio.create_subprocess_exec("pbcopy", stdin=asyncio.subprocess.PIPE)
    await process.communicate(text.encode())
