"""The metric for DSPy, in real evaluations and optimizers of DSPy's, with a scripted program."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest

from rubric import DefinitionError, UngradedError
from tests.harnesses import BAD, GOOD, ODD, POLITE, harness, judging

dspy = harness("dspy")
pytestmark = pytest.mark.filterwarnings("ignore")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def metric() -> Iterator[Any]:
    """Yield the metric with a judge at a local server."""
    from rubric.integrations.dspy import rubric_metric

    with judging() as judge:
        yield rubric_metric(POLITE, judge)


def example_of(text: str) -> Any:
    """Return an example whose question the program answers with *text*."""
    return dspy.Example(question=text, answer="Friday").with_inputs("question")


def program() -> Any:
    """Return a program with a real predictor, whose language model repeats the question."""
    from dspy.utils import DummyLM

    dspy.configure(lm=DummyLM([{"answer": "unused"}] * 1000))

    class Echo(dspy.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.ask = dspy.Predict("question -> answer")

        def forward(self, question: str) -> Any:
            self.ask(question=question)
            return dspy.Prediction(answer=question)

    return Echo()


EXAMPLES = [GOOD, BAD, ODD]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_mean_of_the_graded_is_on_the_metric(metric: Any, threads: int) -> None:
    """DSPy counts an ungraded example as 0; the metric has the mean of the others, and the ungraded one."""
    devset = [example_of(text) for text in EXAMPLES]
    found = dspy.Evaluate(devset=devset, metric=metric, num_threads=threads)(program())
    assert found.score == round(100 * (1 + 0.25) / 3, 2)  # hence the first paragraph of the page
    assert metric.mean == (1 + 0.25) / 2
    assert ["not graded" in each.explain() for each in metric.ungraded] == [True]
    scores = {example.question: score for example, _, score in found.results}
    assert (scores[GOOD].score, scores[GOOD].passed) == (1, True)
    assert "✗ Names a day" in scores[BAD].feedback
    assert json.loads(json.dumps(scores[BAD].rubric))["digest"] == POLITE.digest
    assert metric.cost is None or metric.cost >= 0
    metric.reset()
    assert (metric.mean, metric.ungraded) == (None, [])


def test_the_table_of_dspy_has_the_reasons(metric: Any, tmp_path: Path) -> None:
    """`save_as_csv` writes score, feedback, cost and digest of each graded example."""
    path = tmp_path / "results.csv"
    dspy.Evaluate(devset=[example_of(BAD)], metric=metric, save_as_csv=str(path))(program())
    (row,) = csv.DictReader(path.open())
    assert "✗ Names a day" in row["RubricMetric"]
    assert POLITE.digest in row["RubricMetric"]


def test_a_trace_asks_for_the_verdict(metric: Any) -> None:
    """Optimizers that collect demonstrations get True or False, and what cannot be graded raises."""
    prediction = dspy.Prediction(answer=GOOD)
    assert metric(example_of(GOOD), prediction, []) is True
    assert metric(example_of(BAD), dspy.Prediction(answer=BAD), []) is False
    with pytest.raises(UngradedError):
        metric(example_of(ODD), dspy.Prediction(answer=ODD), [])


def test_a_gate_fails_an_example_whose_score_is_above_the_threshold() -> None:
    """The verdict decides which examples become demonstrations."""
    from rubric.integrations.dspy import rubric_metric

    with judging() as judge:
        metric = rubric_metric(POLITE.revising("day", required=True).passing_at(0.2), judge)
        assert metric(example_of(BAD), dspy.Prediction(answer=BAD)).score == 0.25
        assert metric(example_of(BAD), dspy.Prediction(answer=BAD), []) is False


def test_only_what_passed_becomes_a_demonstration(metric: Any) -> None:
    """BootstrapFewShot takes the good example alone."""
    optimizer = dspy.BootstrapFewShot(metric=metric, max_labeled_demos=0)
    student = optimizer.compile(program(), trainset=[example_of(text) for text in EXAMPLES])
    assert [demo.question for demo in student.ask.demos] == [GOOD]
    assert len(metric.ungraded) == 1


def test_gepa_reads_the_feedback_and_asks_once(metric: Any) -> None:
    """Its reflection gets a line for each criterion; an ungraded example is not reflected upon."""
    seen: list[str] = []

    def reflect(candidate: Any, reflective_dataset: Any, components_to_update: Any) -> Any:
        seen.extend(each["Feedback"] for name in components_to_update for each in reflective_dataset[name])
        return dict(candidate)

    data = [example_of(text) for text in EXAMPLES]
    optimizer = dspy.GEPA(
        metric=metric,
        max_metric_calls=9,
        reflection_minibatch_size=3,
        instruction_proposer=reflect,
        reflection_lm=dspy.LM("openai/unused", api_key="none"),
        num_threads=1,
    )
    optimizer.compile(program(), trainset=data, valset=data)
    assert any("✗ Names a day" in each for each in seen)
    assert not any("not graded" in each for each in seen)
    assert metric.mean == (1 + 0.25) / 2
    assert len(metric.graded) == 2 * len(metric.ungraded)  # feedback by predictor is no further grade


def test_the_field_that_is_graded_is_named_or_the_only_one() -> None:
    """Reasoning is not an output; two outputs need a name, and a wrong name is told which there are."""
    from rubric.integrations.dspy import default_candidate

    gold = example_of("When?")
    thought = default_candidate(gold, dspy.Prediction(reasoning="Hm.", answer=GOOD))
    assert (thought.output, thought.input, thought.reference) == (GOOD, "When?", "Friday")
    two = dspy.Prediction(title="A", answer=GOOD)
    assert default_candidate(gold, two, "title").output == "A"
    with pytest.raises(DefinitionError, match=r"2 output fields \(title, answer\); name one"):
        default_candidate(gold, two)
    with pytest.raises(DefinitionError, match="no field 'body'; its fields are: answer, title"):
        default_candidate(gold, two, "body")


def test_tool_calls_of_react_are_carried_over() -> None:
    """The trajectory of a real agent becomes tool calls with arguments, results and errors; its thoughts are named."""
    from dspy.utils import DummyLM

    from rubric.integrations.dspy import default_candidate

    def orders(number: int) -> str:
        if number == 8:
            raise ValueError("no such order")
        return f"{number} is paid"

    steps = [
        {"next_thought": "Look.", "next_tool_name": "orders", "next_tool_args": {"number": 7}},
        {"next_thought": "Look.", "next_tool_name": "orders", "next_tool_args": {"number": 8}},
        {"next_thought": "Done.", "next_tool_name": "finish", "next_tool_args": {}},
        {"reasoning": "It is paid.", "answer": GOOD},
    ]
    with dspy.context(lm=DummyLM(steps)):
        prediction = dspy.ReAct("question -> answer", tools=[orders])(question="When?")
    candidate = default_candidate(example_of("When?"), prediction)
    assert candidate.output == GOOD
    paid, failed = candidate.tool_calls
    assert (paid.name, dict(paid.arguments), paid.result, paid.error) == ("orders", {"number": 7}, "7 is paid", "")
    assert (failed.result, "no such order" in failed.error) == (None, True)
    assert [each.rpartition(": ")[2] for each in candidate.remarks] == ["thoughts"]
