"""
AgentV eval files: from a document to a `Suite`.

The tests of a file are a list, the names of files, or the file itself. In rows of a CSV file, a column is a field of a
test, or a variable of that name; `__expected` (and `__expected1`, ...) hold assertions as one text, as in promptfoo:
`contains: hello`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import PurePath, PurePosixPath
from typing import Any

from attrs import evolve

from rubric import Criterion, Judge, Rubric
from rubric.embed import Cursor, Loading, Notes, shorten
from rubric.formats.agentv.graders import read_judge
from rubric.formats.agentv.messages import Template, read_prompts
from rubric.formats.agentv.scope import Scope, generation_of, looks_like_grader
from rubric.formats.agentv.targets import read_targets
from rubric.formats.agentv.tests import Defaults, Test, check_keys, read_case, read_defaults
from rubric.formats.assertions.texts import assertion_of
from rubric.formats.includes import expand_at, follow, is_code, read_document_at
from rubric.formats.keys import keys_of, part_of
from rubric.formats.recognition import CASES, GRADERS
from rubric.formats.rubric_items import Generation
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values import Unsupported

_SCENARIOS = "scenarios"
_RESULTS = frozenset({"score", "scores", "timestamp"})
_KEPT = ("description", "version", "author", "license", "tags", "metadata", "governance", "requires")
"""The fields of a file that its suite keeps as metadata."""


def read(notes: Notes, loading: Loading, generation: Generation | None = None) -> Suite:
    """Return the suite in the document of *notes*. Errors are noted; the suite has what could be read all the same."""
    root = Cursor.of(notes, evolve(loading, climbs=True))
    whole, parts = _content(root)
    if isinstance(root.value, list) and (sidecar := _sidecar(root)) is not None:
        whole = sidecar
    scope = Scope(generation or generation_of(root.value), loading.required, targets=read_targets(whole))
    whole.reads(**part_of("agentv", "file"))
    whole["execution"].reads(**part_of("agentv", "execution_of_file"))
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
        metadata={key: whole.value[key] for key in _KEPT if whole.has(key)},
    )


def _judge_of(defaults: Defaults, scope: Scope) -> Judge | None:
    """Return the judge that all tests share; None where its name needs what the load lacks, which is noted."""
    options, suite = defaults.test.under("options"), defaults.suite
    named = suite.find("target", "targets", "providers") or suite.under("execution").find("target", "targets")
    target = scope.targets.provider if named is None else named.value
    target = target[0] if isinstance(target, list) and target else target
    with defaults.test.notes.lacking() as lacks:
        judge = read_judge(options, scope)
        if judge is None and (grader := scope.targets.grader_of(target if isinstance(target, str) else "")):
            judge = read_judge(options.holding({"provider": grader}), scope)
    return None if lacks else judge


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
    if any(key in data for key in (*CASES, _SCENARIOS)):
        return root, [root[key] for key in (*CASES, _SCENARIOS) if key in data]
    if any(key in data for key in (*GRADERS, "rubrics", "execution")):
        keys = keys_of("agentv", "file", "own")
        own = {key: part for key, part in data.items() if key in keys}
        if not own:
            root.warn("there are no `tests`: the graders alone make one case, called test-1")
        rest = {key: part for key, part in data.items() if key not in keys}
        return root.holding(rest), [root.holding(own)]
    found = ", ".join(map(str, data)) or "nothing"
    root.error(f"expected an eval file with `tests` (generation 1: `evalcases`), got {shorten(found)}")
    return root.holding({}), []


def _skill_tests(root: Cursor) -> Cursor:
    """Return the tests of an `evals.json` of Agent Skills: each of its assertions is judged by itself, as by AgentV."""
    kept = {"skill_name": root.value["skill_name"]} if root.has("skill_name") else {}
    for key in root.value.keys() - {"skill_name", "evals", "$schema"}:
        root[key].warn(f"`{key}` is not used: it is not a part of the evals of a skill", key=True)
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
        given["assert"] = [_read_assertion(one, number) for number, one in enumerate(asserted, 1)]
        files = [{"type": "file", "value": name} for name in item.value.get("files") or [] if isinstance(name, str)]
        if files:
            given["input"] = [*files, {"type": "text", "value": given["input"]}]
        tests.append({key: value for key, value in given.items() if value} | {"metadata": kept})
    return root["evals"].holding(tests)


_OF_EVALS = frozenset({"assertions", "expectations", "files", "input_files", "tags", "metadata", "skills", "setup"})
_SAID = ("text", "description", "assertion", "expectation", "statement", "criterion", "criteria", "check", "outcome")
"""The keys under which authors write the text of an assertion that is a mapping."""


def _read_assertion(at: Cursor, number: int) -> dict[str, Any]:
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


def _cases(parts: list[Cursor], defaults: Defaults, templates: list[Template | None]) -> Iterator[Case]:
    seen: set[str] = set()
    for number, at in enumerate((at for part in parts for at in _of_part(part)), 1):
        if isinstance(at.value, str):
            yield _program_case(at)
            continue
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


def _program_case(at: Cursor) -> Case:
    """Return the case that takes the place of the tests that a program makes."""
    why = f"tests that a program makes ({shorten(at.value, 80)})"
    at.warn(f"{why} are not supported: one ungraded case takes their place")
    rubric = Rubric(criteria=[Criterion(why, id="tests", answer=Unsupported(why))])
    return Case(shorten(at.value, 80), rubric, place=at.place)


def _of_part(at: Cursor) -> Iterator[Cursor]:
    """Yield the tests of a part of a file: one test, a list, the names of files, or scenarios."""
    if isinstance(at.value, Mapping):
        yield at
    elif at.step == _SCENARIOS:
        yield from _scenarios(at)
    else:
        yield from _tests(at)


def _scenarios(at: Cursor) -> Iterator[Cursor]:
    """Yield each test of each scenario on top of each of its configurations."""
    for entry in at if isinstance(at.value, list) else [at]:
        if isinstance(entry.value, str):
            for file in expand_at(entry):
                if (whole := follow(file)) is not None:
                    yield from _scenarios(whole[_SCENARIOS] if isinstance(whole.value, Mapping) else whole)
            continue
        if not entry.mapping("a scenario (a mapping with config and tests)"):
            continue
        settings = [*_tests(entry["config"])] if entry.has("config") else [entry.holding({})]
        for first, test in enumerate(_tests(entry["tests"]), 1):
            for second, setting in enumerate(settings, 1):
                yield test.holding(_on_top(test.value, setting.value, (first, second)))


def _on_top(test: Mapping[Any, Any], setting: Mapping[Any, Any], numbers: tuple[int, int]) -> dict[Any, Any]:
    """Return *test* on top of the *setting* of a scenario; their ids, or else *numbers*, tell the cases apart."""
    joined = {key: [*(setting.get(key) or []), *(test.get(key) or [])] for key in GRADERS if key in {*setting, *test}}
    variables = {**(setting.get("vars") or {}), **(test.get("vars") or {})}
    name, label = test.get("id", f"test-{numbers[0]}"), setting.get("id", f"config-{numbers[1]}")
    return {**setting, **test, **joined, "vars": variables, "id": f"{name} [{label}]"}


def _sidecar(root: Cursor) -> Cursor | None:
    """Return what the tests of a JSONL file share: the YAML file of the same name beside it."""
    source = PurePath(root.notes.document.source)
    if source.suffix != ".jsonl" or root.loading.folder is None:
        return None
    names = (source.with_suffix(suffix).name for suffix in (".yaml", ".yml"))
    found = next((name for name in names if (root.loading.folder / name).is_file()), None)
    whole = None if found is None else read_document_at(found, root)
    return whole if whole is not None and isinstance(whole.value, Mapping) else None


def _tests(at: Cursor) -> Iterator[Cursor]:
    """Yield the tests of a list, and those in the files that it names; the name of a program is one itself."""
    if isinstance(at.value, str):
        yield from _include_files(at)
        return
    for entry in at.listing("a list of tests, or the name of a file with some"):
        if isinstance(entry.value, str):
            yield from _include_files(entry)
        elif entry.mapping("a test (a mapping), or the name of a file with tests"):
            is_row = any(isinstance(key, str) and key.startswith(f"{_MAGIC}expected") for key in entry.value)
            yield entry.holding(_test_of(entry.value)) if is_row else entry


_FOLDERS = ("*/case.y*ml", "**/*.y*ml", "**/*.jsonl")
"""The files that a folder of tests is short for: a folder for each case, called by its id, or files of cases."""


def _include_files(at: Cursor) -> Iterator[Cursor]:
    if is_code(at.value):
        yield at
        return
    for file in expand_at(at, _FOLDERS):
        whole = follow(file)
        if whole is None:
            continue
        if isinstance(whole.value, Mapping) and "tests" not in whole.value:
            name = PurePosixPath(file.value.removeprefix("file://"))
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
    test["assert"] = [_of_column(name, magic) for name in magic if name.startswith("expected") and magic[name]]
    test |= {name: magic[name] for name in ("threshold", "description") if magic.get(name)}
    if magic.get("threshold"):
        test["threshold"] = _as_number(magic["threshold"])
    told = {name.removeprefix(_METADATA): value for name, value in magic.items() if name.startswith(_METADATA)}
    known = ("expected", "threshold", "description", "metric", "config:", _METADATA)
    left = [name for name in magic if not name.startswith(known)]
    return {
        **test,
        **({"metadata": told} if told else {}),
        **{f"{_MAGIC}{name}": magic[name] for name in left if magic[name]},
    }


_METADATA = "metadata:"


def _of_column(name: str, magic: Mapping[str, Any]) -> dict[str, Any]:
    """Return the assertion in the column `__`*name*, with what other columns say of it."""
    made = assertion_of(str(magic[name]))
    number = name.removeprefix("expected") or "1"
    said = [
        magic.get(f"config:{_MAGIC}expected{which}:threshold") for which in {number, *([""] if number == "1" else [])}
    ]
    least = next((_as_number(one) for one in said if one), None)
    made |= {"min_score": least} if least is not None else {}
    return made | ({"metric": magic["metric"]} if magic.get("metric") else {})


def _as_number(text: Any) -> Any:
    with suppress(TypeError, ValueError):
        return float(text)
    return text
