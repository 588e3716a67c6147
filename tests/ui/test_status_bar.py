"""The status bar in an app."""

import pytest

from mlxcache_tui.ui.widgets.status_bar import StatusBar
from support.golden import check_golden, screen_lines
from support.pane import Paints, PaneApp
from support.views import status


@pytest.mark.parametrize("width", [80, 120, 200])
async def test_it_fits_any_width(width: int, request: pytest.FixtureRequest) -> None:
    app = PaneApp(bar := StatusBar())
    async with app.run_test(size=(width, 3)) as pilot:
        drawn = []
        for view in (
            status(),
            status(busy=2, observed="log", evictions=None),
            status(phase="fetching", text="model.safetensors, 11 MB/s", fetch_percent=42.0, reuse_session=None),
            status(phase="exited", text="killed by signal 9: out of memory?", watch_only=True),
        ):
            bar.show(view)
            await pilot.pause()
            drawn.append(screen_lines(app)[0])
    check_golden(request, f"status-bar-{width}", drawn)


async def test_it_is_empty_before_the_first_view_and_one_line_high() -> None:
    app = PaneApp(bar := StatusBar())
    async with app.run_test(size=(40, 3)):
        assert bar.size.height == 1
        assert screen_lines(app) == ["", "", ""]


async def test_only_what_changed_is_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    app = PaneApp(bar := StatusBar())
    async with app.run_test(size=(120, 3)) as pilot:
        bar.show(status())
        await pilot.pause()
        paints = Paints(bar, monkeypatch)
        bar.show(status())
        assert paints.regions == []
        bar.show(status(evictions=3))
        assert paints.cells == 1
        await pilot.pause()
        assert screen_lines(app)[0].endswith("3 evictions")
