"""Everything about one request, full screen, in sections."""

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static, Tab, Tabs

from mlxcache_tui.core.units import human_duration
from mlxcache_tui.core.views import DetailView, LensView
from mlxcache_tui.draw.timeline import draw_timeline
from mlxcache_tui.ui.bindings import HELP_KEY
from mlxcache_tui.ui.screens.once import Once
from mlxcache_tui.ui.widgets.key_footer import KeyFooter
from mlxcache_tui.ui.widgets.prefix_lens import PrefixLens
from mlxcache_tui.ui.widgets.text_flow import Block, TextFlow

SECTIONS = ("answer", "why", "prompt", "timeline", "facts", "curl")
FIRST_KEYS = ("close", "app.help", "next_section(1)", "move_request(-1)", "move_request(1)")
_GONE = "at this moment of the recording it was not sent yet"
WAITING = {"queued": "waiting for the server", "prefill": "the server is reading the prompt"}


class DetailScreen(Once, ModalScreen[None]):
    """Shows a `DetailView` and follows it while the request goes on. Tab changes the section, ← → the request."""

    BINDINGS: ClassVar[list[BindingType]] = [
        HELP_KEY,
        Binding("escape,q", "close", "close", tooltip="Back to the table."),
        Binding("tab", "next_section(1)", "section", priority=True, tooltip="The next section."),
        Binding("shift+tab", "next_section(-1)", "back", show=False, priority=True, tooltip="The section before."),
        Binding("left", "move_request(-1)", "previous", priority=True, tooltip="The request before this one."),
        Binding("right", "move_request(1)", "next", priority=True, tooltip="The request after this one."),
        Binding("r", "toggle_reasoning", "reasoning", tooltip="Show or hide what the model thought."),
        Binding("y", "copy_curl", "copy curl", tooltip="Copy the request as a curl command."),
        Binding("w", "save_request", "save", tooltip="Save the request to a private file."),
    ]
    DEFAULT_CSS = """
    DetailScreen {
        & > #detail {
            height: 1fr;
            border: round $accent;
            border-title-color: $text-accent;
            background: $surface;
        }
        & #summary { height: auto; max-height: 2; padding: 0 1; color: $text-muted; }
        & Tabs { margin-bottom: 0; }
    }
    """

    def __init__(self, view: DetailView) -> None:
        super().__init__()
        self._view = view
        self._gone = False
        self._section = SECTIONS[0]
        self._reasoning_open: bool | None = None
        """None until somebody chose: open as long as there is no answer."""
        self._drawn: tuple[str, str] | None = None
        """The request and the section that the text is of."""
        self._lens: LensView | None = None
        self._against: str | None = None
        """The request to compare with that somebody chose."""
        self._lens_of: tuple[object, ...] = ()
        self._drawers: dict[str, Callable[[DetailView], tuple[Block, ...]]] = {
            "answer": self._answer_blocks,
            "why": _why_blocks,
            "prompt": _prompt_blocks,
            "timeline": self._timeline_blocks,
            "facts": _fact_blocks,
            "curl": _curl_blocks,
        }

    def compose(self) -> ComposeResult:
        """The section names, one line of summary, and the text of the section."""
        with Vertical(id="detail"):
            tabs = Tabs(*(Tab(name, id=name) for name in SECTIONS), id="sections")
            tabs.can_focus = False
            yield tabs
            yield Static("", id="summary", markup=False)
            yield TextFlow(id="body")
            yield PrefixLens(id="lens")
        yield from self.compose_foot()

    def compose_foot(self) -> ComposeResult:
        """What stands below the text: the keys."""
        yield KeyFooter(first=FIRST_KEYS)

    def show(self, view: DetailView) -> None:
        """Draw another state of the request, or another request."""
        if view == self._view and not self._gone:
            return
        self._gone = False
        if view.row.key != self._view.row.key:
            self._reasoning_open = self._lens = self._against = None
            self.query_one("#body", TextFlow).scroll_home(animate=False)
        self._view = view
        self._draw()

    def show_gone(self) -> None:
        """The request is not there: a recording went back to before it was sent."""
        if not self._gone:
            self._gone = True
            self._draw()

    def show_lens(self, lens: LensView | None) -> None:
        """The prompt of the open request beside another one; None: there is only what was sent, as messages."""
        self._lens = lens
        if lens is not None:
            self.query_one(PrefixLens).show(lens)
        self._draw()

    def on_mount(self) -> None:
        """Draw; the text has the focus so that the arrow keys scroll."""
        self._draw()

    def on_resize(self) -> None:
        """The bars of the timeline follow the width."""
        self.call_after_refresh(self._draw)

    @on(Tabs.TabActivated)
    def _section_chosen(self, event: Tabs.TabActivated) -> None:
        event.stop()
        if event.tab.id and event.tab.id != self._section:
            self._section = event.tab.id
            self.query_one("#body", TextFlow).scroll_home(animate=False)
            self._draw()

    @on(PrefixLens.Chosen)
    def _other_chosen(self, event: PrefixLens.Chosen) -> None:
        event.stop()
        self._against = event.key
        self._draw()

    def action_close(self) -> None:
        """Back to the panes."""
        self.dismiss(None)

    def action_next_section(self, by: int) -> None:
        """The section to the right or left, round and round."""
        index = (SECTIONS.index(self._section) + by) % len(SECTIONS)
        self.query_one("#sections", Tabs).active = SECTIONS[index]

    def action_move_request(self, by: int) -> None:
        """Ask for the request before or after this one."""
        self.post_message(self.Moved(by))

    def action_toggle_reasoning(self) -> None:
        """Fold the thinking away or show it."""
        self._reasoning_open = not self._reasoning_is_open()
        self._draw()

    def action_copy_curl(self) -> None:
        """Put the request as curl on the clipboard of the terminal, also over SSH (OSC 52)."""
        self.app.copy_to_clipboard(self._view.curl)
        self.post_message(self.CurlCopied(self._view.curl))

    def action_save_request(self) -> None:
        """Ask for the request to be written to a file."""
        self.post_message(self.SaveRequested(self._view))

    # --- drawing -----------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        view = self._view
        self.query_one("#detail").border_title = view.title
        self.query_one("#summary", Static).update(_GONE if self._gone else " · ".join(_summary(view)))
        if not self._gone:
            self._want_lens()
        lens_open = self._section == "prompt" and self._lens is not None and not self._gone
        body, lens = self.query_one("#body", TextFlow), self.query_one(PrefixLens)
        body.display, lens.display = not lens_open, lens_open
        shown = lens if lens_open else body
        if not shown.has_focus:
            shown.focus()
        if not lens_open:
            # Another text is read from its start, wherever the one before it was left.
            before, self._drawn = self._drawn, (view.row.key, self._section)
            blocks = (Block("dim", _GONE),) if self._gone else self._drawers[self._section](view)
            body.show(blocks, follow=before == self._drawn)

    def _want_lens(self) -> None:
        """Ask for the prompt, once for each state of it: putting a long one together takes a moment."""
        row = self._view.row
        wanted = (row.key, self._against, row.cached_tokens, row.reason)
        if self._section == "prompt" and wanted != self._lens_of:
            self._lens_of = wanted
            self.post_message(self.LensWanted(row.key, self._against))

    def _reasoning_is_open(self) -> bool:
        return self._reasoning_open if self._reasoning_open is not None else not self._view.answer

    def _answer_blocks(self, view: DetailView) -> tuple[Block, ...]:
        blocks = []
        if view.error:
            blocks.append(Block("error", f"✗ {view.error}"))
        if view.hint:
            blocks.append(Block("hint", f"! {view.hint}"))
        if view.reasoning:
            sign, word = ("▾", "fold") if self._reasoning_is_open() else ("▸", "show")
            # No length here: a heading that changes with each piece would be drawn again with all that follows it.
            blocks.append(Block("heading", f"{sign} thinking (r: {word})"))
            if self._reasoning_is_open():
                blocks.append(Block("dim", view.reasoning))
            if view.answer:
                blocks.append(Block("heading", "answer"))
        if view.answer:
            blocks.append(Block("plain", view.answer))
        if not blocks:
            blocks.append(Block("dim", WAITING.get(view.row.phase, "no text")))
        return tuple(blocks)

    def _timeline_blocks(self, view: DetailView) -> tuple[Block, ...]:
        # Not the text's own width: behind the prompt it is hidden, and has none. One cell is for its scroll bar.
        width = self.query_one("#summary").content_size.width - 1
        return (Block("bars", "\n".join(draw_timeline(view.timeline, width))),)

    # --- messages ----------------------------------------------------------------------------------------------------

    class Moved(Message):
        """Another request is wanted: `by` is -1 for the one before, 1 for the one after."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class LensWanted(Message):
        """The prompt of request `key` is wanted, beside that of `against` (None: whichever it is best held against)."""

        def __init__(self, key: str, against: str | None) -> None:
            super().__init__()
            self.key, self.against = key, against

    class CurlCopied(Message):
        """The request as curl went to the terminal's clipboard (`text`: to put it on the machine's own one too)."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class SaveRequested(Message):
        """The request is to be written to a file."""

        def __init__(self, view: DetailView) -> None:
            super().__init__()
            self.view = view


def _summary(view: DetailView) -> list[str]:
    row = view.row
    parts: list[str] = [row.phase]
    if row.prompt_tokens is not None:
        parts.append(f"{row.prompt_tokens} prompt tokens")
    if row.cached_tokens is not None:
        parts.append(f"{row.cached_tokens} cached")
    if row.ttft_s is not None:
        parts.append(f"TTFT {human_duration(row.ttft_s)}")
    if row.output_tokens is not None:
        parts.append(f"{row.output_tokens} out")
    if row.why:
        parts.append(f"≈ {row.why}" if row.inferred else row.why)
    return parts


def _why_blocks(view: DetailView) -> tuple[Block, ...]:
    if not view.evidence:
        return (Block("dim", "not known yet"),)
    first, *rest = view.evidence
    return (Block("heading", first), *(Block("plain", line) for line in rest))


def _prompt_blocks(view: DetailView) -> tuple[Block, ...]:
    if not view.messages:
        return (Block("dim", "the text of this request is not known"),)
    blocks = []
    for number, message in enumerate(view.messages):
        blocks.append(Block("heading", f"message {number}: {message.role}, {len(message.text)} characters"))
        blocks.append(Block("plain", message.text))
        blocks.append(Block("plain", ""))
    return tuple(blocks)


def _fact_blocks(view: DetailView) -> tuple[Block, ...]:
    widest = max((len(name) for name, _ in view.facts), default=0)
    return tuple(Block("plain", f"{name:<{widest}}  {value}", widest + 2) for name, value in view.facts)


def _curl_blocks(view: DetailView) -> tuple[Block, ...]:
    if not view.curl:
        return (Block("dim", "the request as it was sent is not known"),)
    return (Block("plain", view.curl), Block("plain", ""), Block("dim", "y copies it, w saves it to a file"))
