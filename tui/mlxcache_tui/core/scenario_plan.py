"""What running a scenario would do here, in sentences, and why it cannot; made before anything is sent."""

from typing import Any

import msgspec

from mlxcache_tui.core.commands import DEFAULT_MODEL
from mlxcache_tui.core.scenario import Scenario, Step
from mlxcache_tui.core.scenario_check import attached_mistakes
from mlxcache_tui.core.scenario_values import flags_text
from mlxcache_tui.core.views import View


class ServerHere(View, frozen=True, kw_only=True):
    """The server as a scenario would find it. `ours`: it is started anew for each run; else it is used as it runs."""

    model: str | None
    ours: bool
    reachable: bool
    watch_only: bool = False
    flags: dict[str, Any] = msgspec.field(default_factory=dict)


class StepPlan(View, frozen=True, kw_only=True):
    """One step as the picker tells it."""

    name: str
    about: str
    notes: tuple[str, ...]
    expects: tuple[str, ...]


class Plan(View, frozen=True, kw_only=True):
    """What running a scenario here would do; `refused` says why it cannot."""

    does: tuple[str, ...]
    refused: tuple[str, ...]
    steps: tuple[StepPlan, ...]


def plan_of(scenario: Scenario, here: ServerHere) -> Plan:
    """What would happen, in sentences, and what cannot be done with the server that is here."""
    return Plan(
        does=tuple(_does(scenario, here)),
        refused=tuple(_refused(scenario, here)),
        steps=tuple(_step_plan(step) for step in scenario.steps),
    )


def _refused(scenario: Scenario, here: ServerHere) -> list[str]:
    if here.ours:
        return []
    if here.watch_only:
        return ["this viewer only watches (--watch): it cannot send"]
    if not here.reachable:
        return ["there is no server: start one or attach to one first (^o)"]
    return [f"{mistake.key}: {mistake.text}" for mistake in attached_mistakes(scenario)]


def _does(scenario: Scenario, here: ServerHere) -> list[str]:
    lines = []
    runs = scenario.combinations()
    flags = {name: value for name, value in scenario.server.items() if name != "model"}
    if here.ours:
        kept = {**here.flags, **flags}
        fixed = {name: value for name, value in kept.items() if name not in scenario.sweep and value is not None}
        own = f" with {flags_text(fixed)}" if fixed else " with the server's own limits"
        lines.append(f"Starts {here.model} anew, on an empty cache,{own}. What its cache holds now is lost.")
        if flags or scenario.sweep or any(step.restart for step in scenario.steps):
            lines.append("The server runs on with the last limits afterwards; ^o starts it with others.")
    else:
        lines.append("Uses the server as it runs, with what its cache holds.")
        lines += [f"The scenario wants {flags_text(flags)}; a difference is reported."] if flags else []
    for name, values in scenario.sweep.items():
        lines.append(f"Sweeps {name}: {', '.join(flags_text({name: value}).split(' ', 1)[1] for value in values)}.")
    lines += [f"{note[0].upper()}{note[1:]}." for note in model_notes(scenario, here.model)]
    requests, steps = sum(step.count for step in scenario.steps), len(scenario.steps)
    most = max(step.concurrency for step in scenario.steps)
    each = f", {len(runs)} times: {requests * len(runs)} in all" if len(runs) > 1 else ""
    at_once = f", at most {most} at once" if most > 1 else ", one after the other"
    lines.append(f"Sends {_counted(requests, 'request')} in {_counted(steps, 'step')}{each}{at_once}.")
    restarts = sum(step.restart is not None for step in scenario.steps)
    if restarts:
        lines.append(f"Restarts the server {_counted(restarts, 'time')} in between.")
    return lines


def model_notes(scenario: Scenario, served: str | None) -> list[str]:
    """What comes of another model than the served one (None: not known yet), a line each: told before anything is sent.

    `default_model` is the server's own word for what it was started with; any other name may cost a load or a download.
    """
    notes = []
    wanted = scenario.server.get("model")
    if wanted and served and wanted != served:
        notes.append(f"it was written for {wanted} and runs on {served} here")
    names = dict.fromkeys(step.model for step in scenario.steps)
    for name in names:
        if name not in (DEFAULT_MODEL, served):
            steps = ", ".join(step.name for step in scenario.steps if step.model == name)
            notes.append(
                f"{steps}: asks for the model {name}; the server drops {served or 'the one it has'}, loads that one "
                "and fetches it if it is not on this machine, or answers 404"
            )
    return notes


def unmet_need(scenario: Scenario, *, trimmable: bool | None) -> str:
    """Why the scenario's expectations say nothing on the model that is here; empty if they do, or nobody knows."""
    if scenario.needs != "trimmable" or trimmable is not False:
        return ""
    return (
        "the scenario assumes a cache that can be cut back, and this model's cannot (a sliding window, or recurrent "
        "layers): its expectations are not judged"
    )


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


def _step_plan(step: Step) -> StepPlan:
    parts = [_counted(step.count, "request")]
    if step.concurrency > 1:
        parts.append(f"{step.concurrency} at once")
    parts.append(f"policy {step.policy}" if step.policy else "no policy")
    if step.continues:
        parts.append(f"continues {step.continues}")
    parts.append(f"max {step.max_tokens} tokens")
    return StepPlan(
        name=step.name,
        about=", ".join(parts),
        notes=step_notes(step),
        expects=tuple(expectation.text for expectation in step.expect),
    )


def step_notes(step: Step) -> tuple[str, ...]:
    """What a step does besides sending."""
    notes = []
    if step.wait_s:
        notes.append(f"after {step.wait_s:g} s")
    if step.restart is not None:
        notes.append(f"↻ server restarted{' with ' + flags_text(step.restart) if step.restart else ''} first")
    if step.warmup:
        notes.append("warm-up: left out of the run's figures")
    return tuple(notes)
