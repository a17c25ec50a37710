"""
What every part of an AgentV file is read with: its generation, and the variables that it may show.

docs/how-to/from_agentv.md tells the generations apart. Between 1.5 and 2, `assert` held graders whose types generation
2 does not have: they are those of 1.5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from attrs import evolve, field, frozen

from rubric.embed import Cursor
from rubric.formats.agentv.targets import Targets
from rubric.formats.images import Attached
from rubric.formats.keys import keys_of, part_of
from rubric.formats.recognition import GRADERS, maps
from rubric.formats.rubric_items import Generation, ItemScope
from rubric.formats.templates.environment import show_environment
from rubric.formats.templates.render import render

_SECOND, _BETWEEN, _FIRST, _SECOND_TYPES, _REMOVED_TYPES, _FIRST_TYPES = (
    keys_of("agentv", "generations", which)
    for which in ("second", "between", "first", "second_types", "removed_types", "first_types")
)


def generation_of(data: Any) -> Generation:
    """Return the generation that *data*, the whole file, is written in; the current one where nothing tells."""
    if isinstance(data, Mapping) and not data.keys().isdisjoint(("evalcases", "eval_cases")):
        return "agentv-1"
    if isinstance(data, list) and any(looks_like_grader(item) for item in data):
        graders = [item for item in data if isinstance(item, Mapping)]
        types = {str(grader.get("type")) for grader in graders}
        if types & _FIRST_TYPES or any("evaluators" in grader for grader in graders):
            return "agentv-1"
        return "agentv-2" if types & _SECOND_TYPES else "agentv-1.5"
    whole = data if isinstance(data, Mapping) else {}
    tests = whole.get("tests") if isinstance(data, Mapping) else data
    candidates = [data, whole.get("execution"), *(tests if isinstance(tests, list) else ())]
    parts = [part for part in candidates if isinstance(part, Mapping)]
    keys = {key for part in parts for key in part}
    if {"timestamp", "score", "dataset"} <= keys:  # the record of a run, whose suite was a dataset until generation 2
        return "agentv-1.5"
    if keys & _SECOND:
        return "agentv-2"
    if "assert" in keys:
        graders = [grader for part in parts for grader in maps(part.get("assert"))]
        types = {str(grader.get("type")).removeprefix("not-") for grader in graders}
        if types & _SECOND_TYPES or not types & _REMOVED_TYPES:
            return "agentv-2"
        # `value` came with generation 2, and its own files still have `rubrics`, which it refuses.
        older = any(grader.get("type") in _REMOVED_TYPES - {"rubrics"} and "value" not in grader for grader in graders)
        return "agentv-1.5" if older or keys & {"criteria", "execution"} else "agentv-2"
    if keys & _FIRST and "assertions" not in keys and "tests" not in keys:
        return "agentv-1"
    return "agentv-1.5" if keys & (_BETWEEN | _FIRST) else "agentv-2"


def looks_like_grader(item: object) -> bool:
    """True if *item* of a list is a grader, not a case."""
    return isinstance(item, Mapping) and "type" in item and item.keys().isdisjoint(("input", "vars", *GRADERS[:2]))


_RAW = re.compile(r"\{%\s*raw\s*%\}((?:(?!\{%-?\s*endraw).)*)\{%\s*endraw\s*%\}", re.DOTALL)


def unquote(text: str) -> str | None:
    """Return the text between the marks of a raw text, where they enclose all of *text*; else None."""
    match = _RAW.fullmatch(text)
    return None if match is None else match[1]


THRESHOLD = 0.8
"""Where an AgentV case passes, unless it says otherwise."""

SLOT = re.compile(r"\{\{\s*([^\W\d]\w*(?:\.\w+)*)\s*\}\}")
"""A plain slot of a template, such as `{{ topic }}` or `{{ vars.person.name }}`."""

_ENVIRONMENT = re.compile(r"\{\{\s*(?:process\.)?env\b|\$\{\{")
_EXPRESSION = re.compile(r"\{%|\{\{(?=[^{}]*\}\})[^{}]*[^\w\s.{}]")
_MISSING = object()
_DEEPEST = 4


def as_text(value: Any) -> str:
    """Return *value* as people read it: a text as it is, all else as JSON in the order of the author."""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that JSON does not have
        return str(value)


def as_json_list(text: str) -> list[Any] | None:
    """Return the JSON list that *text* is; None for any other text."""
    with suppress(ValueError, RecursionError):
        found = json.loads(text) if text.lstrip().startswith("[") else None
        return found if isinstance(found, list) else None
    return None


@frozen
class Scope(ItemScope):
    """
    The dialect and the variables that a part of a file is read with.

    Args:
        variables: The `vars` of the case, rendered.
        attached: Takes the images of what is read; None: they are told, and not shown.
        targets: What the file and its project call targets.
    """

    variables: Mapping[str, Any] = field(factory=dict)
    attached: Attached | None = None
    targets: Targets = field(factory=Targets)

    def seeing(self, variables: Mapping[str, Any], at: Cursor) -> Scope:
        """Return the scope of a case with *variables*; they may show one another, but for those that are raw."""
        raw = {name: said for name, v in variables.items() if isinstance(v, str) and (said := unquote(v)) is not None}
        scope = evolve(self, variables={**variables, **raw})
        # Bounded, since two variables that show each other would grow for ever.
        for _ in range(_DEEPEST):
            rendered = {
                name: value if name in raw else scope.fill_all(at[name].holding(value))
                for name, value in scope.variables.items()
            }
            if rendered == scope.variables:
                break
            scope = evolve(self, variables=rendered)
        return scope

    def fill_all(self, at: Cursor) -> Any:
        """Return plain data with each text in it filled."""
        value = at.value
        if isinstance(value, str):
            return self.fill(value, at)
        if isinstance(value, list):
            return [self.fill_all(part) for part in at]
        if isinstance(value, Mapping):
            return {key: self.fill_all(part) for key, part in at.items()}
        return value

    def fill(self, text: str, at: Cursor) -> str:
        """Return *text*, found at the cursor, with its slots filled; names without a variable stay, as in AgentV."""
        if (raw := unquote(text)) is not None:
            return raw
        if _ENVIRONMENT.search(text):
            text = show_environment(text, at)
        if not self.is_current and not self.variables:
            return text
        if not _EXPRESSION.search(text):
            return SLOT.sub(lambda slot: slot[0] if (found := self.look_up(slot[1])) is None else found, text)
        rendered = at.built(render, text, {**self.variables, "vars": dict(self.variables)}, unknown="keep")
        return text if rendered is None else rendered

    def look_up(self, name: str) -> str | None:
        """Return the variable called *name*, such as `topic` or `vars.person.name`, as text; None if there is none."""
        value: Any = self.variables
        for step in name.removeprefix("vars.").split("."):
            value = value.get(step, _MISSING) if isinstance(value, Mapping) else _MISSING
        return None if value is _MISSING else as_text(value)


@frozen
class Task:
    """The settings that the graders of a case share."""

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
        at: Its fields, and their place.
        scope: Its dialect and variables.
        task: What the graders of the case share.
    """

    kind: str
    name: str
    at: Cursor
    scope: Scope
    task: Task

    def warn(self, message: str, key: str = "") -> None:
        """Warn of the entry, or of its field *key*."""
        if key:
            self.at[key].warn(message, key=True)
        else:
            self.at.warn(f"{self.name}: {message}")

    def least(self) -> float | None:
        """Return the score that the grader itself asks for: `min_score` in (0, 1], or `threshold`."""
        own = self.at.find("min_score", "threshold")
        return None if own is None else own.number(0, 1, above=own.step == "min_score") or None

    def gate(self) -> float | None:
        """Return the score below which the case fails: `required`, with `min_score` or the case's threshold."""
        required = self.at["required"]
        value = required.value
        if isinstance(value, int | float) and not isinstance(value, bool) and not self.scope.is_current:
            return required.number(0, 1, above=True)
        if value is None or not required.flag():
            return None
        return self.least() or self.task.threshold or None

    def check_keys(self, known: frozenset[str]) -> None:
        """Warn of fields that are not *known*."""
        unread = f"{self.kind} has no such field; it is not used"
        self.at.reads(**part_of("agentv", "grader") | {"known": known, "unread": unread})
