"""The export for Every Eval Ever: a record that its schema takes, with the figures of the graded results."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rubric import DefinitionError, Grades, Judge, Jury, Panel, grade_many
from rubric.integrations.every_eval_ever import record
from tests.harnesses import BAD, GOOD, ODD, POLITE, judging


def made(judge: Any = None, texts: tuple[str, ...] = (GOOD, BAD, ODD)) -> dict[str, Any]:
    """Return the record of results of *texts*."""
    with judging() as own:
        results = grade_many(texts, POLITE, own if judge is None else judge(own)).collect()
    return record(results, model="acme/replier-7b", dataset="replies", organization="Acme", temperature=0.5)


def test_the_figures_are_those_of_the_graded_results() -> None:
    """Ungraded ones are counted beside them; each criterion has its mean; the judge and the rubric are told."""
    found = made()
    mean, rate, polite, day = found["evaluation_results"]
    assert (mean["score_details"]["score"], rate["score_details"]["score"]) == ((1 + 0.25) / 2, 0.5)
    assert mean["score_details"]["details"]["ungraded"] == "1"
    assert mean["score_details"]["uncertainty"]["num_samples"] == 2
    assert (polite["evaluation_name"], day["score_details"]["score"]) == ("polite/polite", 0.5)
    scoring = mean["metric_config"]["llm_scoring"]
    assert scoring["judges"][0]["model_info"]["id"] == "openai/gpt-4o-mini"
    assert scoring["additional_details"]["rubric_digest"] == POLITE.digest
    assert "Names a day" in scoring["input_prompt"]
    json.dumps(found, allow_nan=False)


def test_what_has_no_score_or_several_rubrics_is_refused() -> None:
    """A record needs a score, and has one rubric."""
    with pytest.raises(DefinitionError, match="none of 1 was graded"):
        made(texts=(ODD,))
    some = [*grade_many(["a"], "Is polite", "offline"), *grade_many(["a"], "Is short", "offline")]
    with pytest.raises(DefinitionError, match="are of 2 rubrics"):
        record(Grades(some), model="m", dataset="d", organization="o")


@pytest.mark.parametrize(
    "judge", [None, lambda own: Jury(own, 3), lambda own: Panel([own, Judge("offline")])], ids=["one", "jury", "panel"]
)
def test_the_schema_takes_it(judge: Any) -> None:
    """The schema is the one that Every Eval Ever publishes."""
    spec = importlib.util.find_spec("every_eval_ever")
    if spec is None or spec.origin is None:
        pytest.skip("every-eval-ever is not installed; `nox -s integrations` has it")
    schema = json.loads((Path(spec.origin).parent / "schemas" / "eval.schema.json").read_text())
    jsonschema.validate(made(judge), schema)
