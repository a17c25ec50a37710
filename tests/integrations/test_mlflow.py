"""The scorer for MLflow, in real evaluations of MLflow's, with a local tracking store."""

from __future__ import annotations

import importlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.harnesses import BAD, CHAT, GOOD, ODD, POLITE, SEEN, harness, judging, seen
from tests.places import ROOT

mlflow = harness("mlflow")
pytestmark = pytest.mark.filterwarnings("ignore")

if TYPE_CHECKING:
    from pathlib import Path


def evaluated(folder: Path, judge: Any) -> Any:
    """Return the result of an evaluation of a good, a bad and an odd output."""
    import mlflow

    from rubric.integrations.mlflow import rubric_scorer

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment("replies")
    data = [{"inputs": {"q": "When?"}, "outputs": text} for text in (GOOD, BAD, ODD)]
    return mlflow.genai.evaluate(data=data, scorers=[rubric_scorer(POLITE, judge)])


def test_the_mean_is_that_of_the_graded_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ungraded row has an error, a rationale and no value."""
    monkeypatch.chdir(tmp_path)
    with judging() as judge:
        result = evaluated(tmp_path, judge)
    assert result.metrics["polite/mean"] == (1 + 0.25) / 2
    rows = result.tables["eval_results"]
    said = [next(a for a in row if a["assessment_name"] == "polite") for row in rows["assessments"]]
    by_value = {(each.get("feedback") or {}).get("value"): each for each in said}
    assert {*by_value} == {1.0, 0.25, None}
    assert "✗ Names a day" in by_value[0.25]["rationale"]
    assert by_value[0.25]["metadata"]["rubric_digest"] == POLITE.digest
    assert json.loads(by_value[0.25]["metadata"]["rubric"])["score"] == 0.25
    error = by_value[None]["feedback"]["error"]
    assert "not graded" in json.dumps(error)


def test_outputs_that_a_failed_task_left_out_are_an_error_of_the_feedback() -> None:
    """There is no value, which would be a score for a crash; and a chat is read as with other harnesses."""
    from rubric.integrations.mlflow import default_candidate, rubric_scorer

    with judging() as judge:
        feedback = rubric_scorer(POLITE, judge)(inputs={"q": "When?"}, outputs=None)
    assert feedback.value is None
    assert "failed" in str(feedback.error)
    assert seen(default_candidate(None, {"messages": CHAT}, None)) == SEEN


def test_a_scorer_is_not_registered_without_its_rubric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow keeps a function's source alone, which fails where it is run; a function that imports all is kept whole."""
    from mlflow.genai import scorers

    from rubric.integrations.mlflow import rubric_scorer

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS", "true")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.set_experiment("replies")
    with pytest.raises(mlflow.MlflowException, match="decorator scorer"):
        rubric_scorer(POLITE, "offline").register()
    if not hasattr(mlflow.environment_variables, "MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS"):
        return  # of an older MLflow, which registers functions on Databricks alone
    page = (ROOT / "docs" / "integrations" / "mlflow.md").read_text("utf-8")
    (shown,) = re.findall(r"```text\n(from mlflow.*?)```", page, re.DOTALL)
    (tmp_path / "shown.py").write_text(shown.replace("openai/gpt-5.6", "offline"))
    (tmp_path / "polite.yaml").write_text("rubric: polite\ncriteria: [Thanks the customer]\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("shown").polite.register()
    (kept,) = scorers.list_scorers()
    assert kept(inputs={"q": "Hello?"}, outputs="We thank you, dear customer.").value == 1.0
