"""
Evidence of the system that a file belongs to.

promptfoo and AgentV 2 share most of their words (`prompts`, `tests`, `vars`, `assert`, `llm-rubric`), and mean other
things by them: what passes, what a list of variables is. So no single key decides. Each rule that holds adds its weight
to its format; `registry.recognise` compares the sums.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from attrs import frozen

from rubric.formats.agentv.scope import CASES, GRADERS
from rubric.formats.assertion_types import KNOWN
from rubric.formats.files import CONFIGS
from rubric.internals.text import shorten

SURE, STRONG, NEAR, LIKELY, HINT = 8, 4, 3.5, 2, 1
"""
The weight of a rule: only this system has it; others hardly do; what is around the file is this one's; it is this one's
habit; all of them have it.
"""


@frozen
class Seen:
    """The *data* of a file, its *name*, the *schema* that its head names, and the names *around* it in its project."""

    data: Any
    name: str = ""
    schema: str = ""
    around: frozenset[str] = frozenset()

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
        """Return the value of the first of *keys* that is given, as a list."""
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


# -- rules ---------------------------------------------------------------------------------------------------

Rule = Callable[[Seen], str]
"""Looks at a file, and returns why it speaks for a format; '' where it does not."""

Evidence = tuple[tuple[float, Rule], ...]
"""The rules of a format, each with its weight."""


def _in_any(where: Callable[[Seen], Iterable[Any]], what: str, keys: tuple[str, ...], kind: Any = object) -> Rule:
    """Look for one of *keys*, with a value of a *kind*, in the mappings that *where* finds; *what* is the reason."""

    def rule(seen: Seen) -> str:
        for holder in where(seen):
            for key in keys if isinstance(holder, Mapping) else ():
                if key in holder and isinstance(holder[key], kind):
                    return f"{what} {key!r}"
        return ""

    return rule


def has(*keys: str, kind: type | tuple[type, ...] = object) -> Rule:
    """Look for a key of the file, whose value is of a *kind*."""
    return _in_any(lambda seen: [seen.keys], "it has the key", keys, kind)


def holds(outer: str, inner: str) -> Rule:
    """Look for the key *inner* in the mapping under the key *outer*."""
    return _in_any(lambda seen: [seen.keys.get(outer)], f"its {outer} has the key", (inner,))


def case_has(*keys: str, kind: type = object) -> Rule:
    """Look for a key of a test."""
    return _in_any(lambda seen: seen.tests, "a test has the key", keys, kind)


def option(*keys: str) -> Rule:
    """Look for an option of a test, or of the defaults of tests."""

    def options(seen: Seen) -> Iterator[Any]:
        holders = [*seen.tests, seen.keys.get("defaultTest"), seen.keys.get("default_test")]
        return (holder.get("options") for holder in holders if isinstance(holder, Mapping))

    return _in_any(options, "it has the option", keys)


def asserts(*keys: str) -> Rule:
    """Look for a key of an assertion."""
    return _in_any(lambda seen: seen.graders, "an assertion has the key", keys)


def lists(key: str, *wanted: str) -> Rule:
    """Look for one of the keys *wanted* in the list under *key*."""
    return _in_any(lambda seen: seen.under(key), f"what it lists under {key!r} has the key", wanted)


def uses(fits: Callable[[str], bool]) -> Rule:
    """Look for an assertion of a type that *fits*."""

    def rule(seen: Seen) -> str:
        types = [str(grader.get("type")).removeprefix("not-") for grader in seen.graders if isinstance(grader, Mapping)]
        found = next(filter(fits, types), None)
        return "" if found is None else f"it has an assertion of the type {shorten(found, 40)!r}"

    return rule


def uses_negation(seen: Seen) -> str:
    """Look for a type that begins with `not-`, for which AgentV writes `negate`."""
    types = (str(grader.get("type")) for grader in seen.graders if isinstance(grader, Mapping))
    found = next((type for type in types if type.startswith("not-")), None)
    return "" if found is None else f"it has an assertion of the type {shorten(found, 40)!r}"


def named(*patterns: str) -> Rule:
    """Look for a name of the file that fits one of *patterns*."""

    def rule(seen: Seen) -> str:
        fits = any(fnmatchcase(seen.name.lower(), pattern) for pattern in patterns)
        return f"it is called {shorten(seen.name, 60)}" if fits else ""

    return rule


def schema_has(word: str) -> Rule:
    """Look for a *word* in the address of the schema that the file names."""

    def rule(seen: Seen) -> str:
        addresses = [address for address in (seen.schema, seen.keys.get("$schema")) if isinstance(address, str)]
        found = next((address for address in addresses if word in address.lower()), None)
        return "" if found is None else f"its schema is {shorten(found, 80)}"

    return rule


def stands_by(*names: str) -> Rule:
    """Look for one of *names* in the folders around a file of promptfoo's words, up to that of its project."""

    def rule(seen: Seen) -> str:
        found = sorted(seen.around.intersection(names)) if shared_words(seen) else []
        return f"it stands in a project with {found[0]}" if found else ""

    return rule


# -- promptfoo and AgentV ------------------------------------------------------------------------------------

_BOTH_HAVE = frozenset({
    "agent-rubric", "assert-set", "contains", "contains-all", "contains-any", "cost", "ends-with", "equals",
    "icontains", "icontains-all", "icontains-any", "is-json", "latency", "llm-rubric", "python", "regex",
    "starts-with",
})  # fmt: skip
"""Types of assertions that AgentV has of promptfoo."""

_LATELY = frozenset({"javascript", "similar", "webhook"})
"""Types of promptfoo's that AgentV took over last, and that hardly a file of AgentV's has."""

_AGENTV_TYPES = frozenset({
    "rubric", "rubrics", "llm_judge", "llm-judge", "llm_grader", "llm-grader", "code", "code_judge", "code-judge",
    "code_grader", "code-grader", "composite", "script", "skill-used", "skill-trigger", "tool-trajectory",
    "tool_trajectory", "execution-metrics", "execution_metrics", "field-accuracy", "field_accuracy", "min-words",
    "token-usage", "token_usage",
})  # fmt: skip

_BUILT_IN = "echo|https?|browser|websocket|mcp|manual-input"
_VENDOR = re.compile(rf"{_BUILT_IN}|(?!file:)[\w.-]+:.+", re.DOTALL)
"""How promptfoo names a provider: `openai:gpt-5`, `exec:...`, `https://...`, and a few without a colon."""

_PROGRAM = re.compile(r"file://(?!.*\.(?:ya?ml|json)\Z).*", re.DOTALL)
_NAME = re.compile(rf"(?!(?:{_BUILT_IN})\Z)[A-Za-z][\w.-]*")
_LONE_SLOT = re.compile(r"\{\{\s*input\s*\}\}")


def _ids(seen: Seen) -> Iterator[Any]:
    """Yield the ids of the providers that a file lists."""
    for provider in seen.under("providers", "targets"):
        if isinstance(provider, Mapping) and "id" not in provider and len(provider) == 1:
            yield next(iter(provider))
        else:
            yield provider.get("id") if isinstance(provider, Mapping) else provider


def _grader_ids(seen: Seen) -> Iterator[Any]:
    """Yield the providers of assertions."""
    return (grader.get("provider") for grader in seen.graders if isinstance(grader, Mapping))


def _asks(ids: Callable[[Seen], Iterable[Any]], pattern: re.Pattern[str], reason: str) -> Rule:
    """Look for a provider among *ids* that the *pattern* fits; `{}` in the *reason* is its name."""

    def rule(seen: Seen) -> str:
        found = next((id_ for id_ in ids(seen) if isinstance(id_, str) and pattern.fullmatch(id_)), None)
        return "" if found is None else reason.format(repr(shorten(found, 60)))

    return rule


_names_its_own = _asks(_ids, _NAME, "the provider {} is a name of the project's")
"""Look for a provider that is a name alone; promptfoo has no such names, also beside those of vendors."""


def _asserts_texts(seen: Seen) -> str:
    found = [grader for grader in seen.graders if isinstance(grader, str)]
    return f"it asserts the plain text {shorten(found[0], 40)!r}" if found else ""


def _items(seen: Seen) -> Iterator[Any]:
    """Yield the values of assertions, and the items of those that are lists."""
    for grader in seen.graders:
        value = grader.get("value") if isinstance(grader, Mapping) else None
        yield from value if isinstance(value, list) else [value]


_asserts_items = _in_any(
    _items,
    "an assertion lists items with the key",
    ("outcome", "score_ranges", "operator", "min_score", "expected_outcome"),
)


def _variable(name: str, *, with_id: bool) -> Rule:
    def rule(seen: Seen) -> str:
        for test in seen.tests:
            variables = test.get("vars")
            if not isinstance(variables, Mapping) or name not in variables or (with_id and "id" not in test):
                continue
            if "input" in variables or "input" in test or not seen.keys.keys().isdisjoint(("input", "prompts")):
                return f"a test has the variable {name!r}" + (" and an id" if with_id else "")
        return ""

    return rule


def _input_alone(seen: Seen) -> str:
    """An input beside assertions and without variables: promptfoo would ask nothing."""
    found = (test for test in seen.tests if "input" in test and "vars" not in test)
    return "a test has an input and no variables" if any(set(GRADERS) & test.keys() for test in found) else ""


def _has_id(seen: Seen) -> str:
    alone = seen.tests == [seen.data] or any(isinstance(test.get("vars"), Mapping) for test in seen.tests)
    return "" if alone else case_has("id")(seen)


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
    return "it has the key 'evals'" if "evals" in seen.keys and not _skill(seen) else ""


def _skill(seen: Seen) -> str:
    """The `evals.json` of an agent skill lists evals without rubrics and servers: texts are asserted, if anything."""
    evals = seen.keys.get("evals")
    listed = [item for item in evals if isinstance(item, Mapping)] if isinstance(evals, list) else []
    own = {"assertions", "expectations", "expected_output", "files"}
    fits = [item for item in listed if "prompt" in item and "rubric" not in item and "server" not in item]
    is_skill = fits and ("skill_name" in seen.keys or any(own & item.keys() for item in fits))
    return "it lists the evals of an agent skill" if is_skill else ""


def _expands(seen: Seen) -> str:
    """A list of texts as a variable makes a case of each in promptfoo alone."""
    for test in seen.tests:
        variables = test.get("vars")
        for name, value in variables.items() if isinstance(variables, Mapping) else ():
            if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
                return f"the variable {shorten(str(name), 40)!r} lists texts"
    return ""


def _has_points(seen: Seen) -> str:
    for holder in (*seen.tests, *seen.under("examples")):
        rubrics = holder.get("rubrics") if isinstance(holder, Mapping) else None
        if isinstance(rubrics, list) and any(isinstance(item, Mapping) and "points" in item for item in rubrics):
            return "its rubrics have points"
    return ""


def _lists_requirements(seen: Seen) -> str:
    found = next(filter(None, (lists(key, "requirement")(seen) for key in ("rubric", "rubrics", "criteria"))), "")
    return found or (case_has("requirement")(seen) if isinstance(seen.data, list) else "")


def shared_words(seen: Seen) -> str:
    """Look for words of the vocabulary that is promptfoo's; AgentV took it over."""
    words = has("prompts", "providers", "tests", "assert", "vars")(seen)
    return words or (case_has("vars", "assert")(seen) if isinstance(seen.data, list) else "")


# -- frameworks ----------------------------------------------------------------------------------------------

_ADK_METRIC = re.compile(
    r"rubric_based_\w+|\w+_v[12]|tool_trajectory_avg_score|response_match_score|response_evaluation_score"
)
_NODE_TYPES = frozenset({"TaskNode", "BinaryJudgementNode", "NonBinaryJudgementNode", "VerdictNode"})
_MLFLOW_SLOT = re.compile(r"\{\{\s*(?:inputs|outputs|expectations|trace|conversation)\s*\}\}")
_MLFLOW_DATA = frozenset({"instructions_judge_pydantic_data", "builtin_scorer_class"})
_RAGAS_SCORE = re.compile(r"score\d+_description")


def _metrics(seen: Seen) -> list[Mapping[Any, Any]]:
    """Return the metrics or scorers of a file: what it lists, or itself."""
    listed = seen.data if isinstance(seen.data, list) else seen.under("metrics", "scorers", "judges") or [seen.data]
    return [metric for metric in listed if isinstance(metric, Mapping)]


def _adk(seen: Seen) -> str:
    criteria = seen.keys.get("criteria")
    names = [str(name) for name in criteria] if isinstance(criteria, Mapping) else []
    found = next(filter(_ADK_METRIC.fullmatch, names), None)
    return f"its criteria name ADK's metric {found!r}" if found else ""


def _graph(seen: Seen) -> str:
    for metric in _metrics(seen):
        graph = metric.get("dag") if isinstance(metric.get("dag"), Mapping) else metric
        nodes = graph.get("nodes") if isinstance(graph, Mapping) else None
        inner = [*nodes.values()] if isinstance(nodes, Mapping) else []
        if inner and all(isinstance(node, Mapping) and node.get("type") in _NODE_TYPES for node in inner):
            return "it has the nodes of deepeval's graphs"
    return ""


def _g_eval(seen: Seen) -> str:
    found = any(metric.keys() & {"evaluation_steps", "evaluation_params"} for metric in _metrics(seen))
    return "it has a metric with evaluation steps or parameters" if found else ""


def _mlflow_judge(seen: Seen) -> str:
    for metric in _metrics(seen):
        said = metric.get("instructions")
        if "name" in metric and isinstance(said, str) and _MLFLOW_SLOT.search(said):
            return "its instructions show MLflow's variables"
        if "name" in metric and "guidelines" in metric and metric.keys() <= {"name", "guidelines", "model"}:
            return "it has a judge with guidelines"
    return ""


def _ragas_scores(seen: Seen) -> str:
    for holder in (seen.keys, *seen.tests, *seen.under("examples")):
        rubrics = holder.get("rubrics", holder) if isinstance(holder, Mapping) else None
        if isinstance(rubrics, Mapping) and any(_RAGAS_SCORE.fullmatch(str(key)) for key in rubrics):
            return "it describes scores one by one"
    return ""


def _named_criteria(seen: Seen) -> str:
    listed = seen.data if isinstance(seen.data, list) else seen.keys.get("criteria")
    items = listed if isinstance(listed, list) else []
    fits = items and all(isinstance(item, Mapping) and {"name", "text"} <= item.keys() for item in items)
    return "its criteria have a name and a text" if fits else ""


# -- formats -------------------------------------------------------------------------------------------------

NATIVE: Evidence = (
    (STRONG, has("cases")),
    (LIKELY, has("suite")),
    (LIKELY, has("criteria", kind=list)),
    (LIKELY, has("text", kind=str)),
    (LIKELY, has("tree", kind=Mapping)),
)

MCPTEST: Evidence = (
    (SURE, schema_has("mcptest")),
    (STRONG, lists("evals", "rubric")),
    (STRONG, _matcher),
    (LIKELY, _evals),
    (LIKELY, has("rubrics", kind=Mapping)),
    (LIKELY, named("*mcptest*.y*ml")),
    (HINT, _servers),
)

PAPERBENCH: Evidence = (
    (SURE, has("sub_tasks")),
    (SURE, holds("tree", "sub_tasks")),
    (SURE, lists("examples", "tree")),
)

AUTORUBRIC: Evidence = (
    (SURE, holds("rubric", "sections")),
    (STRONG, _lists_requirements),
    (STRONG, lists("items", "submission")),
    (LIKELY, has("sections")),
)

HEALTHBENCH: Evidence = ((SURE, _has_points),)

PROMPTFOO: Evidence = (
    (SURE, schema_has("promptfoo")),
    (SURE, uses(lambda kind: kind.startswith("promptfoo:"))),
    (LIKELY, has("scenarios")),
    (STRONG, has("defaultTest", "assertionTemplates", "derivedMetrics", "evaluateOptions")),
    (STRONG, has("redteam", "nunjucksFilters", "commandLineOptions", "writeLatestResults")),
    (
        STRONG + LIKELY,
        lambda seen: "" if _names_its_own(seen) else _asks(_ids, _VENDOR, "it asks the provider {}")(seen),
    ),
    (STRONG, _asks(_grader_ids, _VENDOR, "an assertion has the provider {}")),
    (STRONG, uses(lambda kind: kind in KNOWN - _BOTH_HAVE - _LATELY)),
    (LIKELY, uses(lambda kind: kind in _LATELY)),
    (STRONG, asserts("rubricPrompt", "contextTransform", "$ref")),
    (STRONG, option("rubricPrompt", "transformVars", "storeOutputAs", "disableVarExpansion")),
    (STRONG, case_has("providerOutput", "assertScoringFunction")),
    (STRONG, named("promptfooconfig*")),
    (NEAR, stands_by(*CONFIGS)),
    (LIKELY, _expands),
    (HINT, uses_negation),
    (NEAR, _asks(_ids, _PROGRAM, "it asks the provider {}")),
    (LIKELY, has("targets", kind=list)),
    (LIKELY, lambda seen: case_has("description")(seen) if seen.tests != [seen.data] else ""),
    (HINT, shared_words),
)

AGENTV: Evidence = (
    (SURE, has("evalcases", "eval_cases")),
    (SURE, _skill),
    (SURE, _input_alone),
    (NEAR, stands_by(".agentv")),
    (SURE, schema_has("agentv")),
    (STRONG, has("default_test", "evaluate_options", "refs")),
    (STRONG, has("governance", "environment", "workspace", "experiment", "execution")),
    (STRONG, has("assertions", "evaluators")),
    (STRONG, has("target", kind=str)),
    (STRONG, _asserts_texts),
    (STRONG, _asserts_items),
    (STRONG, asserts("required", "min_score", "negate", "prompt", "command")),
    (STRONG, asserts("criteria", "rubrics", "target", "include")),
    (STRONG, uses(lambda kind: kind in _AGENTV_TYPES or kind.startswith("trajectory:"))),
    (STRONG, option("rubric_prompt")),
    (STRONG, case_has("expected_output", "expected_outcome", "assertions", "evaluators")),
    (STRONG, case_has("criteria", kind=str)),
    (STRONG, case_has("conversation_id", "turns", "execution", "input_messages", "expected_messages")),
    (
        STRONG,
        _asks(lambda seen: (*_ids(seen), *_grader_ids(seen)), _NAME, "the provider {} is a name of the project's"),
    ),
    (STRONG, _lists_runs),
    (STRONG, named("*.eval.y*ml", "eval.y*ml", "*.eval.json*")),
    (LIKELY, has("rubrics", kind=list)),
    (LIKELY, lambda seen: case_has("rubrics")(seen) if isinstance(seen.data, list) else ""),
    (LIKELY, case_has("input")),
    (LIKELY, _variable("input", with_id=True)),
    (LIKELY, _variable("expected_output", with_id=False)),
    (LIKELY, _name_first),
    (HINT, _asks_input),
    (HINT, _has_id),
    (HINT, has("tags", kind=list)),
    (HINT, has("name", kind=str)),
)

ADK: Evidence = ((SURE, _adk),)

DEEPEVAL: Evidence = (
    (SURE, _graph),
    (SURE, _g_eval),
    (SURE, _in_any(_metrics, "its metric has the key", ("evaluation_params",))),
)

MLFLOW: Evidence = (
    (SURE, lambda seen: next(("it holds a scorer of MLflow" for m in _metrics(seen) if m.keys() & _MLFLOW_DATA), "")),
    (STRONG, _mlflow_judge),
)

RAGAS: Evidence = (
    (SURE, _ragas_scores),
    (STRONG, lambda seen: "it defines a critic" if {"name", "definition"} <= seen.keys.keys() else ""),
)

VERIFIERS: Evidence = ((SURE, _named_criteria),)
