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


def _mappings_in(data: Any, beside: frozenset[str] = frozenset()) -> Iterator[Mapping[Any, Any]]:
    """Yield each mapping in *data*, from the top on, without those under the keys *beside*."""
    stack = [data]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += reversed(node)
        elif isinstance(node, Mapping):
            yield node
            stack += [inner for key, inner in node.items() if key not in beside]


def _graders(data: Any) -> Iterator[Any]:
    if isinstance(data, list):
        yield from (item for item in _maps(data) if "type" in item)
    for node in _mappings_in(data, _DATA):
        for key in GRADERS:
            yield from node[key] if isinstance(node.get(key), list) else ()


def _maps(value: Any) -> list[Mapping[Any, Any]]:
    """Return the mappings among the items of a list, or among the values of a mapping; none of anything else."""
    items = value.values() if isinstance(value, Mapping) else value
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, Iterable) else []


# -- rules ---------------------------------------------------------------------------------------------------

Rule = Callable[[Seen], str]
"""Looks at a file, and returns why it speaks for a format; '' where it does not."""

Evidence = tuple[tuple[float, Rule], ...]
"""The rules of a format, each with its weight."""


def finds(why: str, look: Callable[[Seen], Iterable[Any]]) -> Rule:
    """Return the rule that says *why* where *look* yields anything; `{}` in it shows the first that it yields."""

    def rule(seen: Seen) -> str:
        return next((why.format(shorten(str(found), 80)) for found in look(seen)), "")

    return rule


def _in_any(where: Callable[[Seen], Iterable[Any]], what: str, keys: tuple[str, ...], kind: Any = object) -> Rule:
    """Look for one of *keys*, with a value of a *kind*, in the mappings that *where* finds; *what* is the reason."""
    return finds(
        f"{what} {{!r}}",
        lambda seen: (
            key for holder in _maps(where(seen)) for key in keys if key in holder and isinstance(holder[key], kind)
        ),
    )


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
    defaults = ("defaultTest", "default_test")
    return _in_any(
        lambda seen: [one.get("options") for one in _maps([*seen.tests, *map(seen.keys.get, defaults)])],
        "it has the option",
        keys,
    )


def asserts(*keys: str) -> Rule:
    """Look for a key of an assertion."""
    return _in_any(lambda seen: seen.graders, "an assertion has the key", keys)


def lists(key: str, *wanted: str) -> Rule:
    """Look for one of the keys *wanted* in the list under *key*."""
    return _in_any(lambda seen: seen.under(key), f"what it lists under {key!r} has the key", wanted)


def _types(seen: Seen) -> list[str]:
    return [str(grader.get("type")) for grader in _maps(seen.graders)]


_OF_TYPE = "it has an assertion of the type {!r}"

uses_negation = finds(_OF_TYPE, lambda seen: (kind for kind in _types(seen) if kind.startswith("not-")))
"""Look for a type that begins with `not-`, for which AgentV writes `negate`."""


def uses(fits: Callable[[str], bool]) -> Rule:
    """Look for an assertion of a type that *fits*."""
    return finds(_OF_TYPE, lambda seen: filter(fits, (kind.removeprefix("not-") for kind in _types(seen))))


def named(*patterns: str) -> Rule:
    """Look for a name of the file that fits one of *patterns*."""
    return finds("it is called {}", lambda seen: (seen.name for one in patterns if fnmatchcase(seen.name.lower(), one)))


def schema_has(word: str) -> Rule:
    """Look for a *word* in the address of the schema that the file names."""
    return finds(
        "its schema is {}",
        lambda seen: (
            one for one in (seen.schema, seen.keys.get("$schema")) if isinstance(one, str) and word in one.lower()
        ),
    )


def stands_by(*names: str) -> Rule:
    """Look for one of *names* in the folders around a file of promptfoo's words, up to that of its project."""
    why = "it is in a project with {}"
    return finds(why, lambda seen: sorted(seen.around.intersection(names)) if shared_words(seen) else ())


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
_OF_ITEMS = ("outcome", "score_ranges", "operator", "min_score", "expected_outcome")
_LONE_SLOT = re.compile(r"\{\{\s*input\s*\}\}")


def _ids(seen: Seen) -> Iterator[Any]:
    """Yield the ids of the providers that a file lists."""
    for provider in seen.under("providers", "targets"):
        if isinstance(provider, Mapping) and "id" not in provider and len(provider) == 1:
            yield next(iter(provider))
        else:
            yield provider.get("id") if isinstance(provider, Mapping) else provider


def _grader_ids(seen: Seen) -> list[Any]:
    """Return the providers of assertions."""
    return [grader.get("provider") for grader in _maps(seen.graders)]


def _asks(ids: Callable[[Seen], Iterable[Any]], pattern: re.Pattern[str], why: str) -> Rule:
    """Look for a provider among *ids* that the *pattern* fits; `{}` in the reason *why* is its name."""
    return finds(why, lambda seen: (id_ for id_ in ids(seen) if isinstance(id_, str) and pattern.fullmatch(id_)))


_names_its_own = _asks(_ids, _NAME, "the provider {!r} is a name of the project's")
"""Look for a provider that is a name alone; promptfoo has no such names, also beside those of vendors."""


def _values(seen: Seen) -> Iterator[Any]:
    """Yield the values of assertions, and the items of those that are lists."""
    for grader in _maps(seen.graders):
        value = grader.get("value")
        yield from value if isinstance(value, list) else [value]


def _prompts(seen: Seen) -> Iterator[str]:
    return (prompt for prompt in seen.under("prompts") if isinstance(prompt, str))


def _bare_inputs(seen: Seen) -> Iterator[Any]:
    """
    Yield the tests with an input beside assertions and without variables: promptfoo would ask nothing.

    It asks a prompt that shows no variables.
    """
    if any("{{" not in prompt for prompt in _prompts(seen)):
        return
    yield from (one for one in seen.tests if "input" in one and "vars" not in one and set(GRADERS) & one.keys())


def _variable(name: str, *, with_id: bool) -> Rule:
    """Look for a test with the variable *name*, and with an id or not, in a file that has an input."""

    def fits(test: Mapping[Any, Any], seen: Seen) -> bool:
        variables = test.get("vars")
        if not isinstance(variables, Mapping) or name not in variables or (with_id and "id" not in test):
            return False
        return "input" in variables or "input" in test or not seen.keys.keys().isdisjoint(("input", "prompts"))

    why = f"a test has the variable {name!r}" + (" and an id" if with_id else "")
    return finds(why, lambda seen: (test for test in seen.tests if fits(test, seen)))


def _has_id(seen: Seen) -> str:
    alone = seen.tests == [seen.data] or any(isinstance(test.get("vars"), Mapping) for test in seen.tests)
    return "" if alone else case_has("id")(seen)


def _name_first(seen: Seen) -> str:
    firsts = {next(iter(grader)) for grader in _maps(seen.graders) if len(grader) > 1}
    return "its assertions begin with their names" if firsts and firsts <= {"metric", "name"} else ""


# -- the other systems ------------------------------------------------------------------------------------------


def _servers(seen: Seen) -> str:
    """MCP servers have names; the `servers` of an OpenAPI description are a list."""
    servers = seen.keys.get("servers")
    inner = [*servers.values()] if isinstance(servers, Mapping) else []
    fits = inner and all(isinstance(server, Mapping) and server.keys() & {"command", "url"} for server in inner)
    return "it names MCP servers" if fits else ""


def _expectations(seen: Seen) -> Iterator[Any]:
    """Yield what mcptest's tests expect: a path, and a mapping of matchers."""
    found = _mappings_in(seen.keys, _OF_ANY_DATA)
    return (one for one in found if isinstance(one.get("target"), str) and isinstance(one.get("matcher"), Mapping))


def _skill(seen: Seen) -> str:
    """The `evals.json` of an agent skill lists evals without rubrics and servers: texts are asserted, if anything."""
    evals = seen.keys.get("evals")
    own = {"assertions", "expectations", "expected_output", "files"}
    fits = [one for one in _maps(evals) if "prompt" in one and one.keys().isdisjoint(("rubric", "server"))]
    is_skill = isinstance(evals, list) and fits and ("skill_name" in seen.keys or any(own & one.keys() for one in fits))
    return "it lists the evals of an agent skill" if is_skill else ""


def _lists_of_texts(seen: Seen) -> Iterator[Any]:
    """Yield the variables that are lists of texts, which makes a case of each in promptfoo alone."""
    for variables in _maps([test.get("vars") for test in seen.tests]):
        for name, value in variables.items():
            if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
                yield name


def _rubrics(seen: Seen) -> Iterator[Any]:
    """Yield the items of the `rubrics` of the tests or the examples of a file."""
    listed = (holder.get("rubrics") for holder in (*seen.tests, *_maps(seen.under("examples"))))
    return (item for items in listed if isinstance(items, list) for item in items)


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
_MLFLOW_DATA = ("instructions_judge_pydantic_data", "builtin_scorer_class")
_RAGAS_SCORE = re.compile(r"score\d+_description")


def _metrics(seen: Seen) -> list[Mapping[Any, Any]]:
    """Return the metrics or scorers of a file: what it lists, or itself."""
    return _maps(
        seen.data if isinstance(seen.data, list) else seen.under("metrics", "scorers", "judges") or [seen.data]
    )


def _adk_metrics(seen: Seen) -> Iterator[str]:
    criteria = seen.keys.get("criteria")
    return filter(_ADK_METRIC.fullmatch, map(str, criteria) if isinstance(criteria, Mapping) else ())


def _is_graph(metric: Mapping[Any, Any]) -> bool:
    """True if *metric* is a graph of deepeval's."""
    graph = metric.get("dag") if isinstance(metric.get("dag"), Mapping) else metric
    nodes = graph.get("nodes") if isinstance(graph, Mapping) else None
    inner = [*nodes.values()] if isinstance(nodes, Mapping) else []
    return bool(inner) and all(isinstance(node, Mapping) and node.get("type") in _NODE_TYPES for node in inner)


def _is_judge(metric: Mapping[Any, Any]) -> bool:
    """True if *metric* is a judge of MLflow's: its instructions show variables, or it has guidelines and no more."""
    if {"name", "guidelines"} <= metric.keys() <= {"name", "guidelines", "model"}:
        return True
    return "name" in metric and _MLFLOW_SLOT.search(str(metric.get("instructions"))) is not None


def _scored_rubrics(seen: Seen) -> Iterator[Any]:
    """Yield the keys of the file, of its samples and of their rubrics that describe a score."""
    for holder in (seen.keys, *seen.tests, *_maps(seen.under("examples"))):
        rubrics = holder.get("rubrics", holder)
        yield from (key for key in rubrics if _RAGAS_SCORE.fullmatch(str(key))) if isinstance(rubrics, Mapping) else ()


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

_OF_ANY_DATA = frozenset({"cases", "metadata"})
"""Keys of suites of ours that hold data of any names; no file of mcptest has its matchers under them."""

MCPTEST: Evidence = (
    (SURE, schema_has("mcptest")),
    (STRONG, lists("evals", "rubric")),
    (
        STRONG,
        _in_any(
            lambda seen: _mappings_in(seen.keys, _OF_ANY_DATA),
            "it has the matcher",
            ("llm-judge", "llm-jury", "eval.rubric"),
        ),
    ),
    (STRONG, finds("what it expects has a target and a matcher", _expectations)),
    (LIKELY, lambda seen: has("evals")(seen) if not _skill(seen) else ""),
    (LIKELY, has("rubrics", kind=Mapping)),
    (LIKELY, named("*mcptest*.y*ml")),
    (HINT, _servers),
)

PAPERBENCH: Evidence = ((SURE, has("sub_tasks")), (SURE, holds("tree", "sub_tasks")), (SURE, lists("examples", "tree")))

AUTORUBRIC: Evidence = (
    (SURE, holds("rubric", "sections")),
    (STRONG, _lists_requirements),
    (STRONG, lists("items", "submission")),
    (LIKELY, has("sections")),
)

HEALTHBENCH: Evidence = ((SURE, _in_any(_rubrics, "a rubric has the key", ("points",))),)

PROMPTFOO: Evidence = (
    (SURE, schema_has("promptfoo")),
    (SURE, uses(lambda kind: kind.startswith("promptfoo:"))),
    (LIKELY, has("scenarios")),
    (STRONG, has("defaultTest", "assertionTemplates", "derivedMetrics", "evaluateOptions")),
    (STRONG, has("redteam", "nunjucksFilters", "commandLineOptions", "writeLatestResults")),
    (
        STRONG + LIKELY,
        lambda seen: "" if _names_its_own(seen) else _asks(_ids, _VENDOR, "it asks the provider {!r}")(seen),
    ),
    (STRONG, _asks(_grader_ids, _VENDOR, "an assertion has the provider {!r}")),
    (STRONG, uses(lambda kind: kind in KNOWN - _BOTH_HAVE - _LATELY)),
    (LIKELY, uses(lambda kind: kind in _LATELY)),
    (STRONG, asserts("rubricPrompt", "contextTransform", "$ref")),
    (STRONG, option("rubricPrompt", "transformVars", "storeOutputAs", "disableVarExpansion")),
    (STRONG, case_has("providerOutput", "assertScoringFunction")),
    (SURE, named("promptfoo*.y*ml", "promptfoo*.json*", "promptfoo*.[jt]s", "promptfoo*.[cm][jt]s")),
    (NEAR, stands_by(*CONFIGS)),
    (LIKELY, finds("the variable {!r} lists texts", _lists_of_texts)),
    (HINT, uses_negation),
    (NEAR, _asks(_ids, _PROGRAM, "it asks the provider {!r}")),
    (LIKELY, has("targets", kind=list)),
    (LIKELY, lambda seen: case_has("description")(seen) if seen.tests != [seen.data] else ""),
    (HINT, shared_words),
)


def _plain_texts(seen: Seen) -> Iterator[str]:
    return (one for one in seen.graders if isinstance(one, str) and not one.startswith("file://"))


AGENTV: Evidence = (
    (SURE, has("evalcases", "eval_cases")),
    (SURE, _skill),
    (SURE, finds("a test has an input and no variables", _bare_inputs)),
    (NEAR, stands_by(".agentv")),
    (SURE, schema_has("agentv")),
    (STRONG, has("default_test", "evaluate_options", "refs")),
    (STRONG, has("governance", "environment", "workspace", "experiment", "execution")),
    (STRONG, has("assertions", "evaluators")),
    (STRONG, has("target", kind=str)),
    (STRONG, finds("it asserts the plain text {!r}", _plain_texts)),
    (STRONG, _in_any(_values, "an assertion lists items with the key", _OF_ITEMS)),
    (STRONG, asserts("required", "min_score", "negate", "prompt", "command")),
    (STRONG, asserts("criteria", "rubrics", "target", "include")),
    (STRONG, uses(lambda kind: kind in _AGENTV_TYPES or kind.startswith("trajectory:"))),
    (STRONG, option("rubric_prompt")),
    (STRONG, case_has("expected_output", "expected_outcome", "assertions", "evaluators")),
    (STRONG, case_has("criteria", kind=str)),
    (STRONG, case_has("conversation_id", "turns", "execution", "input_messages", "expected_messages")),
    (
        STRONG,
        _asks(lambda seen: (*_ids(seen), *_grader_ids(seen)), _NAME, "the provider {!r} is a name of the project's"),
    ),
    (
        STRONG,
        finds(
            "it lists the results of a run", lambda seen: filter({"score", "scores", "timestamp"}.issubset, seen.tests)
        ),
    ),
    (STRONG, named("*.eval.y*ml", "eval.y*ml", "*.eval.json*")),
    (LIKELY, has("rubrics", kind=list)),
    (LIKELY, lambda seen: case_has("rubrics")(seen) if isinstance(seen.data, list) else ""),
    (LIKELY, case_has("input")),
    (LIKELY, _variable("input", with_id=True)),
    (LIKELY, _variable("expected_output", with_id=False)),
    (LIKELY, _name_first),
    (
        HINT,
        finds("it asks `{{{{ input }}}}` and nothing more", lambda seen: filter(_LONE_SLOT.fullmatch, _prompts(seen))),
    ),
    (HINT, _has_id),
    (HINT, has("tags", kind=list)),
    (HINT, has("name", kind=str)),
)

ADK: Evidence = ((SURE, finds("its criteria name ADK's metric {!r}", _adk_metrics)),)

DEEPEVAL: Evidence = (
    (SURE, finds("it has the nodes of deepeval's graphs", lambda seen: filter(_is_graph, _metrics(seen)))),
    (SURE, _in_any(_metrics, "its metric has the key", ("evaluation_steps", "evaluation_params"))),
    (SURE, _in_any(_metrics, "its metric has the key", ("evaluation_params",))),
)

MLFLOW: Evidence = (
    (SURE, _in_any(_metrics, "it holds a scorer of MLflow, with the key", _MLFLOW_DATA)),
    (
        STRONG,
        finds("it has a judge with MLflow's guidelines or variables", lambda seen: filter(_is_judge, _metrics(seen))),
    ),
)

RAGAS: Evidence = (
    (SURE, finds("it describes scores one by one", _scored_rubrics)),
    (STRONG, lambda seen: "it defines a critic" if {"name", "definition"} <= seen.keys.keys() else ""),
)

VERIFIERS: Evidence = ((SURE, _named_criteria),)
