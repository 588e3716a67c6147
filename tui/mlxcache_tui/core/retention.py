"""What became of the part that a prompt shares with an earlier one: kept, thrown out, never stored, not to be cut back.

Asked where less of it was found than is shared: of all of it (a miss), or of the rest (a hit that could be more).
"""

from dataclasses import dataclass
from typing import Literal

from mlxcache_tui.core.state import EntryRecord, Lookup, RequestState, SessionState
from mlxcache_tui.core.units import human_bytes, human_duration
from mlxcache_tui.core.views import ReasonKind

SLACK = 16
"""Tokens by which reuse may fall short of what is shared without being a miss: the last token, a segment's edge."""


@dataclass(frozen=True, slots=True)
class Fate:
    """Why the part shared with request `number` was not there: `detail` in short, `text` as evidence."""

    kind: ReasonKind
    number: int
    detail: str
    text: str
    evicted_by: int | None = None
    rule: Literal["count", "bytes"] | None = None

    @property
    def of_whom(self) -> str:
        """In short, beside another reason: with the number of the request that it is about."""
        match self.kind:
            case "evicted":
                return f"#{self.number} {self.detail}"
            case "in_flight":
                return f"#{self.number} was still in flight"
            case _:
                return self.detail


def what_became(state: SessionState, request: RequestState, base: RequestState, shared: int) -> Fate:
    """The fate of the first `shared` tokens as `base` left them, when the request looked for them."""
    lookup = request.lookup
    base = _one_that_was_stored(state, base, shared)
    if lookup is None:
        return Fate("unknown", base.number, "unknown", "the server has not looked it up")
    record = _deciding(state, base, lookup, shared)
    if record is None:
        return _never_stored(request, lookup, _first_in_flight(state, base, lookup, shared))
    cuttable = can_be_cut(state, record) or record.tokens <= shared
    if record.gone == "evicted" and cuttable:
        return _evicted(state, record, base, lookup)
    sequential = next((r for r in (lookup, base.lookup) if r is not None and r.path == "sequential"), None)
    if sequential is not None and not cuttable:
        whose = "this one" if sequential is lookup else f"#{base.number}"
        text = f"{whose} was served one at a time (seed, draft model, images or kv-bits): no checkpoints are kept there"
        return Fate("sequential", base.number, "sequential path: no checkpoint", text)
    if not cuttable:
        where = "is stored, but its" if record.gone is None else f"is gone by now ({record.gone}), and its"
        text = f"its entry ({entry_text(record)}) {where} layers cannot be cut back to the shared part"
        return Fate("not_trimmable", base.number, f"#{base.number}'s entry cannot be cut back", text)
    return Fate("unknown", base.number, "unknown", f"its entry ({entry_text(record)}) is stored, yet it was not used")


def entry_text(record: EntryRecord) -> str:
    """An entry in a few words."""
    return f"{record.tokens} tokens, {record.type}, {human_bytes(record.bytes)}"


def can_be_cut(state: SessionState, record: EntryRecord) -> bool:
    """Whether an entry can be cut back to a shorter prefix."""
    loaded = state.server.loaded
    if record.trimmable is not None:
        return record.trimmable
    return not (loaded is not None and loaded.trimmable is False)


def _one_that_was_stored(state: SessionState, base: RequestState, shared: int) -> RequestState:
    """Of requests with the same text in front the latest is told; if that was cut short, the one before it decides."""
    seen = base
    while seen.outcome in ("cancelled", "failed", "cut") and not seen.entries and seen.lookup is not None:
        run = seen.lookup.tokens
        earlier = state.requests.get(run.base) if run.base is not None else None
        if earlier is None or run.shared < shared - SLACK:
            break
        seen = earlier
    return seen if seen.entries else base


def _deciding(state: SessionState, base: RequestState, lookup: Lookup, shared: int) -> EntryRecord | None:
    """The entry that decides: one still stored, else the last to go; a swallowed one leads to its swallower.

    Of a layer that cannot be cut back only an entry that ends within the shared part could have been of more use than
    what was found: a checkpoint behind the system or the user message.
    """
    fates = []
    for record in (state.cache.records[entry] for entry in base.entries if entry in state.cache.records):
        seen = record
        while seen.gone == "swallowed" and seen.swallowed_by in state.cache.records:
            seen = state.cache.records[seen.swallowed_by]
        fates.append(seen)
    useful = [record for record in fates if can_be_cut(state, record) or lookup.cached_tokens < record.tokens <= shared]
    fates = useful or fates
    stored = [record for record in fates if record.gone is None]
    if stored:
        return stored[-1]
    return max(fates, key=lambda record: record.gone_ns or 0, default=None)


def _in_flight(base: RequestState, lookup: Lookup) -> bool:
    return base.stamps.ended is None or base.stamps.ended > lookup.at_ns


def _first_in_flight(state: SessionState, base: RequestState, lookup: Lookup, shared: int) -> RequestState:
    """Of several that compute the same at once the one that began first: it is stored first."""
    while base.lookup is not None and _in_flight(base, lookup):
        run = base.lookup.tokens
        earlier = state.requests.get(run.base) if run.base is not None else None
        if earlier is None or run.shared < shared - SLACK or earlier.entries or not _in_flight(earlier, lookup):
            break
        base = earlier
    return base


def _never_stored(request: RequestState, lookup: Lookup, base: RequestState) -> Fate:
    number = base.number
    if base.outcome in ("cancelled", "failed", "cut"):
        text = f"#{number} was {base.outcome} before its prompt was stored"
        return Fate("cancelled", number, f"#{number} was {base.outcome} before it was stored", text)
    if _in_flight(base, lookup):
        began = _since(base.lookup.at_ns if base.lookup else base.stamps.sent, lookup.at_ns)
        detail = f"#{number} was still in flight" + (f": begun {began} before" if began else "")
        since = f", begun {began} before it" if began else ""
        # The evidence is whole when that is stored, or over.
        base.awaited_by = tuple(dict.fromkeys((*base.awaited_by, request.key)))
        text = f"#{number} was still being computed at this look-up{since}; send one first, then the others"
        return Fate("in_flight", number, detail, text)
    return Fate("unknown", number, "unknown", f"nothing of #{number} is known to have been stored")


def _since(earlier: int | None, later: int) -> str:
    return human_duration(max(0, later - earlier) / 1e9) if earlier is not None else ""


def _evicted(state: SessionState, record: EntryRecord, base: RequestState, lookup: Lookup) -> Fate:
    by = state.number_of(record.gone_by)
    who = f"#{by}" if by is not None else "an unknown request"
    limit = human_bytes(record.limit) if record.rule == "bytes" else record.limit
    ago = f", {_since(record.gone_ns, lookup.at_ns)} before" if record.gone_ns is not None else ""
    queue = f"the oldest {record.type} entry goes first, used or not"
    return Fate(
        "evicted",
        base.number,
        f"evicted by {who} ({record.rule} {limit})",
        f"its entry ({entry_text(record)}) was thrown out by {who}{ago}: {record.rule} limit {limit}; {queue}",
        evicted_by=by,
        rule=record.rule,
    )


def came_late(state: SessionState, base: RequestState, at_ns: int, how: Literal["stored", "over"]) -> None:
    """What others looked for before it was there is stored now, or will not be: how long the two overlapped."""
    for key in base.awaited_by:
        request = state.requests.get(key)
        if request is None or request.reason is None or request.lookup is None:
            continue
        after = _since(request.lookup.at_ns, at_ns)
        what = "its prompt was stored" if how == "stored" else "it was over, nothing stored,"
        request.reason.add(f"{what} {after} after this look-up: so long the two overlapped")
        if request.reason.kind == "in_flight":
            request.reason.detail += f", {how} {after} after"
        state.dirty[key] = None
    base.awaited_by = ()
