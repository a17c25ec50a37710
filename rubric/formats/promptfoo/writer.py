"""
From a rubric to the assertions of promptfoo that come nearest to it.

A suite as a promptfoo configuration, and what of it promptfoo cannot hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from attrs import fields, frozen

from rubric.errors import DefinitionError
from rubric.formats.assertion_types import KNOWN, ContainsJSON
from rubric.formats.includes import is_reference
from rubric.formats.model_names import provider_id
from rubric.formats.promptfoo.prompts import is_chat
from rubric.formats.promptfoo.reader import clean
from rubric.formats.promptfoo.rubric_prompts import as_json_list
from rubric.formats.promptfoo.tests import OWN, nested
from rubric.formats.promptfoo.texts import as_text, compact
from rubric.formats.templates.render import is_template
from rubric.grading.prompting import level_lines
from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.text import shorten
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.answers import Answer, Levels, Unit, YesNo
from rubric.values.checks import (
    NOTHING,
    Check,
    Contains,
    ContainsAll,
    ContainsAny,
    EndsWith,
    Equals,
    FitsSchema,
    Holds,
    IsJSON,
    Matches,
    StartsWith,
    Unsupported,
)
from rubric.values.criteria import Criterion, slug
from rubric.values.judges import AnyJudge, Judge
from rubric.values.rubrics import Rubric, averaged

Tell = Callable[[str], None]
"""Takes what is dropped, as a part of a sentence: `criterion 'x': its anchors`."""


@frozen
class Assertions:
    """What a rubric came to: *asserts* of a test with *threshold*; and the ids of the criteria, in the same order."""

    asserts: list[dict[str, Any]]
    threshold: float | None
    ids: list[str]


def assertions_of(rubric: Rubric, variables: Mapping[str, Any], tell: Tell) -> Assertions:
    """Return the assertions for *rubric*; *tell* is called with each thing that they do not hold."""
    alone = _alone(rubric, variables, tell)
    if alone is not None:
        return Assertions([alone], None, [rubric.judged[0].id])
    if rubric.negate:
        tell("the rubric, since promptfoo turns over no more than one assertion,")
        return Assertions([], rubric.threshold, [])
    _tell_fields(rubric, _OUTER, "the rubric", tell)
    made = [(criterion.id, _criterion(criterion, variables, tell)) for criterion in rubric.judged]
    kept = [(id_, assertion) for id_, assertion in made if assertion is not None]
    _name([assertion for _, assertion in kept], [id_ for id_, _ in kept])
    return Assertions([a for _, a in kept], rubric.threshold, [id_ for id_, _ in kept])


def _name(asserts: list[dict[str, Any]], ids: list[str]) -> None:
    """Give an assertion its criterion's id as metric, where reading would give it another."""
    taken: set[str] = set()
    for assertion, id_ in zip(asserts, ids, strict=True):
        stem = slug(assertion.get("metric") or assertion["type"])
        number = 1
        while (own := stem if number == 1 else f"{stem}-{number}") in taken:
            number += 1
        if own != id_ and "metric" not in assertion:
            assertion["metric"] = id_
        taken.add(id_)


# -- rubrics that are one assertion ------------------------------------------------------------------------

_OUTER = ("borderline", "strict", "aggregation", "evidence", "abstain", "guidelines", "scale", "prompt")
_INNER = ("borderline", "strict", "aggregation", "evidence", "abstain", "guidelines", "scale")


def _alone(rubric: Rubric, variables: Mapping[str, Any], tell: Tell) -> dict[str, Any] | None:
    """Return the one assertion that *rubric* is, or None."""
    if len(rubric.judged) != 1 or rubric.tree is not None:
        return None
    (only,) = rubric.judged
    if rubric.criteria and (only.id != "overall" or only.tags or only.weight != 1 or only.is_unwanted):
        return None
    negation = "not-" if rubric.negate else ""
    if isinstance(only.answer, Check):
        return _negated_check(rubric, only.answer, tell)
    if not isinstance(only.answer, Unit):
        return None
    _tell_fields(rubric, _INNER, "the rubric", tell)
    _tell_criterion(only, tell)
    if rubric.threshold is not None and only.answer != Unit(flag=True):
        tell("that the score alone decides: promptfoo's graders also have a pass flag")
    made: dict[str, Any] = {"type": f"{negation}llm-rubric", "value": escaped(only.text)}
    if rubric.threshold is not None:
        made["threshold"] = rubric.threshold
    if rubric.prompt is not None:
        made["rubricPrompt"] = _prompt(rubric.prompt, variables, tell)
    return made


def _negated_check(rubric: Rubric, check: Check, tell: Tell) -> dict[str, Any] | None:
    if not rubric.negate or rubric.threshold is not None:
        return None
    made = _check(check)
    if made is None:
        return None
    _tell_fields(rubric, _INNER, "the rubric", tell)
    return {**made, "type": f"not-{made['type']}"}


def _tell_fields(rubric: Rubric, names: tuple[str, ...], what: str, tell: Tell) -> None:
    plain, rubric = Rubric(), averaged(rubric)
    for name in names:
        if getattr(rubric, name) != getattr(plain, name):
            tell(f"{name} of {what}")


_CRITERION = ("min_score", "required", "when", "anchors", "evidence", "abstain", "metadata")


def _tell_criterion(criterion: Criterion, tell: Tell) -> None:
    plain = Criterion("x")
    for name in _CRITERION:
        if getattr(criterion, name) != getattr(plain, name):
            tell(f"{name} of the criterion {criterion.id!r}")
    if criterion.polarity in ("contradiction", "correctness"):
        tell(f"polarity of the criterion {criterion.id!r}")
    if len(criterion.tags) > 1:
        tell(f"tags of the criterion {criterion.id!r}, but for the first")


# -- criteria ------------------------------------------------------------------------------------------------


def _criterion(criterion: Criterion, variables: Mapping[str, Any], tell: Tell) -> dict[str, Any] | None:
    if criterion.polarity == "penalty":
        tell(f"the penalty {criterion.id!r}, since promptfoo subtracts nothing,")
        return None
    made = _answered(criterion, variables, tell)
    if made is None:
        tell(f"the criterion {criterion.id!r}: {_why(criterion.answer)}")
        return None
    _tell_criterion(criterion, tell)
    if criterion.polarity == "guard":
        made["type"] = made["type"].removeprefix("not-") if made["type"].startswith("not-") else f"not-{made['type']}"
        tell(f"that the criterion {criterion.id!r} fails the grade by itself")
    if criterion.weight != 1:
        made["weight"] = criterion.weight
    if criterion.tags:
        made["metric"] = criterion.tags[0]
    return made


def _why(answer: Answer) -> str:
    """Return why promptfoo cannot hold a criterion with *answer*."""
    if not isinstance(answer, Rubric):
        return f"promptfoo has nothing like {shorten(repr(answer))}"
    if answer.tree is not None:
        return f"promptfoo has nothing like {shorten(repr(answer.tree))}"
    return "promptfoo turns over no more than one assertion" if answer.negate else "nothing is left of it to grade by"


def _answered(criterion: Criterion, variables: Mapping[str, Any], tell: Tell) -> dict[str, Any] | None:
    match criterion.answer:
        case Rubric() as inner:
            return _nested(criterion, inner, variables, tell)
        case Unsupported() as check:
            if criterion.text not in (check.type, str(check)):
                tell(f"all but the type of the criterion {criterion.id!r}, whose grader is not ours")
            return _check(check)
        case Check() as check:
            made = _check(check)
            if made is not None and criterion.text != str(check):
                tell(f"the text of the criterion {criterion.id!r}, since a check says what it looks for,")
            return made
        case Unit(flag=True):
            return {"type": "llm-rubric", "value": escaped(criterion.text)}
        case Unit() | YesNo() | Levels():
            tell(f"the answer of the criterion {criterion.id!r}: a grader gives a score in 0..1 and a pass flag")
            return {"type": "llm-rubric", "value": escaped(_with_levels(criterion))}
        case _:
            return None


def _with_levels(criterion: Criterion) -> str:
    if not isinstance(criterion.answer, Levels):
        return criterion.text
    span = f"Of a score of 1, {criterion.answer.low} is worth 0 and {criterion.answer.high} is worth 1."
    return "\n".join([criterion.text, span, *level_lines(criterion.answer)])


def _nested(criterion: Criterion, inner: Rubric, variables: Mapping[str, Any], tell: Tell) -> dict[str, Any] | None:
    alone = _alone(inner, variables, tell)
    if alone is not None:
        return alone
    if inner.tree is not None or inner.negate:
        return None
    _tell_fields(inner, _OUTER, f"the criterion {criterion.id!r}", tell)
    made = [_criterion(part, variables, tell) for part in inner.judged]
    kept = [assertion for assertion in made if assertion is not None]
    if not any(assertion.get("weight", 1) for assertion in kept):
        return None
    _name(kept, [part.id for part, assertion in zip(inner.judged, made, strict=True) if assertion is not None])
    found: dict[str, Any] = {"type": "assert-set", "assert": kept}
    return found if inner.threshold is None else {**found, "threshold": inner.threshold}


# -- checks --------------------------------------------------------------------------------------------------


def _check(check: Check) -> dict[str, Any] | None:
    """Return the deterministic assertion for *check*, if there is one."""
    folded = "i" if getattr(check, "ignore_case", False) else ""
    match check:
        case Contains():
            return {"type": f"{folded}contains", "value": escaped(check.text)}
        case ContainsAny():
            return {"type": f"{folded}contains-any", "value": escaped([*check.texts])}
        case ContainsAll():
            return {"type": f"{folded}contains-all", "value": escaped([*check.texts])}
        case StartsWith() | EndsWith() | Equals() if not folded:
            return {"type": _TEXT_TYPES[type(check)], "value": escaped(check.text)}
        case Matches():
            return {"type": "regex", "value": escaped(check.pattern)}
        case IsJSON():
            return {"type": "is-json"}
        case FitsSchema():
            return _schema(check.schema)
        case Holds(function=ContainsJSON(schema=schema)):
            return {"type": "contains-json", **({} if schema is None else {"value": escaped(thaw(schema))})}
        case Unsupported() if check.type.removeprefix("not-") in KNOWN - {"llm-rubric", "assert-set"}:
            return {"type": check.type}
        case _:
            return None


_TEXT_TYPES: dict[type, str] = {StartsWith: "starts-with", EndsWith: "ends-with", Equals: "equals"}


def _schema(schema: FrozenMap) -> dict[str, Any]:
    if schema.keys() == {"const"} and isinstance(schema["const"], tuple | Mapping):
        return {"type": "equals", "value": escaped(thaw(schema["const"]))}
    return {"type": "is-json", "value": escaped(thaw(schema))}


# -- texts -----------------------------------------------------------------------------------------------------


def escaped(value: Any) -> Any:
    """Return *value* with every text in it written so that promptfoo shows it as it is."""
    if isinstance(value, dict):
        return {key: escaped(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [escaped(inner) for inner in value]
    if not isinstance(value, str) or not (is_template(value) or is_reference(value)):
        return value
    return _raw(value)


def _raw(text: str) -> str:
    return f"{{{{ {json.dumps(text)} }}}}" if "endraw" in text else f"{{% raw %}}{text}{{% endraw %}}"


_SLOT = re.compile(r"\{\{\s*([^\W\d]\w*(?:\.\w+)*)\s*\}\}")
_THEIRS = {"candidate": "output", "criterion": "rubric", "output": "output", "rubric": "rubric"}


def _prompt(template: str, variables: Mapping[str, Any], tell: Tell) -> str:
    """Return a template of ours as a `rubricPrompt`."""

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("verbatim.") and name in variables:
            return json.dumps(_raw(str(variables[name])))[1:-1] if chat else _raw(str(variables[name]))
        if name in _THEIRS:
            return f"{{{{ {_THEIRS[name]} }}}}"
        if name.removeprefix("vars.") not in variables:
            tell(f"the slot {{{{ {name} }}}} of the prompt")
            return ""
        return f"{{{{ {name.removeprefix('vars.')} }}}}"

    chat = template.lstrip().startswith("[")
    return _SLOT.sub(fill, template)


_NOT_HELD = ("reference", "tool_calls", "file_changes", "context", "server", "tags", "cell")
_SETTINGS = ("temperature", "max_tokens", "seed")


def write(suite: Suite) -> tuple[dict[str, Any], list[str]]:
    """
    Return *suite* as the data of a promptfoo configuration, and a sentence for each thing that was dropped.

    Each sentence names the case and what of it promptfoo cannot hold.
    """
    dropped: list[str] = []
    written: dict[str, Any] = {"description": suite.name} if suite.name else {}
    if suite.metadata:
        written["metadata"] = thaw(suite.metadata)
    written["prompts"] = [f"{{{{ {OWN} }}}}"]
    grader = _provider(suite.judge, lambda what: dropped.append(f"The suite: {what} is dropped."))
    if grader is not None:
        written["defaultTest"] = {"options": {"provider": grader}}
    tests = [_test(case, number, dropped) for number, case in enumerate(suite, 1)]
    written["tests"] = [test for test in tests if test is not None]
    return written, list(dict.fromkeys(dropped))


def _test(case: Case, number: int, dropped: list[str]) -> dict[str, Any] | None:
    def tell(what: str) -> None:
        dropped.append(f"The case {case.id!r}: {what} is dropped.")

    nothing = [criterion.answer for criterion in case.rubric.judged] == [NOTHING]  # and so the test asserts nothing
    graded = Assertions([], None, []) if nothing else assertions_of(case.rubric, case.variables, tell)
    if not nothing and not any(assertion.get("weight", 1) for assertion in graded.asserts):
        tell("all of it, since nothing is left to grade it by,")
        return None
    for name in _NOT_HELD:
        if getattr(case, name):
            tell(name)
    _give_providers(case, graded.asserts, graded.ids, tell)
    test: dict[str, Any] = {} if case.id == f"test-{number}" else {"description": _description(case, tell)}
    variables = _variables(case, tell)
    if variables:
        test["vars"] = variables
    if case.output is not None:
        test["providerOutput"] = case.output
    grader = _provider(case.judge, tell)
    if grader is not None:
        test["options"] = {"provider": grader}
    if graded.threshold is not None:
        test["threshold"] = graded.threshold
    if case.metadata:
        test["metadata"] = thaw(case.metadata)
    return test if nothing else {**test, "assert": graded.asserts}


def _description(case: Case, tell: Tell) -> str:
    if clean(case.id) != case.id:
        tell("its id, which is put on one short line,")
    return case.id


def _variables(case: Case, tell: Tell) -> dict[str, Any]:
    asked = _asked(case, tell)
    found = {OWN: asked} if asked else {}
    for name, value in case.variables.items():
        if name.startswith(("vars.", "verbatim.")):
            continue  # made from a prompt when it was read, and made again
        if name == OWN:
            tell(f"the variable {name!r}, whose name is taken by the input,")
            continue
        if not isinstance(value, str):
            tell(f"that the variable {name!r} is no text")
        found[name] = as_text(thaw(value))
    shown = nested(found)
    for name, value in found.items():
        if is_reference(value):
            tell(f"the variable {name!r}, which promptfoo would read as the name of a file,")
        elif shown[name] != value:
            tell(f"that other variables named in {'the input' if name == OWN else repr(name)} are not put in")
    return {name: value for name, value in found.items() if not is_reference(value)}


def _asked(case: Case, tell: Tell) -> str:
    if not case.messages:
        if (chat := as_json_list(case.input)) is not None and is_chat(chat):
            tell("that its input is a text and not the messages that it looks like")
        return case.input
    if case.input:
        tell("input, beside the messages,")
    return compact([{"role": message.role, "content": message.content} for message in case.messages])


def _give_providers(case: Case, asserts: list[dict[str, Any]], ids: list[str], tell: Tell) -> None:
    """Name the judges of single criteria in their assertions."""
    for assertion, id_ in zip(asserts, ids, strict=True):
        grader = _provider(case.judges.get(id_), tell)
        if grader is None:
            continue
        for inner in assertion.get("assert", [assertion]):
            inner["provider"] = grader


def _provider(judge: AnyJudge | None, tell: Tell) -> str | dict[str, Any] | None:
    """Return the provider for *judge*; a jury, a panel and a function have none."""
    if judge is None:
        return None
    if not isinstance(judge, Judge) or not isinstance(judge.model, str):
        tell(f"the judge {judge!r}, which is no single model,")
        return None
    try:
        id_ = provider_id(judge.model)
    except DefinitionError as problem:
        tell(f"the judge {judge.model!r} ({problem})")
        return None
    plain = Judge(judge.model)
    changed = {
        f.name: getattr(judge, f.name) for f in fields(Judge) if getattr(judge, f.name) != getattr(plain, f.name)
    }
    for name in changed.keys() - {*_SETTINGS}:
        tell(f"{name} of the judge {judge.model!r}")
    config = {name: changed[name] for name in _SETTINGS if name in changed}
    return {"id": id_, "config": config} if config else id_
