"""Whole repositories as they are: a sample of promptfoo's examples, and AgentV's layout; `tests.trees` runs all."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric import load_suite
from tests.places import SHARED
from tests.trees import counted, openai_server, suites_in

EXAMPLES = SHARED / "trees" / "promptfoo-examples"

SAMPLE = ("g-eval", "named-metrics", "openai-eval-factuality", "rag-full", "simple-csv", "summarization", "tool-use")


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not beside this checkout")
def test_examples_of_promptfoo_are_graded_as_they_are() -> None:
    """Every file of the sample loads by the default call, and most cases that assert anything are graded."""
    found = counted([file for name in SAMPLE for file in suites_in(EXAMPLES / name)], most=2)
    assert not found.refused
    assert found.files >= len(SAMPLE)
    assert found.cases["deferred"] == 0
    asserting = found.cases.total() - found.reasons["the test asserts nothing"]
    assert found.cases["passed"] + found.cases["failed"] >= 0.6 * asserting


FILES = {
    ".agentv/config.yaml": "refs: {shared: file://.agentv/default_test.yaml}\n",
    ".agentv/default_test.yaml": "options: {rubric_prompt: file://prompts/judge.md}\nthreshold: 0.5\n",
    "prompts/judge.md": "Judge this answer by {{ criteria }}:\n{{ output }}\n",
    "prompts/task.md": "Answer: {{ question }}\n",
    "graders/style.yaml": "- {type: icontains, value: short}\n",
    "data/cases.yaml": "- {id: third, vars: {question: Capital of France?}, assert: [{type: contains, value: Paris}]}\n",
    ".agentv/targets.yaml": "targets: [{name: default, provider: openai, model: gpt-5-mini, grader_target: default}]\n",
    ".agentv/templates/brief.yaml": "assert: [{type: regex, value: '^.{1,80}$'}]\n",
    "graders/tone.md": "Is it kind, by {{ criteria }}?\n{{ output }}\n",
    "evals/fix/EVAL.yaml": """
tests: [{id: fix, criteria: Says what was wrong, input_files: [x.log]}]
""",
    "evals/fix/PROMPT.md": "What is wrong?",
    "evals/fix/x.log": "boom",
    "evals/deep/er/graded.eval.yaml": """
default_test: file://{{ env.AGENTV_REPO_ROOT }}/.agentv/default_test.yaml
prompts: ["{{ question }}"]
providers: [default]
tests:
  - id: climbs
    vars: {question: Hello?}
    assert:
      - {type: llm-rubric, value: Is kind, prompt: graders/tone.md, provider: default}
      - include: brief
  - {id: tools, vars: {question: Who?}, assert: [{type: tool-trajectory, mode: any_order, minimums: {search: 1}}]}
  - {id: own, vars: {question: How?}, assert: [{type: min-words}]}
  - file://gen.py:create
""",
    "evals/answers.eval.yaml": """
default_test: ref://shared
prompts: [file://../prompts/task.md]
tests:
  - {id: first, vars: {question: Six times seven?}, assert: [Gives a number]}
  - {id: second, vars: {question: Yes?}, assert: [{type: contains, value: "no such text"}]}
  - {id: later, vars: {question: Why?}, assert: [{type: script, command: [python, check.py]}]}
""",
    "evals/nested/more.eval.yaml": """
prompts: [file:///prompts/task.md]
tests: /data/cases.yaml
""",
    "evals/talk.eval.yaml": """
prompts: ["{{ input }}"]
tests:
  - id: talk
    mode: conversation
    vars: {input: [{role: system, content: Be brief.}]}
    assert: [Is coherent]
    turns: [{input: Hi, assert: [{type: icontains, value: short}]}, {input: Bye, assert: [Says goodbye]}]
""",
}


def test_a_repository_of_agentv_is_graded_as_it_is(tmp_path: Path) -> None:
    """Prompts, cases and references at the root of the project are found from `evals/` and below."""
    (tmp_path / ".git").mkdir()
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    found = counted(suites_in(tmp_path))
    assert (found.files, found.refused) == (5, {})
    assert dict(found.cases) == {"passed": 5, "failed": 2, "ungraded": 3}
    assert dict(found.reasons) == {
        "programs, which run only where scripts are allowed": 2,
        "a type of the project's own, whose function was not given": 1,
    }


def test_a_repository_of_agentv_asks_its_own_targets(tmp_path: Path) -> None:
    """By their names in `.agentv/`: the model that answers, and the judge."""
    for name, text in {".git/HEAD": "", **FILES}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with openai_server() as endpoint:
        suite = load_suite(tmp_path / "evals/deep/er/graded.eval.yaml").only("climbs")
        (row,) = suite.run(target="providers").rows
    assert (row.status, row.output) == ("passed", "A short answer: Paris, 42, yes.")
    assert {request.body["model"] for request in endpoint.requests} == {"gpt-5-mini"}
