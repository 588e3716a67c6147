"""The address of a server as a person types it."""

from typing import NamedTuple
from urllib.parse import urlsplit

from mlxcache_tui.core.body import endpoint, shown_url

LOOPBACK = ("localhost", "::1")
MAX_PORT = 65535


class Address(NamedTuple):
    """Where a server is. `url` has no path behind it; `local`: on this machine, so its process can be looked at."""

    url: str
    port: int
    local: bool


def parse_address(text: str) -> Address:
    """The server meant by `http://host:8080/v1`, `localhost:8080`, `host:8080/` …

    Raises:
        ValueError: it is no address; one line that says what one looks like.
    """
    wrong = ValueError(f"{shown_url(text)} is not an address: it should look like http://127.0.0.1:8080")
    url = endpoint(text.strip(), "")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise wrong from None
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host or any(mark.isspace() for mark in url) or port == 0:
        raise wrong
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    return Address(url, port, host in LOOPBACK or host.startswith("127."))
