"""Texts cut into lines and sentences, to find an earlier text with most of the same ones wherever they stand in it."""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

SHORTEST = 12
"""Characters of a piece: shorter ones ("Yes.") stand everywhere. Of Japanese they are a short sentence."""
PIECES_OF_A_TEXT = 2_000
"""Of a longer text only its beginning is compared."""
KEPT_PIECES = 50_000
"""Of all texts (some 8 MB); beyond them the oldest are forgotten, until they are sent again."""
KEPT_TEXTS = 20_000
CANDIDATES = 4
"""Texts that are compared piece by piece: those with most pieces of the one asked for."""
_SENTENCE_ENDS = (". ", "! ", "? ", "。", "！", "？")


@dataclass(slots=True)
class TextPieces:
    """One text: the hashes of its pieces, how many characters each has, and the last request that carried it."""

    hashes: "array[int]"
    sizes: "array[int]"
    carrier: str


@dataclass(slots=True)
class PieceIndex:
    """The texts that were told last, and of each piece the latest text that has it."""

    texts: dict[str, TextPieces] = field(default_factory=dict)
    latest: dict[int, str] = field(default_factory=dict)
    count: int = 0

    def add(self, text_id: str, text: str, carrier: str) -> list[str]:
        """A request carries this text; if it is new: those that carried texts with many of its pieces, most first."""
        known = self.texts.get(text_id)
        if known is not None:
            known.carrier = carrier
            return []
        pieces = _cut(text)
        hashes = array("q", map(hash, pieces))
        votes = Counter(self.latest[piece] for piece in hashes if piece in self.latest)
        similar = [self.texts[name].carrier for name, _ in votes.most_common(CANDIDATES)]
        self.texts[text_id] = TextPieces(hashes, array("l", map(len, pieces)), carrier)
        self.latest.update(dict.fromkeys(hashes, text_id))
        self.count += len(hashes)
        while self.count > KEPT_PIECES or len(self.texts) > KEPT_TEXTS:
            self._forget(next(iter(self.texts)))
        return similar

    def _forget(self, text_id: str) -> None:
        gone = self.texts.pop(text_id)
        self.count -= len(gone.hashes)
        for piece in gone.hashes:
            if self.latest.get(piece) == text_id:
                del self.latest[piece]

    def shared(self, ours: Iterable[str], theirs: Iterable[str]) -> tuple[int, int]:
        """Of the texts with these ids: how many pieces of ours stand in theirs too, and their characters."""
        known = {piece for told in self._known(theirs) for piece in told.hashes}
        pairs = (pair for told in self._known(ours) for pair in zip(told.hashes, told.sizes, strict=True))
        both = [(piece, size) for piece, size in pairs if piece in known]
        return len({piece for piece, _ in both}), sum(size for _, size in both)

    def _known(self, text_ids: Iterable[str]) -> Iterable[TextPieces]:
        return (self.texts[text_id] for text_id in text_ids if text_id in self.texts)


def _cut(text: str) -> list[str]:
    for end in _SENTENCE_ENDS:
        text = text.replace(end, end + "\n")
    return [piece for line in text.split("\n") if len(piece := line.strip()) >= SHORTEST][:PIECES_OF_A_TEXT]
