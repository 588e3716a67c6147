"""Budget: log lines taken in, from the file to the folded state, recorded as well: 100,000 a second, none lost."""

import asyncio
import time
from pathlib import Path
from statistics import median

from bench.conftest import Budget, Figure
from bench.live import LINE, numbers_in
from mlxcache_tui.core.commands import AttachServer
from mlxcache_tui.core.events import LogRead
from mlxcache_tui.core.settings import Settings
from mlxcache_tui.engine.setup import open_engine
from mlxcache_tui.store.replay import read_session

LINES, ROUNDS = 300_000, 3
PATIENCE_S = 60.0


async def taken_in(folder: Path, log: Path) -> float:
    """Lines a second of one burst into a log that an engine watches, until the last of them is in the state."""
    log.touch()
    session = folder / f"{log.stem}.jsonl"
    burst = "".join(LINE.format(n % 1000, n, n % 4012) for n in range(LINES)).encode()
    start = AttachServer(url="http://127.0.0.1:9", log_path=str(log))
    async with open_engine(Settings(start=start, save_path=str(session))) as engine:
        engine.listen(lambda _: None)  # as a screen does: folds are at most ten a second
        assert await engine.until(lambda state: state.server.log_path is not None, PATIENCE_S)
        began = time.monotonic()
        await asyncio.to_thread(log.write_bytes, burst)
        assert await engine.until(lambda state: state.log.total >= LINES, PATIENCE_S)
        took = time.monotonic() - began
        kept = numbers_in(row.text for row in engine.state.log.rows)
    assert kept == list(range(LINES - len(kept), LINES))
    reads = [event for event in read_session(session).events if isinstance(event, LogRead)]
    assert numbers_in(line.text for read in reads for line in read.lines) == list(range(LINES)), "lost, or out of order"
    session.unlink()
    return LINES / took


async def test_log_lines_taken_in(tmp_path: Path, budget: Budget) -> None:
    rates = [await taken_in(tmp_path, tmp_path / f"{number}.log") for number in range(ROUNDS)]
    note = f"{min(rates):,.0f}–{max(rates):,.0f}, {ROUNDS} bursts of {LINES:,}, none lost or out of order"
    budget.judge(Figure("log lines taken in a second", median(rates), 100_000, at_least=True, note=note))
