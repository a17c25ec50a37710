"""A misspelt key is told in the files of every system: each key of a valid file in turn, by an error or a warning."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from rubric.errors import LoadError
from rubric.formats.cursor import Cursor
from rubric.formats.rubrics import loads
from rubric.formats.suites import loads_suite
from tests.formats.test_benchmarks import ITEMS
from tests.formats.test_frameworks import ADK, G_EVAL, MLFLOW
from tests.formats.test_mutations import EVERYTHING
from tests.rows import each_row

FREE = frozenset(
    {"vars", "metadata", "variables", "args", "arguments", "env", "levels", "choices", "score_ranges", "nodes"}
)
"""Keys whose values are mappings with names of the author's own, in one system or another."""

FILES = {
    "promptfoo": """
description: d
prompts: [{id: p, raw: "Say {{q}}", label: l}]
providers: [{id: "openai:gpt-5-mini", label: a, transform: output, prompts: [p]}]
defaultTest: {options: {prefix: a, suffix: b}, threshold: 0.5, vars: {q: hi}}
tests:
  - description: t
    vars: {q: hi}
    threshold: 0.5
    provider: "openai:gpt-5-mini"
    metadata: {a: 1}
    options: {transform: output, provider: "openai:gpt-5-mini", rubricPrompt: "{{ rubric }} {{ output }}", storeOutputAs: x}
    assert:
      - {type: contains, value: a, weight: 2, metric: m, transform: output}
      - {type: similar, value: a, threshold: 0.5, provider: "openai:embedding:text-embedding-3-small"}
      - {type: llm-rubric, value: a, threshold: 0.5, rubricPrompt: "{{ rubric }} {{ output }}", provider: "openai:gpt-5"}
      - {type: assert-set, threshold: 0.5, weight: 1, metric: s, assert: [{type: contains, value: a, weight: 1}]}
scenarios: [{description: s, config: [{vars: {q: hi}}], tests: [{assert: [{type: contains, value: a}]}]}]
""",
    "agentv-1": """
description: d
target: llm
evalcases:
  - id: one
    expected_outcome: Says hello
    input: hi
    expected_output: hello
    rubrics:
      - {id: a, expected_outcome: Says hi, weight: 2, required: true}
      - {id: b, expected_outcome: Warm, score_ranges: {0: no, 5: some, 10: yes}, required_min_score: 5}
    execution: {evaluators: [{name: j, type: llm_judge, prompt: "{{ output }}", weight: 2, required: true}]}
""",
    "agentv-1.5": """
description: d
execution: {target: llm, threshold: 0.5}
tests:
  - id: one
    criteria: Says hello
    input: hi
    expected_output: hello
    assertions:
      - {name: a, type: rubrics, criteria: [{id: c, outcome: Is short, weight: 2, required: true, min_score: 0.5}]}
      - {name: b, type: contains, value: hello, required: true, weight: 2, negate: false}
      - {name: g, type: llm-grader, prompt: "{{ output }}", min_score: 0.5}
""",
    "agentv-2": """
name: n
description: d
tags: [a]
threshold: 0.8
default_test: {vars: {q: hi}, threshold: 0.5}
prompts: ["{{ q }}"]
providers: [llm]
tests:
  - id: one
    description: d
    vars: {q: hi, expected_output: hello}
    metadata: {a: 1}
    threshold: 0.5
    assert:
      - {metric: m, type: llm-rubric, value: [{id: c, outcome: Is short, weight: 2, required: true, operator: correctness}]}
      - {type: contains, value: hello, weight: 2, min_score: 0.5}
      - {type: llm-rubric, prompt: "{{ output }} {{ criteria }}", value: a, threshold: 0.5}
""",
    "mcptest": """
rubrics: {shared: {threshold: 0.8, criteria: [{name: r, description: Is right, weight: 2, required: true}]}}
judge: {model: claude-sonnet-4-5, jury: {size: 3, consensus: 0.66}}
evals:
  - name: one
    server: docs
    prompt: Hi?
    response: Hello.
    threshold: 0.8
    judge: {panel: [claude-sonnet-4-5, claude-haiku-4-5], aggregate: majority, tie_break: fail}
    matrix: {prompts: [A, B]}
    rubric:
      strict: true
      require_evidence: true
      aggregation: min
      scale: {likert: {min: 1, max: 5}}
      criteria:
        - {name: a, description: Is a, when: {contains: x}, examples: [{response: r, score: 1}]}
        - {name: b, description: Is b, threshold: 0.5, guard: true}
  - {name: two, server: docs, prompt: Hi?, rubric: {ref: shared, threshold: 0.9}}
  - {name: three, prompt: Hi?, rubric: {tree: {ask: Is it?, yes: {score: 1, reason: r}, no: {score: 0, reason: s}}}}
""",
    "native": """
suite: s
judge: {model: openai/gpt-5-mini, temperature: 0, max_tokens: 100}
metadata: {a: 1}
rubrics: {kind: {criteria: [Is kind]}}
defaults: {input: Hi, context: c}
cases:
  - {id: a, output: Hello, reference: r, variables: {q: 1}, rubric: {ref: kind}, metadata: {a: 1}}
  - id: b
    messages: [{role: user, content: Hi}]
    tool_calls: [{name: t, arguments: {a: 1}, result: r}]
    output: Hello
    rubric: {threshold: 0.5, criteria: [{text: Is short, weight: 2, required: true}]}
""",
    "deepeval": json.dumps(G_EVAL),
    "adk": json.dumps(ADK),
    "mlflow": json.dumps(MLFLOW),
    "autorubric": json.dumps({"rubric": ITEMS}),
}


def keys_in(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each key in *node* that is a word of the system."""
    if isinstance(node, dict):
        for key, inner in node.items():
            if not (path and path[-1] in FREE):
                yield (*path, key)
            yield from keys_in(inner, (*path, key))
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from keys_in(inner, (*path, index))


def misspell(data: Any, path: tuple[Any, ...]) -> str:
    """Misspell the key at the end of *path* in *data*, and return it: two letters swapped, or one too many."""
    *outer, key = path
    for step in outer:
        data = data[step]
    swapped = key[:-3] + key[-2:-4:-1] + key[-1] if len(key) > 4 else key
    slip: str = swapped if swapped != key else key + key[-1]
    whole = [(slip if name == key else name, value) for name, value in data.items()]
    data.clear()
    data.update(whole)
    return slip


def silent(name: str, data: Any) -> list[str]:
    """Return the paths of the keys of *data*, a file of the system *name*, whose misspelling is not told."""
    found = []
    for path in keys_in(data):
        damaged = copy.deepcopy(data)
        slip = misspell(damaged, path)
        try:
            told = [str(one) for one in loads_suite(json.dumps(damaged), name).warnings if slip in str(one)]
        except LoadError as error:
            told = [one.message for one in error.problems if slip in str(one) or path[-1] in one.message]
        if not told:
            found.append(f"{'.'.join(map(str, path))}: {slip}")
    return found


@each_row("name", FILES)
def test_a_misspelt_key_of_a_suite_is_told(name: str) -> None:
    """Read over, a level, a threshold or a judge would be lost."""
    data = Cursor.parse(FILES[name], name).value
    assert loads_suite(FILES[name], name).cases
    assert silent(name, data) == []


@pytest.mark.long
def test_a_misspelt_key_of_a_rubric_is_told() -> None:
    """Each key of the file that has all of them."""
    data = Cursor.parse(EVERYTHING.read_text("utf-8"), "everything").value
    for path in keys_in(data):
        damaged = copy.deepcopy(data)
        slip = misspell(damaged, path)
        with pytest.raises(LoadError, match=f"{slip}|{path[-1]}"):
            loads(json.dumps(damaged))


@each_row(
    ("name", "old", "new", "meant"),
    [
        ("mcptest", "prompt: Hi?\n    response", "question: Hi?\n    response", "prompt"),
        ("mcptest", "{name: a, description: Is a", "{name: a, text: Is a", "description"),
        ("mcptest", "jury: {size: 3, consensus: 0.66}", "votes: 3", "jury"),
        ("agentv-2", "vars: {q: hi, expected_output: hello}", "question: hi", "input"),
        ("agentv-2", "type: contains", "type: contain", "contains"),
        ("agentv-2", "type: llm-rubric, prompt", "type: llm_rubric, prompt", "llm-rubric"),
    ],
)
def test_a_word_for_a_key_is_answered_with_that_of_the_file(name: str, old: str, new: str, meant: str) -> None:
    """The keys of another system, or ours, are told as those that this one has."""
    assert old in FILES[name]
    text = FILES[name].replace(old, new, 1)
    try:
        told = [str(one) for one in loads_suite(text, name).warnings]
    except LoadError as error:
        told = [str(one) for one in error.problems]
    assert any(f"did you mean {meant!r}?" in one for one in told)
