"""Session files made of stories, for the tests of what reads them."""

from pathlib import Path

from mlxcache_tui.core import events as ev
from mlxcache_tui.core.codec import encode_event
from support.story import Story

STARTED = ev.SessionStarted(
    at_ns=1,
    origin="program",
    protocol=1,
    program="0.1.0",
    started="2026-11-29T14:48:03+01:00",
    wall_ns=1_795_960_083 * 10**9,
    mode="none",
)
SECRET = "The zebra clause allows returns on a Thursday"
QUESTION = "May Ottilie return the purple teapot"
LOG = "2026-11-29 14:48:18,123 - INFO - Prompt processing progress: 2048/4012"


def told(*, size: int = 2) -> Story:
    """Two policies in turn on an observed server: a miss, a hit, an eviction, a miss; with log, memory and notices."""
    story = Story()
    story.tell(STARTED)
    story.tell(ev.PolicyKnown(at_ns=story.tick(), origin="program", label="returns", text=SECRET))
    story.server(prompt_cache_size=size, chat_template="{{ zebra clause }}")
    story.compose("w", user="Hi", system=None, policy=None, purpose="readiness", warmup=True)
    story.answer("w", prompt=10, cached=0)
    story.sent("a", entry=1, system=SECRET)
    story.tell(ev.LogRead(at_ns=story.tick(), origin="log", lines=(ev.LogLine(text=LOG, kind="progress"),)))
    body = f"2026-11-29 14:48:19,001 - DEBUG - Incoming Request Body: {QUESTION}"
    story.tell(ev.LogRead(at_ns=story.tick(), origin="log", lines=(ev.LogLine(text=body, kind="record"),)))
    story.compose("b", user=QUESTION, system=SECRET, before="zebra before", params={"max_tokens": 3, "stop": QUESTION})
    story.look_up("b", prompt=100, cached=90, base="a", shared=90, entry=1)
    story.store(2, "b", 103)
    story.answer("b", prompt=100, cached=90)
    story.sent("c", entry=3, system="other", policy="other")
    story.evict(1, "c", limit=size)
    story.tell(ev.MemorySampled(at_ns=story.tick(), origin="memory", pid=10, source="pss", bytes=5_000_000))
    story.compose("d", user=QUESTION, system=SECRET)
    story.end("d", "failed", error=f"HTTP 500: cannot answer {QUESTION}")
    return story


def write(path: Path, story: Story) -> Path:
    """The story as a session file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(encode_event, story.events)))
    return path
