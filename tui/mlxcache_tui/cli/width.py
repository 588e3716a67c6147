"""How wide what a command prints may be."""

import os
from typing import TextIO


def terminal_width(stream: TextIO) -> int | None:
    """Cells in a line of the terminal that the stream goes to; None where it goes elsewhere, or nobody knows."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except OSError:
        return None
