"""The evaluators for LangSmith and openevals, in real offline evaluations of LangSmith's."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from rubric import Candidate, DefinitionError
from tests.harnesses import BAD, CHAT, DOWN, GOOD, ODD, POLITE, SEEN, harness, judging, seen

langsmith = harness("langsmith")
pytestmark = pytest.mark.filterwarnings("ignore")


def feedback(judge: Any, text: str) -> Any:
    """Return what the sync and the async evaluator say of *text*, which is the same."""
    from rubric.integrations.langsmith import arubric_evaluator, rubric_evaluator

    given: dict[str, Any] = {"inputs": {"q": "When?"}, "outputs": {"a": text}, "reference_outputs": {"a": "Friday"}}
    said, *parts = rubric_evaluator(POLITE, judge)(**given)
    again, *further = asyncio.run(arubric_evaluator(POLITE, judge)(**given))
    assert ({**again, "metadata": None}, further) == ({**said, "metadata": None}, parts)
    scores = {each["key"]: each["score"] for each in parts}
    assert scores == ({} if text == ODD else {"polite.polite": 1, "polite.day": float(text == GOOD)})
    return said


def test_a_score_a_comment_and_no_score() -> None:
    """An ungraded example has the score None, with the explanation."""
    with judging() as judge:
        good, bad, odd = (feedback(judge, text) for text in (GOOD, BAD, ODD))
    assert (good["key"], good["score"], bad["score"], odd["score"]) == ("polite", 1, 0.25, None)
    assert "✗ Names a day" in bad["comment"]
    assert (odd["value"], odd["metadata"]["passed"]) == ("ungraded", None)
    assert "not graded" in odd["comment"]
    assert good["metadata"]["rubric"]["digest"] == POLITE.digest


def test_an_evaluation_runs_offline(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """`langsmith.evaluate` without uploads takes the evaluator as it is; a failed target has an error in place."""
    from datetime import UTC, datetime
    from uuid import uuid4

    from langsmith import evaluate
    from langsmith.schemas import Example

    from rubric.integrations.langsmith import rubric_evaluator

    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    monkeypatch.setenv("LANGSMITH_API_KEY", "none")
    dataset = uuid4()
    examples = [
        Example(id=uuid4(), dataset_id=dataset, inputs={"q": text}, outputs={"a": "x"}, created_at=datetime.now(UTC))
        for text in (GOOD, BAD, ODD, DOWN)
    ]

    def target(inputs: dict[str, Any]) -> dict[str, Any]:
        if inputs["q"] == DOWN:
            raise RuntimeError("the target is down")
        return {"a": inputs["q"]}

    with judging() as judge:
        rows = evaluate(
            target,
            data=examples,
            evaluators=[rubric_evaluator(POLITE, judge)],
            upload_results=False,
        )
        found = {row["example"].inputs["q"]: row["evaluation_results"]["results"][0] for row in rows}
    assert {text: each.score for text, each in found.items()} == {GOOD: 1, BAD: 0.25, ODD: None, DOWN: None}
    assert "as of a task that failed" in found[DOWN].comment
    assert "polite> on run" in caplog.text
    graded = [result.score for result in found.values() if result.score is not None]
    assert sum(graded) / len(graded) == (1 + 0.25) / 2


def test_a_chat_is_not_flattened() -> None:
    """Outputs with messages keep the conversation and the tool calls."""
    from rubric.integrations.langsmith import default_candidate

    candidate = default_candidate({"q": "When?"}, {"messages": CHAT}, None)
    assert seen(candidate) == SEEN


@pytest.mark.parametrize("nothing", [None, {}, {"output": None}])
def test_an_example_whose_target_failed_is_not_graded(nothing: Any) -> None:
    """LangSmith hands on a mapping without a value for what a failed target returned: not text, and no score of 0."""
    from rubric.integrations.langsmith import default_candidate, rubric_evaluator

    with judging() as judge, pytest.raises(DefinitionError, match="failed"):
        rubric_evaluator(POLITE, judge)(inputs={"q": "When?"}, outputs=nothing, reference_outputs={})
    assert default_candidate({}, {"a": GOOD}, {}) == Candidate(GOOD)


def test_one_of_several_outputs_is_named_and_not_guessed() -> None:
    """The error has a line for one of them, a line for all, and the imports with which both grade."""
    from rubric.integrations.langsmith import rubric_evaluator

    outputs = {"answer": GOOD, "sources": ["a"]}
    names: dict[str, Any] = {}
    with judging() as judge:
        with pytest.raises(DefinitionError, match="there are 'answer', 'sources'") as refused:
            rubric_evaluator(POLITE, judge)(inputs={"q": "When?"}, outputs=outputs)
        said, _, imports = str(refused.value).partition("; both need: ")
        exec(imports, names)  # noqa: S102 - ours
        lines = re.findall(r"give candidate=(.*?)(?:;|$)", said)
        for line, text in zip(lines, (GOOD, json.dumps(outputs)), strict=True):
            candidate = eval(line, names)  # noqa: S307 - ours
            assert candidate({"q": "When?"}, outputs, None).output == text
            assert rubric_evaluator(POLITE, judge, candidate=candidate)(inputs={"q": "When?"}, outputs=outputs)
