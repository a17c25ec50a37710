"""The tests of a configuration: lists, files and scenarios of them, on top of what `defaultTest` gives to all."""

from __future__ import annotations

from typing import Any

from attrs import evolve, field, frozen

from rubric.formats.includes.including import expand_at, is_reference, read_document_at
from rubric.formats.includes.references import is_code
from rubric.formats.promptfoo.parts import Part, as_text
from rubric.formats.promptfoo.rows import row_of
from rubric.showing import shorten

__all__ = ["OPTIONS", "Test", "is_test", "scenarios_of", "test_of", "tests_of"]

_KNOWN_KEYS = frozenset({
    "description", "vars", "assert", "options", "threshold", "metadata", "provider", "providers", "prompts",
    "providerOutput", "assertScoringFunction",
})  # fmt: skip
_QUIET_KEYS = frozenset({"id", "author"})
OPTIONS = frozenset({
    "disableVarExpansion", "disableDefaultAsserts", "disableConversationVar", "runSerially", "delay", "repeat",
    "cache", "prefix", "suffix", "provider", "rubricPrompt", "transform", "postprocess", "transformVars",
    "storeOutputAs", "factuality",
})  # fmt: skip
"""The options of a test."""
_ASSERTED = ("type", "value", "metric", "weight", "contextTransform")
_ELSEWHERE = (
    dict.fromkeys(_ASSERTED, "it belongs to an assertion, under `assert`")
    | dict.fromkeys(OPTIONS, "it belongs under `options`")
    | dict.fromkeys(("defaultTest", "tests", "scenarios"), "it belongs to the file, not to a test")
)
OF_A_SCENARIO = frozenset({"description", "config", "tests"})
_IN_TESTS = dict.fromkeys(("assert", "options", "threshold", "vars"), "it belongs to a test of the scenario")
_TABLES = (".csv", ".tsv")


@frozen(eq=False)
class Test:
    """
    What a test says, with what it has of `defaultTest`.

    Args:
        part: Where it stands.
        description: In words; the id of its cases.
        variables: By name.
        asserts: What is asserted, the defaults first.
        options: By name; see `reading`.
        threshold: What its weighted mean must meet.
        fields: `provider`, `providers`, `prompts`, `providerOutput` and `assertScoringFunction`, where it has them.
        metadata: Free data.
    """

    part: Part
    description: str = ""
    variables: dict[str, Part] = field(factory=dict)
    asserts: tuple[Part, ...] = ()
    options: dict[str, Part] = field(factory=dict)
    threshold: Part | None = None
    fields: dict[str, Part] = field(factory=dict)
    metadata: dict[str, Any] = field(factory=dict)

    def on(self, defaults: Test) -> Test:
        """Return the test with *defaults* under it: their asserts come first, their fields give way to its own."""
        alone = "disableDefaultAsserts" in self.options and self.options["disableDefaultAsserts"].value is True
        return evolve(
            self,
            description=self.description or defaults.description,
            variables=defaults.variables | self.variables,
            asserts=self.asserts if alone else (*defaults.asserts, *self.asserts),
            options=defaults.options | self.options,
            threshold=self.threshold or defaults.threshold,
            fields=defaults.fields | self.fields,
            metadata=defaults.metadata | self.metadata,
        )

    def as_defaults(self) -> Test:
        """Return a `defaultTest` as what other tests stand on: its provider is the grader of them all."""
        fields = {name: part for name, part in self.fields.items() if name != "provider"}
        grader = {"provider": self.fields["provider"]} if "provider" in self.fields else {}
        return evolve(self, fields=fields, options=self.options | grader)


_FIELDS = ("provider", "providers", "prompts", "providerOutput", "assertScoringFunction")


def test_of(part: Part) -> Test | None:
    """Return the test that a mapping is, without any defaults; None if it was noted that it is none."""
    found = part.followed()
    if found is None or not found.mapping("a test"):
        return None
    found.unknown_keys(_KNOWN_KEYS, _QUIET_KEYS, {}, _ELSEWHERE)
    options = found.find("options")
    metadata = found.find("metadata")
    asserts = found.at("assert").listed("assertions")
    return Test(
        found,
        description=as_text(found.value.get("description")),
        variables=_variables(found.find("vars")),
        asserts=tuple(asserts),
        options=dict(options.items()) if options is not None and options.mapping("options") else {},
        threshold=found.find("threshold"),
        fields={name: found.at(name) for name in _FIELDS if found.has(name)},
        metadata=dict(metadata.value) if metadata is not None and metadata.mapping("metadata") else {},
    )


def _variables(part: Part | None) -> dict[str, Part]:
    """Return the variables by name: of a mapping, of a file, or of several files one after the other."""
    if part is None:
        return {}
    if isinstance(part.value, list):
        return {name: value for item in part.parts() for name, value in _variables(item).items()}
    if isinstance(part.value, str):
        return _of_files(part)
    return dict(part.items()) if part.mapping("variables") else {}


def _of_files(part: Part) -> dict[str, Part]:
    found: dict[str, Part] = {}
    for reference in expand_at(part.value, part.loading, part.notes, part.path):
        document = read_document_at(reference, part.loading, part.notes, part.path)
        if document is not None and (whole := Part.of(*document)).mapping("variables"):
            found |= dict(whole.items())
    return found


def tests_of(part: Part | None) -> list[Test]:
    """Return the tests of a list, or of the files that are named instead; what cannot be read is noted."""
    if part is None:
        return []
    if isinstance(part.value, str):
        return _named(part)
    if isinstance(part.value, dict) and part.has("path"):
        part.error("tests that a program generates are not read; write them as YAML, JSON, JSONL or CSV")
        return []
    found = part.listed("tests")
    return [test for item in found for test in (_named(item) if isinstance(item.value, str) else _one(item))]


def _one(part: Part) -> list[Test]:
    test = test_of(part)
    return [] if test is None else [test]


def _named(part: Part) -> list[Test]:
    """Return the tests of the files that a text names."""
    name = part.value.removeprefix("file://")
    if is_code(name):
        part.error(f"{shorten(name, 80)} is code, which is not run; write its tests as YAML, JSON, JSONL or CSV")
        return []
    if "://" in name:
        part.error(f"{shorten(name, 80)}: tests are read from files only; download them, and name the file")
        return []
    references = expand_at(part.value, part.loading, part.notes, part.path)
    return [test for reference in references for test in _of_file(part.holding(reference))]


def _of_file(part: Part) -> list[Test]:
    found = read_document_at(part.value, part.loading, part.notes, part.path)
    if found is None:
        return []
    whole = Part.of(*found)
    if part.value.lower().endswith(_TABLES):
        return [test for row in whole.parts() for test in _one(row_of(row))]
    if isinstance(whole.value, dict):
        return tests_of(whole.at("tests")) if "tests" in whole.value else _one(whole)
    return tests_of(whole)


def is_test(part: Part) -> bool:
    """True if a whole file is one test, or the assertions of one, as examples in documentation are."""
    return isinstance(part.value, dict) and bool(part.value) and part.value.keys() <= _KNOWN_KEYS | _QUIET_KEYS


def scenarios_of(part: Part | None, defaults: Test) -> list[Test]:
    """Return each test of each scenario on top of each of its configurations."""
    found: list[Test] = []
    for scenario in [] if part is None else _scenarios(part):
        if not scenario.mapping("a scenario with config and tests"):
            continue
        scenario.unknown_keys(OF_A_SCENARIO, frozenset(), {}, _IN_TESTS)
        configurations = tests_of(scenario.at("config"))
        tests = tests_of(scenario.find("tests")) or [Test(scenario)]
        found += [test.on(data) for data in configurations for test in tests]
    return [test.on(defaults) for test in found]


def _scenarios(part: Part) -> list[Part]:
    found: list[Part] = []
    for item in part.listed("scenarios"):
        opened = item.followed() if is_reference(item.value) else item
        if opened is not None:
            found += opened.parts() if isinstance(opened.value, list) else [opened]
    return found
