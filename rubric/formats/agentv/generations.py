"""
The three generations of AgentV eval files, and how to tell them apart.

| generation | cases | graders | how an item says what it checks |
|---|---|---|---|
| 1 | `evalcases`, `eval_cases` | `rubrics`, `execution.evaluators` | `expected_outcome`, `description` |
| 1.5 | `tests` | `assertions`, `execution.evaluators`, `graders` | `outcome` |
| 2 | `tests` | `assert` | `outcome`, `criteria` |

Between 1.5 and 2, `assert` held graders whose types generation 2 does not have: they are those of 1.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

__all__ = ["CASES", "GRADERS", "Generation", "generation_of", "looks_like_grader"]

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
