"""Events to JSON lines and back: the one format of the session file and of the observer's socket."""

import hashlib

import msgspec

from mlxcache_tui.core.events import AnyEvent, Event

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def encode_event(event: Event) -> bytes:
    """One event as one line of JSON, with its newline."""
    return _encoder.encode(event) + b"\n"


def decode_event(line: bytes) -> AnyEvent:
    """The event in one line.

    Raises:
        msgspec.DecodeError: the line is not JSON, or nested deeper than any event.
        msgspec.ValidationError: it is JSON but not an event of this version; the text names the place.
    """
    try:
        return _decoder.decode(line)
    except RecursionError as error:
        raise msgspec.DecodeError("it is nested too deeply") from error


def decode_events(lines: bytes) -> list[AnyEvent]:
    """The events in many lines; empty ones are passed over.

    Raises:
        msgspec.DecodeError: one of them cannot be decoded; see `decode_event`.
    """
    try:
        return _decoder.decode_lines(lines)
    except RecursionError as error:
        raise msgspec.DecodeError("a line is nested too deeply") from error


def text_id_of(text: str) -> str:
    """The name under which a message text is kept: 16 hex digits of its SHA-1 (an address, not a secret)."""
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]
