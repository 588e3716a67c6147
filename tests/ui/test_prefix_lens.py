"""The prefix lens in an app: where it opens, how it scrolls, what it asks for."""

import pytest
from textual import on
from textual.app import App, ComposeResult

from mlxcache_tui.core.views import LensPart, LensView
from mlxcache_tui.ui.widgets.prefix_lens import PrefixLens
from support.golden import check_golden, screen_lines
from support.pane import Paints
from support.until import until
from support.views import lens


class LensApp(App[None]):
    """One lens on the whole screen; keeps what it asked for."""

    def __init__(self, *, hidden: bool = False) -> None:
        super().__init__()
        self.lens = PrefixLens()
        self.lens.display = not hidden
        self.chosen: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.lens

    @on(PrefixLens.Chosen)
    def _chosen(self, event: PrefixLens.Chosen) -> None:
        self.chosen.append(event.key)


def long_view(lines: int = 400) -> LensView:
    text = "".join(f"rule {number}: 返品 within {number} days\n" for number in range(lines))
    same = LensPart(text=text, tokens=9, reused=True, same=True)
    return lens(
        parts=(same, LensPart(text="and this", tokens=3, reused=False, same=False)),
        other_parts=(same, LensPart(text="and that", tokens=3, reused=False, same=False)),
    )


@pytest.mark.parametrize("width", [78, 118])
async def test_what_it_looks_like(width: int, request: pytest.FixtureRequest) -> None:
    app = LensApp()
    async with app.run_test(size=(width, 16)) as pilot:
        app.lens.show(long_view(8))
        await pilot.pause()
        check_golden(request, f"prefix-lens-{width}", screen_lines(app))


@pytest.mark.parametrize("width", [78, 118])
async def test_it_opens_at_the_difference_even_if_it_was_hidden(width: int) -> None:
    app = LensApp(hidden=True)
    async with app.run_test(size=(width, 16)) as pilot:
        app.lens.show(long_view())
        app.lens.display = True
        app.lens.focus()
        await until(pilot, lambda: any("≠ first difference from #1" in line for line in screen_lines(app)))
        await pilot.press("home")
        await until(pilot, lambda: any("rule 0:" in line for line in screen_lines(app)))
        await pilot.press("n")
        await until(pilot, lambda: any("and that" in line for line in screen_lines(app)))
        await pilot.press("end")
        await until(pilot, lambda: app.lens.is_vertical_scroll_end)
        assert any("and this" in line for line in screen_lines(app))


async def test_keys_ask_for_another_to_compare_with() -> None:
    app = LensApp()
    async with app.run_test(size=(118, 16)) as pilot:
        app.lens.show(lens())
        app.lens.focus()
        await pilot.press("]", "[")
        await until(pilot, lambda: app.chosen == ["k0", "k0"])
        app.lens.show(lens(others=(), other_key=None, other_number=None, other_parts=()))
        await pilot.press("]")
        await pilot.pause()
        assert app.chosen == ["k0", "k0"]


async def test_the_same_view_again_draws_nothing_and_a_new_width_wraps_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    app = LensApp()
    async with app.run_test(size=(118, 16)) as pilot:
        app.lens.show(long_view())
        await pilot.pause()
        paints = Paints(app.lens, monkeypatch)
        app.lens.show(long_view())
        assert paints.regions == []
        await pilot.resize_terminal(40, 12)
        await until(
            pilot, lambda: any(line.startswith("#2, as it was sent") for line in map(str.strip, screen_lines(app)))
        )
