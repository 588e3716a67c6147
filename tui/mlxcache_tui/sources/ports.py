"""Who holds a port on this machine, and which one is free."""

import asyncio
import contextlib
import random
import socket
from dataclasses import dataclass
from typing import Any

import psutil

from mlxcache_tui.core.text import clean

UNKNOWN_NAME = "another process"
QUIET_PORTS = range(20_000, 32_000)
"""Below those that a system gives away by itself (Linux from 32768 on, macOS from 49152): loading a model may take
minutes, and the port must still be free when the server opens it."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who listens on a port; another user's process is not told by name, then `pid` is None."""

    pid: int | None
    name: str

    @property
    def who(self) -> str:
        """`python3 (pid 42)`, or what there is of it."""
        return f"{self.name} (pid {self.pid})" if self.pid is not None else self.name


def holder(port: int) -> Holder | None:
    """The process that listens on `port` of this machine; None if nobody does."""
    pid = _listener(port)
    if pid is None:
        return Holder(None, UNKNOWN_NAME) if _taken(port) else None
    try:
        return Holder(pid, clean(psutil.Process(pid).name()))
    except psutil.Error:
        return Holder(pid, UNKNOWN_NAME)


def free_port(host: str) -> int:
    """A port on which nobody listens at `host` now.

    Raises:
        OSError: the host is no address of this machine.
    """
    place = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]  # once: looking a name up may take seconds
    for port in random.sample(QUIET_PORTS, 20):
        with contextlib.suppress(OSError):
            return _bound(place, port)
    return _bound(place, 0)


def _bound(place: tuple[Any, ...], port: int) -> int:
    family, kind, protocol, _, address = place
    with socket.socket(family, kind, protocol) as probe:
        probe.bind((address[0], port, *address[2:]))
        return int(probe.getsockname()[1])


async def accepts(host: str, port: int) -> bool:
    """Whether a connection is taken there. It is closed unused: that leaves no line in a server's log."""
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True


def _listener(port: int) -> int | None:
    """The pid that listens, as far as this user may see it."""
    try:
        connections = psutil.net_connections("tcp")
    except (psutil.AccessDenied, PermissionError):
        # macOS tells only about one's own processes, and only one by one.
        return _listener_among_own(port)
    pids = (one.pid for one in connections if _listens(one, port))
    return next((int(pid) for pid in pids if pid is not None), None)


def _listens(connection: Any, port: int) -> bool:
    return connection.status == psutil.CONN_LISTEN and bool(connection.laddr) and connection.laddr.port == port


def _listener_among_own(port: int) -> int | None:
    for process in psutil.process_iter():
        try:
            connections = process.net_connections("tcp")
        except (psutil.Error, OSError):
            continue
        if any(_listens(one, port) for one in connections):
            return int(process.pid)
    return None


def _taken(port: int) -> bool:
    """Whether somebody answers on the loopback address, or it cannot be bound."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.5)
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            return True
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the server does, so that a port in TIME_WAIT does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            return False
        except OSError:
            return True
    return False
