"""Pictures for people to look at."""

from mlxcache_tui.ui.widgets.request_table import RequestTable
from support.golden import screen_lines, text_of_picture
from support.pane import PaneApp
from support.pictures import anchored
from support.views import all_kinds_of_rows


async def test_every_word_has_its_own_place_and_none_is_lost() -> None:
    app = PaneApp(table := RequestTable())
    async with app.run_test(size=(118, 13)) as pilot:
        table.show(all_kinds_of_rows())
        await pilot.pause()
        picture = anchored(app.export_screenshot())
        assert text_of_picture(picture, 13) == screen_lines(app)
        assert "\xa0" not in picture
        assert "&#160;" not in picture
