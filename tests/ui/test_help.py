"""The help lists every action, every key of a pane, every sign and every word."""

import re

import pytest
from textual.app import App
from textual.binding import Binding

from mlxcache_tui.core.actions import ActionInfo, key_label
from mlxcache_tui.core.glossary import GLOSSARY
from mlxcache_tui.draw.signs import MARK_SIGNS, REASON_SIGNS, REQUEST_SIGNS
from mlxcache_tui.ui.keys import ACTIONS
from mlxcache_tui.ui.screens.help import PANE_KEYS, HelpScreen, help_blocks
from mlxcache_tui.ui.widgets.text_flow import TextFlow
from support.until import until

WORDS = (
    "TTFT, prompt, token, prefix, prefill, decode, KV cache, cached tokens, eviction, unified memory, footprint, "
    "tool call, checkpoint, sequential path, next out, gone?"
)


def test_every_action_and_every_word_is_in_the_help() -> None:
    text = "\n".join(block.text for block in help_blocks(ACTIONS))
    for action in ACTIONS:
        assert action.help in text
        assert key_label(action.key) in text
    for word in WORDS.split(", "):
        assert any(word == known for known, _ in GLOSSARY)
    for word, meaning in GLOSSARY:
        assert f"{word} " in text
        assert meaning in text
        assert meaning.endswith(".")


def test_every_sign_of_a_state_and_a_reason_is_explained() -> None:
    text = "\n".join(block.text for block in help_blocks(ACTIONS))
    for sign in (*REQUEST_SIGNS.values(), *REASON_SIGNS.values(), *MARK_SIGNS):
        assert not sign.word or re.search(rf"^{re.escape(sign.sign)}  {sign.word} +\w", text, re.MULTILINE), sign


def test_the_keys_of_the_panes_are_explained() -> None:
    lines = [block.text for block in help_blocks(ACTIONS)]
    for bound in PANE_KEYS.values():
        for binding in bound:
            assert isinstance(binding, Binding)
            assert any(line.startswith(binding.key_display or key_label(binding.key)) for line in lines), binding


async def test_it_can_be_read_to_its_end_in_a_small_terminal() -> None:
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(HelpScreen(ACTIONS))
        flow = app.screen.query_one(TextFlow)
        await until(pilot, lambda: flow.show_vertical_scrollbar and app.focused is flow)
        assert max(map(len, flow.text.splitlines())) <= 78
        await pilot.press("end")
        await until(pilot, lambda: flow.is_vertical_scroll_end and flow.scroll_offset.y > 0)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, HelpScreen))


@pytest.mark.parametrize(
    ("key", "label"),
    [("ctrl+s,f5", "^s f5"), ("question_mark", "?"), ("shift+tab", "shift+tab"), ("left,right", "← →"), ("", "")],
)
def test_keys_read_as_people_write_them(key: str, label: str) -> None:
    assert key_label(key) == label


def test_an_action_without_a_key_is_listed_too() -> None:
    info = ActionInfo(id="warm", key="", label="warm", help="Read every policy once.", scope="palette")
    assert any("warm: Read every policy once." in block.text for block in help_blocks([info]))
