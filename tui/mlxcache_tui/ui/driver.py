"""The terminal's driver, which draws nothing any more once the terminal is gone.

Textual's own goes on: its writing thread ends at the first error, and after 30 more pieces the program waits for it for
ever. A dropped SSH makes the kernel send SIGCONT behind SIGHUP, which has it draw the whole screen anew.
"""

from typing import ClassVar

from textual.drivers.linux_driver import LinuxDriver


class TerminalDriver(LinuxDriver):
    """Textual's driver for Linux and macOS. A process has one terminal, so that `gone` is the class's."""

    gone: ClassVar[bool] = False

    @classmethod
    def hang_up(cls) -> None:
        """The terminal is gone: what is drawn from here on goes nowhere."""
        cls.gone = True

    def write(self, data: str) -> None:
        """Draw."""
        if not self.gone:
            super().write(data)

    def close(self) -> None:
        """End the writing thread, unless it may wait for a terminal that is gone: it does not keep the program."""
        if not self.gone:
            super().close()
