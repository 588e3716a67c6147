"""Drawing on a terminal that is gone; `tests/live/test_lifecycle.py` hangs up on the program itself."""

import pytest

from mlxcache_tui.core.settings import Settings
from mlxcache_tui.ui.app import MonitorApp
from mlxcache_tui.ui.driver import TerminalDriver


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> TerminalDriver:
    """One that was never started: what it draws fails."""
    monkeypatch.setattr(TerminalDriver, "gone", False)
    return TerminalDriver.__new__(TerminalDriver)


def test_nothing_is_drawn_once_the_terminal_is_gone(driver: TerminalDriver) -> None:
    with pytest.raises(AttributeError):
        driver.write("x")
    with pytest.raises(AttributeError):
        driver.close()
    driver.hang_up()
    driver.write("x")
    driver.close()


def test_the_program_draws_with_it() -> None:
    assert MonitorApp(Settings()).get_driver_class() is TerminalDriver
