"""Views of a scenario run for the tests of its drawing: one step done, one running, one waiting."""

from typing import Any

from mlxcache_tui.core.scenario_view import ExpectView, Figures, RunView, ScenarioView, StepView, VerdictLine


def figures(**fields: Any) -> Figures:
    known: dict[str, Any] = {"ttft_s": 0.048, "cached_ratio": 0.92, "evictions": 0, "wall_s": 1.2}
    return Figures(**(known | fields))


def step_view(name: str, **fields: Any) -> StepView:
    done = fields.get("status", "waiting") in ("done", "failed")
    known: dict[str, Any] = {
        "id": name,
        "name": name,
        "status": "waiting",
        "done": int(done),
        "total": 1,
        "notes": (),
        "figures": figures() if done else None,
        "before": figures() if done else None,
        "expects": (),
    }
    return StepView(**(known | fields))


def run_view(*steps: StepView, **fields: Any) -> RunView:
    known: dict[str, Any] = {
        "label": "",
        "values": "",
        "status": "done",
        "steps": steps,
        "figures": figures(),
        "before": None,
    }
    return RunView(**(known | fields))


def scenario_pane_view(**fields: Any) -> ScenarioView:
    held = ExpectView(text="cached_ratio >= 0.5", held=True, detail="92 %")
    steps = (
        step_view("first", status="done", expects=(held,)),
        step_view(
            "second",
            status="running",
            notes=("↻ server restarted first",),
            expects=(ExpectView(text="evictions == 1"),),
        ),
        step_view("third"),
    )
    known: dict[str, Any] = {
        "name": "x",
        "title": "A scenario",
        "phase": "running",
        "head": VerdictLine(tone="plain", text="running · step 2 of 3 · 1 of 3 requests"),
        "share": 1 / 3,
        "runs": (run_view(*steps, status="running"),),
        "limits": "",
        "current": 0,
        "changed": (),
        "has_before": False,
        "verdict": (),
    }
    return ScenarioView(**(known | fields))
