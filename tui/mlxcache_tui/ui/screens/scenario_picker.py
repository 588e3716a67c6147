"""Picking a scenario: those that ship, the person's own, or any file; what each is about and what it would do here."""

import re
from typing import ClassVar, Literal, NamedTuple

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from mlxcache_tui.core.scenario import Scenario
from mlxcache_tui.core.scenario_plan import Plan
from mlxcache_tui.core.text import clean, clean_block, fit
from mlxcache_tui.ui.bindings import FORM_KEYS
from mlxcache_tui.ui.screens.once import Once
from mlxcache_tui.ui.widgets.fields import PlainInput
from mlxcache_tui.ui.widgets.text_flow import Block, TextFlow

NAME_CELLS = 22
_LABELLED = re.compile(r"[A-Z][\w ]{0,15}:")


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario to choose, with what it would do here; `scenario` None: it has `mistakes`."""

    name: str
    own: bool
    scenario: Scenario | None = None
    plan: Plan | None = None
    mistakes: tuple[str, ...] = ()


class Choice(NamedTuple):
    """What was chosen: to run it as it is, or to edit its values first."""

    scenario: Scenario
    then: Literal["run", "edit"]


class ScenarioPicker(Once, ModalScreen[Choice | None]):
    """Dismisses with a `Choice`, or None. One that cannot run here stays, with the reason in its text."""

    HORIZONTAL_BREAKPOINTS = [(0, "-slim"), (60, "-broad")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        *FORM_KEYS,
        Binding("escape", "cancel", "close"),
        Binding("ctrl+s,f5", "choose('run')", "run"),  # after what was typed in front of it, so without priority
        Binding("v,f2", "choose('edit')", "values"),
    ]
    DEFAULT_CSS = """
    ScenarioPicker {
        align: center middle;
        & > #picker {
            width: 100%;
            max-width: 130;
            height: 100%;
            max-height: 46;
            border: round $accent;
            border-title-color: $text-accent;
            border-subtitle-color: $text-muted;
            background: $surface;
            padding: 0 1;
        }
        & #choices { height: 1fr; }
        & OptionList {
            width: 26; height: 1fr; border: none; padding: 0; background: $surface;
            scrollbar-size-vertical: 1; overflow-x: hidden;
        }
        & #about { width: 1fr; border-left: solid $panel-lighten-2; }
        &.-slim {
            & #choices { layout: vertical; }
            & OptionList { width: 1fr; }
            & #about { border-left: none; border-top: solid $panel-lighten-2; }
        }
        & #file-row { height: 1; }
        & #file-name { width: auto; padding-right: 1; color: $text-muted; }
        & #file { width: 1fr; background: $boost; }
        & #note { height: 1; color: $text-error; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self, *, chosen: str = "") -> None:
        """`chosen` is the name under the cursor at first."""
        super().__init__()
        self._chosen = chosen
        self._offers: list[Offer] = []

    def compose(self) -> ComposeResult:
        """The list, the text of what is under the cursor, and a field for any other file."""
        with Vertical(id="picker") as box:
            box.border_title = "Scenarios"
            box.border_subtitle = "↑ ↓ choose · enter run · v values first · tab text, file · esc close"
            with Horizontal(id="choices"):
                yield OptionList(id="names", compact=True, markup=False)
                yield TextFlow(id="about")
            yield Static("", id="note", markup=False)
            with Horizontal(id="file-row"):
                yield Static("another file", id="file-name")
                yield PlainInput(id="file", placeholder="path of a .toml file, then enter")

    def on_mount(self) -> None:
        """The list has the focus."""
        self.query_one("#about", TextFlow).show((Block("dim", "reading the scenarios …"),))
        self.query_one("#names").focus()

    def offer(self, offers: tuple[Offer, ...]) -> None:
        """Fill the list; the cursor stays on the name that it was on."""
        names = self.query_one("#names", OptionList)
        at = names.highlighted
        chosen = self._offers[at].name if at is not None and self._offers else self._chosen
        self._offers = list(offers)
        names.clear_options()
        names.add_options([Option(_label(offer)) for offer in offers])
        if offers:
            known = [offer.name for offer in offers]
            names.highlighted = known.index(chosen) if chosen in known else 0
            self._draw()

    def add(self, offer: Offer) -> None:
        """A file that was named: on top of the list, under the cursor."""
        self._offers = [offer, *(known for known in self._offers if known != offer)]
        names = self.query_one("#names", OptionList)
        names.clear_options()
        names.add_options([Option(_label(known)) for known in self._offers])
        names.highlighted = 0
        self._draw()
        names.focus()

    @property
    def offered(self) -> bool:
        """Whether the list is filled."""
        return bool(self._offers)

    @property
    def _offer(self) -> Offer | None:
        at = self.query_one("#names", OptionList).highlighted
        return self._offers[at] if at is not None and at < len(self._offers) else None

    def _draw(self) -> None:
        names, offer = self.query_one("#names", OptionList), self._offer
        for index, known in enumerate(self._offers):
            names.replace_option_prompt_at_index(index, _label(known, here=known is offer))
        self._say("")
        if offer is not None:
            about = self.query_one("#about", TextFlow)
            about.show(offer_blocks(offer), follow=False)
            about.scroll_home(animate=False)

    def _say(self, text: str) -> None:
        self.query_one("#note", Static).update(text)

    @on(OptionList.OptionHighlighted)
    def _moved(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._draw()

    @on(OptionList.OptionSelected)
    def _entered(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_choose("run")

    @on(Input.Submitted)
    def _file_named(self, event: Input.Submitted) -> None:
        event.stop()
        path = clean(event.value).strip()
        if path:
            self.post_message(self.FileNamed(self, path))

    def action_choose(self, then: Literal["run", "edit"]) -> None:
        """Close with what is under the cursor, or say why that cannot be run."""
        offer = self._offer
        if offer is None:
            return
        if offer.scenario is None:
            self._say(f"✗ {offer.name} has mistakes; they are listed above")
        elif offer.plan is not None and offer.plan.refused:
            self._say(f"✗ {offer.plan.refused[0]}")
        else:
            self.dismiss(Choice(offer.scenario, then))

    def action_cancel(self) -> None:
        """Close without a scenario."""
        self.dismiss(None)

    class FileNamed(Message):
        """A file is to be read; `picker.add` takes what is in it."""

        def __init__(self, picker: "ScenarioPicker", path: str) -> None:
            super().__init__()
            self.picker = picker
            self.path = path


def _label(offer: Offer, *, here: bool = False) -> str:
    """The cursor, a sign for what cannot run, the name, and whose it is."""
    broken = offer.scenario is None or (offer.plan is not None and offer.plan.refused)
    return f"{'▸' if here else ' '}{'✗' if broken else ' '} {fit(offer.name, NAME_CELLS - 3)}{'*' if offer.own else ''}"


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a comment block, each in one line so that it is wrapped to the width it gets.

    One begins behind an empty line, with a word and a colon (`Shows: …`), or indented (kept as it stands).
    """
    found: list[str] = []
    open_ended = False
    for line in text.splitlines():
        indented = line.startswith(" ")
        if line.strip() and open_ended and not indented and not _LABELLED.match(line):
            found[-1] += " " + line.strip()
        elif line.strip():
            found.append(line.rstrip())
        open_ended = bool(line.strip()) and not indented
    return found


def offer_blocks(offer: Offer) -> tuple[Block, ...]:
    """The text beside the list."""
    scenario, plan = offer.scenario, offer.plan
    if scenario is None or plan is None:
        head = Block("heading", f"{offer.name}: {len(offer.mistakes)} mistake{'s' * (len(offer.mistakes) != 1)}")
        return (head, Block("plain", ""), *(Block("error", f"✗ {line}", 2) for line in offer.mistakes))
    blocks = [Block("heading", clean(scenario.title))]
    if scenario.about:
        blocks.append(Block("plain", clean_block(scenario.about).strip()))
    if plan.refused:
        blocks += [Block("plain", ""), Block("heading", "It cannot run here")]
        blocks += [Block("error", f"✗ {line}", 2) for line in plan.refused]
    blocks += [Block("plain", ""), Block("heading", "What it will do")]
    blocks += [Block("plain", f"- {line}", 2) for line in plan.does]
    notes = paragraphs(clean_block(scenario.notes))
    if notes:
        blocks += [Block("plain", ""), Block("heading", "Notes"), *(Block("plain", text) for text in notes)]
    blocks += [Block("plain", ""), Block("heading", "Steps")]
    for number, step in enumerate(plan.steps, 1):
        blocks.append(Block("plain", f"{number:>2} {step.name}: {step.about}", 3))
        blocks += [Block("dim", f"   {note}", 3) for note in step.notes]
        blocks += [Block("dim", f"   expects {text}", 3) for text in step.expects]
    if offer.own:
        blocks += [Block("plain", ""), Block("dim", f"* from {clean(scenario.source)}")]
    return tuple(blocks)
