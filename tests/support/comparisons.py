"""Runs and comparisons to look at."""

from typing import Any

from mlxcache_tui.core.compare_view import CompareView, SessionRow, Side, compare_view
from mlxcache_tui.core.run_file import Request, Run, Server

LIMITS = {"prompt_cache_size": 10, "prompt_cache_bytes": None, "top_p": 1.0}


def request(step: str = "first", ttft: float = 1.0, cached: int = 0, text: str = "yes", **more: Any) -> Request:
    fields: dict[str, Any] = {"ttft_s": ttft, "e2e_s": ttft, "prompt_tokens": 100, "cached_tokens": cached}
    return Request(**({"step": step, "state": "done", "text": text} | fields | more))


def run(*requests: Request, flags: dict[str, Any] | None = None, **more: Any) -> Run:
    server = Server(
        mlx_lm="0.32.2", mlx="1", model="org/m", mode="launched", observed="observer", flags=LIMITS | (flags or {})
    )
    fields: dict[str, Any] = {"scenario": "s", "digest": "d", "server": server, "steps": ()}
    return Run(schema=1, requests=requests, **(fields | more))


def side(name: str, *runs: Run, **more: Any) -> Side:
    return Side(name=name, runs=runs, **({"when": "2026-11-29 20:10:33"} | more))


def compared(*, size: int = 1, answer: str = "no", changed: tuple[str, ...] = (), **flags: Any) -> CompareView:
    """Ten entries against `size`: the second step is read again, and answered otherwise."""
    a = run(request(), request("second", 0.1, 90))
    b = run(request(), request("second", 1.0, 0, text=answer), flags={"prompt_cache_size": size, **flags})
    return compare_view(side("before", a), side("after", b), changed)


def session_row(wanted: str = "one", **more: Any) -> SessionRow:
    fields: dict[str, Any] = {
        "when": "2026-11-29 20:10:33",
        "server": "http://127.0.0.1:8080",
        "model": "m",
        "limits": (10,),
        "requests": 8,
        "reuse": 0.41,
        "evictions": 0,
        "bytes": 310_000,
        "recording": False,
        "here": False,
    }
    return SessionRow(wanted=wanted, **(fields | more))
