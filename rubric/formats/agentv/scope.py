"""
An entry of a list of graders, as it is read: its fields, and what it belongs to.

The three generations of AgentV eval files, and how to tell them apart.

| generation | cases | graders | how an item says what it checks |
|---|---|---|---|
| 1 | `evalcases`, `eval_cases` | `rubrics`, `execution.evaluators` | `expected_outcome`, `description` |
| 1.5 | `tests` | `assertions`, `execution.evaluators`, `graders` | `outcome` |
| 2 | `tests` | `assert` | `outcome`, `criteria` |

Between 1.5 and 2, `assert` held graders whose types generation 2 does not have: they are those of 1.5.

Texts as they are written: what would be taken for a template, or for the name of a file, is marked as raw.

What a part of a file is read with: its notes, its folder, its generation and the variables that it may show.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from attrs import evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.formats.cursor import Loading, Notes
from rubric.formats.document import KeyPath, Unreadable
from rubric.formats.includes import is_reference
from rubric.formats.templates.render import is_template, render, show_environment
from rubric.internals.fields import suggest
from rubric.internals.text import as_json, shorten

Generation = Literal["agentv-1", "agentv-1.5", "agentv-2"]

CASES = ("tests", "evalcases", "eval_cases")
"""Where a file may have its cases."""

GRADERS = ("assert", "assertions", "graders", "evaluators")
"""Where a file, a case or its `execution` may have its graders."""

_SECOND = frozenset({"prompts", "providers", "default_test", "evaluate_options", "vars", "options", "refs"})
_REMOVED_TYPES = frozenset(
    {"rubrics", "llm-grader", "llm_judge", "llm-judge", "code_judge", "code-judge", "code-grader", "composite"}
)
_FIRST_TYPES = frozenset({"llm_judge", "rubric", "code_judge", "code", "tool_trajectory"})
_SECOND_TYPES = frozenset({"llm-rubric", "agent-rubric", "script", "assert-set"})
_BETWEEN = frozenset({"assertions", "graders", "execution", "workspace", "criteria"})
_FIRST = frozenset({"rubrics", "evaluators", "expected_outcome", "input_messages", "expected_messages", "outcome"})


def generation_of(data: Any) -> Generation:
    """Return the generation that *data*, the whole file, is written in; the current one where nothing tells."""
    if isinstance(data, Mapping) and not data.keys().isdisjoint(("evalcases", "eval_cases")):
        return "agentv-1"
    if isinstance(data, list) and any(looks_like_grader(item) for item in data):
        return _by_types(data)
    parts = [*_parts(data)]
    keys = {key for part in parts for key in part}
    if {"timestamp", "score", "dataset"} <= keys:  # the record of a run, whose suite was a dataset until generation 2
        return "agentv-1.5"
    if keys & _SECOND:
        return "agentv-2"
    if "assert" in keys:
        return "agentv-1.5" if keys & {"criteria", "execution"} and any(map(_asserts_removed, parts)) else "agentv-2"
    if keys & _FIRST and "assertions" not in keys and "tests" not in keys:
        return "agentv-1"
    return "agentv-1.5" if keys & (_BETWEEN | _FIRST) else "agentv-2"


def _asserts_removed(part: Mapping[Any, Any]) -> bool:
    entries = part.get("assert")
    graders = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return any(str(grader.get("type")) in _REMOVED_TYPES for grader in graders)


def looks_like_grader(item: object) -> bool:
    """Say whether *item* of a list is a grader, not a case."""
    return isinstance(item, Mapping) and "type" in item and item.keys().isdisjoint(("input", "vars", *GRADERS[:2]))


def _by_types(items: list[Any]) -> Generation:
    types = {str(item.get("type")) for item in items if isinstance(item, Mapping)}
    if types & _FIRST_TYPES or any(isinstance(item, Mapping) and "evaluators" in item for item in items):
        return "agentv-1"
    return "agentv-2" if types & _SECOND_TYPES else "agentv-1.5"


def _parts(data: Any) -> Iterator[Mapping[Any, Any]]:
    """Yield the mappings whose keys tell the generation: the file, its `execution` and its cases."""
    if isinstance(data, Mapping):
        yield data
        if isinstance(data.get("execution"), Mapping):
            yield data["execution"]
        tests = data.get("tests")
    else:
        tests = data
    if isinstance(tests, list):
        yield from (test for test in tests if isinstance(test, Mapping))


_RAW = re.compile(r"\{%\s*raw\s*%\}((?:(?!\{%-?\s*endraw).)*)\{%\s*endraw\s*%\}", re.DOTALL)


def quoted(text: str) -> str:
    """Return *text* so that it is read as it is; `unquoted` gives it back."""
    plain = text == text.strip() and not is_template(text) and not is_reference(text) and "${{" not in text
    return text if plain or "endraw" in text else f"{{% raw %}}{text}{{% endraw %}}"


def unquoted(text: str) -> str | None:
    """Return what stands between the marks, where all of *text* does; else None."""
    match = _RAW.fullmatch(text)
    return None if match is None else match[1]


THRESHOLD = 0.8
"""Where an AgentV case passes, unless it says otherwise."""

_SLOT = re.compile(r"\{\{\s*([^\W\d]\w*(?:\.\w+)*)\s*\}\}")
_ENVIRONMENT = re.compile(r"\{\{\s*(?:process\.)?env\b|\$\{\{")
_EXPRESSION = re.compile(r"\{%|\{\{[^{}]*[^\w\s.{}][^{}]*\}\}")
_MISSING = object()
_DEEPEST = 4


def as_text(value: Any) -> str:
    """Return *value* as people read it: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else as_json(value)


def _as_written(value: Any) -> str:
    """Return what was probably written for *value*, a boolean or a number; empty for all else."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, int | float) else ""


@frozen
class Scope:
    """
    Where a part of a file is read.

    Args:
        notes: Of the file.
        loading: Where the file stands, and what it may see.
        generation: What the file is written in.
        variables: The `vars` of the case, rendered.
        told: What was warned of already, where once is enough.
    """

    notes: Notes
    loading: Loading
    generation: Generation
    variables: Mapping[str, Any] = field(factory=dict)
    told: set[str] = field(factory=set)

    @property
    def required(self) -> bool:
        """Whether a criterion that does not say so is a gate: as documented, unless the caller decides."""
        return self.is_current if self.loading.required is None else self.loading.required

    @property
    def is_strict(self) -> bool:
        """Whether a required item with bands needs 10 of 10: as the code before generation 2 has it, not its pages."""
        return self.loading.required is True and not self.is_current

    @property
    def is_current(self) -> bool:
        """Whether the file is of generation 2, in which older names are errors."""
        return self.generation == "agentv-2"

    def error(self, path: KeyPath, message: str | DefinitionError, *, key: bool = False) -> None:
        """Note that what stands at *path* is wrong."""
        self.notes.error(path, message, key=key)

    def warn(self, path: KeyPath, message: str, *, key: bool = False) -> None:
        """Note that what stands at *path* is read otherwise than it says, or not at all."""
        self.notes.warn(path, message, key=key)

    def unknown(
        self, path: KeyPath, message: str, known: Collection[str], elsewhere: Mapping[Any, str] | None = None
    ) -> None:
        """Note a key that is not *known*: see `Notes.unknown`."""
        self.notes.unknown(path, f"{message}; it is not used{suggest(str(path[-1]), known)}", known, elsewhere)

    def once(self, path: KeyPath, message: str) -> None:
        """Warn of the key at *path*, the first time that this is said."""
        if message not in self.told:
            self.told.add(message)
            self.warn(path, message, key=True)

    def seeing(self, variables: Mapping[str, Any], path: KeyPath) -> Scope:
        """Return the scope of a case with *variables*; they may show one another, but for those that are raw."""
        raw = {name: said for name, v in variables.items() if isinstance(v, str) and (said := unquoted(v)) is not None}
        scope = evolve(self, variables={**variables, **raw})
        for _ in range(_DEEPEST):
            rendered = {
                name: value if name in raw else scope.filled(value, (*path, name))
                for name, value in scope.variables.items()
            }
            if rendered == scope.variables:
                break
            scope = evolve(self, variables=rendered)
        return scope

    def filled(self, value: Any, path: KeyPath) -> Any:
        """Return plain data with each text in it filled."""
        if isinstance(value, str):
            return self.fill(value, path)
        if isinstance(value, list):
            return [self.filled(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, Mapping):
            return {key: self.filled(item, (*path, key)) for key, item in value.items()}
        return value

    def fill(self, text: str, path: KeyPath) -> str:
        """
        Return *text* with variables in the place of `{{ name }}`.

        A name that is no variable is left as it stands, as AgentV does.
        """
        if (raw := unquoted(text)) is not None:
            return raw
        if _ENVIRONMENT.search(text):
            text = show_environment(text, self.loading, self.notes, path)
        if not self.is_current and not self.variables:
            return text
        if not _EXPRESSION.search(text):
            return _SLOT.sub(self._value, text)
        try:
            return render(text, {**self.variables, "vars": dict(self.variables)}, unknown="keep")
        except DefinitionError as problem:
            self.error(path, problem)
            return text

    def _value(self, match: re.Match[str]) -> str:
        found = self.look_up(match[1])
        return match[0] if found is None else found

    def look_up(self, name: str) -> str | None:
        """Return the variable called *name*, such as `topic` or `vars.person.name`, as text; None if there is none."""
        value: Any = self.variables
        for step in name.removeprefix("vars.").split("."):
            value = value.get(step, _MISSING) if isinstance(value, Mapping) else _MISSING
        return None if value is _MISSING else as_text(value)

    def text(self, value: Any, path: KeyPath) -> str:
        """Return *value*, which must be a text, filled; empty, with an error noted, if it is something else."""
        if isinstance(value, str):
            return self.fill(value, path)
        if isinstance(value, Unreadable):  # its flaw is noted already
            return ""
        said = _as_written(value)
        cure = f'; quote it: "{said}"' if said else ""
        self.error(path, f"expected text, got {shorten(repr(value))}{cure}")
        return ""

    def number(self, value: Any, path: KeyPath, *, above: bool = False, high: float | None = None) -> float | None:
        """Return *value*, a number from 0 (or just *above* it) to *high*; None, with an error noted, for all else."""
        fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
        if fits and not (above and value == 0) and (high is None or value <= high):
            return float(value) if isinstance(value, float) else value
        allowed = f"a number {'above' if above else 'from'} 0" + ("" if high is None else f" to {high:g}")
        self.error(path, f"expected {allowed}, got {shorten(repr(value))}")
        return None

    def flag(self, value: Any, path: KeyPath) -> bool | None:
        """Return *value*, true or false; None, with an error noted, for all else."""
        if isinstance(value, bool):
            return value
        self.error(path, f"expected true or false, got {shorten(repr(value))}")
        return None


_ELSEWHERE = dict.fromkeys(("vars", "options", "input", "expected_output"), "it belongs to the test")


@frozen
class Task:
    """
    What the graders of a case share.

    Args:
        threshold: The score from which the case passes.
        criteria: What a good answer does, in the case's own words; for a grader that has none.
        borderline: The score from which a failed case is borderline.
    """

    threshold: float = THRESHOLD
    criteria: str = ""
    borderline: float | None = None


@frozen
class Entry:
    """
    A grader as a file has it.

    Args:
        kind: Its type, without `not-`.
        name: Of its own (`metric`, `name` or `id`), or its type.
        fields: All that it says.
        scope: Where it is read.
        path: Where it stands.
        task: What the graders of the case share.
    """

    kind: str
    name: str
    fields: Mapping[Any, Any]
    scope: Scope
    path: KeyPath
    task: Task

    def at(self, key: Any) -> KeyPath:
        """Return where the field *key* stands."""
        return (*self.path, key)

    def get(self, key: str) -> Any:
        """Return the field *key*; None where it is not given."""
        return self.fields.get(key)

    def warn(self, message: str, key: str = "") -> None:
        """Warn of the entry, or of its field *key*."""
        if key:
            self.scope.warn(self.at(key), message, key=True)
        else:
            self.scope.warn(self.path, f"{self.name}: {message}")

    def least(self) -> float | None:
        """Return the score that the grader itself asks for: `min_score` in (0, 1], or `threshold`."""
        for key in ("min_score", "threshold"):
            if self.get(key) is not None:
                score = self.scope.number(self.get(key), self.at(key), above=key == "min_score", high=1)
                return score or None
        return None

    def gate(self) -> float | None:
        """Return the score below which the case fails: `required`, with `min_score` or the case's threshold."""
        required = self.get("required")
        if isinstance(required, int | float) and not isinstance(required, bool) and not self.scope.is_current:
            return self.scope.number(required, self.at("required"), above=True, high=1)
        if required is None or not self.scope.flag(required, self.at("required")):
            return None
        return self.least() or self.task.threshold or None

    def check_keys(self, known: frozenset[str]) -> None:
        """Warn of fields that are not *known*."""
        for key in self.fields:
            if key not in known:
                self.scope.unknown(self.at(key), f"{self.kind} has no such field", known, _ELSEWHERE)
