"""The prefix lens on the whole program: by keys, on the real server, exact to the character."""

from pathlib import Path

import pytest

from mlxcache_tui.core.commands import ServerSpec
from mlxcache_tui.core.lens import PromptTexts, lens_view
from mlxcache_tui.core.reduce import fold
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.core.state import SessionState
from mlxcache_tui.store.replay import read_session
from mlxcache_tui.ui.app import MonitorApp
from mlxcache_tui.ui.screens.detail import DetailScreen
from mlxcache_tui.ui.widgets.prefix_lens import PrefixLens
from support.golden import screen_lines
from support.screen import answered, ready
from support.until import until

pytestmark = pytest.mark.mlx


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_prompt_of_a_row_beside_the_one_it_came_from(tmp_path: Path, size: tuple[int, int]) -> None:
    spec = ServerSpec(model="demo:tiny", port=0)
    app = MonitorApp(Settings(start=spec, save_path=str(tmp_path / "session.jsonl")))
    async with app.run_test(size=size) as pilot:
        state = await ready(app, pilot)
        await pilot.press("ctrl+s")
        await answered(app, pilot, 1)
        await pilot.press("f3", "ctrl+s")
        first, second = await answered(app, pilot, 2)
        assert first.prompt_tokens is not None
        anew = first.prompt_tokens - (first.cached_tokens or 0)
        await pilot.press("escape", "end", "enter")
        await until(pilot, lambda: isinstance(app.screen, DetailScreen) and app.focused)
        await pilot.press("tab", "tab")
        await until(pilot, lambda: bool(app.screen.query("#lens")) and app.screen.query_one(PrefixLens).display)
        lens = app.screen.query_one(PrefixLens)
        await until(pilot, lambda: any("≠ first difference from #1" in line for line in screen_lines(app)))
        assert f"● {second.cached_tokens} reused" in lens.text
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: "beside the warm-up" in lens.text)
        await pilot.press("left")
        title = app.screen.query_one("#detail")
        await until(pilot, lambda: str(title.border_title).startswith("#1") and f"○ {anew} read anew" in lens.text)
        shown = prompts(state)
        assert "<|im_start|>system" in shown[second.key]
        for _, text_id in second.messages:
            assert state.message_text(text_id).strip() in shown[second.key]
    replayed = fold(read_session(tmp_path / "session.jsonl").events)
    assert prompts(replayed) == shown


def prompts(state: SessionState) -> dict[str, str]:
    """Every prompt as the lens has it."""
    texts = PromptTexts()
    views = [lens_view(state, key, None, texts) for key in state.requests]
    assert all(view is not None and view.exact for view in views)
    return {view.key: "".join(part.text for part in view.parts) for view in views if view is not None}
