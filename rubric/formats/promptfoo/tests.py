"""
The tests of a configuration: lists, files and scenarios of them, on top of what `defaultTest` gives to all.

A row of a CSV file is a test too: columns are variables, and those that begin with `__` say how it is graded. Variables
are read from files, put into one another, and multiplied where they are lists of texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice, product
from pathlib import PurePosixPath
from typing import Any

from attrs import evolve, field, frozen

from rubric.embed import Cursor, LackingError, shorten
from rubric.formats.assertions.texts import assertion_of
from rubric.formats.images import is_image
from rubric.formats.includes import expand_at, follow, is_code, is_outside, is_reference, read_document_at, read_file_at
from rubric.formats.json_values import each_text
from rubric.formats.keys import keys_of, part_of
from rubric.formats.promptfoo.functions import call_at, why_not
from rubric.formats.promptfoo.texts import as_text, compact, items_of, list_items, values_in, with_environment

_EXPECTED = re.compile(r"__expected\d*")
_SETTING = re.compile(r"__config:__expected(\d*):(\w+)")
_METADATA = re.compile(r"__metadata:(.+?)(\[\])?")

_PLAIN = {
    "__description": ("description",),
    "__threshold": ("threshold",),
    "__providerOutput": ("providerOutput",),
    "__prefix": ("options", "prefix"),
    "__suffix": ("options", "suffix"),
}


def row_of(at: Cursor) -> Cursor:
    """Return the row at the cursor as the mapping that a test is in YAML. A column that is not known is noted."""
    test: dict[str, Any] = {"vars": {}, "assert": []}
    numbered: dict[int, dict[str, Any]] = {}
    for column, cell in items_of(at):
        if not column.startswith("__"):
            test["vars"][column] = cell.value
        elif not cell.value.strip():
            continue
        elif _EXPECTED.fullmatch(column):
            number = int(column.removeprefix("__expected") or 1)
            numbered[number] = assertion_of(cell.value.strip())
            test["assert"].append(numbered[number])
        else:
            _set(test, column, cell)
    _configure(at, test, numbered)
    return at.holding({key: value for key, value in test.items() if value})


def _set(test: dict[str, Any], column: str, cell: Cursor) -> None:
    if column in _PLAIN:
        *outer, last = _PLAIN[column]
        inner = test.setdefault(outer[0], {}) if outer else test
        inner[last] = cell.value
    elif match := _METADATA.fullmatch(column):
        parts = re.split(r"(?<!\\),", cell.value)
        value = [part.strip().replace("\\,", ",") for part in parts] if match[2] else cell.value
        test.setdefault("metadata", {})[match[1]] = value
    elif column != "__metric" and not _SETTING.fullmatch(column):
        cell.unknown(f"the column {column} is not read", ("__expected", "__metric", *_PLAIN))


def _configure(at: Cursor, test: dict[str, Any], numbered: dict[int, dict[str, Any]]) -> None:
    """Apply the columns that configure the assertions of the row."""
    metric = at.value.get("__metric") or ""
    for assertion in test["assert"]:
        if metric.strip():
            assertion["metric"] = metric
    for column, cell in items_of(at):
        match = _SETTING.fullmatch(column)
        if match is None or not cell.value.strip():
            continue
        assertion = numbered.get(int(match[1] or 1))
        if assertion is None or match[2] != "threshold":
            cell.warn(f"the column {column} is not read: it sets the threshold of a column __expected{match[1]}")
        else:
            assertion["threshold"] = cell.value


_KEYS = part_of("promptfoo", "test")
_TABLES = (".csv", ".tsv")


@frozen(eq=False)
class Test:
    """
    A test, with what it has of `defaultTest`, whose asserts come first.

    Args:
        description: The id of its cases.
        threshold: The least weighted mean with which it passes.
        fields: `provider`, `providers`, `prompts`, `providerOutput` and `assertScoringFunction`, where it has them.
        lacks: What this library lacks to read the test; it is ungraded.
        unasked: What it lacks to ask a target; answers from elsewhere are graded.
        conversation: The tests with which it shares a conversation: those of its scenario, or of the same metadata.
    """

    at: Cursor
    description: str = ""
    variables: dict[str, Cursor] = field(factory=dict)
    asserts: tuple[Cursor, ...] = ()
    options: dict[str, Cursor] = field(factory=dict)
    threshold: Cursor | None = None
    fields: dict[str, Cursor] = field(factory=dict)
    metadata: dict[str, Any] = field(factory=dict)
    lacks: str = ""
    unasked: str = ""
    conversation: str = ""

    def on(self, defaults: Test) -> Test:
        """Return the test with *defaults* under it: their asserts come first, their fields give way to its own."""
        own = {k: at for k, at in self.options.items() if at.value or k not in ("prefix", "suffix")}  # as in promptfoo
        alone = self.option("disableDefaultAsserts") is True
        return evolve(
            self,
            description=self.description or defaults.description,
            variables=defaults.variables | self.variables,
            asserts=(*(() if alone else defaults.asserts), *self.asserts),
            # As in promptfoo, null takes back the default.
            options={k: at for k, at in (defaults.options | own).items() if at.value is not None},
            threshold=self.threshold or defaults.threshold,
            fields=defaults.fields | self.fields,
            metadata=defaults.metadata | self.metadata,
            lacks=self.lacks or defaults.lacks,
            conversation=self.conversation or defaults.conversation,
        )

    def option(self, name: str) -> Any:
        """Return the value of the option *name*; None if it has none."""
        return self.options[name].value if name in self.options else None

    def as_defaults(self) -> Test:
        """Return a `defaultTest` as the base of other tests: its provider is the grader of them all."""
        fields = {name: at for name, at in self.fields.items() if name != "provider"}
        grader = {"provider": self.fields["provider"]} if "provider" in self.fields else {}
        return evolve(self, fields=fields, options=self.options | grader)


_FIELDS = ("provider", "providers", "prompts", "providerOutput", "assertScoringFunction")


def test_of(at: Cursor) -> list[Test]:
    """Return a mapping as a test, without any defaults; nothing, with an error noted, if it is none."""
    found = follow(at)
    if found is None or not found.mapping("a test (a mapping)"):
        return []
    one_of_several = isinstance(at.step, int)
    flaw = found.notes.excuse(found.path) if one_of_several and found.notes.errors else ""
    with found.notes.lacking(whole=one_of_several) as lacks:
        found.reads(**_KEYS)
        variables = _variables(found.find("vars"))
        asserts, opened = assertions_of(found["assert"]), follow(found["options"])
        options = {} if opened is None else values_in(opened, "options (a mapping)")
        metadata = found.find("metadata")
        given = dict(metadata.value) if metadata is not None and metadata.mapping("metadata (a mapping)") else {}
    lacks = [*([flaw] if flaw else []), *lacks]
    test = Test(
        found,
        description=as_text(found.value.get("description")),
        variables=variables,
        asserts=tuple(asserts),
        options=options,
        threshold=found.find("threshold"),
        fields={name: found[name] for name in _FIELDS if found.has(name)},
        metadata=given,
        lacks=lacks[0] if lacks else "",
        conversation=as_text(given.get("conversationId")),
    )
    return [test]


def assertions_of(at: Cursor) -> list[Cursor]:
    """Return the assertions of a test, also those in files that it names, which promptfoo follows in files of tests."""
    whole = follow(at)
    opened = [follow(item) for item in (list_items(whole, "assertions") if whole is not None else ())]
    return [part for item in opened if item is not None for part in (item if isinstance(item.value, list) else [item])]


def _variables(at: Cursor | None) -> dict[str, Cursor]:
    """Return the variables by name: of a mapping, of a file, or of several files one after the other."""
    if at is None:
        return {}
    if isinstance(at.value, list):
        return {name: value for item in at for name, value in _variables(item).items()}
    parts: Iterable[Cursor | None] = [at]
    if isinstance(at.value, str):
        # As in promptfoo, a file of variables is beside the file of tests; any other is beside the configuration.
        first = at.loading.first
        at = evolve(at, notes=at.notes.of(at.notes.document, evolve(at.loading, first=None)))
        parts = [follow(one) for one in expand_at(at)]
        for whole in parts:
            if whole is not None:
                whole.notes.loading = evolve(whole.loading, first=first)
    found: dict[str, Cursor] = {}
    for whole in parts:
        if whole is not None and whole.mapping("variables (a mapping)"):
            found |= items_of(whole)
    return found


def tests_of(at: Cursor | None) -> list[Test]:
    """Return the tests of a list, or of the files that are named instead; a file that cannot be read is noted."""
    if at is None:
        return []
    if isinstance(at.value, str):
        return _tests_at(at)
    if isinstance(at.value, dict) and at.has("path"):
        return _tests_at(at["path"], at.value.get("config"))
    return [test for item in list_items(at, "tests") for test in _of_item(item)]


def _of_item(at: Cursor) -> list[Test]:
    if isinstance(at.value, str):
        return _tests_at(at, listed=True)
    return tests_of(at) if isinstance(at.value, dict) and is_reference(at.value.get("path")) else test_of(at)


_SHEET = re.compile(r"\.xlsx?(?:#|\Z)", re.IGNORECASE)
_FOLDERS = ("**/*.y*ml", "**/*.json*", "**/*.csv")
"""The files of tests that a folder is short for."""


def _tests_at(at: Cursor, config: Any = None, *, listed: bool = False) -> list[Test]:
    """Return the tests of the files that the cursor names, or those that a function makes of *config*, if any."""
    reference = as_text(at.value)
    name = reference.removeprefix("file://")
    if is_code(name):
        return _generate(at, name, *([] if config is None else [config]))
    if _SHEET.search(name):
        return [_elsewhere(at, name, "are in a spreadsheet", "save its sheet as CSV, and name that file")]
    if "://" in name:
        return [_elsewhere(at, name, "are on another machine", "download them, and name the file")]
    with at.notes.lacking() as lacks:
        files = expand_at(at.holding(reference), _FOLDERS)
    if lacks:
        return [_ungraded_test(at, name, f"tests in a file with {lacks[0]}")]
    return [test for file in files for test in _of_file(file, listed=listed)]


def _generate(at: Cursor, name: str, *given: Any) -> list[Test]:
    """Return the tests that the function *name* makes of what is *given*, or an ungraded one in their place."""
    if why := why_not(name):
        return [_elsewhere(at, name, "a program makes", f"{why}; or write them as YAML, JSON, JSONL or CSV")]
    made, why = call_at(name, at, "generate_tests", *given)
    if made and isinstance(made, list):
        return [test for one in at.holding(made) for test in test_of(one)]
    why = why or f"expected a list of tests, got {shorten(repr(made), 60)}"
    return [_ungraded_test(at, name, f"tests that a program makes, which failed ({shorten(why, 160)})")]


def _elsewhere(at: Cursor, name: str, what: str, cure: str) -> Test:
    at.warn(f"{shorten(name, 80)}: tests that {what} are not read, and one ungraded case takes their place; {cure}")
    return _ungraded_test(at, name, f"tests that {what} ({shorten(name, 80)})")


def _ungraded_test(at: Cursor, name: str, lacks: str) -> Test:
    return Test(at.holding({}), description=f"tests of {name}", lacks=lacks)


def _of_file(at: Cursor, *, listed: bool = False) -> list[Test]:
    """Return the tests of a file; one of several that is not there is one ungraded test (promptfoo passes over it)."""
    lacks: list[str] = []
    lenient = listed and not is_outside(at.value, at.loading)
    whole = read_document_at(at.value, at, lacking=lacks.append if lenient else None)
    if lacks:
        at.warn(f"{lacks[0]} (one ungraded case takes the place of its tests)")
        name = shorten(at.value.removeprefix("file://"), 80)
        return [_ungraded_test(at, name, f"tests in a file that is not within reach ({name})")]
    if whole is None:
        return []
    if at.value.lower().endswith(_TABLES):
        return [test for row in whole for test in test_of(row_of(row))]
    if isinstance(whole.value, dict):
        return tests_of(whole["tests"]) if "tests" in whole.value else test_of(whole)
    return tests_of(whole)


def is_test(at: Cursor) -> bool:
    """True if a whole file is one test, or the assertions of one, as examples in documentation are."""
    if not isinstance(at.value, dict) or not at.value.keys() <= _KEYS["known"] | _KEYS["quiet"]:
        return False
    # Prompts and providers alone are a configuration without tests.
    return bool(at.value.keys() - {"description", "prompts", "providers", *_KEYS["quiet"]})


def scenarios_of(at: Cursor | None, defaults: Test) -> list[Test]:
    """Return each test of each scenario on top of each of its configurations."""
    items = [] if at is None else [at] if isinstance(at.value, str) else list_items(at, "scenarios")
    spread = (expand_at(item, _FOLDERS) if isinstance(item.value, str) else [item] for item in items)
    opened = [follow(one) for several in spread for one in several]
    scenarios = [one for at in opened if at is not None for one in (at if isinstance(at.value, list) else [at])]
    found: list[Test] = []
    for scenario in scenarios:
        if not scenario.mapping("a scenario with config and tests (a mapping)"):
            continue
        scenario.reads(**part_of("promptfoo", "scenario"))
        configurations = tests_of(scenario["config"])
        tests = tests_of(scenario.find("tests")) or [Test(scenario)]
        for data in configurations:
            alone = f"scenario {len(found) + 1}"
            own = evolve(data, conversation=data.conversation or defaults.conversation or alone)
            found += [test.on(own) for test in tests]
    return [test.on(defaults) for test in found]


OWN = "case_input"
"""The variable in which our own writer puts the input of a case. Read back, it is the input again and no variable."""

MOST = 10_000
"""Combinations of the variables of one test."""

_NESTED = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_ROUNDS = 5


def combinations(variables: Mapping[str, Cursor], *, expand: bool) -> list[dict[str, Any]]:
    """Return the variables of each case of a test; with *expand*, one for each combination of its lists of texts."""
    choices = [
        each_text(choice, partial(with_environment, at))
        for at in variables.values()
        for choice in [_choices(at, expand=expand)]
    ]
    found = [dict(zip(variables, picked, strict=True)) for picked in islice(product(*choices), MOST + 1)]
    if len(found) > MOST:
        next(iter(variables.values())).error(f"these lists come to more than {MOST} combinations; shorten them")
        return found[:1]
    return [fill_nested(values) for values in found]


def _choices(at: Cursor, *, expand: bool) -> list[Any]:
    if is_reference(at.value) and "\n" in at.value.rstrip("\n"):
        why = "this begins like the name of a file, and goes on; write the file's text into it, or name the file alone"
        at.error(LackingError("a text of several lines that begins with file://", why))
        return [at.value]
    if is_reference(at.value) and not is_code(at.value):
        return [_read(file) for file in expand_at(at)] or [None]
    if expand and isinstance(at.value, list) and at.value and isinstance(at.value[0], str):
        return [value for item in at for value in _choices(item, expand=False)]
    return [at.value]


def _read(at: Cursor) -> Any:
    suffix = PurePosixPath(at.value).suffix.lower()
    if is_image(at.value):  # which the prompt may attach
        return at.value
    if suffix == ".pdf":
        lack = f"the text of a PDF ({shorten(at.value, 80)}), which is not read (write it into a file of text)"
        at.error(LackingError(lack, lack))
        return None
    if suffix in keys_of("promptfoo", "files", "media"):
        at.warn(f"{suffix[1:]} files are not read; the variable stays the name of the file")
        return at.value
    # promptfoo finds out that the file is not there when it runs the test.
    lack = f"a file ({shorten(at.value, 80)}) that is not within reach"
    lacking = None if is_outside(at.value, at.loading) else lambda why: at.error(LackingError(lack, why))
    # promptfoo shows a file of YAML as JSON; a file of JSON is a text like any other.
    found = read_file_at(at.value, at, (".yaml", ".yml"), lacking)
    if found is None:
        return None
    return found.value.strip() if found.notes is at.notes else compact(found.value)


def fill_nested(values: dict[str, Any]) -> dict[str, Any]:
    """Put variables into the texts of others; nothing more than a plain slot is read in them."""

    def show(slot: re.Match[str]) -> str:
        return as_text(values[slot[1]]) if slot[1] in values else slot[0]

    for _ in range(_ROUNDS):  # bounded, since two variables that show each other would grow for ever
        shown = {name: _NESTED.sub(show, v) if isinstance(v, str) else v for name, v in values.items()}
        if shown == values:
            break
        values = shown
    return values
