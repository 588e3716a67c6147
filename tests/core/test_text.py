"""Nothing from outside reaches the terminal as a command, and fitted text has exactly its width."""

import unicodedata

import pytest
import rich.cells
from hypothesis import example, given
from hypothesis import strategies as st

from mlxcache_tui.core import text
from mlxcache_tui.core.text import bounded, cell_width, clean, clean_block, fit, short_model, wrap_cells

SEQUENCES = st.sampled_from(
    [
        "\x1b[31m",
        "\x1b]0;title\x07",
        "\x1b]8;;http://x\x1b\\",
        "\x1bP1$r\x9c",
        "\x1b[",
        "\x1b",
        "\x9b2J",
        "\x9d",
        "\r\n",
        "\u202e",
    ]
)
HOSTILE = st.lists(st.one_of(st.text(st.characters(exclude_categories=()), max_size=8), SEQUENCES), max_size=8).map(
    "".join
)
TEXTS = st.text(st.one_of(st.sampled_from("ab 漢👍👨👩❤1\u200d\ufe0f\u0301"), st.characters()), max_size=60)
# Joiners hold emoji and several scripts together; the Arabic number signs are visible.
KEPT = {"\u200c", "\u200d", *map(chr, range(0x600, 0x606)), "\u06dd", "\u070f", "\u0890", "\u0891", "\u08e2"}
KEPT |= {"\U000110bd", "\U000110cd", *map(chr, range(0x13430, 0x13440))}


def harmless(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp") or character in KEPT


@given(HOSTILE)
@example("\x1b\x1b[31m[31m")
@example("\x1b]52;c;aGk=")
def test_no_control_character_survives(text: str) -> None:
    assert all(map(harmless, clean(text)))
    assert all(character == "\n" or harmless(character) for character in clean_block(text))


def test_no_code_point_is_forgotten() -> None:
    survivors = [hex(code) for code in range(0x110000) if not all(map(harmless, clean(f"a{chr(code)}")))]
    assert survivors == []


@given(HOSTILE)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)
    assert clean_block(clean_block(text)) == clean_block(text)


@pytest.mark.parametrize(
    ("dirty", "line"),
    [
        ("plain", "plain"),
        ("a\tb", "a    b"),
        ("one\ntwo\r\nthree", "one⏎two⏎three"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("cut \x1b[31", "cut "),
        ("\x1b]0;never ended", "0;never ended"),
        ("bell \x07 null \x00 del \x7f", "bell ␇ null ␀ del ␡"),
        ("name\u202egpj.exe", "name�gpj.exe"),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("he said â\x80\x9cyesâ\x80\x9d", "he said â��yesâ��"),
        ("lone \ud800 surrogate", "lone � surrogate"),
        ("返品は30日以内 👨\u200d👩\u200d👧", "返品は30日以内 👨\u200d👩\u200d👧"),
    ],
)
def test_clean(dirty: str, line: str) -> None:
    assert clean(dirty) == line


def test_a_block_keeps_its_lines() -> None:
    assert clean_block("one\r\n\ttwo\rthree\u2028four\x1b[0m\n") == "one\n    two\nthree\nfour\n"


def test_an_escape_string_that_never_ends_hides_no_other_line() -> None:
    assert clean_block("\x1b]0;x\nsecond\n") == "0;x\nsecond\n"


def test_bounded_says_how_much_is_missing() -> None:
    assert bounded("x" * 100, 100) == "x" * 100
    cut = bounded("x" * 5000)
    assert len(cut) == 4096
    assert cut.endswith("… (+904 characters)")
    assert bounded("x" * 50, 5) == "xxxxx"


@given(TEXTS, st.integers(-1, 40), st.sampled_from(["left", "right"]), st.sampled_from(["…", "", "..."]))
def test_fit_gives_exactly_the_width(text: str, width: int, align: str, ellipsis: str) -> None:
    fitted = fit(text, width, align, ellipsis)  # type: ignore[arg-type]
    assert rich.cells.cell_len(fitted) == max(0, width)


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [
        ("policy", 8, "policy  "),
        ("policy", 4, "pol…"),
        ("policy", 1, "…"),
        ("返品規定", 5, "返品…"),
        ("返品規定", 4, "返… "),
        ("👨\u200d👩\u200d👧x", 2, "… "),
        ("", 3, "   "),
    ],
)
def test_fit(text: str, width: int, fitted: str) -> None:
    assert fit(text, width) == fitted


def test_fit_to_the_right() -> None:
    assert fit("12", 5, "right") == "   12"


@given(st.lists(TEXTS, max_size=4).map("\n".join), st.integers(2, 30))
def test_wrapped_lines_fit_and_lose_only_spaces(text: str, width: int) -> None:
    lines = wrap_cells(text, width)
    assert all(cell_width(line) <= width for line in lines)
    dropped = {ord(character): None for character in " \n\u200d"}
    assert "".join(lines).translate(dropped) == text.translate(dropped)


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 10, [""]),
        ("one two three", 8, ["one two", "three"]),
        ("one two three", 7, ["one two", "three"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("返品規定です", 5, ["返品", "規定", "です"]),
        ("a\n\nb", 5, ["a", "", "b"]),
        ("漢字", 1, ["漢", "字"]),
        ("as it\nis", 0, ["as it", "is"]),
        ("end   ", 4, ["end"]),
    ],
)
def test_wrap(text: str, width: int, lines: list[str]) -> None:
    assert wrap_cells(text, width) == lines


def test_a_long_paragraph_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    head = text._head

    def counted(piece: str, width: int) -> str:
        looked_at.append(len(piece))
        return str(head(piece, width))

    monkeypatch.setattr(text, "_head", counted)
    paragraph = "返品 ok " * 4_000
    assert "".join(wrap_cells(paragraph, 80)).replace(" ", "") == paragraph.replace(" ", "")
    assert sum(looked_at) < 10 * len(paragraph)


def test_a_models_short_name() -> None:
    assert [short_model(name) for name in ("org/name", "/a/b/", None)] == ["name", "b", None]
