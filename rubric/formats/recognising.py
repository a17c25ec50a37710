"""Which system a file belongs to, by its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from rubric.showing import shorten

__all__ = ["FORMATS", "Guess", "recognise"]

FORMATS = (
    "native",
    "promptfoo",
    "agentv-1",
    "agentv-1.5",
    "agentv-2",
    "mcptest",
    "autorubric",
    "healthbench",
    "paperbench",
)
"""What a suite can be loaded from."""


@frozen
class Guess:
    """The *format* that data seems to be in (empty: none), and *why*."""

    format: str
    why: str


def recognise(data: Any) -> Guess:
    """Return the format of *data*, the plain content of a file; the first rule that holds counts."""
    for format_, rule in _RULES:
        if why := rule(data):
            return Guess(format_, why)
    return Guess("", _keys_in_words(data))


def _keys_in_words(data: Any) -> str:
    if isinstance(data, Mapping):
        return f"its keys are {', '.join(str(key) for key in data)}" if data else "it is an empty mapping"
    return "it is a list of things of no known kind" if isinstance(data, list) else "it is neither mapping nor list"


def _has(*keys: str) -> Callable[[Any], str]:
    def rule(data: Any) -> str:
        found = [key for key in keys if isinstance(data, Mapping) and key in data]
        return f"it has the key {found[0]!r}" if found else ""

    return rule


def _holds(outer: str, inner: str) -> Callable[[Any], str]:
    def rule(data: Any) -> str:
        held = data.get(outer) if isinstance(data, Mapping) else None
        return f"its {outer} has the key {inner!r}" if isinstance(held, Mapping) and inner in held else ""

    return rule


def _items(data: Any, *keys: str) -> Iterator[Mapping[Any, Any]]:
    """Yield the mappings in the list that *data* holds under one of *keys*, or is."""
    lists = [data] if isinstance(data, list) else [data.get(key) for key in keys] if isinstance(data, Mapping) else []
    for items in lists:
        yield from (item for item in items or () if isinstance(item, Mapping)) if isinstance(items, list) else ()


def _item_has(keys: tuple[str, ...], *wanted: str) -> Callable[[Any], str]:
    def rule(data: Any) -> str:
        found = [key for item in _items(data, *keys) for key in wanted if key in item]
        return f"what it lists has the key {found[0]!r}" if found else ""

    return rule


_GRADERS = ("assert", "assertions", "evaluators", "graders")
_G1_TYPES = frozenset({"rubric", "llm_judge", "code_judge"})
_G15_TYPES = frozenset({"rubrics", "llm-grader", "llm-judge", "code-grader", "code-judge"})


def _graders(data: Any) -> Iterator[Mapping[Any, Any]]:
    """Yield every assertion of a file, wherever AgentV lets one stand."""
    yield from _items(data)
    holders = [data, *_items(data, "tests", "evalcases", "eval_cases")]
    for holder in holders:
        if not isinstance(holder, Mapping):
            continue
        execution = holder.get("execution")
        for place in (holder, execution if isinstance(execution, Mapping) else {}):
            yield from _items(place, *_GRADERS) if isinstance(place, Mapping) else ()


def _uses(types: frozenset[str]) -> Callable[[Any], str]:
    def rule(data: Any) -> str:
        found = [str(g.get("type")) for g in _graders(data) if str(g.get("type")) in types]
        return f"it has an assertion of the type {found[0]!r}" if found else ""

    return rule


def _asserts_texts(data: Any) -> str:
    """AgentV 2 shares `assert` and `llm-rubric` with promptfoo; plain texts and items with an outcome are its own."""
    for holder in [data, *_items(data, "tests")]:
        assertions = holder.get("assert") if isinstance(holder, Mapping) else None
        for assertion in assertions if isinstance(assertions, list) else ():
            if isinstance(assertion, str):
                return f"it asserts the plain text {shorten(assertion, 40)!r}"
            if any("outcome" in item for item in _items(assertion, "value")):
                return "an assertion lists items with an outcome"
    return ""


def _has_points(data: Any) -> str:
    holders = [data] if isinstance(data, Mapping) else []
    for holder in (*holders, *_items(data, "examples")):
        if any("points" in item for item in _items(holder, "rubrics")):
            return "its rubrics have points"
    return ""


def _named_rubrics(kind: type) -> Callable[[Any], str]:
    def rule(data: Any) -> str:
        holds = isinstance(data, Mapping) and isinstance(data.get("rubrics"), kind)
        return f"its rubrics are a {'list' if kind is list else 'mapping'}" if holds else ""

    return rule


_PROMPTFOO = (
    "defaultTest",
    "scenarios",
    "assertionTemplates",
    "derivedMetrics",
    "evaluateOptions",
    "redteam",
    "targets",
)
_AGENTV_2 = ("default_test", "evaluate_options", "refs")
_AGENTV = ("governance", "environment", "workspace", "experiment")

_RULES: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("native", _has("suite", "cases")),
    ("mcptest", _has("evals", "agents", "servers")),
    ("agentv-1", _has("evalcases", "eval_cases")),
    ("paperbench", _has("sub_tasks")),
    ("paperbench", _holds("tree", "sub_tasks")),
    ("autorubric", _holds("rubric", "sections")),
    ("healthbench", _has_points),
    ("promptfoo", _has(*_PROMPTFOO)),
    ("agentv-2", _has(*_AGENTV_2)),
    ("agentv-1", _uses(_G1_TYPES)),
    ("agentv-1.5", _uses(_G15_TYPES)),
    ("agentv-1.5", _has("assertions")),
    ("agentv-1.5", _item_has(("tests",), "assertions")),
    ("agentv-2", _asserts_texts),
    ("agentv-1", _item_has((), "rubrics")),
    ("agentv-2", _has(*_AGENTV)),
    ("agentv-2", _item_has(("tests",), "id", "criteria", "input", "expected_output", "conversation_id")),
    ("autorubric", _has("sections")),
    ("autorubric", _item_has(("rubric", "rubrics", "criteria"), "requirement")),
    ("agentv-1", _named_rubrics(list)),
    ("mcptest", _named_rubrics(dict)),
    ("native", _has("criteria", "text", "tree")),
    ("promptfoo", _has("prompts", "providers", "tests", "assert", "vars")),
)
