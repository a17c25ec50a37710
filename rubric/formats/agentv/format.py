"""AgentV's format of suites, in three generations: how a file is recognised and read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rubric import Criterion, Rubric
from rubric.embed import SURE, Format
from rubric.formats import recognition as rules
from rubric.formats.agentv.scope import generation_of
from rubric.formats.keys import keys_of, table_of
from rubric.formats.recognition import CASES, GRADERS, HINT, LIKELY, NAME, NEAR, STRONG, Evidence, Rule, Seen
from rubric.formats.registry import Drafts, has_graders

_AGENTV_TYPES = keys_of("agentv", "types", "own")

_OF_ITEMS = ("outcome", "score_ranges", "operator", "min_score", "expected_outcome")
_LONE_SLOT = re.compile(r"\{\{\s*input\s*\}\}")


def _values(seen: Seen) -> Iterator[Any]:
    """Yield the values of assertions, and the items of those that are lists."""
    for grader in rules.maps(seen.graders):
        value = grader.get("value")
        yield from value if isinstance(value, list) else [value]


def _prompts(seen: Seen) -> Iterator[str]:
    return (prompt for prompt in seen.under("prompts") if isinstance(prompt, str))


def _bare_inputs(seen: Seen) -> Iterator[Any]:
    """Yield the tests with an input beside assertions and without variables: promptfoo would ask nothing."""
    if any("{{" not in prompt for prompt in _prompts(seen)):
        return
    yield from (one for one in seen.tests if "input" in one and "vars" not in one and set(GRADERS) & one.keys())


def _variable(name: str, *, with_id: bool) -> Rule:
    """Look for a test with the variable *name*, and with an id or not, in a file that has an input."""

    def fits(test: Mapping[Any, Any], seen: Seen) -> bool:
        variables = test.get("vars")
        if not isinstance(variables, Mapping) or name not in variables or (with_id and "id" not in test):
            return False
        return "input" in variables or "input" in test or not seen.keys.keys().isdisjoint(("input", "prompts"))

    why = f"a test has the variable {name!r}" + (" and an id" if with_id else "")
    return rules.finds(why, lambda seen: (test for test in seen.tests if fits(test, seen)))


def _has_id(seen: Seen) -> str:
    alone = seen.tests == [seen.data] or any(isinstance(test.get("vars"), Mapping) for test in seen.tests)
    return "" if alone else rules.case_has("id")(seen)


def _name_first(seen: Seen) -> str:
    firsts = {next(iter(grader)) for grader in rules.maps(seen.graders) if len(grader) > 1}
    return "its assertions begin with their names" if firsts and firsts <= {"metric", "name"} else ""


def _plain_texts(seen: Seen) -> Iterator[str]:
    return (one for one in seen.graders if isinstance(one, str) and not one.startswith("file://"))


def _providers(seen: Seen) -> tuple[str, ...]:
    return (*rules.ids(seen), *rules.grader_ids(seen))


_MARKS, _RESULT = (".agentv",), frozenset({"score", "scores", "timestamp"})
_EVIDENCE: Evidence = (
    (SURE, rules.has("evalcases", "eval_cases")),
    (SURE, rules.lists_skills),
    (SURE, rules.finds("a test has an input and no variables", _bare_inputs)),
    (NEAR, rules.stands_by(*_MARKS)),
    (SURE, rules.schema_has("agentv")),
    (STRONG, rules.has("default_test", "evaluate_options", "refs")),
    (STRONG, rules.has("governance", "environment", "workspace", "experiment", "execution")),
    (STRONG, rules.has("assertions", "evaluators")),
    (STRONG, rules.has("target", kind=str)),
    (STRONG, rules.finds("it asserts the plain text {!r}", _plain_texts)),
    (STRONG, rules.in_any(_values, "an assertion lists items with the key", _OF_ITEMS)),
    (STRONG, rules.asserts("required", "min_score", "negate", "prompt", "command")),
    (STRONG, rules.asserts("criteria", "rubrics", "target", "include")),
    (STRONG, rules.uses(lambda kind: kind in _AGENTV_TYPES or kind.startswith("trajectory:"))),
    (STRONG, rules.option("rubric_prompt")),
    (STRONG, rules.case_has("expected_output", "expected_outcome", "assertions", "evaluators")),
    (STRONG, rules.case_has("criteria", kind=str)),
    (STRONG, rules.case_has("conversation_id", "turns", "execution", "input_messages", "expected_messages")),
    (STRONG, rules.asks(_providers, NAME, "the provider {!r} is a name of the project's")),
    (STRONG, rules.finds("it lists the results of a run", lambda seen: filter(_RESULT.issubset, seen.tests))),
    (STRONG, rules.name_fits("*.eval.y*ml", "eval.y*ml", "*.eval.json*")),
    (LIKELY, rules.has("rubrics", kind=list)),
    (LIKELY, lambda seen: rules.case_has("rubrics")(seen) if isinstance(seen.data, list) else ""),
    (LIKELY, rules.case_has("input")),
    (LIKELY, _variable("input", with_id=True)),
    (LIKELY, _variable("expected_output", with_id=False)),
    (LIKELY, _name_first),
    (HINT, rules.finds("it asks `{{{{ input }}}}` alone", lambda seen: filter(_LONE_SLOT.fullmatch, _prompts(seen)))),
    (HINT, _has_id),
    (HINT, rules.has("tags", kind=list)),
    (HINT, rules.has("name", kind=str)),
)


def _refusal(file: Path, data: Any) -> str:
    what = table_of("agentv")["settings"].get(file.stem) if file.absolute().parent.name == ".agentv" else None
    if what is None or (isinstance(data, dict) and data.keys() & {*CASES, "scenarios"}):
        return ""
    return (
        f"this is {what}, and holds no tests; the evals of the project are graded with it: name one, such as "
        "evals/greeting.eval.yaml"
    )


def _items(rubric: Rubric, text: str) -> list[dict[str, Any]]:
    def item(one: Criterion) -> dict[str, Any]:
        return {"id": one.id, text: one.text, "weight": one.weight, "required": one.required}

    return [*map(item, rubric.criteria)]


def _has_rubrics(case: Mapping[str, Any]) -> bool:
    """True if *case* has criteria: in the first generation, `rubrics` work beside its evaluators."""
    listed = [one for found in has_graders(case) if isinstance(found, list) for one in found if isinstance(one, dict)]
    return bool(case.get("rubrics")) or any("rubric" in str(one.get("type")) for one in listed)


_READ, _OUTCOMES = "rubric.formats.agentv.reader:read", ("expected_outcome", "outcome", "criteria")
FIRST = Format(
    "agentv-1", _READ, options=("agentv-1",),
    drafts=Drafts("rubrics", lambda rubric: _items(rubric, "expected_outcome"), _OUTCOMES, _has_rubrics),
)  # fmt: skip
BETWEEN = Format(
    "agentv-1.5", _READ, options=("agentv-1.5",),
    drafts=Drafts("assert", lambda rubric: [{"type": "rubrics", "criteria": _items(rubric, "outcome")}], _OUTCOMES),
)  # fmt: skip
CURRENT = Format(
    "agentv-2", _READ, None, _EVIDENCE, generation_of, ("agentv-2",),
    # A name, tags or ids are no evidence by themselves: a workflow, a manifest and an OpenAPI description have them.
    beside=rules.shared_words,
    refusal=_refusal,
    marks=_MARKS,
    drafts=Drafts("assert", lambda rubric: [{"type": "llm-rubric", "value": _items(rubric, "outcome")}], _OUTCOMES),
)  # fmt: skip
