"""The detail screen on made-up requests."""

from typing import Any

import pytest
from textual import on
from textual.app import App

from mlxcache_tui.core.views import DetailView, MessageView, Phase, RequestPhase, RequestRow
from mlxcache_tui.ui.screens.detail import DetailScreen
from mlxcache_tui.ui.widgets.prefix_lens import PrefixLens
from mlxcache_tui.ui.widgets.text_flow import TextFlow
from support.golden import screen_lines
from support.until import until
from support.views import lens


def view(
    *,
    key: str = "k2",
    phase: RequestPhase = "done",
    answer: str = "Sentence 2 applies.",
    reasoning: str = "",
    **more: Any,
) -> DetailView:
    row = RequestRow(
        key=key,
        number=2,
        policy="returns",
        phase=phase,
        ours=True,
        warmup=False,
        prompt_tokens=412,
        cached_tokens=371,
        ttft_s=0.048,
        why="hit: 371 tokens of #1",
        reason="hit",
    )
    fields: dict[str, Any] = {
        "error": "",
        "hint": "",
        "evidence": ("hit: 371 of 412 tokens came from #1", "first difference: message 1, character 2"),
        "messages": (
            MessageView(role="system", text="The policy.\n" * 5),
            MessageView(role="user", text="返品できますか?"),
        ),
        "timeline": (Phase(name="wait", start_s=0.0, end_s=0.002), Phase(name="prefill", start_s=0.002, end_s=0.048)),
        "facts": (("path", "/v1/chat/completions"), ("client", "this program")),
        "curl": "curl http://127.0.0.1:8080/v1/chat/completions -d '{}'",
    }
    return DetailView(row=row, title="#2 returns", answer=answer, reasoning=reasoning, **(fields | more))


class DetailApp(App[None]):
    """Opens the screen, and keeps what it said."""

    def __init__(self, first: DetailView) -> None:
        super().__init__()
        self.detail = DetailScreen(first)
        self.moves: list[int] = []
        self.copied: list[str] = []
        self.saved: list[DetailView] = []
        self.wanted: list[tuple[str, str | None]] = []

    def on_mount(self) -> None:
        self.push_screen(self.detail)

    @on(DetailScreen.Moved)
    def _moved(self, event: DetailScreen.Moved) -> None:
        self.moves.append(event.by)

    @on(DetailScreen.CurlCopied)
    def _copied(self, event: DetailScreen.CurlCopied) -> None:
        self.copied.append(event.text)

    @on(DetailScreen.SaveRequested)
    def _saved(self, event: DetailScreen.SaveRequested) -> None:
        self.saved.append(event.view)

    @on(DetailScreen.LensWanted)
    def _wanted(self, event: DetailScreen.LensWanted) -> None:
        self.wanted.append((event.key, event.against))

    @property
    def flow(self) -> TextFlow:
        return self.detail.query_one("#body", TextFlow)

    @property
    def text(self) -> str:
        return self.flow.text if self.detail.is_mounted else ""


async def test_tab_goes_through_all_sections_and_round() -> None:
    app = DetailApp(view())
    async with app.run_test(size=(80, 24)) as pilot:
        for expected in (
            "Sentence 2 applies.",
            "first difference: message 1",
            "message 1: user, 8 characters",
            "prefill",
            "/v1/chat/completions",
            "curl http://127.0.0.1:8080",
            "Sentence 2 applies.",
        ):
            await until(pilot, lambda expected=expected: expected in app.text)  # type: ignore[misc]
            await pilot.press("tab")
        await until(pilot, lambda: "first difference" in app.text)
        await pilot.press("shift+tab")
        await until(pilot, lambda: "Sentence 2" in app.text)


async def test_a_request_that_streams_is_followed_without_wrapping_what_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped: list[str] = []
    app = DetailApp(view(phase="prefill", answer=""))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "reading the prompt" in app.text)
        long = "An earlier paragraph.\n" * 200
        app.detail.show(view(phase="answering", answer=long))
        await until(pilot, lambda: app.flow.is_vertical_scroll_end and app.flow.scroll_offset.y > 0)

        from mlxcache_tui.core.text import wrap_cells

        def counted(text: str, width: int) -> list[str]:
            wrapped.append(text)
            return wrap_cells(text, width)

        monkeypatch.setattr("mlxcache_tui.ui.widgets.text_flow.wrap_cells", counted)
        for piece in ("and", "and a", "and a new\nline"):
            app.detail.show(view(phase="answering", answer=long + piece))
        assert max(map(len, wrapped)) < 20
        assert app.text == long + "and a new\nline"
        await until(pilot, lambda: app.flow.is_vertical_scroll_end)


async def test_the_same_view_again_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    app = DetailApp(view())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Sentence" in app.text)
        drawn: list[object] = []
        monkeypatch.setattr(app.flow, "refresh_lines", lambda *args: drawn.append(args))
        app.detail.show(view())
        assert drawn == []


async def test_thinking_is_shown_while_it_goes_on_and_folded_once_there_is_an_answer() -> None:
    app = DetailApp(view(phase="thinking", answer="", reasoning="Let me see."))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Let me see." in app.text)
        app.detail.show(view(reasoning="Let me see. So.", answer="No."))
        assert "Let me see." not in app.text
        assert "No." in app.text
        await pilot.press("r")
        await until(pilot, lambda: "Let me see. So." in app.text)
        app.detail.show(view(key="k3", reasoning="Another thought.", answer="Yes."))
        assert "Another thought." not in app.text


async def test_an_error_and_a_hint_stand_first() -> None:
    app = DetailApp(view(phase="failed", answer="", error="the server answered 404: no such model", hint="check it"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.text == "✗ the server answered 404: no such model\n! check it")


async def test_keys_move_copy_save_and_close() -> None:
    app = DetailApp(view())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Sentence" in app.text)
        await pilot.press("left", "right", "y", "w")
        await until(pilot, lambda: app.saved == [view()])
        assert app.moves == [-1, 1]
        assert app.copied == [view().curl] == [app.clipboard]
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not app.detail)


async def test_unknown_parts_are_said_to_be_unknown() -> None:
    app = DetailApp(view(answer="", evidence=(), messages=(), timeline=(), facts=(), curl=""))
    async with app.run_test(size=(80, 24)) as pilot:
        for expected in ("no text", "not known yet", "is not known", "nothing was sent", "", "is not known"):
            await until(pilot, lambda expected=expected: expected in app.text)  # type: ignore[misc]
            await pilot.press("tab")


async def test_a_very_long_prompt_scrolls_and_a_narrow_terminal_wraps_it_anew() -> None:
    app = DetailApp(view(messages=(MessageView(role="system", text="規則 rule " * 20_000),)))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("tab", "tab")
        await until(pilot, lambda: "message 0: system" in app.text)
        await pilot.press("end")
        await until(pilot, lambda: app.flow.is_vertical_scroll_end and app.flow.scroll_offset.y > 1000)
        wide = len(app.text.splitlines())
        await pilot.resize_terminal(40, 10)
        await until(pilot, lambda: len(app.text.splitlines()) > 2 * wide)


async def test_the_prompt_is_asked_for_once_and_shown_beside_another() -> None:
    app = DetailApp(view())
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "Sentence" in app.text)
        assert app.wanted == []
        await pilot.press("tab", "tab")
        await until(pilot, lambda: app.wanted == [("k2", None)])
        app.detail.show(view(answer="Sentence 2 applies. More."))
        app.detail.show_lens(lens())
        prefix = app.detail.query_one(PrefixLens)
        await until(pilot, lambda: prefix.display and app.focused is prefix)
        assert "≠ token 9: “and this” here, “and that” in #1" in prefix.text
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: app.wanted == [("k2", None), ("k2", "k0")])
        await pilot.press("tab")
        await until(pilot, lambda: not prefix.display and app.focused is app.flow)
        app.detail.show(view(key="k3"))
        await pilot.press("shift+tab")
        await until(pilot, lambda: app.wanted[-1] == ("k3", None))
        assert not prefix.display
        app.detail.show_lens(None)
        assert "message 1: user" in app.text


async def test_the_timeline_is_drawn_at_once_behind_the_prompt() -> None:
    app = DetailApp(view())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.detail.is_mounted)
        await pilot.press("tab", "tab")
        await until(pilot, lambda: bool(app.wanted))
        app.detail.show_lens(lens())
        await until(pilot, lambda: not app.flow.display)
        await pilot.press("tab")
        await until(pilot, lambda: app.flow.display)
        assert app.text.startswith("wait ")
        assert max(map(len, app.text.splitlines())) == 75


async def test_a_section_and_a_request_are_shown_from_their_start() -> None:
    app = DetailApp(view(curl="curl\n" * 100, answer="no\n" * 100))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.text.startswith("no"))
        assert app.flow.scroll_offset.y == 0
        await pilot.press("shift+tab")
        await until(pilot, lambda: app.text.startswith("curl"))
        await pilot.pause()
        assert app.flow.scroll_offset.y == 0
        app.detail.show(view(key="k3", curl="short"))
        app.detail.show(view(key="k2", curl="curl\n" * 100))
        await pilot.pause()
        assert app.flow.scroll_offset.y == 0


async def test_the_keys_at_the_bottom_are_whole() -> None:
    app = DetailApp(view())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.text)
        keys = screen_lines(app)[-1]
        assert keys == " esc close  ? help  tab section  ← previous  → next  r reasoning  y copy curl"
        await pilot.resize_terminal(40, 24)
        await until(pilot, lambda: screen_lines(app)[-1] == " esc close  ? help  tab section  → next")
