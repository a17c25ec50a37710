"""Whole repositories as they are: a sample of promptfoo's examples, and AgentV's layout; `tests.trees` runs all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trees import counted, suites_in

EXAMPLES = Path(__file__).parents[1].parent / "shared" / "trees" / "promptfoo-examples"

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
    assert (found.files, found.refused) == (3, {})
    assert dict(found.cases) == {"passed": 3, "failed": 1, "ungraded": 1}
    assert dict(found.reasons) == {"Python, which runs only where scripts are allowed": 1}
