"""The evaluator for pydantic-evals, in real evaluations of pydantic-evals', offline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rubric import DefinitionError
from tests.harnesses import BAD, CHAT, GOOD, ODD, POLITE, SEEN, harness, judging, seen

harness("pydantic_evals", "pydantic-evals")
pytestmark = pytest.mark.filterwarnings("ignore")

if TYPE_CHECKING:
    from pathlib import Path


def dataset(judge: Any) -> Any:
    """Return a data set of a good, a bad and an odd answer."""
    from pydantic_evals import Case, Dataset

    from rubric.integrations.pydantic_evals import RubricEvaluator

    cases = [Case(name=name, inputs=text) for name, text in (("good", GOOD), ("bad", BAD), ("odd", ODD))]
    return Dataset(name="replies", cases=cases, evaluators=[RubricEvaluator(POLITE, judge)])


def test_a_pass_a_fail_and_a_failure_of_the_evaluator() -> None:
    """The averages are those of the graded cases; the ungraded one is an evaluator failure."""
    with judging() as judge:
        report = dataset(judge).evaluate_sync(lambda text: text, progress=False)
    cases = {case.name: case for case in report.cases}
    assert cases["good"].scores["rubric.score"].value == 1
    assert cases["bad"].scores["rubric.score"].value == 0.25
    assert not cases["bad"].assertions["rubric.passed"].value
    assert "✗ Names a day" in cases["bad"].scores["rubric.score"].reason
    (failure,) = cases["odd"].evaluator_failures
    assert "not graded" in failure.error_message
    assert report.averages().scores["rubric.score"] == (1 + 0.25) / 2


def test_a_criterion_has_a_score_of_its_own_and_the_digest_is_in_the_report() -> None:
    """Names have a prefix, so that they cannot clash with those of other evaluators."""
    with judging() as judge:
        report = dataset(judge).evaluate_sync(lambda text: text, progress=False)
    bad = next(case for case in report.cases if case.name == "bad")
    assert (bad.scores["rubric.polite"].value, bad.scores["rubric.day"].value) == (1, 0)
    assert bad.attributes["rubric"]["digest"] == POLITE.digest
    assert bad.metrics["rubric.prompt_tokens"] > 0


def test_a_file_of_the_data_set_holds_the_rubric(tmp_path: Path) -> None:
    """`to_file` and `from_file` bring back the same evaluator, with the same version."""
    from pydantic_evals import Dataset

    from rubric.integrations.pydantic_evals import RubricEvaluator

    path = tmp_path / "replies.yaml"
    dataset("offline").to_file(path, custom_evaluator_types=[RubricEvaluator])
    read: Any = Dataset[str, str, Any].from_file(path, custom_evaluator_types=[RubricEvaluator])
    (evaluator,) = read.evaluators
    assert evaluator.value == POLITE
    assert evaluator.judge == "offline"
    assert evaluator.get_evaluator_version() == POLITE.digest


def test_a_chat_is_read_as_one_and_no_output_is_refused() -> None:
    """The candidate of an output is the same as with other harnesses."""
    from types import SimpleNamespace

    from rubric.integrations.pydantic_evals import default_candidate

    context: Any = SimpleNamespace(inputs=None, output={"messages": CHAT}, expected_output=None)
    assert seen(default_candidate(context)) == SEEN
    context.output = None
    with pytest.raises(DefinitionError, match="failed"):
        default_candidate(context)
