"""A scrolling text of styled blocks that is cheap to append to: only the last paragraph is wrapped again."""

from typing import ClassVar, Literal, NamedTuple

from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mlxcache_tui.core.text import cell_width, fit, wrap_cells

BlockKind = Literal["plain", "heading", "dim", "error", "hint", "bars"]


class Block(NamedTuple):
    """A piece of text with one look. Clean text; `bars` is drawn as it is, the others are wrapped.

    The first `indent` characters stand in a column of their own, in which nothing else is written.
    """

    kind: BlockKind
    text: str
    indent: int = 0


class TextFlow(ScrollView, can_focus=True):
    """Shows blocks one below the other, wrapped to the width. Stays at the end while the reader is there."""

    DEFAULT_CSS = """
    TextFlow {
        height: 1fr;
        padding: 0 1;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        & > .text-flow--heading { text-style: bold; color: $text-accent; }
        & > .text-flow--dim { text-style: dim italic; }
        & > .text-flow--error { color: $text-error; text-style: bold; }
        & > .text-flow--hint { color: $text-warning; }
        & > .text-flow--bars { color: $text-primary; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "text-flow--heading",
        "text-flow--dim",
        "text-flow--error",
        "text-flow--hint",
        "text-flow--bars",
    }

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id, classes=classes)
        self._blocks: tuple[Block, ...] = ()
        self._lines: list[tuple[BlockKind, str]] = []
        self._starts: list[int] = []
        """The first line of each block."""
        self._wrapped_at = 0

    @property
    def text(self) -> str:
        """All lines as they are wrapped now."""
        return "\n".join(line for _, line in self._lines)

    def show(self, blocks: tuple[Block, ...], *, follow: bool = True) -> None:
        """Replace the blocks; equal ones at the front keep their lines. `follow`: a reader at the end stays there."""
        if blocks == self._blocks:
            return
        follow = follow and self.is_vertical_scroll_end and bool(self._blocks)
        kept = _common(blocks, self._blocks)
        old, self._blocks = self._blocks, blocks
        if self._wrapped_at:
            self._wrap_from(kept, old)
            if follow:
                self.scroll_end(animate=False)

    def _wrap_from(self, kept: int, old: tuple[Block, ...]) -> None:
        """Wrap the blocks from number `kept` on; a last block that only grew is wrapped from its last paragraph on."""
        if kept == len(old) - 1 and kept < len(self._blocks) and _grew(old[kept], self._blocks[kept]):
            whole, _, unfinished = old[kept].text.rpartition("\n")
            changed = len(self._lines) - len(wrap_cells(unfinished, self._wrapped_at))
            rest = self._blocks[kept].text[len(whole) + 1 if whole or old[kept].text.startswith("\n") else 0 :]
            del self._lines[changed:]
            self._append(self._blocks[kept]._replace(text=rest))
            kept += 1
        else:
            changed = self._starts[kept] if kept < len(self._starts) else len(self._lines)
            del self._lines[changed:]
        del self._starts[kept:]
        for block in self._blocks[kept:]:
            self._starts.append(len(self._lines))
            self._append(block)
        self.virtual_size = Size(self._wrapped_at, len(self._lines))
        self.refresh_lines(changed, max(len(self._lines) - changed, self.size.height))

    def _append(self, block: Block) -> None:
        self._lines.extend((block.kind, line) for line in _wrapped(block, self._wrapped_at))

    def on_resize(self) -> None:
        """Wrap everything to a new width."""
        width = self.scrollable_content_region.width
        if width != self._wrapped_at and width > 0:
            self._wrapped_at = width
            self._lines.clear()
            self._starts.clear()
            self._wrap_from(0, ())

    def render_line(self, y: int) -> Strip:
        """One line of the window on the text."""
        number = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if number >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        kind, line = self._lines[number]
        style = self.rich_style if kind == "plain" else self.get_component_rich_style(f"text-flow--{kind}")
        text = fit(line, width) if cell_width(line) > width else line
        return Strip([Segment(text, style)]).adjust_cell_length(width, self.rich_style)


def _wrapped(block: Block, width: int) -> list[str]:
    if block.kind == "bars":
        return block.text.split("\n")
    if not block.indent:
        return wrap_cells(block.text, width)
    name, rest = block.text[: block.indent], block.text[block.indent :]
    first, *others = wrap_cells(rest, max(width - block.indent, 2))
    return [name + first, *(" " * block.indent + line for line in others)]


def _common(new: tuple[Block, ...], old: tuple[Block, ...]) -> int:
    count = 0
    for one, other in zip(new, old, strict=False):
        if one != other:
            break
        count += 1
    return count


def _grew(old: Block, new: Block) -> bool:
    same_look = old.kind == new.kind != "bars" and old.indent == new.indent == 0
    return same_look and new.text.startswith(old.text)
