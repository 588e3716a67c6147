"""Texts that are found by their sentences, wherever these stand; and that not more is kept than is said."""

from unittest.mock import patch

import pytest

from mlxcache_tui.core import pieces
from mlxcache_tui.core.pieces import PieceIndex

POLICY = "Opened accessories stay here. Is a receipt needed? Yes. Whoever has none is asked!\nRefunds go to the card."


def test_a_text_is_found_behind_other_text_and_by_its_latest_carrier() -> None:
    index = PieceIndex()
    assert index.add("p", POLICY, "a") == []
    assert index.add("p", POLICY, "b") == []
    assert index.add("q", f"Monday it is. {POLICY}", "c") == ["b"]
    count, size = index.shared(["q"], ["p"])
    assert (count, size) == (4, len(POLICY) - len("Yes.") - 4)
    assert index.add("r", "Something else that nobody ever said before.", "d") == []
    assert index.shared(["r"], ["p", "q"]) == (0, 0)


@pytest.mark.parametrize("mark", ["。", "！", "？"])
def test_japanese_sentences(mark: str) -> None:
    text = mark.join(
        ["未開封の製品は返品できます", "開封済みの付属品は返品できません", "領収書が必要です。注文番号でもよい"]
    )
    index = PieceIndex()
    index.add("p", text, "a")
    assert index.add("q", f"今日は月曜日{mark}{text}", "b") == ["a"]
    assert index.shared(["q"], ["p"])[0] >= 2


def test_a_sentence_said_often_is_one_piece() -> None:
    index = PieceIndex()
    index.add("p", "It is damaged. " * 9, "a")
    index.add("q", "It is damaged. " * 3, "b")
    assert index.shared(["q"], ["p"]) == (1, 3 * len("It is damaged."))


def test_the_oldest_are_forgotten_and_those_sent_again_are_found_again() -> None:
    with patch.multiple(pieces, KEPT_PIECES=8):
        index = PieceIndex()
        index.add("p", POLICY, "a")
        for number in range(9):
            index.add(f"t{number}", f"Sentence {number} of one. Sentence {number} of two.", "x")
            assert index.count == sum(len(told.hashes) for told in index.texts.values()) <= 8
            assert set(index.latest.values()) <= set(index.texts)
        assert "p" not in index.texts
        index.add("p", POLICY, "b")
        assert index.add("q", f"Monday it is. {POLICY}", "c") == ["b"]
