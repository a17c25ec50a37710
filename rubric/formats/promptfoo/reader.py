"""
A promptfoo configuration as a suite: a case for each test, prompt, provider and combination of variables.

A feature that this library does not have is never dropped in silence: if the graded text would differ, the case gets a
criterion that stays unjudged; if not, there is a warning.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from rubric.formats.cursor import Cursor, Loading, Notes
from rubric.formats.includes import is_code, is_reference
from rubric.formats.promptfoo.assertions import Graded, graded, unsupported
from rubric.formats.promptfoo.prompts import Asked, Cell, ask, cells_for, cells_of, prompts_of, providers_of
from rubric.formats.promptfoo.tests import (
    OPTIONS,
    OWN,
    Test,
    combinations,
    is_test,
    scenarios_of,
    test_of,
    tests_of,
)
from rubric.formats.promptfoo.texts import Context, Slots, as_text, check_keys, compact, listed, named
from rubric.internals.text import shorten
from rubric.suites.cases import Case
from rubric.suites.suite import Suite

MOST_CASES = 50_000
_KNOWN_KEYS = frozenset({
    "description", "prompts", "providers", "targets", "tests", "scenarios", "defaultTest", "assert",
    "assertionTemplates", "env", "metadata",
})  # fmt: skip
_QUIET_KEYS = frozenset({
    "$schema", "outputPath", "sharing", "writeLatestResults", "commandLineOptions", "evaluateOptions", "tags",
    "tracing", "version", "author", "id", "$id", "license",
})  # fmt: skip
_FATES = {
    "derivedMetrics": "derivedMetrics are not computed",
    "extensions": "extensions are code, which is not run; what they would change stays as it is",
    "redteam": "redteam is not read: no tests are generated",
    "nunjucksFilters": "nunjucksFilters are code, which is not run; a template that uses one is an error",
}

_OF_TESTS = "it belongs to a test; for all tests, write it under `defaultTest`"
_ELSEWHERE = dict.fromkeys(("vars", "options", "threshold", "assertScoringFunction"), _OF_TESTS) | dict.fromkeys(
    ("rubricPrompt", "transform"), "it belongs under `defaultTest.options`"
)
_UNUSED_OPTIONS = frozenset({"storeOutputAs", "factuality"})
_BESIDE_OPTIONS = dict.fromkeys(("assert", "threshold", "vars", "metadata"), "it belongs to the test, beside `options`")

_CHANGING = ("transform", "postprocess", "transformVars")
"""Options that change the graded text, or its rubric, by code."""


def read(notes: Notes, loading: Loading) -> Suite:
    """
    Return the suite that a promptfoo configuration describes.

    Errors are noted in *notes*, and raised by `notes.finish()`; the suite then lacks the cases that have them.
    """
    whole = Cursor.of(notes, loading)
    if not isinstance(whole.value, list):
        if not whole.mapping("a configuration of promptfoo (a mapping)"):
            return Suite(format="promptfoo")
        env = whole.find("env")
        if env is not None and env.mapping("environment variables (a mapping)"):
            env.warn("env is not set for anything that runs; only templates see it")
            declared = {name: as_text(value.value) for name, value in named(env)}
            # Templates see what the file itself declares; what the caller declares wins.
            notes.loading = evolve(loading, environ={**declared, **loading.environ})
        if not is_test(whole):
            check_keys(whole, _KNOWN_KEYS, _FATES, _ELSEWHERE, _QUIET_KEYS)
    cases = _unique(_cases(whole))
    if not cases and not notes.errors:
        whole.error("there are no tests in it; a configuration of promptfoo has `tests`")
    description, metadata = whole.find("description"), whole.find("metadata")
    return Suite(
        as_text(description.value) if description is not None else "",
        cases,
        format="promptfoo",
        source=notes.document.source,
        warnings=tuple(notes.warnings),
        metadata=metadata.value if metadata is not None and metadata.mapping("metadata (a mapping)") else {},
    )


def _cases(whole: Cursor) -> Iterator[Case]:
    default = whole.find("defaultTest")
    defaults = ((None if default is None else test_of(default)) or Test(whole)).as_defaults()
    cells = cells_of(prompts_of(whole.find("prompts")), providers_of(whole))
    for number, test in enumerate(_tests(whole, defaults), 1):
        yield from _of_test(test, number, cells)


def _tests(whole: Cursor, defaults: Test) -> list[Test]:
    if isinstance(whole.value, list):  # a file of tests by themselves
        return tests_of(whole)
    if is_test(whole):  # an example of the documentation: one test by itself, or no more than assertions
        return [test] if (test := test_of(whole)) is not None else []
    tests = [test.on(defaults) for test in tests_of(whole.find("tests"))]
    tests += scenarios_of(whole.find("scenarios"), defaults)
    fragment = listed(whole["assert"], "assertions")
    if fragment and "tests" not in whole.value and not tests:
        return [Test(whole, asserts=tuple(fragment)).on(defaults)]
    if whole.has("assert"):
        message = "assertions beside `tests` belong to no test, and nothing is asserted by them"
        whole["assert"].error(f"{message}; write them under `defaultTest`, or in each test", key=True)
    if not tests and "tests" not in whole.value and defaults.asserts:
        return [Test(whole).on(defaults)]  # one test without variables, as promptfoo has it
    return tests


# -- cases -------------------------------------------------------------------------------------------------


def _of_test(test: Test, number: int, cells: list[Cell]) -> Iterator[Case]:
    options = test.options
    for name, part in options.items():
        if name not in OPTIONS:
            part.unknown(f"the option {name} is not used", OPTIONS, _BESIDE_OPTIONS)
        elif name in _UNUSED_OPTIONS:
            part.warn(f"the option {name} is not used")
    expand = "disableVarExpansion" not in options or options["disableVarExpansion"].value is not True
    found = combinations(test.variables, expand=expand)
    columns = cells_for(test, cells)
    if len(found) * len(columns) > MOST_CASES:
        test.part.error(f"this test stands for more than {MOST_CASES} cases; split the file")
        return
    for variables in found:
        slots = Slots(variables)
        rubric = _graded(test, slots)
        if rubric is None:
            continue
        name = _name(test, number, variables, several=len(found) > 1)
        for cell in columns:
            case = _case(test, name, cell, rubric, slots)
            if case is not None:
                yield case


def _graded(test: Test, slots: Slots) -> Graded | None:
    context = Context(slots, test.options.get("provider"), test.options.get("rubricPrompt"))
    # What would change the graded text, the rubric or the score by code.
    changing = [(name, part) for name, part in test.options.items() if name in _CHANGING]
    changing += [("vars", at) for at in test.variables.values() if is_reference(at.value) and is_code(at.value)]
    if (scoring := test.fields.get("assertScoringFunction")) is not None:
        changing.append(("assertScoringFunction", scoring))
    more = [unsupported(name, as_text(part.value), part) for name, part in changing]
    return graded(test.asserts, context, test.threshold, test.part, more)


def _name(test: Test, number: int, variables: Mapping[str, Any], *, several: bool) -> str:
    name = clean(test.description) or f"test-{number}"
    if not several:
        return name
    listed = [key for key, part in test.variables.items() if isinstance(part.value, list)]
    varying = [f"{key}={shorten(as_text(variables[key]), 40)}" for key in listed if isinstance(variables[key], str)]
    return clean(f"{name} ({', '.join(varying)})") if varying else name


def clean(text: str) -> str:
    """Return *text* on one line, fit to be an id."""
    if text.isascii() and text.isprintable():
        return shorten(text, 160)
    plain = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    return shorten(plain, 160)


def _case(test: Test, name: str, cell: Cell, rubric: Graded, slots: Slots) -> Case | None:
    prompt, asked = cell.prompt, Asked()
    if prompt is not None:
        around = (as_text(test.options[key].value) if key in test.options else "" for key in ("prefix", "suffix"))
        asked = ask(prompt, slots.variables, *around)
    # The variable that holds an input that our own writer wrote is the input again, and no variable.
    own = prompt is not None and prompt.template == f"{{{{ {OWN} }}}}"
    shown = {name: as_text(value) for name, value in slots.variables.items() if name != OWN or not own}
    return test.part.built(
        Case,
        " / ".join([name, *map(clean, cell.names.values())]),
        rubric.rubric,
        input=asked.input,
        messages=asked.messages,
        output=_output(test, cell, asked),
        variables={**shown, **slots.extra},
        judge=rubric.judge,
        judges=rubric.judges,
        cell=cell.names,
        metadata=test.metadata,
        place=test.part.place,
    )


def _output(test: Test, cell: Cell, asked: Asked) -> str | None:
    """Return the response that the file fixes, or that promptfoo's `echo` gives: the prompt itself."""
    fixed = test.fields.get("providerOutput")
    if fixed is not None:
        return as_text(fixed.value)
    if cell.provider != "echo" or cell.prompt is None:
        return None
    return asked.input or compact([{"role": m.role, "content": m.content} for m in asked.messages])


def _unique(cases: Iterator[Case]) -> list[Case]:
    """Number the cases that share an id, from the second on."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    found: list[Case] = []
    for case in cases:
        id_ = case.id
        while id_ in taken:
            numbers[case.id] = numbers.get(case.id, 1) + 1
            id_ = f"{case.id} #{numbers[case.id]}"
        taken.add(id_)
        found.append(case if id_ == case.id else evolve(case, id=id_))
    return found
