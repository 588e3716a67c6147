"""What tokens say: the bytes behind the pieces of byte-level and of sentence vocabularies, told once each."""

import json
from typing import Any

import pytest

from mlxcache_tui.core.codec import decode_event
from mlxcache_tui.core.events import TokensNamed
from mlxcache_tui.observer.observe import BYTE_LETTERS, TokenNames, piece_bytes


class Tokenizer:
    """Pieces by number, as the server's tokenizer gives them."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces

    def convert_tokens_to_ids(self, piece: str) -> int | None:
        return self.pieces.index(piece) if piece in self.pieces else None

    def convert_ids_to_tokens(self, ids: Any) -> Any:
        if isinstance(ids, int):
            return self.pieces[ids]
        return [self.pieces[token] if token < len(self.pieces) else None for token in ids]


def told(line: bytes | None) -> dict[int, bytes]:
    assert line is not None
    event = decode_event(line)
    assert isinstance(event, TokensNamed)
    return {token: bytes.fromhex(text) for token, text in event.pairs}


def test_every_byte_has_a_letter_of_its_own() -> None:
    assert sorted(BYTE_LETTERS.values()) == list(range(256))
    assert (BYTE_LETTERS["Ġ"], BYTE_LETTERS["Ċ"], BYTE_LETTERS["a"]) == (32, 10, 97)


@pytest.mark.parametrize(
    ("piece", "byte_level", "expected"),
    [
        ("Ġpolicy", True, b" policy"),
        ("è¿Ķ", True, "返".encode()),
        ("è¿", True, "返".encode()[:2]),
        ("<|im_start|>", True, b"<|im_start|>"),
        ("<｜end▁of▁sentence｜>", True, "<｜end▁of▁sentence｜>".encode()),
        ("▁policy", False, b" policy"),
        ("<0x0A>", False, b"\n"),
        ("返", False, "返".encode()),
        ("<0xZZ>", False, b"<0xZZ>"),
    ],
)
def test_a_piece_is_the_bytes_that_it_stands_for(piece: str, byte_level: bool, expected: bytes) -> None:
    assert piece_bytes(piece, byte_level) == expected


def test_each_token_is_told_once_and_a_late_viewer_gets_them_all() -> None:
    names = TokenNames()
    names.tokenizer = Tokenizer("Ġ", "a", "Ġb", "ĠcĊ")
    assert told(names.line(5, "m", [1, 2, 1])) == {1: b"a", 2: b" b"}
    assert told(names.line(6, "m", [1, 2, 3])) == {3: b" c\n"}
    assert names.line(7, "m", [3, 2, 1]) is None
    assert told(names.line(8, "n", [1])) == {1: b"a"}
    first, second = names.greeting(9)
    assert told(first) == {1: b"a", 2: b" b", 3: b" c\n"}
    assert json.loads(second)["model"] == "n"


def test_a_vocabulary_without_byte_letters_and_tokens_that_are_none() -> None:
    names = TokenNames()
    assert names.line(5, "m", [1]) is None
    names.tokenizer = Tokenizer("▁a", "<0x0A>")
    assert told(names.line(5, "m", [0, 1, 9, -1, 1 << 40])) == {0: b" a", 1: b"\n"}
