"""
AgentV eval files: from a document to a `Suite`.

The tests of a file are a list, the names of files, or the file itself. In rows of a CSV file, a column is a field of a
test, or a variable of that name; `__expected` (and `__expected1`, ...) hold assertions as one text, as in promptfoo:
`contains: hello`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from attrs import evolve

from rubric.formats.agentv.graders import read_judge
from rubric.formats.agentv.scope import CASES, GRADERS, Scope, generation_of, looks_like_grader
from rubric.formats.agentv.targets import read_targets
from rubric.formats.agentv.tests import (
    Defaults,
    Template,
    Test,
    check_inner,
    check_keys,
    read_case,
    read_defaults,
    read_prompts,
)
from rubric.formats.agentv.writer import KEPT
from rubric.formats.assertion_types import assertion_of
from rubric.formats.cursor import Cursor, Loading, Notes
from rubric.formats.includes import expand_at, read_document_at
from rubric.formats.rubric_items import Generation, check_fields
from rubric.internals.text import shorten
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.judges import Judge

_UNUSED = {
    key: f"`{key}` is not used: it is about how answers are made"
    for key in (
        *("environment", "workspace", "evaluate_options", "extensions", "hooks", "timeout_seconds", "category"),
        *("preprocessors", "trials", "tracing", "env", "output_path", "output", "on_error", "run"),
        "experiment",
    )
}
_KNOWN = frozenset(
    {"$schema", "name", "dataset", "suite", "execution", "input", "input_messages", "input_files", "default_test",
     "prompts", "refs", "threshold", "rubrics", "providers", "targets", "target", "defaults", *CASES, *GRADERS, *KEPT}
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
    Return the suite in the document of *notes*. Errors are noted; the suite has what could be read all the same.

    Args:
        notes: The document; the caller calls `notes.finish()`.
        loading: Where it is, and what it may see.
        generation: That of the file; None: as its keys tell.
    """
    root = Cursor.of(notes, evolve(loading, climbs=True))
    scope = Scope(generation or generation_of(root.value), loading.required)
    whole, parts = _content(root)
    scope = evolve(scope, targets=read_targets(whole))
    _check_keys(whole)
    defaults = read_defaults(whole, scope)
    check_keys(defaults.test)
    templates: list[Template | None] = [*read_prompts(whole["prompts"], scope)] or [None]
    cases = list(_cases(parts, defaults, templates))
    if not cases and not notes.errors:
        (parts[0] if parts else root).error("there are no tests in it; an eval file has `tests`")
    return Suite(
        next((str(whole.value[key]) for key in ("name", "suite", "dataset") if whole.value.get(key)), ""),
        cases,
        judge=_judge_of(defaults, scope),
        format=scope.generation,
        source=notes.document.source,
        warnings=tuple(notes.warnings),
        metadata={key: whole.value[key] for key in KEPT if whole.has(key)},
    )


def _judge_of(defaults: Defaults, scope: Scope) -> Judge | None:
    """Return the judge that all tests share; None where its name needs what the load lacks, which is noted."""
    options = defaults.test.under("options")
    with defaults.test.notes.lacking() as lacks:
        judge = read_judge(options, scope)
        if judge is None and (grader := scope.targets.grader_of(_answering(defaults.suite, scope))):
            judge = read_judge(options.holding({"provider": grader}), scope)
    return None if lacks else judge


def _answering(suite: Cursor, scope: Scope) -> str:
    """Return the name of the target that answers the tests of a file, as far as it has one."""
    named = suite.find("target", "targets", "providers") or suite.under("execution").find("target", "targets")
    first = named.value if named is not None else scope.targets.provider
    first = first[0] if isinstance(first, list) and first else first
    return first if isinstance(first, str) else ""


def _content(root: Cursor) -> tuple[Cursor, list[Cursor]]:
    """Return the fields of a file and its tests: lists, names of files, or one test, as graders without tests are."""
    data = root.value
    if isinstance(data, list):
        if any(looks_like_grader(item) for item in data):
            return root.holding({"assertions": data}), [root.holding({})]
        return root.holding({}), [root]
    if not root.mapping("an eval file with `tests`"):
        return root.holding({}), []
    if isinstance(data.get("evals"), list):
        return root.holding({}), [_skill_tests(root)]
    if any(key in data for key in CASES):
        return root, [root[key] for key in CASES if key in data]
    if any(key in data for key in (*GRADERS, "rubrics", "execution")):
        own = {key: part for key, part in data.items() if key in _OWN}
        if not own:
            root.warn("there are no `tests`: the graders alone make one case, called test-1")
        rest = {key: part for key, part in data.items() if key not in _OWN}
        return root.holding(rest), [root.holding(own)]
    found = ", ".join(map(str, data)) or "nothing"
    root.error(f"expected an eval file with `tests` (generation 1: `evalcases`), got {shorten(found)}")
    return root.holding({}), []


def _skill_tests(root: Cursor) -> Cursor:
    """Return the tests of an `evals.json` of Agent Skills: each of its assertions is judged by itself, as by AgentV."""
    kept = {"skill_name": root.value["skill_name"]} if root.has("skill_name") else {}
    for key in root.value.keys() - {"skill_name", "evals", "$schema"}:
        root[key].warn(f"`{key}` is not used: it is no part of the evals of a skill", key=True)
    tests = []
    for item in root["evals"]:
        if not item.mapping("an eval of a skill (a mapping with prompt)") or not item.needs("prompt"):
            continue
        for key, value in item.value.items():
            if key not in _OF_EVALS and isinstance(value, list | dict) and value:
                item[key].warn(f"`{key}` is not graded: what an eval of a skill asserts is in `assertions`", key=True)
        said = item.find("assertions", "expectations")
        asserted = [] if said is None else said.listing("a list of texts")
        given = {key: item.value[key] for key in ("id", "name", "expected_output") if item.has(key)}
        given |= {"input": item.value["prompt"]} | ({} if asserted else {"criteria": item.value.get("expected_output")})
        given["assert"] = [_asserted(one, number) for number, one in enumerate(asserted, 1)]
        files = [{"type": "file", "value": name} for name in item.value.get("files") or [] if isinstance(name, str)]
        if files:
            given["input"] = [*files, {"type": "text", "value": given["input"]}]
        tests.append({key: value for key, value in given.items() if value} | {"metadata": kept})
    return root["evals"].holding(tests)


_OF_EVALS = frozenset({"assertions", "expectations", "files", "input_files", "tags", "metadata", "skills", "setup"})
_SAID = ("text", "description", "assertion", "expectation", "statement", "criterion", "criteria", "check", "outcome")
"""The keys under which authors write the text of an assertion that is a mapping."""


def _asserted(at: Cursor, number: int) -> dict[str, Any]:
    """Return the assertion of a skill, a text or a mapping with one, as a grader; another mapping as an unknown one."""
    name = f"assertion-{number}"
    if not isinstance(at.value, dict):
        return {"type": "llm-rubric", "metric": name, "value": at.text()}
    named = next((str(at.value[key]) for key in ("id", "name") if at.value.get(key) not in (None, "")), name)
    text = next((at.value[key] for key in _SAID if isinstance(at.value.get(key), str) and at.value[key].strip()), None)
    if text is None:
        at.warn(f"this assertion has no text for a judge; write it as `text` (read here: {', '.join(_SAID)})")
        return {"type": "assertion-without-text", "metric": named}
    return {"type": "llm-rubric", "metric": named, "value": text}


def _check_keys(whole: Cursor) -> None:
    check_fields(whole, "an eval file", _KNOWN, _ELSEWHERE, _UNUSED)
    check_inner(whole["execution"], _EXECUTION, "`execution.{}` is not used: it is about how answers are made")


def _cases(parts: list[Cursor], defaults: Defaults, templates: list[Template | None]) -> Iterator[Case]:
    seen: set[str] = set()
    tests = (at for part in parts for at in ([part] if isinstance(part.value, Mapping) else _tests(part)))
    for number, at in enumerate(tests, 1):
        if len(at.value.keys() & _RESULTS) > 1 and "assert" not in at:
            at.error("this is the result of a run, not a test; load the eval file that it came from")
            continue
        for template in templates:
            case = read_case(Test(at, defaults.scope, number), defaults, template, several=len(templates) > 1)
            if case is None:
                continue
            if case.id in seen:
                at.error(f"the id {case.id!r} belongs to another test already; give it another")
                continue
            seen.add(case.id)
            yield case


def _tests(at: Cursor) -> Iterator[Cursor]:
    """Yield the tests of a list, and those in the files that it names."""
    if isinstance(at.value, str):
        yield from _included(at)
        return
    for entry in at.listing("a list of tests, or the name of a file with some"):
        if isinstance(entry.value, str):
            yield from _included(entry)
        elif entry.mapping("a test (a mapping), or the name of a file with tests"):
            is_row = any(isinstance(key, str) and key.startswith(f"{_MAGIC}expected") for key in entry.value)
            yield entry.holding(_test_of(entry.value)) if is_row else entry


_FOLDERS = ("*/case.y*ml", "**/*.y*ml", "**/*.jsonl")
"""The files that a folder of tests is short for: a folder for each case, called by its id, or files of cases."""


def _included(at: Cursor) -> Iterator[Cursor]:
    for reference in expand_at(at.value, at, _FOLDERS):
        whole = read_document_at(reference, at)
        if whole is None:
            continue
        if isinstance(whole.value, Mapping) and "tests" not in whole.value:
            name = PurePosixPath(reference)
            alone = name.stem == "case" and "id" not in whole.value and "name" not in whole.value
            yield whole.holding({**whole.value, "id": name.parent.name}) if alone else whole
        else:
            yield from _tests(whole["tests"] if isinstance(whole.value, Mapping) else whole)


# -- rows of tables -----------------------------------------------------------------------------------------

_FIELDS = frozenset({"id", "criteria", "input", "expected_output", "threshold", "description"})
_MAGIC = "__"


def _test_of(row: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return *row* as the fields of a test."""
    magic = {key.removeprefix(_MAGIC): row[key] for key in row if isinstance(key, str) and key.startswith(_MAGIC)}
    plain = {key: value for key, value in row.items() if key not in {f"{_MAGIC}{name}" for name in magic}}
    test = {key: value for key, value in plain.items() if key in _FIELDS and value not in (None, "")}
    test["vars"] = {key: value for key, value in plain.items() if key not in _FIELDS}
    said = [str(value) for name, value in magic.items() if name.startswith("expected") and value]
    test["assert"] = [assertion_of(text) for text in said]
    test |= {name: magic[name] for name in ("threshold", "description") if magic.get(name)}
    if magic.get("threshold"):
        with suppress(TypeError, ValueError):
            test["threshold"] = float(magic["threshold"])
    left = [name for name in magic if not name.startswith("expected") and name not in ("threshold", "description")]
    return test | {f"{_MAGIC}{name}": magic[name] for name in left if magic[name]}
