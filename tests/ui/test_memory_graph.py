"""The memory graph in an app."""

import msgspec
import pytest

from mlxcache_tui.ui.widgets.memory_graph import MemoryGraph
from support.golden import check_golden, screen_lines
from support.pane import Paints, PaneApp
from support.views import GB, MB, memory, points


@pytest.mark.parametrize(("width", "height"), [(38, 3), (57, 8), (98, 14)])
async def test_what_it_looks_like(width: int, height: int, request: pytest.FixtureRequest) -> None:
    app = PaneApp(graph := MemoryGraph())
    async with app.run_test(size=(width, height)) as pilot:
        graph.show(memory(), 0)
        await pilot.pause()
        check_golden(request, f"memory-graph-{width}", screen_lines(app))


async def test_before_the_first_sample() -> None:
    app = PaneApp(graph := MemoryGraph())
    async with app.run_test(size=(60, 5)) as pilot:
        assert screen_lines(app) == [""] * 5
        graph.show(memory(source=None, points=(), now=None), 0)
        await pilot.pause()
        assert "not known yet" in screen_lines(app)[2]


async def test_a_further_sample_paints_only_its_column_and_its_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    app = PaneApp(graph := MemoryGraph())
    async with app.run_test(size=(57, 8)) as pilot:
        values = [2 * GB + 50 * MB * i for i in range(10)]
        view = memory(*values, now=values[-1])
        graph.show(view, 0)
        await pilot.pause()
        paints = Paints(graph, monkeypatch)
        graph.show(msgspec.structs.replace(view), 1)
        assert paints.regions == []
        graph.show(memory(*values, values[-1], now=values[-1]), 2)
        assert paints.cells is not None
        assert paints.cells <= 8
        await pilot.pause()


async def test_it_goes_on_where_the_ring_drops_samples() -> None:
    app = PaneApp(graph := MemoryGraph())
    async with app.run_test(size=(28, 6)) as pilot:
        all_points = points(*(2 * GB + (i % 7) * 90 * MB for i in range(120)))
        graph.show(memory(points=all_points[:100], marks=()), 0)
        await pilot.pause()
        before = screen_lines(app)[2]
        graph.show(memory(points=all_points[3:103], marks=()), 0)
        graph.show(memory(points=all_points[6:106], marks=()), 0)
        await pilot.pause()
        # Three samples share a half of a cell: after six that went, what is left stands one cell further left.
        assert screen_lines(app)[2][8:23] == before[9:24]
        graph.show(memory(GB), 0)
        await pilot.pause()
        assert len(screen_lines(app)[2].strip()) <= 1


async def test_it_is_drawn_anew_for_another_size() -> None:
    app = PaneApp(graph := MemoryGraph())
    async with app.run_test(size=(80, 10)) as pilot:
        graph.show(memory(), 0)
        await pilot.resize_terminal(40, 4)
        await pilot.pause()
        assert screen_lines(app)[3].startswith("footprint 3 GB")
