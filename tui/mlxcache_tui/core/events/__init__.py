"""Every fact that the program knows is one of these events.

One stream of them feeds everything: the fold in `reduce`, the session file, a second viewer, a test. They are
immutable, stamped with the monotonic clock (`at_ns`, nanoseconds) where the fact happened, and tagged with where it
came from (`origin`). The same JSON is written by the observer inside the server (which cannot import this file), by the
session file and by the sources here: one object a line, its kind in `t`.

The same kind may come from two places: a request's `RequestSent` of origin `client` is stamped when our bytes leave the
socket, of origin `observer` when the server began to read it. The fold keeps both apart.
"""

from mlxcache_tui.core.events.base import (
    PROTOCOL,
    EntryType,
    Event,
    LogKind,
    Origin,
    Outcome,
    Purpose,
    ServerPhase,
    TextKind,
)
from mlxcache_tui.core.events.cache import (
    CacheCounted,
    CacheSnapshot,
    EntryEvicted,
    EntryInserted,
    EntryState,
    EntrySwallowed,
    LookedUp,
    TokenRun,
    TokensNamed,
)
from mlxcache_tui.core.events.log import LogLine, LogOwned, LogRead, SourceFailed
from mlxcache_tui.core.events.memory import MemorySampled, MlxMemorySampled
from mlxcache_tui.core.events.requests import (
    FinishArrived,
    FirstTokenArrived,
    PrefillProgressed,
    RequestAdmitted,
    RequestComposed,
    RequestEnded,
    RequestSent,
    TextArrived,
    UsageReported,
)
from mlxcache_tui.core.events.server import (
    ModelFetchProgressed,
    ModelLoaded,
    ModelLoadFailed,
    ModelLoadStarted,
    ObserverConnected,
    ObserverLost,
    ServerExited,
    ServerIdentified,
    ServerLaunched,
    ServerPhaseChanged,
    ServerTargeted,
    WorkerDied,
)
from mlxcache_tui.core.events.session import EventsLost, Noticed, PolicyKnown, SessionStarted, TextKept

AnyEvent = (
    SessionStarted
    | Noticed
    | EventsLost
    | PolicyKnown
    | TextKept
    | ServerTargeted
    | ServerLaunched
    | ServerPhaseChanged
    | ModelFetchProgressed
    | ServerIdentified
    | ObserverConnected
    | ObserverLost
    | ModelLoadStarted
    | ModelLoaded
    | ModelLoadFailed
    | WorkerDied
    | ServerExited
    | RequestComposed
    | RequestSent
    | RequestAdmitted
    | PrefillProgressed
    | FirstTokenArrived
    | TextArrived
    | FinishArrived
    | UsageReported
    | RequestEnded
    | LookedUp
    | TokensNamed
    | EntryInserted
    | EntrySwallowed
    | EntryEvicted
    | CacheSnapshot
    | CacheCounted
    | MlxMemorySampled
    | MemorySampled
    | LogRead
    | LogOwned
    | SourceFailed
)

__all__ = [
    "PROTOCOL",
    "AnyEvent",
    "CacheCounted",
    "CacheSnapshot",
    "EntryEvicted",
    "EntryInserted",
    "EntryState",
    "EntrySwallowed",
    "EntryType",
    "Event",
    "EventsLost",
    "FinishArrived",
    "FirstTokenArrived",
    "LogKind",
    "LogLine",
    "LogOwned",
    "LogRead",
    "LookedUp",
    "MemorySampled",
    "MlxMemorySampled",
    "ModelFetchProgressed",
    "ModelLoadFailed",
    "ModelLoadStarted",
    "ModelLoaded",
    "Noticed",
    "ObserverConnected",
    "ObserverLost",
    "Origin",
    "Outcome",
    "PolicyKnown",
    "PrefillProgressed",
    "Purpose",
    "RequestAdmitted",
    "RequestComposed",
    "RequestEnded",
    "RequestSent",
    "ServerExited",
    "ServerIdentified",
    "ServerLaunched",
    "ServerPhase",
    "ServerPhaseChanged",
    "ServerTargeted",
    "SessionStarted",
    "SourceFailed",
    "TextArrived",
    "TextKept",
    "TextKind",
    "TokenRun",
    "TokensNamed",
    "UsageReported",
    "WorkerDied",
]
