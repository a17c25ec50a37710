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
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

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
from rubric.values.answers import Answer
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
    at = entry.at
    given = at["script"] if "script" in at and "command" not in at else at["command"]
    command = _words(entry.scope.filled(given))
    if not command:
        message = f"expected the program and its arguments, as a list or a text; got {shorten(repr(given.value))}"
        raise DefinitionError(given.step, message)
    limits = {"timeout": at["timeout"].value} if at.has("timeout") else {}
    return Script(command, folder=_folder(entry), config=_config(at.value), **limits)


def _config(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Return what the program is handed: `config`, and the fields that AgentV passes through."""
    extra = {str(key): value for key, value in fields.items() if key not in _OF_ALL and key not in _OF_SCRIPTS}
    config = fields.get("config")
    if config is None or isinstance(config, Mapping):
        return {**extra, **(config or {})}
    return {**extra, "config": config}


def _words(command: Any) -> list[str]:
    if isinstance(command, str):
        try:
            return shlex.split(command)
        except ValueError as problem:
            raise DefinitionError("command", f"{problem}; write it as a list") from None
    return command if isinstance(command, list) and all(isinstance(word, str) for word in command) else []


def _folder(entry: Entry) -> str:
    """Return where a script runs; in a file that another one includes, paths start at that file's folder."""
    folder = entry.scope.text(entry.at["cwd"]) if entry.at.has("cwd") else ""
    loading = entry.at.loading
    return folder if not loading.trail or loading.folder is None else str(loading.folder / folder)


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
    config = named["config"].value
    name = named["id"].value if isinstance(named.value, Mapping) else named.value
    if not isinstance(name, str) or not name:
        named.refuse("the id of a provider, such as openai:gpt-5")
        return None
    return _judge_named(name, {**(config if isinstance(config, Mapping) else {}), **at.value}, named, scope)


def _judge_named(name: str, settings: Mapping[Any, Any], at: Cursor, scope: Scope) -> Judge | None:
    given = {key: settings[key] for key in SETTINGS if settings.get(key) is not None}
    try:
        return Judge(litellm_name(scope.fill(name, at)), **given)
    except DefinitionError as problem:
        if problem.field in given:
            at.error(problem)
        else:
            at.warn(f"no model is known as {shorten(name, 60)!r}: the judge of the run takes its place")
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


@frozen
class Rule:
    """When a set passes (None: when all in it pass), and what its graders weigh, by name."""

    threshold: float | None = None
    weights: Mapping[str, float] = {}


def read_set(entry: Entry, children: Sequence[Grader]) -> Grader | None:
    """Return the set *entry* of the graders *children*: all must pass, or their mean must meet a threshold."""
    entry.check_keys(_KNOWN)
    if not children:
        entry.warn("there is no grader in it; it is left out")
        return None
    rule = _rule(entry)
    if isinstance(rule, str):
        entry.warn(f"{rule} is not supported: the case is ungraded")
        return Grader(entry.name, Unsupported(rule))
    criteria = [as_criterion(child, rule.weights.get(child.name)) for child in renamed(children)]
    judges = {child.judge for child in children}
    if len(judges) > 1:
        entry.warn("its graders name several judges; the case's judge takes them all")
    return Grader(
        entry.name,
        Rubric(entry.name, criteria=criteria, threshold=rule.threshold, binding=binds(criteria)),
        judge=next(iter(judges)) if len(judges) == 1 else None,
        decides=True,
        variables={name: text for child in children for name, text in child.variables.items()},
    )


def _rule(entry: Entry) -> Rule | str:
    """Return the rule of a set, or the description of one that is not supported."""
    own = entry.at.find("threshold")
    if entry.kind != "composite":
        return Rule(None if own is None else own.number(0, 1))
    aggregator = entry.at["aggregator"]
    if not aggregator.value:
        aggregator = aggregator.holding({"type": "weighted_average"})
    kind = aggregator["type"].value if isinstance(aggregator.value, Mapping) else aggregator.value
    if kind not in ("weighted_average", "threshold") or not isinstance(aggregator.value, Mapping):
        return f"composite with the aggregator {shorten(str(kind), 60)}"
    own = aggregator.find("threshold") or own
    return Rule(entry.task.threshold if own is None else own.number(0, 1), _weights(aggregator["weights"]))


def _weights(at: Cursor) -> dict[str, float]:
    if at.value is None or not at.mapping("a weight for each name"):
        return {}
    read = {str(name): weight.number(0) for name, weight in at.items()}
    return {name: weight for name, weight in read.items() if weight is not None}


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
    graders: list[Grader] = []
    entries = at.listing("a list of graders")
    texts = [entry for entry in entries if isinstance(entry.value, str) and entry.value.strip()]
    for entry in entries:
        if texts and entry is texts[0]:
            graders.extend(_checklist(texts, scope, task))
        elif isinstance(entry.value, Mapping):
            graders.extend(_grader(entry, scope, task))
        elif not isinstance(entry.value, str):
            entry.refuse("a text, or a mapping with `type`")
        elif not entry.value.strip():
            entry.warn("an empty text is no criterion; it is left out")
    return graders


def _checklist(texts: list[Cursor], scope: Scope, task: Task) -> Iterator[Grader]:
    items = read_items(texts, scope)
    if items:
        name = "llm-rubric" if scope.is_current else "rubrics"
        yield Grader(name, rubric_of(name, items, task), len(items), plain=True)


def _grader(at: Cursor, scope: Scope, task: Task) -> Iterator[Grader]:
    kind = _kind(at, scope)
    negate = kind.startswith("not-") != (at.value.get("negate") is True)
    kind = kind.removeprefix("not-")
    if refusal := _refusal(kind, scope):
        at["type"].error(refusal)
    elif kind:
        try:
            entry = Entry(kind, _name(at, kind, scope), at, scope, task)
            made = _made(entry)
            if made is not None:
                yield _counted(made, entry, negate=negate)
        except DefinitionError as problem:
            (at[problem.field] if problem.field in at.value else at).error(problem)


def _kind(at: Cursor, scope: Scope) -> str:
    kind = at.value.get("type")
    if kind is None and is_item(at.value) and not scope.is_current:
        kind = ITEMS[0]
    if isinstance(kind, str) and kind.removeprefix("not-"):
        return kind
    at.error("a grader needs a `type`, such as llm-rubric or contains")
    return ""


def _refusal(kind: str, scope: Scope) -> str:
    """Return why generation 2 does not have the type *kind*, and what it has instead; empty if it may be used."""
    if not scope.is_current:
        return ""
    if kind in _REMOVED:
        return f"AgentV has no type {kind!r} any more (unsupported); {_REMOVED[kind]}"
    if kind in _FUTURE:
        return f"AgentV does not have promptfoo's type {kind!r} (unsupported); write `type: llm-rubric`"
    return ""


def _name(at: Cursor, kind: str, scope: Scope) -> str:
    own = at.find("metric", "name", "id")
    return kind if own is None else " ".join(scope.text(own).split()) or kind


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
    at = entry.at
    weight = at["weight"].number(0) if at.has("weight") else made.weight
    if at.has("negate"):
        at["negate"].flag()
    gate = entry.gate()
    return evolve(
        made,
        answer=_turned(made.answer) if negate else made.answer,
        weight=1 if weight is None else weight,
        gate=gate,
        common=at.value.get("required") is True and entry.least() is None,
        judge=_judge(made, entry),
        plain=made.plain and gate is None and not negate,
    )


def _judge(made: Grader, entry: Entry) -> Judge | None:
    """Return the judge of the grader; code and programs need none."""
    if isinstance(made.answer, Rubric):
        return read_judge(entry.at, entry.scope) or made.judge
    for key in (key for key in ("provider", "target") if entry.at.has(key)):
        entry.warn(f"{entry.kind} is not answered by a judge; `{key}` is not used", key)
    return None


def _turned(answer: Answer) -> Rubric:
    if isinstance(answer, Rubric):
        return evolve(answer, negate=True)
    return Rubric(threshold=None, criteria=[Criterion(str(answer), answer=answer)], negate=True)
