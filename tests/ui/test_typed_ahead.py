"""Keys that arrive in one burst, as over a slow line: each goes where it would have gone one by one."""

import pytest
from textual.events import Key

from mlxcache_tui.ui.widgets.fields import PlainArea, PlainInput
from mlxcache_tui.ui.widgets.log_pane import LogPane
from support.noting import NotingApp
from support.until import until


def burst(app: NotingApp, *keys: str) -> None:
    for key in keys:
        app.post_message(Key({"/": "slash"}.get(key, key), key if len(key) == 1 else None))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize("keys", ["/", "5/", "3/"])
async def test_what_is_searched_for_is_typed_behind_the_key_that_opens_the_search(
    keys: str, size: tuple[int, int]
) -> None:
    app = NotingApp()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.engine is not None and app.focused is not None)
        await pilot.press("escape")
        await until(pilot, lambda: app.monitor.focused_pane() == "requests")
        burst(app, *keys, *"p 2/3n1")
        field = app.query_one(LogPane).query_one(PlainInput)
        await until(pilot, lambda: field.value == "p 2/3n1")
        assert app.focused is field
        assert field.region.area


async def test_while_typing_these_keys_are_letters() -> None:
    app = NotingApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.engine is not None and app.focused is not None)
        area = app.query_one("#user", PlainArea)
        area.text = ""
        burst(app, *"3/5 1")
        await until(pilot, lambda: area.text == "3/5 1")
