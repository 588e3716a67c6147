"""Who holds a port, also where the system does not tell."""

import os
import socket
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from mlxcache_tui.sources import ports
from mlxcache_tui.sources.ports import Holder, free_port, holder


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_free_port_is_held_by_nobody_and_can_be_taken() -> None:
    port = free_port("127.0.0.1")
    assert port in ports.QUIET_PORTS
    assert holder(port) is None
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))


def test_where_all_of_the_quiet_ports_are_taken_the_system_gives_one(
    listening: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "QUIET_PORTS", [listening] * 20)
    assert free_port("127.0.0.1") != listening


def test_free_ports_for_names_and_for_no_address() -> None:
    assert 0 < free_port("localhost") < 65_536
    with pytest.raises(OSError, match=r".+"):
        free_port("198.51.100.1")


def test_a_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def unknown(host: str, *_: Any, **__: Any) -> Any:
        asked.append(host)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(OSError, match="not known"):
        free_port("no-such-host")
    assert asked == ["no-such-host"]


def test_the_holder_is_named(listening: int) -> None:
    assert holder(listening) == Holder(os.getpid(), psutil.Process().name())


def test_a_connection_from_a_port_does_not_hold_it(listening: int) -> None:
    with socket.create_connection(("127.0.0.1", listening)) as client:
        own = client.getsockname()[1]
        assert ports._listener(own) is None


def test_a_holder_that_the_system_hides_is_seen_by_connecting(listening: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "net_connections", lambda _: [])
    assert holder(listening) == Holder(None, "another process")


def test_a_port_that_is_bound_and_does_not_answer_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        assert holder(server.getsockname()[1]) == Holder(None, "another process")


def test_where_only_own_processes_are_told(listening: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(kind: str) -> Any:
        raise psutil.AccessDenied(1)

    monkeypatch.setattr(psutil, "net_connections", refused)
    found = holder(listening)
    assert found is not None
    assert found.pid == os.getpid()
    assert holder(free_port("127.0.0.1")) is None


def test_a_holder_that_ends_in_between_keeps_its_pid(listening: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(pid: int) -> Any:
        raise psutil.NoSuchProcess(pid)

    monkeypatch.setattr(psutil, "Process", gone)
    assert holder(listening) == Holder(os.getpid(), "another process")


def test_a_port_that_needs_rights_to_bind_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port("127.0.0.1")

    class Socket(socket.socket):
        def bind(self, _: Any) -> None:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("mlxcache_tui.sources.ports.socket.socket", Socket)
    assert holder(port) is None


async def test_whether_a_connection_is_taken(listening: int) -> None:
    assert await ports.accepts("127.0.0.1", listening)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        assert not await ports.accepts("127.0.0.1", taken.getsockname()[1])


def test_a_holder_is_named_as_far_as_it_is_known() -> None:
    assert Holder(42, "python3").who == "python3 (pid 42)"
    assert Holder(None, "another process").who == "another process"
