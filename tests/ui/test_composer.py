"""The composer, driven by keys in a small app."""

import itertools
from typing import ClassVar

import pytest
from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from mlxcache_tui.core.commands import Draft
from mlxcache_tui.core.questions import BY_POLICY, RETURNS
from mlxcache_tui.core.views import ForecastView
from mlxcache_tui.ui.widgets.chip import Chip
from mlxcache_tui.ui.widgets.composer import Composer
from mlxcache_tui.ui.widgets.fields import PlainArea, PlainInput
from support.golden import screen_lines
from support.until import until

POLICIES = (
    ("privacy", "Tell nobody.\n"),
    ("returns", "Unopened ones within 30 days.\n"),
    ("japanese-returns", "未開封のアクセサリーは返品できます。"),
)


class ComposerApp(App[None]):
    """A composer, and what it said."""

    def __init__(self, policies: tuple[tuple[str, str], ...] = POLICIES) -> None:
        super().__init__()
        self.composer = Composer(policies)
        self.sent: list[int] = []
        self.changes = 0

    def compose(self) -> ComposeResult:
        yield self.composer

    @on(Composer.SendRequested)
    def _sent(self, event: Composer.SendRequested) -> None:
        self.sent.append(event.count)

    @on(Composer.Changed)
    def _changed(self) -> None:
        self.changes += 1

    @property
    def user(self) -> PlainArea:
        return self.query_one("#user", PlainArea)

    @property
    def system(self) -> PlainArea:
        return self.query_one("#system", PlainArea)

    def text_of(self, selector: str) -> str:
        return str(self.query_one(selector, Static).content)


@pytest.fixture
def app() -> ComposerApp:
    return ComposerApp()


async def test_without_typing_anything_the_draft_is_the_return_policy_and_its_first_question(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)):
        assert app.focused is app.user
        assert app.composer.draft() == Draft(
            user=RETURNS[0].text, policy="returns", policy_text="Unopened ones within 30 days.\n", max_tokens=64
        )
        assert app.composer.border_subtitle == "question 1/4: changed mind"


async def test_policies_that_come_later_fill_the_draft_and_a_reload_keeps_the_one_in_use() -> None:
    app = ComposerApp(())
    async with app.run_test(size=(80, 24)):
        assert app.composer.draft().policy is None
        app.composer.set_policies(POLICIES)
        assert app.composer.draft().policy == "returns"
        app.composer.select_policy("privacy")
        app.composer.set_policies((*POLICIES, ("mine", "My own rules.")))
        assert app.composer.draft().policy == "privacy"
        app.composer.set_policies((("mine", "My own rules."),))
        assert app.composer.draft().policy_text == "My own rules."


async def test_next_question_goes_round_and_undo_brings_typed_text_back(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        app.composer.next_question()
        assert app.composer.draft().user == RETURNS[1].text
        for _ in range(3):
            app.composer.next_question()
        assert app.composer.draft().user == RETURNS[0].text
        await pilot.press("!")
        await until(pilot, lambda: app.composer.border_subtitle == "own question")
        app.composer.next_question()
        assert app.composer.draft().user in {question.text for question in RETURNS}
        app.user.undo()
        assert app.composer.draft().user == RETURNS[0].text + "!"


async def test_policies_cycle_and_alternate_and_take_their_question_along(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        app.composer.next_question()
        app.composer.next_policy()
        draft = app.composer.draft()
        assert (draft.policy, draft.user) == ("japanese-returns", BY_POLICY["japanese-returns"][1].text)
        app.composer.next_policy()
        assert app.composer.draft().policy == "privacy"
        app.composer.alternate_policy()
        assert app.composer.draft().policy == "japanese-returns"
        app.composer.alternate_policy()
        assert app.composer.draft().policy == "privacy"
        app.composer.select_policy("no such policy")
        assert app.composer.draft().policy == "privacy"
        await until(pilot, lambda: app.changes > 0)


async def test_a_question_of_ones_own_stays_when_the_policy_changes(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)):
        app.user.text = "May I return it?"
        app.composer.next_policy()
        assert app.composer.draft().user == "May I return it?"


async def test_an_edited_policy_is_another_policy_until_it_is_brought_back(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        app.system.focus()
        app.system.move_cursor(app.system.document.end)
        await pilot.press("X")
        await until(pilot, lambda: "edited" in app.text_of("#system-name"))
        assert app.composer.draft().policy == "returns (edited)"
        assert app.composer.draft().policy_text == "Unopened ones within 30 days.\nX"
        app.composer.next_policy()
        app.composer.alternate_policy()
        assert app.composer.draft().policy == "returns (edited)"
        app.query_one("#system-name", Chip).action_press()
        await until(pilot, lambda: app.text_of("#system-name") == "system")
        assert app.composer.draft().policy == "returns"


async def test_no_policy_can_be_picked_and_then_there_is_no_system_message(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        app.query_one("#policy").focus()
        await pilot.press("enter", "home", "enter")
        await until(pilot, lambda: app.composer.draft().policy is None)
        assert app.composer.draft().system == ""
        await pilot.press("enter", "end", "enter")
        await until(pilot, lambda: app.composer.draft().policy == "japanese-returns")


async def test_pasted_escape_codes_are_gone_before_they_are_drawn(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        app.user.text = ""
        app.user.post_message(events.Paste("red\x1b[31m\x1b]0;title\x07 \x07\u202eline\r\ntwo"))
        await until(pilot, lambda: "two" in app.user.text)
        assert app.user.text.startswith("red ␇")
        assert app.user.text.endswith("line\ntwo")
        assert app.user.text.replace("\n", "").isprintable()
        app.copy_to_clipboard("\x1b[2Jagain")
        await pilot.press("ctrl+v")
        await until(pilot, lambda: "again" in app.user.text)
        assert app.composer.draft().user.endswith("line\ntwoagain")


async def test_text_set_by_a_program_is_cleaned_in_the_draft(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)):
        app.user.text = "a\x1b[31mb"
        app.query_one("#before", PlainArea).text = "\x1b[2Jid 7"
        draft = app.composer.draft()
        assert (draft.user, draft.before) == ("ab", "id 7")


async def test_text_before_the_policy_is_folded_to_a_mark_until_used(app: ComposerApp) -> None:
    async with app.run_test(size=(60, 10)) as pilot:
        row = app.query_one("#before-row")
        assert not row.display
        app.query_one("#before-mark", Chip).focus()
        await pilot.press("enter")
        await until(pilot, lambda: app.focused is not None and app.focused.id == "before")
        assert row.display
        await pilot.press(*"2026-11-29")
        await until(pilot, lambda: "2026" in app.text_of("#before-mark"))
        await pilot.press("escape")
        await until(pilot, lambda: app.focused is app.user)
        assert not row.display
        draft = app.composer.draft()
        assert draft.before == "2026-11-29"
        assert draft.system == "2026-11-29\n\nUnopened ones within 30 days.\n"


async def test_escape_with_nothing_to_fold_is_left_to_the_screen() -> None:
    class EscapeApp(ComposerApp):
        BINDINGS: ClassVar[list[BindingType]] = [("escape", "note", "note")]
        noted = 0

        def action_note(self) -> None:
            self.noted += 1

    app = EscapeApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.composer.toggle_extra("before")
        await pilot.press("escape")
        await until(pilot, lambda: not app.query_one("#before-row").display)
        assert app.noted == 0
        await pilot.press("escape")
        await until(pilot, lambda: app.noted == 1)


async def test_an_opened_but_unused_row_closes_when_it_is_left(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        app.composer.toggle_extra("after")
        await until(pilot, lambda: app.query_one("#after-row").display)
        app.composer.focus_user()
        await until(pilot, lambda: not app.query_one("#after-row").display)
        assert app.text_of("#after-mark") == "after –"


async def test_options_change_by_key_and_by_mouse(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.click("#count")
        await until(pilot, lambda: app.text_of("#count") == "×2")
        app.composer.toggle_stream()
        app.composer.toggle_thinking()
        app.query_one("#max-tokens").focus()
        await pilot.press("1", "2", "8", "enter")
        await until(pilot, lambda: app.focused is app.user)
        draft = app.composer.draft()
        assert (draft.max_tokens, draft.stream, draft.thinking, draft.temperature) == (128, False, False, None)
        assert app.text_of("#stream") == "no stream"
        app.composer.toggle_thinking()
        assert app.composer.draft().thinking is True
        app.composer.toggle_thinking()
        assert app.composer.draft().thinking is None


async def test_a_seed_is_sent_only_while_its_chip_is_there(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        assert app.composer.draft().extra == {}
        assert not app.query_one("#seed").display
        app.composer.toggle_seed()
        await pilot.pause()
        assert app.composer.draft().extra == {"seed": 42}
        await pilot.click("#seed")
        assert app.composer.draft().extra == {}
        assert not app.query_one("#seed").display


async def test_max_tokens_of_nothing_keeps_the_last_good_number(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        field = app.query_one("#max-tokens", PlainInput)
        field.focus()
        await pilot.press("0")
        await until(pilot, lambda: field.has_class("-invalid"))
        assert app.composer.draft().max_tokens == 64
        app.composer.focus_user()
        await until(pilot, lambda: field.value == "64")


async def test_a_template_without_a_switch_shows_thinking_as_not_available(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)):
        app.composer.toggle_thinking()
        app.composer.set_thinking_available(False)
        chip = app.query_one("#thinking", Chip)
        assert chip.disabled
        assert app.text_of("#thinking") == "thinking –"
        assert app.composer.draft().thinking is None
        app.composer.toggle_thinking()
        app.composer.set_thinking_available(True)
        assert not chip.disabled
        assert app.composer.draft().thinking is False


async def test_the_key_of_thinking_says_why_it_does_nothing(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        app.composer.set_thinking_available(False)
        app.composer.toggle_thinking()
        await pilot.pause()
        assert "this model's chat template has no switch" in app.text_of("#forecast")


async def test_sending_tells_how_many_and_an_empty_message_is_refused(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        app.composer.cycle_count()
        await pilot.click("#send")
        await until(pilot, lambda: app.sent == [2])
        app.user.text = " \n"
        await until(pilot, lambda: app.composer.border_subtitle == "own question")
        app.composer.request_send()
        assert app.text_of("#forecast") == "nothing to send: the user message is empty"
        app.user.text = "x"
        await until(pilot, lambda: app.text_of("#forecast") == "")
        assert app.sent == [2]


async def test_who_only_watches_is_told_that_nothing_can_be_sent(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)):
        app.composer.set_watch_only(True)
        app.composer.show_forecast(ForecastView(text="would reuse ≈112 of 122 (#1)"))
        assert app.text_of("#forecast") == "watching only (--watch): nothing can be sent"
        app.composer.set_watch_only(False)
        assert app.text_of("#forecast") == "would reuse ≈112 of 122 (#1)"


async def test_the_forecast_is_drawn_as_text(app: ComposerApp) -> None:
    async with app.run_test(size=(80, 24)):
        app.composer.show_forecast(ForecastView(text="would reuse ≈112 of [122] (#1)"))
        assert app.text_of("#forecast") == "would reuse ≈112 of [122] (#1)"


@pytest.mark.parametrize("size", [(60, 10), (80, 24), (120, 40), (200, 50)])
async def test_nothing_overlaps_at_any_size(size: tuple[int, int]) -> None:
    app = ComposerApp()
    async with app.run_test(size=size):
        rows = [child for child in app.composer.children if child.display]
        edges = [(row.region.y, row.region.bottom) for row in rows]
        assert all(bottom == top for (_, bottom), (top, _) in itertools.pairwise(edges))
        assert app.user.region.height >= 2
        assert edges[-1][1] <= size[1] - 1


async def test_what_would_be_evicted_and_the_traps_stand_below_the_forecast_as_far_as_there_is_room() -> None:
    app = ComposerApp()
    first, *more = lines = (
        "would read all ≈435 tokens anew",
        "✂ would evict [returns] (#1), 507 tokens: count 3",
        "! sequential path (seed): no checkpoints",
    )
    async with app.run_test(size=(58, 14)) as pilot:
        app.composer.show_forecast(ForecastView(text=first, more=tuple(more)))
        await pilot.pause()
        assert app.text_of("#forecast").split("\n") == list(lines)
        app.composer.show_forecast(ForecastView(text=first, more=(" ".join(more),)))
        shown = app.text_of("#forecast").split("\n")
        assert (len(shown), " ".join(shown[1:])) == (3, " ".join(more))
        app.composer.show_forecast(ForecastView(text=first, more=tuple(more)))
        app.query_one("#forecast").styles.height = 2
        await pilot.pause()
        assert app.text_of("#forecast").split("\n") == [first, " · ".join(more)]
        app.query_one("#forecast").styles.height = 1
        await pilot.pause()
        assert app.text_of("#forecast") == " · ".join(lines)


async def test_another_forecast_lays_nothing_out_anew(app: ComposerApp) -> None:
    async with app.run_test(size=(58, 14)) as pilot:
        app.user.text = ""
        await pilot.pause()
        layouts: list[object] = []
        app.screen.screen_layout_refresh_signal.subscribe(app.composer, layouts.append)
        app.composer.show_forecast(ForecastView(text="would read all ≈435 tokens anew"))
        await pilot.pause()
        app.composer.show_forecast(ForecastView(text="would reuse ≈1 of ≈2", more=("✂ would evict returns (#1)",)))
        await pilot.pause()
        app.composer.request_send()
        await pilot.pause()
        assert "nothing to send" in app.text_of("#forecast")
        assert layouts == []


async def test_a_text_is_drawn_as_it_is_wrapped_for_a_new_width_also_where_it_takes_as_many_lines_as_before(
    app: ComposerApp,
) -> None:
    words = "a customer spilled coffee over a router and it stopped, and now asks whether that is covered or not"
    async with app.run_test(size=(100, 24)) as pilot:
        app.user.text = words
        await pilot.pause()
        await pilot.resize_terminal(70, 24)
        await pilot.pause()
        assert app.user.wrapped_document.height == 2
        drawn = [line[10:-2].strip(" │") for line in screen_lines(app)[app.user.region.y :][:2]]
        assert " ".join(drawn) == words
