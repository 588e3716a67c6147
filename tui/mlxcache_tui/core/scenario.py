"""A scenario: policies, steps, expectations and limits to sweep, as read from a file that passed its check.

Nothing here knows files or a clock. `drafts_of` turns a step into the requests to send.
"""

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mlxcache_tui.core.commands import DEFAULT_MODEL, Draft
from mlxcache_tui.core.expect import Expectation

VARIABLES = ("n", "today", "uuid")
"""Names that may stand in double braces in a step's texts."""
VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy's text; `file` as written in the scenario, if it came from one."""

    label: str
    text: str
    file: str | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One or several requests that belong together. `wait_s` seconds pass before it.

    `restart`: None does not restart; else the flags to change (None as a value removes one), possibly none.
    `users` is never empty; `repeat` sends all of them that many times; `concurrency` is how many are in flight at most.
    """

    id: str
    name: str
    line: int
    users: tuple[str, ...]
    policy: str | None = None
    before: str = ""
    after: str = ""
    concurrency: int = 1
    repeat: int = 1
    warmup: bool = False
    max_tokens: int = 128
    temperature: float | None = None
    seed: int | None = None
    stream: bool = True
    model: str = DEFAULT_MODEL
    chat_template_kwargs: dict[str, Any] = {}
    wait_s: float = 0.0
    continues: str | None = None
    restart: dict[str, Any] | None = None
    restart_line: int = 0
    expect: tuple[Expectation, ...] = ()

    @property
    def count(self) -> int:
        """How many requests the step sends."""
        return len(self.users) * self.repeat


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A checked scenario. `notes` is the comment block at its top; `digest` changes with any of its texts.

    `needs`: what its expectations assume of the model's cache; "trimmable" is one that can be cut back.
    """

    name: str
    title: str
    about: str
    source: str
    notes: str
    digest: str
    server: dict[str, Any]
    policies: dict[str, Policy]
    steps: tuple[Step, ...]
    sweep: dict[str, tuple[Any, ...]]
    sweep_line: int = 0
    needs: str | None = None

    def combinations(self) -> tuple[dict[str, Any], ...]:
        """The flags of each run of the sweep, the last key turning fastest; one empty set without a sweep."""
        names = tuple(self.sweep)
        return tuple(dict(zip(names, values, strict=True)) for values in itertools.product(*self.sweep.values()))

    def step(self, step_id: str) -> Step:
        """The step with this id.

        Raises:
            KeyError: there is none.
        """
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier request that a later one continues: what was sent and what came back."""

    draft: Draft
    answer: str


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with `{{name}}` replaced for the names in `values`; other braces stay."""
    return VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)


def draft_of(
    scenario: Scenario, step: Step, user: str, values: Callable[[], Mapping[str, str]], earlier: Sent | None
) -> Draft:
    """The request for one user message of a step.

    Args:
        values: gives the values of `VARIABLES` for this request; asked once.
        earlier: for a step that continues another: that request, whose system message and turns stand before this one.
    """
    known = values()
    extra: dict[str, Any] = {}
    if step.seed is not None:
        extra["seed"] = step.seed
    if step.chat_template_kwargs:
        extra["chat_template_kwargs"] = step.chat_template_kwargs
    draft = Draft(
        user=fill(user, known),
        policy=step.policy,
        policy_text=fill(scenario.policies[step.policy].text, known) if step.policy else "",
        before=fill(step.before, known),
        after=fill(step.after, known),
        max_tokens=step.max_tokens,
        stream=step.stream,
        temperature=step.temperature,
        model=step.model,
        extra=extra,
        purpose="scenario",
        step=step.name,
        scenario=(scenario.name, scenario.digest),
        warmup=step.warmup,
    )
    if earlier is None:
        return draft
    first = earlier.draft
    return msgspec.structs.replace(
        draft,
        policy=first.policy,
        policy_text=first.policy_text,
        before=first.before,
        after=first.after,
        messages=(*first.messages, ("user", first.user), ("assistant", earlier.answer)),
    )
