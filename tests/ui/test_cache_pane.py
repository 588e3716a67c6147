"""The cache pane in an app."""

import pytest
from textual import on

from mlxcache_tui.core.views import PolicyRow, WarningView
from mlxcache_tui.ui.widgets.cache_pane import CachePane
from support.golden import check_golden, screen_lines
from support.pane import Paints, PaneApp
from support.views import MINUTE, SECOND, cache, entry


@pytest.mark.parametrize("width", [57, 78, 118])
async def test_what_it_looks_like(width: int, request: pytest.FixtureRequest) -> None:
    app = PaneApp(pane := CachePane())
    async with app.run_test(size=(width, 8)) as pilot:
        pane.show(cache(note="over the byte limit: it is not applied on the sequential path"), 8 * MINUTE)
        await pilot.pause()
        check_golden(request, f"cache-pane-{width}", screen_lines(app))


async def test_an_unknown_cache_says_why() -> None:
    app = PaneApp(pane := CachePane())
    async with app.run_test(size=(40, 7)) as pilot:
        pane.show(cache(known="unknown", entries=(), note="not observed: start the server with mlxcache-tui"), 0)
        await pilot.pause()
        assert " ".join(" ".join(screen_lines(app)).split()) == "not observed: start the server with mlxcache-tui"


async def test_time_alone_paints_nothing_until_an_age_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    app = PaneApp(pane := CachePane())
    async with app.run_test(size=(70, 9)) as pilot:
        view = cache(entries=(entry(1), entry(2, inserted_ns=10 * SECOND)))
        pane.show(view, MINUTE)
        await pilot.pause()
        paints = Paints(pane, monkeypatch)
        pane.show(view, MINUTE + 9 * SECOND)
        assert paints.regions == []
        pane.show(view, MINUTE + 10 * SECOND)
        assert [region.height for region in paints.regions if region] == [1]
        await pilot.pause()
        assert " 1m " in screen_lines(app)[3]


async def test_entries_that_come_and_go_are_painted_as_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    app = PaneApp(pane := CachePane())
    async with app.run_test(size=(70, 9)) as pilot:
        pane.show(cache(entries=(entry(1), entry(2))), 0)
        await pilot.pause()
        pane.show(cache(entries=(entry(1, policy="warranty"),), note=""), 0)
        await pilot.pause()
        lines = screen_lines(app)
        assert lines[2].startswith("asst warranty")
        assert lines[3] == ""
        pane.show(cache(entries=(entry(1), entry(2), entry(3))), 0)
        await pilot.pause()
        assert [line.split()[0] for line in screen_lines(app)[2:5]] == ["asst"] * 3


async def test_entries_scroll_under_the_heads() -> None:
    app = PaneApp(pane := CachePane())
    async with app.run_test(size=(70, 6)) as pilot:
        pane.focus()
        pane.show(cache(entries=tuple(entry(i, tokens=i) for i in range(1, 21))), 0)
        await pilot.pause()
        await pilot.press("end")
        await pilot.pause()
        lines = screen_lines(app)
        assert lines[1].startswith("type policy")
        assert lines[5].split()[2] == "20"


async def test_it_is_drawn_anew_for_another_size() -> None:
    app = PaneApp(pane := CachePane())
    async with app.run_test(size=(118, 9)) as pilot:
        pane.show(cache(), 0)
        await pilot.resize_terminal(50, 9)
        await pilot.pause()
        assert screen_lines(app)[2].startswith("asst returns")


async def test_a_warning_is_shown_until_it_was_seen_and_never_again() -> None:
    app = PaneApp(pane := CachePane())
    async with app.run_test(size=(78, 8)) as pilot:
        pane.focus()
        two = (WarningView(name="a", text="over by 2 kB"), WarningView(name="b", text="grows by 3 MB"))
        pane.show(cache(warnings=two), 0)
        await pilot.pause()
        assert screen_lines(app)[1] == "! over by 2 kB (x: seen)"
        await pilot.press("x")
        await pilot.pause()
        assert screen_lines(app)[1] == "! grows by 3 MB (x: seen)"
        await pilot.press("x", "x")
        pane.show(cache(warnings=(WarningView(name="a", text="over by 9 kB"),)), 0)
        await pilot.pause()
        assert screen_lines(app)[1].startswith("type")


async def test_the_footer_leaves_out_what_cannot_be_done_now() -> None:
    app = PaneApp(pane := CachePane())
    async with app.run_test(size=(40, 9)) as pilot:
        pane.focus()
        assert pane.idle_actions == {"toggle_view", "dismiss", "warm_again"}
        pane.show(cache(warnings=(WarningView(name="a", text="over by 2 kB"),)), 0)
        assert pane.idle_actions == {"warm_again"}
        await pilot.press("x")
        assert pane.idle_actions == {"dismiss", "warm_again"}


async def test_a_key_that_can_do_nothing_says_why_until_something_changes() -> None:
    app = PaneApp(pane := CachePane())
    async with app.run_test(size=(78, 9)) as pilot:
        pane.focus()
        pane.show(cache(), 0)
        for key, why in (("w", "nothing was warm before"), ("x", "no warning")):
            await pilot.press(key)
            await pilot.pause()
            assert why in screen_lines(app)[1]
        pane.show(cache(count=2), 0)
        await pilot.pause()
        assert "no warning" not in screen_lines(app)[1]


async def test_a_key_shows_it_by_policy_and_back_and_another_asks_to_warm_again() -> None:
    class Keeping(PaneApp):
        wanted = 0

        @on(CachePane.WarmWanted)
        def _wanted(self) -> None:
            self.wanted += 1

    app = Keeping(pane := CachePane())
    async with app.run_test(size=(78, 8)) as pilot:
        pane.focus()
        row = PolicyRow(
            policy="returns", requests=2, reuse_last=0.9, reuse_session=0.5, last_hit_ns=0, evicted=1, entries=1,
            bytes=1, share=1.0, warm_before=True,
        )  # fmt: skip
        pane.show(cache(policies=(row,)), 0)
        await pilot.press("p", "w")
        await pilot.pause()
        assert screen_lines(app)[2].split()[:4] == ["returns", "2", "90", "%"]
        assert pane.border_title == "Cache by policy"
        assert app.wanted == 1
        pane.show(cache(policies=(row,)), 2 * MINUTE)
        await pilot.pause()
        assert "2m" in screen_lines(app)[2]
        await pilot.press("p")
        await pilot.pause()
        assert screen_lines(app)[2].startswith("assistant") or screen_lines(app)[2].startswith("asst")
