"""Signs: each meaning has one of its own, a cell wide, and a word."""

from typing import get_args

from mlxcache_tui.core.events import ServerPhase
from mlxcache_tui.core.text import cell_width
from mlxcache_tui.core.views import ReasonKind, RequestPhase
from mlxcache_tui.draw.signs import REASON_SIGNS, REQUEST_SIGNS, SERVER_SIGNS


def test_every_state_and_reason_has_a_sign() -> None:
    assert set(REQUEST_SIGNS) == set(get_args(RequestPhase))
    assert set(REASON_SIGNS) == set(get_args(ReasonKind))
    assert set(SERVER_SIGNS) == set(get_args(ServerPhase))


def test_a_sign_takes_one_cell() -> None:
    for signs in (REQUEST_SIGNS, REASON_SIGNS, SERVER_SIGNS):
        assert all(cell_width(sign.sign) == 1 for sign in signs.values())


def test_no_two_reasons_or_states_of_a_request_look_the_same_without_colour() -> None:
    for signs in (REQUEST_SIGNS, REASON_SIGNS):
        assert len({sign.sign for sign in signs.values()}) == len(signs)
