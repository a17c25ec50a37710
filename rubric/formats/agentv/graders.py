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
| what else there is | nobody: the case is ungraded |

`not-` before a type, and `negate: true`, turn the outcome over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from rubric.answers import Answer
from rubric.criteria import Criterion
from rubric.errors import DefinitionError
from rubric.formats.agentv.deciding import check_for
from rubric.formats.agentv.entries import Entry, Task
from rubric.formats.agentv.grouping import Grader
from rubric.formats.agentv.items import is_item, read_items
from rubric.formats.agentv.judgements import FREE, ITEMS, read_judged, rubric_of
from rubric.formats.agentv.judging import read_judge
from rubric.formats.agentv.scopes import Scope
from rubric.formats.agentv.sets import LISTS, SETS, read_set
from rubric.formats.documents import Path
from rubric.judges import Judge
from rubric.rubrics import Rubric
from rubric.showing import shorten

__all__ = ["read_graders"]

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


def read_graders(entries: Any, scope: Scope, path: Path, task: Task) -> list[Grader]:
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


def _checklist(texts: list[str], paths: list[Path], scope: Scope, task: Task) -> Iterator[Grader]:
    items = read_items(texts, scope, paths)
    if items:
        name = "llm-rubric" if scope.is_current else "rubrics"
        yield Grader(name, rubric_of(name, items, task), paths[0], len(items), plain=True)


def _grader(fields: Mapping[Any, Any], scope: Scope, path: Path, task: Task) -> Iterator[Grader]:
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


def _kind(fields: Mapping[Any, Any], scope: Scope, path: Path) -> str:
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


def _name(fields: Mapping[Any, Any], kind: str, scope: Scope, path: Path) -> str:
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
