"""The session itself, and what is told to the person."""

from typing import Literal

from mlxcache_tui.core.events.base import Event


class SessionStarted(Event, frozen=True, kw_only=True):
    """First line of each session; ties the monotonic clock to wall time (`wall_ns`, since the epoch, at `at_ns`)."""

    protocol: int
    program: str
    started: str
    wall_ns: int
    mode: Literal["launched", "attached", "none"]


class Noticed(Event, frozen=True, kw_only=True):
    """One line for the person: what happened and what to do, in the pane where they look."""

    level: Literal["info", "warning", "error"]
    pane: Literal["requests", "composer", "cache", "memory", "log", "server", "scenario"]
    text: str


class EventsLost(Event, frozen=True, kw_only=True):
    """This viewer was too slow for the observer, which dropped `count` events rather than wait."""

    count: int


class PolicyKnown(Event, frozen=True, kw_only=True):
    """A policy's label and text, so that a request from another client that carries the text gets the label."""

    label: str
    text: str


class TextKept(Event, frozen=True, kw_only=True):
    """A message text, once; requests name it by `text_id` (see `text_id_of`)."""

    text_id: str
    text: str
