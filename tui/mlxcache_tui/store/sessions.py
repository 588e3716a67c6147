"""The session files in the state folder: what is in each, at a glance, without folding it."""

import errno
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec

from mlxcache_tui.core.text import clean, short_model
from mlxcache_tui.store.paths import named_path, sessions_dir, time_since
from mlxcache_tui.store.recorder import is_recording


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One session. Unknown is None; `reuse` is token-weighted over requests that reported it, warm-ups left out."""

    path: str
    started: str | None
    lasted_s: float | None
    server: str | None
    mlx_lm: str | None
    model: str | None
    requests: int
    reuse: float | None
    evictions: int | None
    bytes: int
    recording: bool
    prompt_cache_sizes: tuple[int, ...] = ()
    """The limits that requests that count met, in order: a session may restart its server with another one."""
    warmed: int = 0
    """Requests that only warmed the cache, or the server; they have a number, and are not among `requests`."""
    damaged_line: int | None = None
    """The line that cannot be read: what is told here is what stands before it."""

    @property
    def name(self) -> str:
        """The name that `replay`, `export` and `--delete` take."""
        return Path(self.path).stem


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Tokens(msgspec.Struct):
    count: _Count | None = None


class _Line(msgspec.Struct):
    """What is needed of the events that are looked at; keys that one has not are None."""

    t: str
    at_ns: _Count
    started: str | None = None
    url: str | None = None
    model: str | None = None
    mlx_lm: str | None = None
    key: str | None = None
    purpose: str | None = None
    warmup: bool = False
    prompt_tokens: _Count | None = None
    cached_tokens: _Count | None = None
    tokens: _Tokens | int | None = None
    flags: Any = None


class _Event(msgspec.Struct):
    t: str


_decoder = msgspec.json.Decoder(_Line)
_any = msgspec.json.Decoder(_Event)
_LOOKED_AT = (
    "SessionStarted",
    "ServerTargeted",
    "ServerLaunched",
    "ServerIdentified",
    "ObserverConnected",
    "RequestComposed",
    "RequestEnded",
    "UsageReported",
    "LookedUp",
    "EntryEvicted",
)
_HEADS = tuple(f'{{"t":"{kind}",'.encode() for kind in _LOOKED_AT)


def list_sessions(folder: Path | None = None) -> list[SessionInfo]:
    """All sessions in the folder (None: the state folder), oldest first.

    Raises:
        PathsError: the state folder cannot be used.
    """
    found = []
    for path in sorted((folder or sessions_dir()).glob("*.jsonl")):
        if info := session_glance(path):
            found.append(info)
    return found


def session_glance(path: Path) -> SessionInfo | None:
    """What one of many sessions holds; None if that cannot be told: it was deleted meanwhile, or not written yet."""
    try:
        return session_info(path)
    except Exception:  # noqa: BLE001 - the boundary: one file, which may be anyone's, never hides the others
        return None


def session_info(path: Path) -> SessionInfo:
    """What one session holds.

    Raises:
        OSError: it cannot be read.
    """
    status = path.stat()
    glance = _Glance()
    damaged_line = _read(path, glance)
    lasted = (glance.last_ns - glance.first_ns) / 1e9 if glance.first_ns is not None else None
    return SessionInfo(
        path=str(path),
        started=glance.started,
        lasted_s=lasted,
        server=glance.server,
        mlx_lm=glance.mlx_lm,
        model=short_model(glance.model),
        requests=len(glance.counted),
        reuse=glance.reuse(),
        evictions=glance.evictions if glance.observed else None,
        bytes=status.st_size,
        recording=is_recording(path),
        prompt_cache_sizes=tuple(glance.limits),
        warmed=len(glance.warmed),
        damaged_line=damaged_line,
    )


def session_file(name: str) -> Path:
    """The file that a person means: a path, or the name of a session in the state folder.

    Raises:
        OSError: it cannot be told whether there is such a file.
        PathsError: the state folder cannot be used.
    """
    path = named_path(name)
    if path.is_char_device():
        raise OSError(errno.EINVAL, "it is a device, not a file")
    if path.exists() or path.parent != Path():
        return path
    inside = sessions_dir() / f"{name.removesuffix('.jsonl')}.jsonl"
    return inside if inside.exists() else path


def age_days(info: SessionInfo) -> float:
    """Days since the session was last written."""
    return time_since(Path(info.path).stat().st_mtime) / 86_400


def started_text(started: str | None, *, seconds: bool = False) -> str | None:
    """A start as the clock here shows it."""
    if started is None:
        return None
    try:
        form = "%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M"
        return datetime.fromisoformat(started).astimezone().strftime(form)
    except (ValueError, OverflowError):
        return None


def _read(path: Path, glance: "_Glance") -> int | None:
    """Look at the lines up to the first that cannot be read, as a replay does; its number, None if there is none."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                if line.startswith(_HEADS):
                    glance.take(_decoder.decode(line))
                elif line.strip():
                    _any.decode(line)
            except (msgspec.DecodeError, RecursionError):
                return number if line.endswith(b"\n") else None  # without its end it is being written
    return None


class _Glance:
    """Counts as the fold does, on the few events that say enough."""

    def __init__(self) -> None:
        self.started: str | None = None
        self.server: str | None = None
        self.mlx_lm: str | None = None
        self.model: str | None = None
        self.limits: dict[int, None] = {}
        self._limit: int | None = None
        """That of the server which is there now."""
        self.evictions = 0
        self.observed = False
        self.first_ns: int | None = None
        self.last_ns = 0
        self.counted: dict[str, None] = {}
        self.warmed: dict[str, None] = {}
        self._ended: set[str] = set()
        self._tokens: dict[str, tuple[int | None, int | None]] = {}

    def take(self, line: _Line) -> None:
        if line.t == "SessionStarted":
            self.started, self.first_ns = clean(line.started or ""), line.at_ns
        self.last_ns = max(self.last_ns, line.at_ns)
        if line.t == "EntryEvicted":
            self.evictions += 1
        elif line.t.startswith(("Server", "Observer")):
            self._of_server(line)
        elif line.key is not None:
            self._of_request(line, line.key)

    def _of_server(self, line: _Line) -> None:
        self.observed = self.observed or line.t == "ObserverConnected"
        self.server = clean(line.url) if line.url else self.server
        self.mlx_lm = clean(line.mlx_lm) if line.mlx_lm else self.mlx_lm
        self.model = clean(line.model) if line.model else self.model
        if line.t in ("ServerTargeted", "ServerLaunched"):
            self._limit = None
        limit = line.flags.get("prompt_cache_size") if isinstance(line.flags, dict) else None
        if isinstance(limit, int):
            self._limit = limit

    def _of_request(self, line: _Line, key: str) -> None:
        if line.t == "RequestComposed":
            if line.purpose == "readiness":
                return
            if line.warmup:
                self.warmed[key] = None
                return
            self.counted[key] = None
            if self._limit is not None:
                self.limits[self._limit] = None
        elif line.t == "RequestEnded":
            self._ended.add(key)
        else:
            prompt, cached = self._tokens.get(key, (None, None))
            count = line.tokens.count if isinstance(line.tokens, _Tokens) else line.prompt_tokens
            self._tokens[key] = (
                count if count is not None else prompt,
                line.cached_tokens if line.cached_tokens is not None else cached,
            )

    def reuse(self) -> float | None:
        """Σ cached ÷ Σ prompt tokens."""
        pairs = [self._tokens.get(key, (None, None)) for key in self.counted if key in self._ended]
        known = [(prompt, cached) for prompt, cached in pairs if prompt and cached is not None]
        total = sum(prompt for prompt, _ in known)
        return sum(cached for _, cached in known) / total if total else None
