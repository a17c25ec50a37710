"""
Export results as a record of Every Eval Ever (schema 0.3): `record(grades, model=..., ...)`.

The record has the mean score and the pass rate of the graded results, with their intervals, and the mean of each
criterion. The schema has no result without a score, so ungraded ones are counted in `details`, and in no figure.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any, Literal

from rubric import DefinitionError, Grade, Grades, Rubric, Ungraded, dumps
from rubric.formats import DumpError
from rubric.results import Summary
from rubric.values import AnyJudge

SCHEMA_VERSION = "0.3.0"

Relationship = Literal["first_party", "third_party", "collaborative", "other"]


def record(
    results: Iterable[Grade | Ungraded],
    *,
    model: str,
    dataset: str,
    organization: str,
    relationship: Relationship = "third_party",
    temperature: float | None = None,
) -> dict[str, Any]:
    """
    Return *results* of one rubric as a record, which JSON can hold.

    Args:
        results: Results of `grade_many`, or `Grades`.
        model: The id of the model that was evaluated: `meta-llama/Llama-3.1-8B-Instruct`, `openai/gpt-5.6`.
        dataset: The name of the data set.
        organization: The name of the organization that evaluated.
        relationship: The relation of the evaluator to the model.
        temperature: The temperature at which the model answered; None if it is unknown.

    Raises:
        DefinitionError: Nothing was graded, so there is no score; or the results are of several rubrics.
    """
    grades = Grades(results)
    summary = grades.summary()
    if summary.mean is None:
        raise DefinitionError("results", f"none of {len(grades)} was graded, and a record needs a score")
    rubrics = {result.rubric.digest: result.rubric for result in grades}
    if len(rubrics) > 1:
        raise DefinitionError("results", f"are of {len(rubrics)} rubrics; make a record of each")
    (rubric,) = rubrics.values()
    name, now = rubric.name or "rubric", f"{time.time():.0f}"
    shared = {
        "source_data": {"dataset_name": dataset, "source_type": "other"},
        "generation_config": {"generation_args": {"temperature": temperature}},
    }
    scoring = _scoring(rubric, grades.graded[0].judge)
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{name}/{model}/{now}",
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": relationship,
        },
        "eval_library": {"name": "rubric-grade", "version": version("rubric-grade")},
        "model_info": _model(model),
        "evaluation_results": [
            {**shared, **result, "metric_config": {**result["metric_config"], "llm_scoring": scoring}}
            for result in _results(name, summary)
        ],
    }


def _results(name: str, summary: Summary) -> list[dict[str, Any]]:
    graded = summary.results - summary.ungraded
    counts = {"graded": str(graded), "ungraded": str(summary.ungraded), "cost": str(summary.usage.cost)}
    bounds = dict(zip(("lowest", "highest"), map(str, summary.mean_bounds or ()), strict=False))
    found = [
        _result((name, "mean_score"), summary.mean, summary.mean_interval, graded, {**counts, **bounds}),
        _result((name, "pass_rate"), summary.pass_rate, summary.pass_interval, graded, counts),
    ]
    for criterion in summary.criteria:
        if criterion.mean is not None:
            judged = {"scored": str(criterion.scored), "unjudged": str(criterion.unjudged)}
            named = (f"{name}/{criterion.id}", "mean_score")
            found.append(_result(named, criterion.mean, criterion.interval, criterion.scored, judged))
    return found


def _result(
    named: tuple[str, str],
    score: float | None,
    interval: tuple[float, float] | None,
    samples: int,
    details: dict[str, str],
) -> dict[str, Any]:
    name, metric = named
    uncertainty: dict[str, Any] = {"num_samples": samples}
    if interval is not None:
        bounds = {"lower": interval[0], "upper": interval[1], "confidence_level": 0.95}
        uncertainty["confidence_interval"] = bounds
    return {
        "evaluation_result_id": f"{name}/{metric}",
        "evaluation_name": name,
        "metric_config": {
            "metric_id": metric,
            "metric_kind": metric,
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": {"score": score, "details": details, "uncertainty": uncertainty},
    }


def _scoring(rubric: Rubric, judge: AnyJudge) -> dict[str, Any]:
    """Return how a model judged; in place of a prompt, which differs with each criterion, it has the rubric."""
    try:
        text = dumps(rubric)
    except DumpError:  # it holds a function, which no file can
        text = repr(rubric)
    judges = []
    for each in judge.single_judges():
        settings = {} if each.temperature is None else {"temperature": each.temperature}
        judges.append({"model_info": _model(each.name), **settings})
    return {"judges": judges, "input_prompt": text, "additional_details": {"rubric_digest": rubric.digest}}


def _model(name: str) -> dict[str, Any]:
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    return {"name": name.rpartition("/")[2], "id": name, "additional_details": unknown}
