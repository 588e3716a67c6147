"""Values of the command line that are checked where they are typed: a mistake is told at once, with exit status 2."""

from argparse import ArgumentTypeError

from mlxcache_tui.core.address import MAX_PORT, parse_address


def port_number(text: str) -> int:
    """A port's number; 0 stands for any free one."""
    if not (text.isascii() and text.isdigit()) or int(text) > MAX_PORT:
        raise ArgumentTypeError(f"{text} is not a port: expected a number from 0 to {MAX_PORT}")
    return int(text)


def server_url(text: str) -> str:
    """The address of a server, as it was typed."""
    try:
        parse_address(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
    return text
