"""The metrics for lm-evaluation-harness, in real evaluations of tasks in YAML, with a model that repeats the prompt."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from rubric import DefinitionError
from tests.harnesses import BAD, GOOD, ODD, POLITE, harness, judging

harness("lm_eval")
pytestmark = pytest.mark.filterwarnings("ignore")

TASK = """
task: replies
custom_dataset: !function judging.documents
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
process_results: !function judging.process_results
metric_list: !function judging.metric_list
"""
JUDGING = """
from datasets import Dataset
from rubric import Judge
from rubric.integrations.lm_eval import rubric_metrics
from tests.harnesses import BAD, GOOD, ODD, POLITE

def documents(**_):
    return {"test": Dataset.from_list([{"question": text, "answer": "Friday"} for text in (GOOD, BAD, ODD)])}

judge = Judge("openai/gpt-4o-mini", repairs=0, via="http", params=PARAMS)
metrics = rubric_metrics(POLITE, judge, reference="answer")
process_results, metric_list = metrics["process_results"], metrics["metric_list"]
"""


def repeating() -> Any:
    """Return a language model that responds with the prompt."""
    from lm_eval.api.model import LM

    class Repeating(LM):  # type: ignore[misc]  # lm-eval is not typed
        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
            return [request.args[0] for request in requests]

        def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    return Repeating()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the results of an evaluation of a good, a bad and an odd response, and the folder of its logs."""
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    folder = tmp_path_factory.mktemp("task")
    (folder / "replies.yaml").write_text(TASK)
    with judging() as judge:
        (folder / "judging.py").write_text(f"PARAMS = {dict(judge.params)!r}\n{JUDGING}")
        tracker = EvaluationTracker(output_path=str(folder / "logs"))
        manager = TaskManager(include_path=str(folder), include_defaults=False)
        results = simple_evaluate(
            model=repeating(), tasks=["replies"], task_manager=manager, evaluation_tracker=tracker, bootstrap_iters=100
        )
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        tracker.save_results_samples(task_name="replies", samples=samples["replies"])
    return results, folder / "logs"


def test_the_mean_is_that_of_the_graded_documents(run: Any) -> None:
    """And the ungraded ones are counted beside it."""
    found = run[0]["results"]["replies"]
    assert found["polite,none"] == (1 + 0.25) / 2
    assert (found["polite_passed,none"], found["polite.day,none"]) == (0.5, 0.5)
    assert found["polite_ungraded,none"] == 1
    assert found["polite_result,none"] == POLITE.digest


def test_the_table_shows_mean_count_and_digest(run: Any) -> None:
    """lm-eval prints a row for each metric."""
    from lm_eval.utils import make_table

    rows = [[cell.strip() for cell in line.split("|")] for line in make_table(run[0]).splitlines()]
    shown = {row[5]: row[7] for row in rows if len(row) > 7}
    assert (shown["polite"], shown["polite_ungraded"], shown["polite_result"]) == ("0.6250", "1", POLITE.digest)


def test_the_logs_have_reasons_cost_and_digest(run: Any) -> None:
    """The samples are JSON without NaN; an ungraded one has the score null and its explanation."""

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    (path,) = run[1].rglob("samples_*.jsonl")
    rows = [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]
    by_text = {row["doc"]["question"]: row for row in rows}
    assert [by_text[text]["polite"] for text in (GOOD, BAD, ODD)] == [1, 0.25, None]
    assert "✗ Names a day" in by_text[BAD]["polite_result"]["reason"]
    assert "not graded" in by_text[ODD]["polite_result"]["reason"]
    assert all(row["polite_result"]["rubric"]["digest"] == POLITE.digest for row in rows)
    assert all("polite_cost" in row for row in rows)
    (path,) = run[1].rglob("results_*.json")
    configuration = json.loads(path.read_text())["configs"]["replies"]
    assert configuration["metric_list"][0]["aggregation"] == "graded_mean"


def test_aggregations_leave_out_what_has_no_score() -> None:
    """None and NaN are left out of the mean; an unknown cost makes the total unknown."""
    from rubric.integrations.lm_eval import graded_mean, total

    assert graded_mean([1, None, 0.5, math.nan]) == 0.75
    assert math.isnan(graded_mean([None]))
    assert math.isnan(total([0.1, None]))


def test_a_list_of_responses_is_not_graded_as_text() -> None:
    """Several responses, and loglikelihoods, are refused with the settings that give one text."""
    from rubric.integrations.lm_eval import default_candidate

    with pytest.raises(DefinitionError, match="the task gave a list; a rubric takes one text: output_type: generate"):
        default_candidate({}, [["a", "b"]])
    with pytest.raises(DefinitionError, match="the task gave 2 responses"):
        default_candidate({}, ["a", "b"])


def test_columns_are_looked_up() -> None:
    """A misspelt column is an error that lists the columns."""
    from rubric.integrations.lm_eval import default_candidate

    made = default_candidate({"question": "When?", "answer": "Friday"}, [GOOD], "question", "answer")
    assert (made.output, made.input, made.reference) == (GOOD, "When?", "Friday")
    with pytest.raises(DefinitionError, match="no column 'answers'; its columns are: question, answer"):
        default_candidate({"question": "When?", "answer": "Friday"}, [GOOD], "question", "answers")
