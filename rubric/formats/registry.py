"""
Recognise the system that a file belongs to: every piece of evidence counts, and the surer system wins.

promptfoo and AgentV 2 share most of their words (`prompts`, `tests`, `vars`, `assert`, `llm-rubric`), and mean other
things by them: what passes, what a list of variables is. So no single key decides. Each rule below that holds adds its
weight to its system; a file whose words say two systems plainly is refused, and its author names one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from attrs import frozen

from rubric.formats.agentv.scope import CASES, GRADERS, generation_of
from rubric.formats.assertion_types import KNOWN
from rubric.internals.text import shorten

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

SURE, STRONG, LIKELY, HINT = 8, 4, 2, 1
"""What a rule counts: only this system has it; others hardly do; it is this one's habit; all of them have it."""


@frozen
class Guess:
    """The *format* that data seems to be in (empty: none, or two), *why*, and the *rivals* that fit as well."""

    format: str
    why: str
    rivals: tuple[str, ...] = ()


@frozen
class Seen:
    """What is looked at: the *data* of a file, its *name*, and the *schema* that its head names."""

    data: Any
    name: str = ""
    schema: str = ""

    @property
    def keys(self) -> Mapping[Any, Any]:
        """The keys of the file; none where it is a list."""
        return self.data if isinstance(self.data, Mapping) else {}

    @cached_property
    def tests(self) -> list[Mapping[Any, Any]]:
        """The tests of the file, or the things that it lists; a file without any may be one itself."""
        lists = [self.data] if isinstance(self.data, list) else [self.keys.get(key) for key in CASES]
        found = [test for tests in lists if isinstance(tests, list) for test in tests if isinstance(test, Mapping)]
        return found if found or not isinstance(self.data, Mapping) else [self.data]

    @cached_property
    def graders(self) -> list[Any]:
        """All that is asserted anywhere in the file: texts and mappings."""
        return [*_graders(self.data)]

    def under(self, *keys: str) -> list[Any]:
        """Return what stands under the first of *keys* that is given, as a list."""
        value: Any = next((self.keys[key] for key in keys if self.keys.get(key) is not None), [])
        return value if isinstance(value, list) else [value]


_DATA = frozenset({"vars", "metadata", "input", "output", "expected_output", "config"})
"""Where authors keep texts and data of their own, whose keys say nothing."""


def _graders(data: Any) -> Iterator[Any]:
    stack = [data]
    if isinstance(data, list):
        yield from (item for item in data if isinstance(item, Mapping) and "type" in item)
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += reversed(node)
        elif isinstance(node, Mapping):
            for key in GRADERS:
                yield from node[key] if isinstance(node.get(key), list) else ()
            stack += [inner for key, inner in node.items() if key not in _DATA]


def recognise(data: Any, name: str = "", schema: str = "") -> Guess:
    """
    Return the format of *data*, the plain content of a file, with that of the case files that it names put in.

    Args:
        data: What the file holds; see `case_files`.
        name: Of the file, such as `promptfooconfig.yaml`.
        schema: The address of the schema that a comment at its head names.
    """
    seen = Seen(data, name, schema)
    weights: dict[str, int] = defaultdict(int)
    reasons: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for system, weight, rule in _RULES:
        if why := rule(seen):
            weights[system] += weight
            reasons[system].append((weight, why))
    ranked = sorted(weights, key=lambda system: -weights[system])
    # A name, tags or ids are no evidence by themselves: a workflow, a manifest and an OpenAPI description have them.
    if not ranked or (ranked[0] == "agentv" and not _shared_words(seen) and _is_hinted(reasons["agentv"])):
        return Guess("", _keys_in_words(data))
    best = _best(reasons[ranked[0]])
    rival = next((other for other in ranked[1:] if _fit_both(ranked[0], other, weights, reasons)), "")
    named = generation_of(data) if ranked[0] == "agentv" else ranked[0]
    if not rival:
        return Guess(named, best)
    other = generation_of(data) if rival == "agentv" else rival
    return Guess("", f"{named} ({best}), and {other} ({_best(reasons[rival])})", (named, other))


def _is_hinted(reasons: list[tuple[int, str]]) -> bool:
    return all(weight == HINT for weight, _ in reasons)


def _best(reasons: list[tuple[int, str]]) -> str:
    return max(reasons, key=lambda reason: reason[0])[1]


def _fit_both(
    first: str, second: str, weights: Mapping[str, int], reasons: Mapping[str, list[tuple[int, str]]]
) -> bool:
    """True if two systems fit: they weigh the same, or each has plain evidence and neither has twice the other's."""
    plain = all(max(weight for weight, _ in reasons[system]) >= STRONG for system in (first, second))
    return weights[first] == weights[second] or (plain and weights[second] * 2 > weights[first])


def case_files(data: Any) -> Iterator[str]:
    """Yield the names of the files whose cases *data*, the content of a file, has for its own."""
    tests = data.get("tests") if isinstance(data, Mapping) else None
    yield from (item for item in (tests if isinstance(tests, list) else [tests]) if isinstance(item, str))


def _keys_in_words(data: Any) -> str:
    if isinstance(data, Mapping):
        return f"its keys are {', '.join(str(key) for key in data)}" if data else "it is an empty mapping"
    return "it is a list of things of no known kind" if isinstance(data, list) else "it is neither mapping nor list"


# -- rules: what they return says why they hold, and is empty where they do not ----------------------------

Rule = Callable[[Seen], str]


def _has(*keys: str, kind: type | tuple[type, ...] = object) -> Rule:
    def rule(seen: Seen) -> str:
        found = [key for key in keys if isinstance(seen.keys.get(key), kind) and key in seen.keys]
        return f"it has the key {found[0]!r}" if found else ""

    return rule


def _holds(outer: str, inner: str) -> Rule:
    def rule(seen: Seen) -> str:
        held = seen.keys.get(outer)
        return f"its {outer} has the key {inner!r}" if isinstance(held, Mapping) and inner in held else ""

    return rule


def _test_has(*keys: str, kind: type = object) -> Rule:
    def rule(seen: Seen) -> str:
        found = [key for test in seen.tests for key in keys if key in test and isinstance(test[key], kind)]
        return f"a test has the key {found[0]!r}" if found else ""

    return rule


def _option(*keys: str) -> Rule:
    def rule(seen: Seen) -> str:
        holders = [*seen.tests, seen.keys.get("defaultTest"), seen.keys.get("default_test")]
        options = [holder.get("options") for holder in holders if isinstance(holder, Mapping)]
        found = [key for given in options if isinstance(given, Mapping) for key in keys if key in given]
        return f"it has the option {found[0]!r}" if found else ""

    return rule


def _asserts(*keys: str) -> Rule:
    def rule(seen: Seen) -> str:
        found = [key for grader in seen.graders if isinstance(grader, Mapping) for key in keys if key in grader]
        return f"an assertion has the key {found[0]!r}" if found else ""

    return rule


def _uses(fits: Callable[[str], bool]) -> Rule:
    def rule(seen: Seen) -> str:
        types = [str(grader.get("type")).removeprefix("not-") for grader in seen.graders if isinstance(grader, Mapping)]
        found = [kind for kind in types if fits(kind)]
        return f"it has an assertion of the type {shorten(found[0], 40)!r}" if found else ""

    return rule


def _named(*patterns: str) -> Rule:
    def rule(seen: Seen) -> str:
        fits = any(fnmatchcase(seen.name.lower(), pattern) for pattern in patterns)
        return f"it is called {shorten(seen.name, 60)}" if fits else ""

    return rule


def _schema(word: str) -> Rule:
    def rule(seen: Seen) -> str:
        own = seen.keys.get("$schema")
        for said in (seen.schema, own if isinstance(own, str) else ""):
            if word in said.lower():
                return f"its schema is {shorten(said, 80)}"
        return ""

    return rule


def _lists(key: str, *wanted: str) -> Rule:
    def rule(seen: Seen) -> str:
        found = [name for item in seen.under(key) if isinstance(item, Mapping) for name in wanted if name in item]
        return f"what it lists under {key!r} has the key {found[0]!r}" if found else ""

    return rule


# -- promptfoo and AgentV ------------------------------------------------------------------------------------

_BOTH_HAVE = frozenset({
    "agent-rubric", "assert-set", "contains", "contains-all", "contains-any", "cost", "ends-with", "equals",
    "icontains", "icontains-all", "icontains-any", "is-json", "latency", "llm-rubric", "python", "regex",
    "starts-with",
})  # fmt: skip
"""Types of assertions that AgentV has of promptfoo."""

_AGENTV_TYPES = frozenset({
    "rubric", "rubrics", "llm_judge", "llm-judge", "llm_grader", "llm-grader", "code", "code_judge", "code-judge",
    "code_grader", "code-grader", "composite", "script", "skill-used", "skill-trigger", "tool-trajectory",
    "tool_trajectory", "execution-metrics", "execution_metrics", "field-accuracy", "field_accuracy", "min-words",
    "token-usage", "token_usage",
})  # fmt: skip

_VENDOR = re.compile(r"echo|https?|browser|websocket|mcp|manual-input|(?!file:)[\w.-]+:.+", re.DOTALL)
"""How promptfoo names a provider: `openai:gpt-5`, `exec:...`, `https://...`, and a few without a colon."""

_NAME = re.compile(r"[A-Za-z][\w.-]*")
_LONE_SLOT = re.compile(r"\{\{\s*input\s*\}\}")


def _ids(seen: Seen) -> Iterator[Any]:
    """Yield the ids of the providers that a file lists."""
    for provider in seen.under("providers", "targets"):
        if isinstance(provider, Mapping) and "id" not in provider and len(provider) == 1:
            yield next(iter(provider))
        else:
            yield provider.get("id") if isinstance(provider, Mapping) else provider


def _vendors(seen: Seen) -> str:
    found = [id_ for id_ in _ids(seen) if isinstance(id_, str) and _VENDOR.fullmatch(id_)]
    return f"it asks the provider {shorten(found[0], 60)!r}" if found else ""


def _programs(seen: Seen) -> str:
    found = [id_ for id_ in _ids(seen) if isinstance(id_, str) and id_.startswith("file://")]
    return f"it asks the provider {shorten(found[0], 60)!r}" if found else ""


def _bare_names(seen: Seen) -> str:
    ids = [*_ids(seen), *(grader.get("provider") for grader in seen.graders if isinstance(grader, Mapping))]
    found = [id_ for id_ in ids if isinstance(id_, str) and _NAME.fullmatch(id_) and not _VENDOR.fullmatch(id_)]
    return f"the provider {shorten(found[0], 60)!r} is a name of the project's" if found else ""


def _grader_vendors(seen: Seen) -> str:
    ids = [grader.get("provider") for grader in seen.graders if isinstance(grader, Mapping)]
    found = [id_ for id_ in ids if isinstance(id_, str) and _VENDOR.fullmatch(id_)]
    return f"an assertion has the provider {shorten(found[0], 60)!r}" if found else ""


def _asserts_texts(seen: Seen) -> str:
    found = [grader for grader in seen.graders if isinstance(grader, str)]
    return f"it asserts the plain text {shorten(found[0], 40)!r}" if found else ""


_ITEM = ("outcome", "score_ranges", "operator", "min_score", "expected_outcome")


def _asserts_items(seen: Seen) -> str:
    values = [grader.get("value") for grader in seen.graders if isinstance(grader, Mapping)]
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    found = [key for item in items if isinstance(item, Mapping) for key in _ITEM if key in item]
    return f"an assertion lists items with the key {found[0]!r}" if found else ""


def _variable(name: str, *, with_id: bool) -> Rule:
    def rule(seen: Seen) -> str:
        for test in seen.tests:
            variables = test.get("vars")
            if isinstance(variables, Mapping) and name in variables and ("id" in test or not with_id):
                return f"a test has the variable {name!r}" + (" and an id" if with_id else "")
        return ""

    return rule


def _has_id(seen: Seen) -> str:
    alone = seen.tests == [seen.data] or any(isinstance(test.get("vars"), Mapping) for test in seen.tests)
    return "" if alone else _test_has("id")(seen)


def _asks_input(seen: Seen) -> str:
    lone = [prompt for prompt in seen.under("prompts") if isinstance(prompt, str) and _LONE_SLOT.fullmatch(prompt)]
    return "it asks `{{ input }}` and nothing more" if lone else ""


def _name_first(seen: Seen) -> str:
    firsts = [next(iter(grader)) for grader in seen.graders if isinstance(grader, Mapping) and len(grader) > 1]
    return "its assertions begin with their names" if firsts and set(firsts) <= {"metric", "name"} else ""


def _lists_runs(seen: Seen) -> str:
    runs = [test for test in seen.tests if {"score", "scores", "timestamp"} <= test.keys()]
    return "it lists the results of a run" if runs else ""


# -- the other systems ------------------------------------------------------------------------------------------


def _matcher(seen: Seen) -> str:
    stack: list[Any] = [seen.data] if isinstance(seen.data, Mapping) else []
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            found = [key for key in ("llm-judge", "llm-jury", "eval.rubric") if key in node]
            if found:
                return f"it has the matcher {found[0]!r}"
            stack += node.values()
        elif isinstance(node, list):
            stack += node
    return ""


def _servers(seen: Seen) -> str:
    """MCP servers have names; the `servers` of an OpenAPI description are a list."""
    servers = seen.keys.get("servers")
    inner = [*servers.values()] if isinstance(servers, Mapping) else []
    fits = inner and all(isinstance(server, Mapping) and server.keys() & {"command", "url"} for server in inner)
    return "it names MCP servers" if fits else ""


def _evals(seen: Seen) -> str:
    evals = "evals" in seen.keys and "skill_name" not in seen.keys  # the evals.json of an agent skill
    return "it has the key 'evals'" if evals else ""


def _has_points(seen: Seen) -> str:
    holders = [holder for holder in (*seen.tests, *seen.under("examples")) if isinstance(holder, Mapping)]
    rubrics = [item for holder in holders if isinstance(holder.get("rubrics"), list) for item in holder["rubrics"]]
    return "its rubrics have points" if any(isinstance(item, Mapping) and "points" in item for item in rubrics) else ""


def _lists_requirements(seen: Seen) -> str:
    listed = _lists("rubric", "requirement")(seen) or _lists("rubrics", "requirement")(seen)
    if listed or (listed := _lists("criteria", "requirement")(seen)):
        return listed
    return _test_has("requirement")(seen) if isinstance(seen.data, list) else ""


def _shared_words(seen: Seen) -> str:
    """The vocabulary is promptfoo's, from which AgentV took it; where nothing else speaks, it is promptfoo's file."""
    words = _has("prompts", "providers", "tests", "assert", "vars")(seen)
    return words or (_test_has("vars", "assert")(seen) if isinstance(seen.data, list) else "")


_RULES: tuple[tuple[str, int, Rule], ...] = (
    ("native", STRONG, _has("cases")),
    ("native", LIKELY, _has("suite")),
    ("native", LIKELY, _has("criteria", kind=list)),
    ("native", LIKELY, _has("text", kind=str)),
    ("native", LIKELY, _has("tree", kind=Mapping)),
    ("mcptest", SURE, _schema("mcptest")),
    ("mcptest", STRONG, _lists("evals", "rubric")),
    ("mcptest", STRONG, _matcher),
    ("mcptest", LIKELY, _evals),
    ("mcptest", LIKELY, _has("rubrics", kind=Mapping)),
    ("mcptest", LIKELY, _named("*mcptest*.y*ml")),
    ("mcptest", HINT, _servers),
    ("paperbench", SURE, _has("sub_tasks")),
    ("paperbench", SURE, _holds("tree", "sub_tasks")),
    ("autorubric", SURE, _holds("rubric", "sections")),
    ("autorubric", STRONG, _lists_requirements),
    ("autorubric", LIKELY, _has("sections")),
    ("healthbench", SURE, _has_points),
    ("promptfoo", SURE, _schema("promptfoo")),
    ("promptfoo", SURE, _uses(lambda kind: kind.startswith("promptfoo:"))),
    ("promptfoo", STRONG, _has("defaultTest", "scenarios", "assertionTemplates", "derivedMetrics", "evaluateOptions")),
    ("promptfoo", STRONG, _has("redteam", "nunjucksFilters", "commandLineOptions", "writeLatestResults")),
    ("promptfoo", STRONG + LIKELY, _vendors),
    ("promptfoo", STRONG, _grader_vendors),
    ("promptfoo", STRONG, _uses(lambda kind: kind in KNOWN - _BOTH_HAVE)),
    ("promptfoo", STRONG, _asserts("rubricPrompt", "contextTransform", "$ref")),
    ("promptfoo", STRONG, _option("rubricPrompt", "transformVars", "storeOutputAs", "disableVarExpansion")),
    ("promptfoo", STRONG, _test_has("providerOutput", "assertScoringFunction")),
    ("promptfoo", STRONG, _named("promptfooconfig*")),
    ("promptfoo", LIKELY, _programs),
    ("promptfoo", LIKELY, _has("targets", kind=list)),
    ("promptfoo", LIKELY, lambda seen: _test_has("description")(seen) if seen.tests != [seen.data] else ""),
    ("promptfoo", HINT, _shared_words),
    ("agentv", SURE, _has("evalcases", "eval_cases")),
    ("agentv", SURE, _schema("agentv")),
    ("agentv", STRONG, _has("default_test", "evaluate_options", "refs")),
    ("agentv", STRONG, _has("governance", "environment", "workspace", "experiment", "execution")),
    ("agentv", STRONG, _has("assertions", "evaluators")),
    ("agentv", STRONG, _has("target", kind=str)),
    ("agentv", STRONG, _asserts_texts),
    ("agentv", STRONG, _asserts_items),
    ("agentv", STRONG, _asserts("required", "min_score", "negate", "prompt", "command")),
    ("agentv", STRONG, _asserts("criteria", "rubrics", "target")),
    ("agentv", STRONG, _uses(lambda kind: kind in _AGENTV_TYPES or kind.startswith("trajectory:"))),
    ("agentv", STRONG, _option("rubric_prompt")),
    ("agentv", STRONG, _test_has("expected_output", "expected_outcome", "assertions", "evaluators")),
    ("agentv", STRONG, _test_has("criteria", kind=str)),
    ("agentv", STRONG, _test_has("conversation_id", "turns", "execution", "input_messages", "expected_messages")),
    ("agentv", STRONG, _bare_names),
    ("agentv", STRONG, _lists_runs),
    ("agentv", STRONG, _named("*.eval.y*ml", "eval.y*ml", "*.eval.json*")),
    ("agentv", LIKELY, _has("rubrics", kind=list)),
    ("agentv", LIKELY, lambda seen: _test_has("rubrics")(seen) if isinstance(seen.data, list) else ""),
    ("agentv", LIKELY, _test_has("input")),
    ("agentv", LIKELY, _variable("input", with_id=True)),
    ("agentv", LIKELY, _variable("expected_output", with_id=False)),
    ("agentv", LIKELY, _name_first),
    ("agentv", HINT, _asks_input),
    ("agentv", HINT, _has_id),
    ("agentv", HINT, _has("tags", kind=list)),
    ("agentv", HINT, _has("name", kind=str)),
)

READERS = {
    "promptfoo": "rubric.formats.promptfoo.reader",
    "agentv-1": "rubric.formats.agentv.reader",
    "agentv-1.5": "rubric.formats.agentv.reader",
    "agentv-2": "rubric.formats.agentv.reader",
    "mcptest": "rubric.formats.mcptest.reader",
    "autorubric": "rubric.formats.benchmarks.autorubric",
    "healthbench": "rubric.formats.benchmarks.healthbench",
    "paperbench": "rubric.formats.benchmarks.paperbench",
}
"""The module that reads each format, with a function `read`."""

WRITERS = {
    "promptfoo": "rubric.formats.promptfoo.writer",
    "agentv-2": "rubric.formats.agentv.writer",
    "mcptest": "rubric.formats.mcptest.writer",
}
"""The module that writes each format, with a function `write`."""
