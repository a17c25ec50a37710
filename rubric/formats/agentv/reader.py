"""
AgentV eval files: from a document to a `Suite`.

What a case says in its own words of a good answer (`criteria`, `expected_outcome`) is what a grader without criteria of
its own judges by; where there are others, it is `Case.context`, which the judge is shown beside the task.

Rows of a CSV file as tests: a column is a field of a test, or a variable of that name.

`__expected` (and `__expected1`, ...) hold assertions as one text, as in promptfoo: `contains: hello`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve, frozen

from rubric.formats.agentv.messages import Template, read_prompts
from rubric.formats.agentv.scope import CASES, GRADERS, Generation, Scope, generation_of, looks_like_grader
from rubric.formats.agentv.tests import Defaults, Test, check_keys, read_case, read_defaults
from rubric.formats.agentv.writer import KEPT
from rubric.formats.assertion_types import assertion_of
from rubric.formats.cursor import Loading, Notes
from rubric.formats.document import KeyPath
from rubric.formats.includes import expand_at, read_document_at
from rubric.internals.fields import misspelt
from rubric.internals.text import shorten
from rubric.suites.cases import Case
from rubric.suites.suite import Suite

_FIELDS = frozenset({"id", "criteria", "input", "expected_output", "threshold", "description"})
_MAGIC = "__"


def is_row(fields: Mapping[Any, Any]) -> bool:
    """Say whether *fields* are a row with columns that hold assertions."""
    return any(isinstance(key, str) and key.startswith(f"{_MAGIC}expected") for key in fields)


def test_of(row: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return *row* as the fields of a test."""
    magic = {key.removeprefix(_MAGIC): row[key] for key in row if isinstance(key, str) and key.startswith(_MAGIC)}
    plain = {key: value for key, value in row.items() if key not in {f"{_MAGIC}{name}" for name in magic}}
    test = {key: value for key, value in plain.items() if key in _FIELDS and value not in (None, "")}
    test["vars"] = {key: value for key, value in plain.items() if key not in _FIELDS}
    said = [str(value) for name, value in magic.items() if name.startswith("expected") and value]
    test["assert"] = [assertion_of(text) for text in said]
    for name in ("threshold", "description"):
        if magic.get(name):
            test[name] = _number(magic[name]) if name == "threshold" else magic[name]
    left = [name for name in magic if not name.startswith("expected") and name not in ("threshold", "description")]
    return test | {f"{_MAGIC}{name}": magic[name] for name in left if magic[name]}


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


_UNUSED = frozenset(
    {"environment", "workspace", "providers", "targets", "target", "evaluate_options", "extensions", "hooks",
     "preprocessors", "defaults", "trials", "tracing", "env", "output_path", "output", "on_error", "run", "experiment"}
)  # fmt: skip
_KNOWN = frozenset(
    {"$schema", "name", "dataset", "suite", "execution", "input", "input_messages", "input_files", "default_test",
     "prompts", "refs", "threshold", "rubrics", *CASES, *GRADERS, *KEPT}
)  # fmt: skip
_ELSEWHERE = dict.fromkeys(
    ("vars", "options", "criteria", "expected_output"), "it belongs to a test, or for all tests under `default_test`"
)
_EXECUTION = frozenset({"assert", "assertions", "graders", "evaluators", "threshold"})
_OWN = frozenset(
    {"id", "input", "vars", "criteria", "expected_output", "expected_outcome", "metadata", "options", "output"}
)
_RESULTS = frozenset({"score", "scores", "timestamp"})


def read(notes: Notes, loading: Loading, generation: Generation | None = None) -> Suite:
    """
    Return what *notes*' document holds. Errors are noted; what could be read stands in the suite all the same.

    Args:
        notes: The document; the caller calls `notes.finish()`.
        loading: Where it stands, and what it may see.
        generation: What it is written in; None: what its keys tell.
    """
    data = notes.data()
    scope = Scope(notes, loading, generation or generation_of(data))
    content = _content(data, scope)
    whole = content.fields
    _check_keys(whole, scope)
    defaults = read_defaults(whole, scope)
    if defaults.test_scope is not None:
        check_keys(defaults.test, defaults.test_scope, defaults.test_path)
    templates: list[Template | None] = [*read_prompts(whole.get("prompts"), scope)] or [None]
    cases = list(_cases(content, defaults, templates))
    if not cases and not notes.errors:
        scope.error(content.tests[0][1] if content.tests else (), "there are no tests in it; an eval file has `tests`")
    for told in (notes.errors, notes.warnings):  # what stands once, and holds for every test, is told once
        told[:] = dict.fromkeys(told)
    return Suite(
        _name(whole),
        cases,
        judge=defaults.judge(),
        format=scope.generation,
        source=notes.document.source,
        warnings=tuple(notes.warnings),
        metadata={key: whole[key] for key in KEPT if whole.get(key) is not None},
    )


@frozen
class Content:
    """The fields of a whole file, and its tests: lists, names of files, or one test, each with its path."""

    fields: Mapping[Any, Any]
    tests: tuple[tuple[Any, KeyPath], ...]


def _content(data: Any, scope: Scope) -> Content:
    """Return what a file holds: a list is its tests; graders without tests, or one test, are one case."""
    if isinstance(data, list):
        if any(looks_like_grader(item) for item in data):
            return Content({"assertions": data}, (({}, ()),))
        return Content({}, ((data, ()),))
    if not isinstance(data, Mapping):
        scope.error((), f"expected an eval file with `tests`, got {shorten(repr(data))}")
        return Content({}, ())
    if any(key in data for key in CASES):
        return Content(data, tuple((data[key], (key,)) for key in CASES if key in data))
    if any(key in data for key in (*GRADERS, "rubrics", "execution")):
        return _one_test(data, scope)
    found = ", ".join(map(str, data)) or "nothing"
    scope.error((), f"expected an eval file with `tests` (generation 1: `evalcases`), got {shorten(found)}")
    return Content({}, ())


def _one_test(data: Mapping[Any, Any], scope: Scope) -> Content:
    """Return a file that is one test, such as a case.yaml, or no more than graders."""
    own = {key: part for key, part in data.items() if key in _OWN}
    if not own:
        scope.warn((), "there are no `tests`: the graders alone make one case, called test-1")
    return Content({key: part for key, part in data.items() if key not in _OWN}, ((own, ()),))


def _check_keys(whole: Mapping[Any, Any], scope: Scope) -> None:
    for key in whole:
        if key in _UNUSED:
            scope.once((key,), f"`{key}` is not used: it is about how answers are made")
        elif key not in _KNOWN:
            scope.unknown((key,), "an eval file has no such field", _KNOWN, _ELSEWHERE)
    execution = whole.get("execution")
    for key in execution if isinstance(execution, Mapping) else ():
        if key in _EXECUTION:
            continue
        if misspelt(key, _EXECUTION):
            scope.unknown(("execution", key), "", _EXECUTION)
        else:
            scope.once(("execution", key), f"`execution.{key}` is not used: it is about how answers are made")


def _name(whole: Mapping[Any, Any]) -> str:
    return next((str(whole[key]) for key in ("name", "suite", "dataset") if whole.get(key)), "")


def _cases(content: Content, defaults: Defaults, templates: list[Template | None]) -> Iterator[Case]:
    seen: set[str] = set()
    for test in _tests(content, defaults.scope):
        if not _is_test(test):
            continue
        for template in templates:
            case = read_case(test, defaults, template, several=len(templates) > 1)
            if case is None:
                continue
            if case.id in seen:
                test.scope.error(test.path, f"the id {case.id!r} belongs to another test already; give it another")
                continue
            seen.add(case.id)
            yield case


def _is_test(test: Test) -> bool:
    """Say whether *test* may be one; a record of a run, as AgentV writes its results, is not."""
    if len(test.fields.keys() & _RESULTS) > 1 and "assert" not in test.fields:
        test.scope.error(test.path, "this is the result of a run, not a test; load the eval file that it came from")
        return False
    return True


def _tests(content: Content, scope: Scope) -> Iterator[Test]:
    number = 0
    for value, path in content.tests:
        entries = [(value, scope, path)] if isinstance(value, Mapping) else _entries(value, scope, path)
        for fields, where, at in entries:
            number += 1
            yield Test(fields, where, at, number)


def _entries(value: Any, scope: Scope, path: KeyPath) -> Iterator[tuple[Mapping[Any, Any], Scope, KeyPath]]:
    """Yield the tests of a list, each with where it stands; names of files stand for the tests in them."""
    if isinstance(value, str):
        yield from _included(value, scope, path)
        return
    if not isinstance(value, list):
        scope.error(path, f"expected a list of tests, or the name of a file with some; got {shorten(repr(value))}")
        return
    for index, entry in enumerate(value):
        here = (*path, index)
        if isinstance(entry, Mapping):
            yield (test_of(entry) if is_row(entry) else entry), scope, here
        elif isinstance(entry, str):
            yield from _included(entry, scope, here)
        else:
            scope.error(
                here, f"expected a test (a mapping), or the name of a file with tests; got {shorten(repr(entry))}"
            )


def _included(reference: str, scope: Scope, path: KeyPath) -> Iterator[tuple[Mapping[Any, Any], Scope, KeyPath]]:
    name = scope.fill(reference, path)
    for one in expand_at(name, scope.loading, scope.notes, path):
        included = read_document_at(one, scope.loading, scope.notes, path)
        if included is None:
            continue
        notes, loading = included
        inner = evolve(scope, notes=notes, loading=loading)
        data = notes.data()
        if isinstance(data, Mapping) and "tests" in data:
            yield from _entries(data["tests"], inner, ("tests",))
        elif isinstance(data, Mapping):
            yield data, inner, ()
        else:
            yield from _entries(data, inner, ())
