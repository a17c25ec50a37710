"""The evaluator for pydantic-evals, in real evaluations of pydantic-evals', offline."""

from __future__ import annotations

from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest

from rubric import Budget, CallError, DefinitionError, Jury, Store
from tests.harnesses import BAD, CHAT, GOOD, ODD, POLITE, SEEN, harness, judging, seen

harness("pydantic_evals", "pydantic-evals")
pytestmark = pytest.mark.filterwarnings("ignore")


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


def test_two_evaluators_of_a_case_add_up() -> None:
    """What both have spent is the case's, and the whole result of each is there."""
    from pydantic_evals import Case, Dataset

    from rubric.integrations.pydantic_evals import RubricEvaluator

    with judging() as judge:
        alone = dataset(judge).evaluate_sync(lambda text: text, progress=False)
        several: list[Any] = [RubricEvaluator(POLITE, judge), RubricEvaluator(POLITE.revising("day", weight=1), judge)]
        both = Dataset(name="replies", cases=[Case(name="good", inputs=GOOD)], evaluators=several).evaluate_sync(
            lambda text: text, progress=False
        )
    (case,) = both.cases
    one = next(each for each in alone.cases if each.name == "good")
    for metric in ("rubric.prompt_tokens", "rubric.cost_usd"):
        assert case.metrics[metric] == pytest.approx(2 * one.metrics[metric])
    assert {case.attributes[name]["digest"] for name in ("rubric", "rubric_2")} == {
        each.get_evaluator_version() for each in several
    }


def test_what_a_file_cannot_hold_is_refused_where_it_is_read(tmp_path: Path) -> None:
    """The text of a store or a judge would be another one, and replies would be paid for again."""
    from pydantic_evals import Case, Dataset

    from rubric.integrations.pydantic_evals import RubricEvaluator

    path = tmp_path / "replies.yaml"

    def read(**options: Any) -> Any:
        cases: list[Any] = [Case(name="good", inputs=GOOD)]
        evaluators: list[Any] = [RubricEvaluator(POLITE, **options)]
        written = Dataset(name="replies", cases=cases, evaluators=evaluators)
        written.to_file(path, custom_evaluator_types=[RubricEvaluator])
        return Dataset[str, str, Any].from_file(path, custom_evaluator_types=[RubricEvaluator]).evaluators[0]

    assert read(store=Path("kept.db")).store == "kept.db"
    with Store(tmp_path / "kept.db") as store:
        values: dict[str, Any] = {"store": store, "judge": Jury("offline", 3), "budget": Budget(calls=3)}
        for name, value in values.items():
            with pytest.raises(Exception) as refused:
                read(**{name: value})
            assert f"{name}: the file that was read cannot hold it" in "".join(format_exception(refused.value))
            assert repr(value) not in path.read_text("utf-8")


def test_a_misspelt_option_is_told_the_right_one() -> None:
    """The evaluator names what was meant, as calls of this library do."""
    from rubric.integrations.pydantic_evals import RubricEvaluator

    wrong: dict[str, Any] = {"stroe": "kept.db"}
    with pytest.raises(CallError, match="did you mean 'store'"):
        RubricEvaluator(POLITE, "offline", **wrong)


def test_a_chat_is_read_as_one_and_no_output_is_refused() -> None:
    """The candidate of an output is the same as with other harnesses."""
    from types import SimpleNamespace

    from rubric.integrations.pydantic_evals import default_candidate

    context: Any = SimpleNamespace(inputs=None, output={"messages": CHAT}, expected_output=None)
    assert seen(default_candidate(context)) == SEEN
    context.output = None
    with pytest.raises(DefinitionError, match="failed"):
        default_candidate(context)
