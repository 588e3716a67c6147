"""What long texts cost: a prompt of 100,000 tokens is compared in 50 ms and scrolls in 50 ms a page.

All are times of the processor, since other programs must not be measured.
"""

import time
from collections.abc import Callable
from statistics import median

from textual.app import App, ComposeResult

from bench.conftest import Budget, Figure
from mlxcache_tui.core.log_facts import parse_bar
from mlxcache_tui.core.pieces import PieceIndex
from mlxcache_tui.core.views import LensPart
from mlxcache_tui.ui.widgets.prefix_lens import PrefixLens
from support.views import lens

ROUNDS, PAGES, PAGE_LINES = 5, 200, 40
BAR = "model.safetensors:  12%|█▏ | 270M/2.26G [00:05<00:40, 49.9MB/s]"


class LensApp(App[None]):
    """A lens on the whole screen."""

    def compose(self) -> ComposeResult:
        yield PrefixLens()


def cost_ms(work: Callable[[], object]) -> float:
    """Milliseconds of the processor."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e3


def test_a_long_prompt_is_searched_for_its_like(budget: Budget) -> None:
    text = " ".join(f"Rule {number} says what is to be done with an item of kind {number}." for number in range(6_600))
    index = PieceIndex()
    took = [cost_ms(lambda n=n: index.add(f"t{n}", f"Case {n}. {text}", f"k{n}")) for n in range(ROUNDS)]  # type: ignore[misc]
    budget.judge(Figure("100,000 tokens compared with all before", median(took), 50, " ms"))


async def test_a_long_prompt_scrolls_without_lag(budget: Budget) -> None:
    same = LensPart(text="規則 the rule says so. " * 30_000, tokens=100_000, reused=True, same=True)
    view = lens(parts=(same, LensPart(text="end", tokens=1, reused=False, same=False)), other_parts=(same,))
    app = LensApp()
    async with app.run_test(size=(120, PAGE_LINES)) as pilot:
        shown = app.query_one(PrefixLens)
        wrapped = cost_ms(lambda: shown.show(view))
        await pilot.pause()

        def scroll() -> None:
            for page in range(PAGES):
                shown.scroll_to(y=page * 25, animate=False)
                for line in range(PAGE_LINES):
                    shown.render_line(line)

        paged = cost_ms(scroll) / PAGES
    budget.judge(
        Figure("prefix lens on 100,000 tokens, opened", wrapped, 2_000, " ms"),
        Figure("prefix lens on 100,000 tokens, a page", paged, 50, " ms"),
    )


def test_no_bar_is_sought_in_a_long_line(budget: Budget) -> None:
    took = cost_ms(lambda: parse_bar(" " * 60_000 + BAR))
    budget.judge(Figure("a line of 60,000 characters is no bar", took, 50, " ms"))
