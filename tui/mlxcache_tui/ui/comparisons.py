"""What the person does with comparisons: pick two sides, look at them, change them over, say what was meant.

Two long sessions take seconds to compare, so that is done on a thread.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from mlxcache_tui.core.compare import Comparison, compare
from mlxcache_tui.core.compare_view import CompareView, Side, compare_view
from mlxcache_tui.core.text import clean
from mlxcache_tui.ui.screens.compare import CompareScreen
from mlxcache_tui.ui.screens.compare_picker import ComparePicker

if TYPE_CHECKING:
    from mlxcache_tui.ui.app import MonitorApp

ComparisonReporter = Callable[[Comparison, tuple[str, str]], tuple[tuple[str, str], ...]]
"""Turns a comparison of two sides, each by its name, into reports, (file ending, text) each."""


class Comparisons:
    """The comparisons' side of the app."""

    def __init__(self, app: "MonitorApp") -> None:
        self._app = app
        self._sides: tuple[Side, Side] | None = None
        self._changed: tuple[str, ...] = ()

    def open_picker(self) -> None:
        """The list of sessions."""
        self._app.run_worker(self._fill(ComparePicker()), group="compare-list", exclusive=True)

    async def _fill(self, picker: ComparePicker) -> None:
        from mlxcache_tui.engine.recorded import recorded_sessions

        await self._app.push_screen(picker)
        engine = self._app.engine
        async for row in recorded_sessions(engine.recording if engine is not None else None):
            if not picker.offer(row):
                return
        picker.finish()

    def read(self, picker: ComparePicker, a: str, b: str) -> None:
        """Compare two files that were picked."""
        self._app.run_worker(self._read(picker, a, b), group="compare", exclusive=True)

    async def _read(self, picker: ComparePicker, a: str, b: str) -> None:
        from mlxcache_tui.engine.recorded import read_sides

        try:
            sides = await asyncio.to_thread(read_sides, a, b)
            view = await asyncio.to_thread(compare_view, *sides)
        except ValueError as error:
            self._refuse(picker, str(error))
            return
        except Exception as error:  # noqa: BLE001 - the boundary: a file that nobody thought of ends no session
            self._refuse(picker, clean(f"cannot be compared: {type(error).__name__}: {error}"))
            return
        if picker.is_current:
            picker.dismiss(None)
            self._show(sides, (), view)
        elif picker.is_attached:  # the help lies over it
            picker.say("read: ^s compares")

    @staticmethod
    def _refuse(picker: ComparePicker, line: str) -> None:
        if picker.is_attached:
            picker.say(line, error=True)

    def open(self, a: Side, b: Side, changed: tuple[str, ...] = ()) -> None:
        """Compare B with A. `changed` names the differences that were meant."""
        self._app.run_worker(self._open((a, b), changed), group="compare", exclusive=True)

    async def _open(self, sides: tuple[Side, Side], changed: tuple[str, ...]) -> None:
        self._show(sides, changed, await asyncio.to_thread(compare_view, *sides, changed))

    def _show(self, sides: tuple[Side, Side], changed: tuple[str, ...], view: CompareView) -> None:
        self._sides, self._changed = sides, changed
        self._app.push_screen(CompareScreen(view), self._closed)

    def _closed(self, _: None) -> None:
        """All answers of two long sessions are let go."""
        self._sides = None

    def heed(self, event: CompareScreen.Wished) -> None:
        """The same two in another way."""
        if self._sides is None:
            return
        if event.meant:
            self._changed = tuple(dict.fromkeys((*self._changed, *event.screen.unmeant)))
        else:
            self._sides = self._sides[::-1]
        again = self._again(event.screen, self._sides, self._changed)
        self._app.run_worker(again, group="compare", exclusive=True)

    def save(self) -> None:
        """Write what is shown to private files."""
        if self._sides is not None:
            self._app.run_worker(self._save(self._sides, self._changed), group="compare-save", exclusive=True)

    async def _save(self, sides: tuple[Side, Side], changed: tuple[str, ...]) -> None:
        from mlxcache_tui.engine.scenarios import save_reports

        reporter = self._app.comparison_reporter
        if reporter is None:
            return
        a, b = sides
        comparison = await asyncio.to_thread(compare, a.runs, b.runs, changed)
        saved, line = save_reports("comparison", reporter(comparison, (a.name, b.name)))
        self._app.notify(line, severity="information" if saved else "error", markup=False)

    @staticmethod
    async def _again(screen: CompareScreen, sides: tuple[Side, Side], changed: tuple[str, ...]) -> None:
        view = await asyncio.to_thread(compare_view, *sides, changed)
        if screen.is_attached:
            screen.show(view)
