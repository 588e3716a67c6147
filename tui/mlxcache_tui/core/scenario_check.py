"""From the text of a scenario file to a `Scenario`, or to all of its mistakes at once.

Strict: a key that means nothing here is a mistake, since a misspelt one would silently test something else. Reading
policy files is the caller's: it passes a function, so that this stays free of files.
"""

import hashlib
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mlxcache_tui.core import expect
from mlxcache_tui.core.scenario import VARIABLE, VARIABLES, Policy, Scenario, Step
from mlxcache_tui.core.scenario_keys import DEFAULT_KEYS, FILLED, FLAG_KEYS, LINE, SIZE, STEP_KEYS, TOP_KEYS, Key
from mlxcache_tui.core.toml_lines import Path, key_lines, line_of
from mlxcache_tui.core.units import parse_size

_AT_LINE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_ALL_STEPS = "all"
"""What the results of a comparison call the figures over all steps."""


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong: where (line 0: the file as a whole), and what was expected."""

    source: str
    line: int
    key: str
    text: str

    def __str__(self) -> str:
        """`file:line: key: what was expected`."""
        place = f"{self.source}:{self.line}" if self.line else self.source
        return f"{place}: {self.key + ': ' if self.key else ''}{self.text}"


class ScenarioError(Exception):
    """The file cannot be run; `mistakes` has every reason, in the order of lines."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = tuple(mistakes)


class PolicyFileError(Exception):
    """A policy file cannot be used; the message says why in one line."""


ReadPolicy = Callable[[str], str]
"""Gives the text of a policy file named in the scenario; raises `PolicyFileError`."""


def check(text: str, *, source: str, name: str, read_policy: ReadPolicy) -> Scenario:
    """Read and check a scenario.

    Args:
        text: the file's text.
        source: its name for messages.
        name: the scenario's name.
        read_policy: reads the policy files that it names.

    Raises:
        ScenarioError: with all mistakes.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError([_syntax_mistake(str(error), text, source)]) from error
    except RecursionError as error:
        raise ScenarioError([_syntax_mistake("it is nested too deeply", text, source)]) from error
    checker = _Checker(raw, text, source, read_policy)
    scenario = checker.scenario(name)
    if checker.mistakes:
        raise ScenarioError(sorted(checker.mistakes, key=lambda mistake: mistake.line))
    return scenario


def attached_mistakes(scenario: Scenario) -> list[Mistake]:
    """What cannot be done with a server that we did not start: restarts and sweeps."""
    found = [
        Mistake(
            source=scenario.source,
            line=step.restart_line,
            key=f"steps.{step.id}.restart",
            text="a server that we did not start cannot be restarted; run with --demo or --model, or remove restart",
        )
        for step in scenario.steps
        if step.restart is not None
    ]
    if scenario.sweep:
        text = "a sweep restarts the server for each limit, and this server is not ours; run with --demo or --model"
        found.append(Mistake(source=scenario.source, line=scenario.sweep_line, key="sweep", text=text))
    return found


def _syntax_mistake(message: str, text: str, source: str) -> Mistake:
    place = _AT_LINE.search(message)
    line = int(place[1]) if place and place[1] else text.count("\n") + 1
    return Mistake(source=source, line=line, key="", text=f"not valid TOML: {_AT_LINE.sub('', message)}")


class _Checker:
    """Collects mistakes while it builds the scenario; what is wrong is left out, so that later checks still run."""

    def __init__(self, raw: dict[str, Any], text: str, source: str, read_policy: ReadPolicy) -> None:
        self.raw = raw
        self.text = text
        self.lines = key_lines(text)
        self.source = source
        self.read_policy = read_policy
        self.mistakes: list[Mistake] = []
        self.policies: dict[str, Policy] = {}
        self.steps: list[Step] = []

    def scenario(self, name: str) -> Scenario:
        """Check everything; the result is meaningless if there are mistakes."""
        top = self._table((), self.raw, TOP_KEYS)
        if "steps" not in self.raw:
            self._wrong((), "steps", "expected one or more [[steps]] tables")
        server = self._flags(("server",), top.get("server", {}), {**FLAG_KEYS, "model": FILLED})
        sweep = self._sweep(top.get("sweep", {}))
        for label in top.get("policies", {}):
            self._policy(label, top["policies"][label])
        defaults = self._table(("defaults",), top.get("defaults", {}), DEFAULT_KEYS)
        for index, step in enumerate(top.get("steps", [])):
            self._step(index, defaults | self._table(("steps", index), step, STEP_KEYS), step)
        self._expectations(top.get("steps", []))
        return Scenario(
            name=name,
            title=top.get("title", name),
            about=top.get("about", ""),
            source=self.source,
            notes=_notes(self.text),
            digest=_digest(self.text, self.policies),
            server=server,
            policies=self.policies,
            steps=tuple(self.steps),
            sweep=sweep,
            sweep_line=line_of(self.lines, ("sweep",)),
            needs=top.get("needs"),
        )

    # --- one part each ---

    def _table(self, path: Path, raw: Mapping[str, Any], keys: Mapping[str, Key]) -> dict[str, Any]:
        """The pairs of a table that are right; the others become mistakes."""
        good: dict[str, Any] = {}
        for name, value in raw.items():
            known = keys.get(name)
            if known is None:
                self._wrong((*path, name), name, f"unknown key{expect.nearest(name, list(keys))}")
            elif known.accepts(value):
                good[name] = value
            else:
                self._wrong((*path, name), name, f"expected {known.expected}, not {_shown(value)}")
        return good

    def _flags(self, path: Path, raw: Mapping[str, Any], keys: Mapping[str, Key] = FLAG_KEYS) -> dict[str, Any]:
        """Server flags, sizes turned into bytes; false takes a switch away (None)."""
        return {name: _flag_value(keys[name], value) for name, value in self._table(path, raw, keys).items()}

    def _sweep(self, raw: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        sweep: dict[str, tuple[Any, ...]] = {}
        for name, values in raw.items():
            path = ("sweep", name)
            known = FLAG_KEYS.get(name)
            if known is None:
                self._wrong(path, name, f"unknown server flag{expect.nearest(name, list(FLAG_KEYS))}")
            elif not isinstance(values, list) or not values:
                self._wrong(path, name, f"expected a list of values, each {known.expected}, not {_shown(values)}")
            else:
                for index, value in enumerate(values):
                    if not known.accepts(value):
                        self._wrong((*path, index), name, f"expected {known.expected}, not {_shown(value)}")
                        break
                else:
                    sweep[name] = tuple(_flag_value(known, value) for value in values)
        return sweep

    def _policy(self, label: str, raw: Any) -> None:
        path: Path = ("policies", label)
        if not LINE.accepts(label):
            self._wrong(path, label, f"expected {LINE.expected} as the policy's label")
        text: str | None = None
        file: str | None = None
        if isinstance(raw, str):
            text = raw
            self._variables(path, label, raw)
        elif isinstance(raw, dict):
            good = self._table(path, raw, {"file": FILLED})
            file = good.get("file")
            if file is not None:
                try:
                    text = self.read_policy(file)
                except PolicyFileError as error:
                    self._wrong((*path, "file"), label, str(error))
            elif not raw:
                self._wrong(path, label, 'expected a text or { file = "policies/….md" }')
        else:
            self._wrong(path, label, f'expected a text or {{ file = "policies/….md" }}, not {_shown(raw)}')
        if text is not None and not text.strip():
            self._wrong(path, label, "the policy is empty")
        # A label stays known even if its text is not: one mistake, not one more for each step that names it.
        self.policies[label] = Policy(label=label, text=text or "", file=file)

    def _step(self, index: int, good: dict[str, Any], raw: Mapping[str, Any]) -> None:
        path: Path = ("steps", index)
        step_id = good.get("id", f"step{index + 1}")
        if any(step.id == step_id for step in self.steps):
            self._wrong((*path, "id"), "id", f"{step_id!r} is used twice; each step needs its own")
        elif step_id in expect.AGGREGATES:
            self._wrong((*path, "id"), "id", f"{step_id!r} has a meaning in expectations; choose another id")
        if good.get("name", step_id) == _ALL_STEPS:
            key = "name" if "name" in good else "id"
            self._wrong((*path, key), key, f"{_ALL_STEPS!r} means all steps in comparisons; expected another {key}")
        if ("user" in raw) == ("users" in raw):
            self._wrong(path, "user", "expected either user (one text) or users (a list of texts)")
        for name in ("before", "after", "user"):
            self._variables((*path, name), name, good.get(name, ""))
        for at, user in enumerate(good.get("users", ())):
            self._variables((*path, "users", at), "users", user)
        label = good.get("policy")
        if label is not None and label not in self.policies:
            near = expect.nearest(label, list(self.policies)) if self.policies else "; there is no [policies]"
            self._wrong((*path, "policy"), "policy", f"no policy is called {label!r}{near}")
        users = tuple(good["users"]) if "users" in good else (good.get("user", ""),)
        step = Step(
            id=step_id,
            name=good.get("name", step_id),
            line=line_of(self.lines, path),
            users=users,
            restart=self._restart(path, good.get("restart")),
            restart_line=line_of(self.lines, (*path, "restart")),
            wait_s=float(good.get("wait", 0)),
            **{name: good[name] for name in _SAME_NAME if name in good},
        )
        self._continues(path, step, raw)
        self.steps.append(step)

    def _restart(self, path: Path, raw: bool | dict[str, Any] | None) -> dict[str, Any] | None:
        if isinstance(raw, dict):
            return self._flags((*path, "restart"), raw)
        return {} if raw else None

    def _continues(self, path: Path, step: Step, raw: Mapping[str, Any]) -> None:
        if step.continues is None:
            return
        place = (*path, "continues")
        earlier = next((known for known in self.steps if known.id == step.continues), None)
        if earlier is None:
            text = f"no earlier step is called {step.continues!r}"
            near = expect.nearest(step.continues, [known.id for known in self.steps]) if self.steps else ""
            self._wrong(place, "continues", text + near)
        elif earlier.count not in (1, step.count):
            text = f"{earlier.id} has {earlier.count} requests and this step {step.count}; expected 1 or as many"
            self._wrong(place, "continues", text)
        for name in ("policy", "before", "after"):
            if name in raw:
                text = f"a step that continues another keeps its system message; remove {name}"
                self._wrong((*path, name), name, text)

    def _expectations(self, raw_steps: list[dict[str, Any]]) -> None:
        """Last, since an expectation may name any step before it."""
        ids = [step.id for step in self.steps]
        for index, raw in enumerate(raw_steps):
            texts = raw.get("expect")
            if not STEP_KEYS["expect"].accepts(texts) or texts is None:
                continue
            read = []
            for at, text in enumerate(texts):
                path = ("steps", index, "expect", at)
                try:
                    expectation = expect.parse(text)
                except expect.ExpectationError as error:
                    self._wrong(path, "expect", str(error))
                    continue
                for named in expectation.steps():
                    self._named_step(path, named, ids, index)
                read.append(expectation)
            self.steps[index] = msgspec.structs.replace(self.steps[index], expect=tuple(read))

    def _named_step(self, path: Path, named: str, ids: list[str], index: int) -> None:
        if named not in ids:
            self._wrong(path, "expect", f"no step is called {named!r}{expect.nearest(named, ids)}")
        elif ids.index(named) > index:
            text = f"{named} comes after {ids[index]}; an expectation can look at its own and earlier steps only"
            self._wrong(path, "expect", text)

    def _variables(self, path: Path, key: str, text: str) -> None:
        for match in VARIABLE.finditer(text):
            if match[1] not in VARIABLES:
                near = expect.nearest(match[1], list(VARIABLES))
                self._wrong(path, key, f"unknown variable {match[0]}{near}")

    def _wrong(self, path: Path, key: str, text: str) -> None:
        line = line_of(self.lines, path)
        self.mistakes.append(Mistake(source=self.source, line=line, key=_full_key(path, key), text=text))


_SAME_NAME = (*(name for name in DEFAULT_KEYS if name != "wait"), "continues")
"""Step keys that go into `Step` as they are."""


def _full_key(path: Path, key: str) -> str:
    """`steps[2].users` for a path that may end in an element of the key."""
    words = ""
    for part in path:
        name = part if isinstance(part, int) or part.isprintable() else repr(part)
        words += f"[{name + 1}]" if isinstance(name, int) else f".{name}"
    words = words.removeprefix(".")
    return words if path and key in path else f"{words}.{key}".removeprefix(".")


def _flag_value(key: Key, value: Any) -> Any:
    if value is False:
        return None
    return parse_size(value) if key is SIZE and isinstance(value, str) else value


def _shown(value: Any) -> str:
    """A value as a person wrote it, short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an empty list" if not value else "a list"
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:39] + "…"


def _notes(text: str) -> str:
    """The comment block at the top, without its marks."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").removeprefix(" "))
    return "\n".join(lines).strip()


def _digest(text: str, policies: Mapping[str, Policy]) -> str:
    """12 hex digits over the file and the policies that it read: the same digest, the same requests."""
    whole = hashlib.sha256(text.encode())
    for label in sorted(policies):
        whole.update(f"\0{label}\0{policies[label].text}".encode())
    return whole.hexdigest()[:12]
