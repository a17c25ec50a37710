"""A suite as a promptfoo configuration, and what of it promptfoo cannot hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import fields

from rubric.checks import NOTHING
from rubric.errors import DefinitionError
from rubric.formats.includes.including import is_reference
from rubric.formats.promptfoo.asserting import Assertions, assertions_of
from rubric.formats.promptfoo.parts import as_text, compact
from rubric.formats.promptfoo.prompts import is_chat
from rubric.formats.promptfoo.reading import clean
from rubric.formats.promptfoo.rubric_prompts import as_json_list
from rubric.formats.promptfoo.variables import OWN, nested
from rubric.formats.providers import provider_id
from rubric.judges import Bench, Judge
from rubric.mappings import thaw
from rubric.suites.cases import Case
from rubric.suites.suites import Suite

__all__ = ["write"]

_NOT_HELD = ("reference", "tool_calls", "file_changes", "context", "server", "tags", "cell")
_SETTINGS = ("temperature", "max_tokens", "seed")

Tell = Callable[[str], None]


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


def _provider(judge: Bench | None, tell: Tell) -> str | dict[str, Any] | None:
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
