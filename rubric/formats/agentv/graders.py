"""
Graders: from a list such as `assert`, `assertions` or `evaluators` to what decides, and how much it counts.

| type | what decides |
|---|---|
| texts | a checklist; its weight is the number of texts |
| `llm-rubric`, `rubrics`, `rubric` with items | a rubric of them; a gate in it is one of the case |
| `llm-rubric`, `llm-grader`, `llm_judge` with a text | one judgement; the judge's own pass flag can fail it |
| `contains`, `equals`, `regex`, `is-json`, ... | code |
| `script`, `code`, `code_judge`, `code-grader` | a program, where the run allows it |
| `assert-set`, `composite` (with a weighted average or a threshold) | the graders in it |
| any other type | nothing: the case is ungraded |

`not-` before a type, and `negate: true`, turn the outcome over. Providers are read as models: no address, key or header
is taken from a file.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from rubric.errors import DefinitionError
from rubric.formats.agentv.judged_graders import (
    FREE,
    ITEMS,
    Grader,
    as_criterion,
    binds,
    read_judged,
    renamed,
    rubric_of,
)
from rubric.formats.agentv.scope import Entry, Scope, Task
from rubric.formats.assertion_types import check_of
from rubric.formats.cursor import Cursor
from rubric.formats.model_names import SETTINGS, litellm_name
from rubric.formats.rubric_items import is_item, read_items
from rubric.internals.text import shorten
from rubric.values.checks import Check, Holds, Script, Unsupported
from rubric.values.criteria import Criterion
from rubric.values.judges import Judge
from rubric.values.rubrics import Rubric

_SCRIPTS = ("script", "code", "code-grader", "code_grader", "code_judge", "code-judge")
_OF_ALL = frozenset(
    {"type", "name", "metric", "id", "description", "weight", "required", "min_score", "negate", "provider", "target"}
)
_OF_SCRIPTS = frozenset({"command", "script", "cwd", "timeout", "config"})


def check_for(entry: Entry) -> Check:
    """
    Return the check of *entry*: code, a program, a function of the caller's, or one that is not supported.

    Raises:
        DefinitionError: A value that the type cannot have.
    """
    at = entry.at
    if entry.kind in _SCRIPTS:
        return _script(entry)
    if entry.kind == "python" and (function := at.loading.functions.get(str(at["value"].value))):
        return Holds(function)
    value = entry.scope.filled(at["value"])
    if entry.kind == "regex" and isinstance(value, str) and at["flags"].value:
        value = f"{_flags(at['flags'].value)}{value}"
    check = check_of(entry.kind, value)
    if check is None:
        entry.warn(f"{shorten(repr(entry.kind), 60)} is not supported: cases that have it are ungraded", "type")
        return Unsupported(entry.kind)
    entry.check_keys(_OF_ALL | {"value", "flags"})
    return check


def _flags(flags: Any) -> str:
    """Return the flags of a JavaScript pattern as RE2 writes them; `g`, `u` and `y` make no difference to a test."""
    if not isinstance(flags, str) or set(flags) - set("imsguy"):
        raise DefinitionError("flags", f"expected some of the letters i, m, s; got {shorten(repr(flags))}")
    known = "".join(flag for flag in "ims" if flag in flags)
    return f"(?{known})" if known else ""


def _script(entry: Entry) -> Check:
    """Return the program; it is handed `config`, and the fields that AgentV passes through."""
    at = entry.at
    given = at["script"] if "script" in at and "command" not in at else at["command"]
    command = entry.scope.filled(given)
    if isinstance(command, str):
        try:
            command = shlex.split(command)
        except ValueError as problem:
            raise DefinitionError("command", f"{problem}; write it as a list") from None
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        message = f"expected the program and its arguments, as a list or a text; got {shorten(repr(given.value))}"
        raise DefinitionError(given.step, message)
    config = at["config"].value
    extra = {str(key): value for key, value in at.value.items() if key not in _OF_ALL and key not in _OF_SCRIPTS}
    extra |= {"config": config} if config is not None and not isinstance(config, Mapping) else config or {}
    folder = entry.scope.text(at["cwd"]) if at.has("cwd") else ""
    if at.loading.trail and at.loading.folder is not None:  # in a file that another includes, paths start at its folder
        folder = str(at.loading.folder / folder)
    limits = {"timeout": at["timeout"].value} if at.has("timeout") else {}
    return Script(command, folder=folder, config=extra, **limits)


# -- judges -------------------------------------------------------------------------------------------------


def read_judge(at: Cursor, scope: Scope) -> Judge | None:
    """
    Return the judge that a grader, or options, name; None where they name none that is known here.

    A name may be one of a target that is defined elsewhere: that is a warning.
    """
    keys = ("model", "provider") if scope.is_current else ("model", "provider", "target")
    named = at.find(*keys)
    if named is None:
        if at.has("temperature"):
            at["temperature"].once("`temperature` is not used: the grader names no model")
        return None
    name = named["id"].value if isinstance(named.value, Mapping) else named.value
    if not isinstance(name, str) or not name:
        named.refuse("the id of a provider, such as openai:gpt-5")
        return None
    settings = {**named.under("config").value, **at.value}
    given = {key: settings[key] for key in SETTINGS if settings.get(key) is not None}
    try:
        return Judge(litellm_name(scope.fill(name, named)), **given)
    except DefinitionError as problem:
        if problem.field in given:
            named.error(problem)
        else:
            named.warn(f"no model is known as {shorten(name, 60)!r}: the judge of the run takes its place")
        return None


# -- sets ---------------------------------------------------------------------------------------------------

SETS = ("assert-set", "composite")
"""The types of sets."""

LISTS = ("assert", "assertions", "evaluators", "graders")
"""Where a set may have its graders."""

_KNOWN = frozenset(
    {"type", "name", "metric", "id", "description", "weight", "required", "min_score", "threshold", "negate",
     "aggregator", "provider", *LISTS}
)  # fmt: skip


def read_set(entry: Entry, children: Sequence[Grader]) -> Grader | None:
    """Return the set *entry* of the graders *children*: all must pass, or their mean must meet a threshold."""
    entry.check_keys(_KNOWN)
    if not children:
        entry.warn("there is no grader in it; it is left out")
        return None
    own, weights = entry.at.find("threshold"), {}
    threshold = None if entry.kind != "composite" else entry.task.threshold
    if entry.kind == "composite" and entry.at["aggregator"].value:
        aggregator = entry.at["aggregator"]
        kind = aggregator["type"].value if isinstance(aggregator.value, Mapping) else aggregator.value
        if kind not in ("weighted_average", "threshold") or not isinstance(aggregator.value, Mapping):
            why = f"composite with the aggregator {shorten(str(kind), 60)}"
            entry.warn(f"{why} is not supported: the case is ungraded")
            return Grader(entry.name, Unsupported(why))
        own = aggregator.find("threshold") or own
        if aggregator.has("weights") and aggregator["weights"].mapping("a weight for each name"):
            weights = {str(name): weight.number(0) for name, weight in aggregator["weights"].items()}
    if own is not None:
        threshold = own.number(0, 1)
    criteria = [as_criterion(child, weights.get(child.name)) for child in renamed(children)]
    judges = {child.judge for child in children}
    if len(judges) > 1:
        entry.warn("its graders name several judges; the case's judge takes them all")
    return Grader(
        entry.name,
        Rubric(entry.name, criteria=criteria, threshold=threshold, binding=binds(criteria)),
        judge=next(iter(judges)) if len(judges) == 1 else None,
        decides=True,
        variables={name: text for child in children for name, text in child.variables.items()},
    )


# -- one grader ---------------------------------------------------------------------------------------------

_REMOVED: dict[str, str] = {
    **dict.fromkeys(ITEMS, "write `type: llm-rubric` with the items in `value`"),
    **dict.fromkeys(FREE, "write `type: llm-rubric`, or `agent-rubric` for a judge with tools"),
    "g-eval": "write `type: llm-rubric`",
    "composite": "write `type: assert-set`",
}

_FUTURE = frozenset(
    {"select-best", "max-score", "similar", "factuality", "answer-relevance", "model-graded-closedqa",
     "model-graded-factuality", "context-faithfulness", "context-recall", "context-relevance", "moderation",
     "classifier", "webhook", "search-rubric", "pi", "conversation-relevance"}
)  # fmt: skip


def read_graders(at: Cursor, scope: Scope, task: Task) -> list[Grader]:
    """Return the graders of a list; the texts among them together are one."""
    graders: list[Grader | None] = []
    entries = at.listing("a list of graders")
    texts = [entry for entry in entries if isinstance(entry.value, str) and entry.value.strip()]
    for entry in entries:
        if texts and entry is texts[0]:
            name, items = "llm-rubric" if scope.is_current else "rubrics", read_items(texts, scope)
            if items:
                graders.append(Grader(name, rubric_of(name, items, task), len(items), plain=True))
        elif isinstance(entry.value, Mapping):
            graders.append(_grader(entry, scope, task))
        elif not isinstance(entry.value, str):
            entry.refuse("a text, or a mapping with `type`")
        elif not entry.value.strip():
            entry.warn("an empty text is no criterion; it is left out")
    return [grader for grader in graders if grader is not None]


def _grader(at: Cursor, scope: Scope, task: Task) -> Grader | None:
    kind = at.value.get("type")
    if kind is None and is_item(at.value) and not scope.is_current:
        kind = ITEMS[0]
    if not isinstance(kind, str) or not kind.removeprefix("not-"):
        at.error("a grader needs a `type`, such as llm-rubric or contains")
        return None
    negate = kind.startswith("not-") != (at.value.get("negate") is True)
    kind = kind.removeprefix("not-")
    if scope.is_current and kind in _REMOVED:
        at["type"].error(f"AgentV has no type {kind!r} any more (unsupported); {_REMOVED[kind]}")
        return None
    if scope.is_current and kind in _FUTURE:
        at["type"].error(f"AgentV does not have promptfoo's type {kind!r} (unsupported); write `type: llm-rubric`")
        return None
    try:
        own = at.find("metric", "name", "id")
        name = kind if own is None else " ".join(scope.text(own).split()) or kind
        entry = Entry(kind, name, at, scope, task)
        made = _made(entry)
        return None if made is None else _counted(made, entry, negate=negate)
    except DefinitionError as problem:
        (at[problem.field] if problem.field in at.value else at).error(problem)
        return None


def _made(entry: Entry) -> Grader | None:
    """Return the grader without what it counts; None where there is nothing to grade by, which is noted."""
    at = entry.at
    if entry.kind in SETS:
        key = next((key for key in LISTS if key in at), "")
        return read_set(entry, read_graders(at[key], entry.scope, entry.task) if key else [])
    if entry.kind in ("llm-rubric", *ITEMS, *FREE):
        return read_judged(entry)
    return Grader(entry.name, check_for(entry))


def _counted(made: Grader, entry: Entry, *, negate: bool) -> Grader:
    """Return *made* with its weight, its gate and its judge, and turned over where that is wanted."""
    at, answer, judge = entry.at, made.answer, None
    weight = at["weight"].number(0) if at.has("weight") else made.weight
    if at.has("negate"):
        at["negate"].flag()
    gate = entry.gate()
    if negate and isinstance(answer, Rubric):
        answer = evolve(answer, negate=True)
    elif negate:
        answer = Rubric(threshold=None, criteria=[Criterion(str(answer), answer=answer)], negate=True)
    if isinstance(made.answer, Rubric):
        judge = read_judge(at, entry.scope) or made.judge
    else:
        for key in (key for key in ("provider", "target") if at.has(key)):
            entry.warn(f"{entry.kind} is not answered by a judge; `{key}` is not used", key)
    return evolve(
        made,
        answer=answer,
        weight=1 if weight is None else weight,
        gate=gate,
        common=at.value.get("required") is True and entry.least() is None,
        judge=judge,
        plain=made.plain and gate is None and not negate,
    )
