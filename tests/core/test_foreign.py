"""What other people wrote can be drawn: no event from a socket or a file carries a terminal command."""

import unicodedata
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.codec import decode_event, encode_event
from mlxcache_tui.core.foreign import decode_all_clean, decode_clean

BAD = "\x1b]52;c;aGk=\x07a\x1b[2Jb\u202ec\x7f"
GOOD = "ab�c␡"


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in strings(part)]
    return [text for part in value for text in strings(part)] if isinstance(value, list | tuple) else []


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        (
            ev.TextKept(at_ns=1, origin="observer", text_id="a", text=f"{BAD}\nsecond\tline"),
            ev.TextKept(at_ns=1, origin="observer", text_id="a", text=f"{GOOD}\nsecond    line"),
        ),
        (
            ev.RequestEnded(at_ns=1, origin="observer", key="k", outcome="failed", error=f"{BAD}\nsecond"),
            ev.RequestEnded(at_ns=1, origin="observer", key="k", outcome="failed", error=f"{GOOD}⏎second"),
        ),
        (
            ev.LogRead(at_ns=1, origin="log", lines=(ev.LogLine(text=BAD, kind="record", level="INFO"),)),
            ev.LogRead(at_ns=1, origin="log", lines=(ev.LogLine(text=GOOD, kind="record", level="INFO"),)),
        ),
        (
            ev.RequestComposed(
                at_ns=1, origin="observer", key="k", purpose="foreign", path="/v1", messages=((BAD, "a"),),
                params={"stop": ["\n", BAD], "seed": 7, "top_p": 0.5, "user": None},
            ),
            ev.RequestComposed(
                at_ns=1, origin="observer", key="k", purpose="foreign", path="/v1", messages=((GOOD, "a"),),
                params={"stop": ["\n", GOOD], "seed": 7, "top_p": 0.5, "user": None},
            ),
        ),
        (
            ev.CacheSnapshot(
                at_ns=1, origin="observer", max_count=2, max_bytes=None, bytes=3,
                entries=(ev.EntryState(entry=1, type="user", tokens=2, bytes=3, inserted_ns=4, model=BAD),),
            ),
            ev.CacheSnapshot(
                at_ns=1, origin="observer", max_count=2, max_bytes=None, bytes=3,
                entries=(ev.EntryState(entry=1, type="user", tokens=2, bytes=3, inserted_ns=4, model=GOOD),),
            ),
        ),
    ],
)  # fmt: skip
def test_every_text_in_an_event_is_cleaned(dirty: ev.AnyEvent, cleaned: ev.AnyEvent) -> None:
    assert decode_clean(encode_event(dirty)) == cleaned


@given(st.text(), st.text(), st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3))
def test_no_control_character_survives(one: str, two: str, params: dict[str, str]) -> None:
    for event in (
        ev.TextArrived(at_ns=1, origin="client", key=one, kind="answer", text=two, gaps_ns=(1, 2)),
        ev.RequestComposed(
            at_ns=1, origin="observer", key=one, purpose="foreign", path=two, messages=((one, two),), params=params
        ),
    ):
        read = decode_clean(encode_event(event))
        found = "".join(strings(msgspec.to_builtins(read)))
        assert not any(unicodedata.category(character) in ("Cc", "Cs") and character != "\n" for character in found)
        assert decode_clean(encode_event(read)) == read


def test_what_is_clean_stays_as_it_is() -> None:
    line = encode_event(ev.TextKept(at_ns=1, origin="client", text_id="a", text='返品 "quoted" C:\\x\nnext'))
    assert decode_clean(line) == decode_event(line)


PLAIN = encode_event(ev.TextKept(at_ns=1, origin="client", text_id="a", text="plain"))
DIRTY = encode_event(ev.Noticed(at_ns=1, origin="program", level="info", pane="log", text="\x1b[2J"))


@pytest.mark.parametrize("lines", [[PLAIN] * 3, [PLAIN, DIRTY, PLAIN], []])
def test_many_lines_are_cleaned_as_one_is(lines: list[bytes]) -> None:
    assert decode_all_clean(lines) == [decode_clean(line) for line in lines]


@pytest.mark.parametrize(
    "lines",
    [
        [PLAIN, b"", PLAIN],
        [PLAIN, b"{"],
        [PLAIN, DIRTY, b"{}"],
        # One event on two lines and two on one: which line is which event can then not be told.
        [*PLAIN.strip().replace(b',"text"', b',\n"text"').split(b"\n"), DIRTY.strip() + DIRTY.strip()],
    ],
)
def test_lines_of_which_one_is_no_event_are_refused(lines: list[bytes]) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_all_clean(lines)


def test_a_line_that_is_no_event_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_clean(b"{")
