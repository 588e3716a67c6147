"""Which keys stand in the footer."""

import pytest

from mlxcache_tui.draw.key_line import Key, fitting_keys

KEYS = (Key("send", "^s", "send"), Key("policy", "f2", "policy"), Key("quit", "^q", "quit"), Key("x", "x", "seen"))


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (100, "quit send policy x"),
        (36, "quit send policy"),
        (28, "quit send x"),  # the policy does not fit whole, a shorter one does
        (18, "quit send"),
        (17, "quit x"),
        (0, ""),
    ],
)
def test_only_whole_keys_by_importance(width: int, shown: str) -> None:
    kept = fitting_keys(KEYS, ("quit", "send", "policy", "quit"), width)
    assert " ".join(key.action for key in kept) == shown
    assert sum(key.cells for key in kept) <= width


def test_a_key_takes_what_the_footer_draws() -> None:
    assert Key("quit", "^q", "quit").cells == len(" ^q quit ")
