"""Addresses as people type them."""

import pytest

from mlxcache_tui.core.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://127.0.0.1:8080", Address("http://127.0.0.1:8080", 8080, local=True)),
        ("localhost:8080", Address("http://localhost:8080", 8080, local=True)),
        (" http://localhost:8080/v1/ ", Address("http://localhost:8080", 8080, local=True)),
        ("http://[::1]:9/", Address("http://[::1]:9", 9, local=True)),
        ("http://mac.local:8080/v1", Address("http://mac.local:8080", 8080, local=False)),
        ("https://example.org/llm/v1", Address("https://example.org/llm", 443, local=False)),
        ("example.org", Address("http://example.org", 80, local=False)),
    ],
)
def test_every_form_means_the_same_server(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "http://", "ftp://host", "http://host:port", "http://host:99999", "http://host:0", "http://[::1", "a b"],
)
def test_what_is_no_address_is_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address: it should look like http://127") as raised:
        parse_address(text)
    assert "\n" not in str(raised.value)


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="is not an address") as raised:
        parse_address("http://me:secret@host:port")
    assert "secret" not in str(raised.value)
