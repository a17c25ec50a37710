"""
Graders that code or a program decides; and those that nobody here can decide.

Graders: from a list such as `assert`, `assertions` or `evaluators` to what decides, and how much it counts.

| type | what decides |
|---|---|
| texts | a checklist; its weight is the number of texts |
| `llm-rubric`, `rubrics`, `rubric` with items | a rubric of them; a gate in it is one of the case |
| `llm-rubric`, `llm-grader`, `llm_judge` with a text | one judgement; the judge's own pass flag can fail it |
| `contains`, `equals`, `regex`, `is-json`, ... | code |
| `script`, `code`, `code_judge`, `code-grader` | a program, where the run allows it |
| `assert-set`, `composite` (with a weighted average or a threshold) | the graders in it |
| what else there is | nobody: the case is ungraded |

`not-` before a type, and `negate: true`, turn the outcome over.

Who judges: AgentV's provider ids, as models. No address, key or header is taken from a file.

Sets of graders: `assert-set`, and `composite` from before generation 2.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from rubric.errors import DefinitionError
from rubric.formats.agentv.items import is_item, read_items
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
from rubric.formats.document import KeyPath
from rubric.formats.model_names import litellm_name
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
    Return what decides *entry*: code, a program, a function of the caller's, or nobody.

    Raises:
        DefinitionError: A value that the type cannot have.
    """
    if entry.kind in _SCRIPTS:
        return _script(entry)
    if entry.kind == "python" and (function := _function(entry)):
        return function
    value = entry.scope.filled(entry.get("value"), entry.at("value"))
    if entry.kind == "regex" and isinstance(value, str) and entry.get("flags"):
        value = f"{_flags(entry.get('flags'))}{value}"
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


def _function(entry: Entry) -> Check | None:
    value = entry.get("value")
    function = entry.scope.loading.functions.get(value) if isinstance(value, str) else None
    return None if function is None else Holds(function)


def _script(entry: Entry) -> Check:
    key = next((key for key in ("command", "script") if key in entry.fields), "command")
    command = _words(entry.scope.filled(entry.get(key), entry.at(key)))
    if not command:
        message = f"expected the program and its arguments, as a list or a text; got {shorten(repr(entry.get(key)))}"
        raise DefinitionError(key, message)
    timeout = entry.get("timeout")
    limits = {} if timeout is None else {"timeout": timeout}
    return Script(command, folder=_folder(entry), config=_config(entry), **limits)


def _config(entry: Entry) -> dict[str, Any]:
    """Return what the program is handed: `config`, and the fields that AgentV passes through."""
    extra = {str(key): value for key, value in entry.fields.items() if key not in _OF_ALL and key not in _OF_SCRIPTS}
    config = entry.get("config")
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
    """Return where a script runs: for a file that another one includes, told from that file's folder."""
    loading = entry.scope.loading
    folder = "" if entry.get("cwd") is None else entry.scope.text(entry.get("cwd"), entry.at("cwd"))
    if not loading.trail or loading.folder is None:
        return folder
    return str(loading.folder / folder)


_KEYS = ("provider", "target", "model")
_PARAMETERS = ("temperature", "max_tokens", "seed")


def read_judge(entry: Mapping[Any, Any], scope: Scope, path: KeyPath) -> Judge | None:
    """
    Return whom *entry* (a grader, or options) names as its judge; None where it names nobody that is known here.

    A name may be one of a target that is defined elsewhere: that is a warning.
    """
    named = [key for key in _KEYS if entry.get(key) is not None and not (key == "target" and scope.is_current)]
    if not named:
        if entry.get("temperature") is not None:
            scope.once((*path, "temperature"), "`temperature` is not used: the grader names no model")
        return None
    key = named[-1] if "model" in named else named[0]
    value = entry[key]
    config = value.get("config") if isinstance(value, Mapping) else {}
    name = value.get("id") if isinstance(value, Mapping) else value
    if not isinstance(name, str) or not name:
        scope.error((*path, key), f"expected the id of a provider, such as openai:gpt-5; got {shorten(repr(value))}")
        return None
    return _judge_named(name, {**(config or {}), **entry}, scope, (*path, key))


def _judge_named(name: str, settings: Mapping[Any, Any], scope: Scope, path: KeyPath) -> Judge | None:
    given = {key: settings[key] for key in _PARAMETERS if settings.get(key) is not None}
    try:
        return Judge(litellm_name(scope.fill(name, path)), **given)
    except DefinitionError as problem:
        if problem.field in given:
            scope.error(path, problem)
        else:
            message = f"no model is known as {shorten(name, 60)!r}: the judge of the run takes its place"
            scope.warn(path, message)
        return None


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
        return Grader(entry.name, Unsupported(rule), entry.path)
    criteria = [as_criterion(child, rule.weights.get(child.name)) for child in renamed(children)]
    judges = {child.judge for child in children}
    if len(judges) > 1:
        entry.warn("its graders name several judges; the case's judge takes them all")
    return Grader(
        entry.name,
        Rubric(entry.name, criteria=criteria, threshold=rule.threshold, binding=binds(criteria)),
        entry.path,
        judge=next(iter(judges)) if len(judges) == 1 else None,
        decides=True,
        variables={name: text for child in children for name, text in child.variables.items()},
    )


def _rule(entry: Entry) -> Rule | str:
    """Return the rule of a set; in words, one that is not supported."""
    own = entry.get("threshold")
    if entry.kind != "composite":
        return Rule() if own is None else Rule(entry.scope.number(own, entry.at("threshold"), high=1))
    given = entry.get("aggregator") or {"type": "weighted_average"}
    kind = given.get("type") if isinstance(given, Mapping) else given
    if kind not in ("weighted_average", "threshold") or not isinstance(given, Mapping):
        return f"composite with the aggregator {shorten(str(kind), 60)}"
    threshold = given.get("threshold", own)
    path = (*entry.at("aggregator"), "threshold")
    least = entry.task.threshold if threshold is None else entry.scope.number(threshold, path, high=1)
    return Rule(least, _weights(entry, given.get("weights")))


def _weights(entry: Entry, given: Any) -> dict[str, float]:
    path = (*entry.at("aggregator"), "weights")
    if given is None or isinstance(given, Mapping):
        read = {str(name): entry.scope.number(weight, (*path, name)) for name, weight in (given or {}).items()}
        return {name: weight for name, weight in read.items() if weight is not None}
    entry.scope.error(path, f"expected a weight for each name, got {shorten(repr(given))}")
    return {}


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


def read_graders(entries: Any, scope: Scope, path: KeyPath, task: Task) -> list[Grader]:
    """Return the graders that *entries*, a list, holds; the texts among them together are one."""
    if not isinstance(entries, list):
        scope.error(path, f"expected a list of graders, got {shorten(repr(entries))}")
        return []
    texts = [index for index, entry in enumerate(entries) if isinstance(entry, str) and entry.strip()]
    graders: list[Grader] = []
    for index, entry in enumerate(entries):
        here = (*path, index)
        if texts and index == texts[0]:
            graders.extend(_checklist([entries[i] for i in texts], [(*path, i) for i in texts], scope, task))
        elif isinstance(entry, Mapping):
            graders.extend(_grader(entry, scope, here, task))
        elif not isinstance(entry, str):
            scope.error(here, f"expected a text, or a mapping with `type`; got {shorten(repr(entry))}")
        elif not entry.strip():
            scope.warn(here, "an empty text is no criterion; it is left out")
    return graders


def _checklist(texts: list[str], paths: list[KeyPath], scope: Scope, task: Task) -> Iterator[Grader]:
    items = read_items(texts, scope, paths)
    if items:
        name = "llm-rubric" if scope.is_current else "rubrics"
        yield Grader(name, rubric_of(name, items, task), paths[0], len(items), plain=True)


def _grader(fields: Mapping[Any, Any], scope: Scope, path: KeyPath, task: Task) -> Iterator[Grader]:
    kind = _kind(fields, scope, path)
    negate = kind.startswith("not-") != (fields.get("negate") is True)
    kind = kind.removeprefix("not-")
    if refusal := _refusal(kind, scope):
        scope.error((*path, "type"), refusal)
    elif kind:
        try:
            entry = Entry(kind, _name(fields, kind, scope, path), fields, scope, path, task)
            made = _made(entry)
            if made is not None:
                yield _counted(made, entry, negate=negate)
        except DefinitionError as problem:
            scope.error((*path, problem.field) if problem.field in fields else path, problem)


def _kind(fields: Mapping[Any, Any], scope: Scope, path: KeyPath) -> str:
    kind = fields.get("type")
    if kind is None and is_item(fields) and not scope.is_current:
        kind = ITEMS[0]
    if isinstance(kind, str) and kind.removeprefix("not-"):
        return kind
    scope.error(path, "a grader needs a `type`, such as llm-rubric or contains")
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


def _name(fields: Mapping[Any, Any], kind: str, scope: Scope, path: KeyPath) -> str:
    for key in ("metric", "name", "id"):
        if fields.get(key) is not None:
            return " ".join(scope.text(fields[key], (*path, key)).split()) or kind
    return kind


def _made(entry: Entry) -> Grader | None:
    """Return the grader without what it counts; None where there is nothing to grade by, which is noted."""
    if entry.kind in SETS:
        key = next((key for key in LISTS if key in entry.fields), LISTS[0])
        return read_set(entry, read_graders(entry.fields.get(key, []), entry.scope, entry.at(key), entry.task))
    if entry.kind in ("llm-rubric", *ITEMS, *FREE):
        return read_judged(entry)
    return Grader(entry.name, check_for(entry), entry.path)


def _counted(made: Grader, entry: Entry, *, negate: bool) -> Grader:
    """Return *made* with its weight, its gate and its judge, and turned over where that is wanted."""
    weight: float | None = made.weight
    if entry.get("weight") is not None:
        weight = entry.scope.number(entry.get("weight"), entry.at("weight"))
    if entry.get("negate") is not None:
        entry.scope.flag(entry.get("negate"), entry.at("negate"))
    gate = entry.gate()
    return evolve(
        made,
        answer=_turned(made.answer) if negate else made.answer,
        weight=1 if weight is None else weight,
        gate=gate,
        common=entry.get("required") is True and entry.least() is None,
        judge=_judge(made, entry),
        plain=made.plain and gate is None and not negate,
    )


def _judge(made: Grader, entry: Entry) -> Judge | None:
    """Return who judges the grader; for code and programs a provider says nothing."""
    if isinstance(made.answer, Rubric):
        return read_judge(entry.fields, entry.scope, entry.path) or made.judge
    for key in ("provider", "target"):
        if entry.get(key) is not None:
            entry.warn(f"{entry.kind} is not answered by a judge; `{key}` is not used", key)
    return None


def _turned(answer: Answer) -> Rubric:
    if isinstance(answer, Rubric):
        return evolve(answer, negate=True)
    return Rubric(threshold=None, criteria=[Criterion(str(answer), answer=answer)], negate=True)
