"""
Metrics for lm-evaluation-harness: `rubric_metrics(rubric)`.

An ungraded document has the score None. The aggregation `graded_mean` leaves it out, and the metric `<name>_ungraded`
counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from rubric import Candidate, DefinitionError, Rubric
from rubric.embed import Grader, JudgeLike
from rubric.integrations.mapping import beside, importing

with importing("lm_eval", "lm-eval"):
    from lm_eval.api.registry import register_aggregation

# Registered by name, since lm-eval writes the configuration of a task, in which functions would be source code.


@register_aggregation("graded_mean")  # type: ignore[untyped-decorator]  # lm-eval may not be installed
def graded_mean(values: Sequence[float | None]) -> float:
    """Return the mean of the values that are neither None nor NaN; NaN if there are none."""
    graded = [value for value in values if value is not None and not isnan(value)]
    return sum(graded) / len(graded) if graded else float("nan")


@register_aggregation("total")  # type: ignore[untyped-decorator]  # lm-eval may not be installed
def total(values: Sequence[float | None]) -> float:
    """Return the sum of the values; NaN if one is unknown."""
    return sum(float("nan") if value is None else value for value in values)


@register_aggregation("rubric_digest")  # type: ignore[untyped-decorator]  # lm-eval may not be installed
def rubric_digest(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the digest of the rubric by which *results* were graded."""
    return ", ".join(sorted({str(each["rubric"]["digest"]) for each in results}))


def default_candidate(
    doc: Mapping[str, Any], results: Sequence[Any], input: str | None = None, reference: str | None = None
) -> Candidate:
    """Return the response as the candidate, with two columns of *doc* as its input and its reference."""
    if len(results) != 1 or not isinstance(results[0], str):
        found = f"{len(results)} responses" if len(results) != 1 else f"a {type(results[0]).__name__}"
        message = f"the task gave {found}; a rubric takes one text: output_type: generate_until, a filter take_first"
        raise DefinitionError("results", message)
    return Candidate(results[0], input=_column(doc, "input", input), reference=_column(doc, "reference", reference))


def _column(doc: Mapping[str, Any], option: str, name: str | None) -> str:
    if name is None:
        return ""
    if name not in doc:
        raise DefinitionError(option, f"a document has no column {name!r}; its columns are: {', '.join(doc)}")
    return beside(doc[name])


def rubric_metrics(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    input: str | None = None,
    reference: str | None = None,
    name: str | None = None,
    candidate: Callable[..., Candidate] = default_candidate,
    **options: Any,
) -> dict[str, Any]:
    """
    Return `process_results` and `metric_list` for the configuration of a task.

    The metrics are `<name>`, the score; `<name>_passed`; `<name>_ungraded`, how many could not be graded; `<name>_cost`
    in US dollars; `<name>.<id>`, the contribution of each criterion; and `<name>_result`, the whole result in the log
    of samples, the rubric's digest in the table.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        input: The column of the documents that is the input; None: the judge sees none.
        reference: The column of the documents that has reference answers; None: there are none.
        name: The name of the metric; None takes the rubric's name, or `rubric`.
        candidate: Makes the candidate of a document, its responses, *input* and *reference*.
        options: What `evaluate` takes besides: `store`, `limits`, `budget`.
    """
    grader = Grader(rubric, judge, options, candidate)
    # lm-eval parts metric and filter at a comma.
    called = (name or grader.name).replace(",", " ")
    criteria = [criterion.id for criterion in grader.rubric.judged]

    def process_results(doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        result = grader.evaluate(doc, results, input, reference)
        return {
            called: result.score,
            f"{called}_passed": None if result.passed is None else float(result.passed),
            f"{called}_ungraded": int(not result.graded),
            f"{called}_cost": result.cost,
            **{f"{called}.{id}": result.parts.get(id) for id in criteria},
            f"{called}_result": {"verdict": result.label, "reason": result.reason, **result.metadata},
        }

    def metric(key: str, aggregation: str, *, higher_is_better: bool | None = True) -> dict[str, Any]:
        return {"metric": key, "aggregation": aggregation, "higher_is_better": higher_is_better}

    metric_list = [
        metric(called, "graded_mean"),
        metric(f"{called}_passed", "graded_mean"),
        metric(f"{called}_ungraded", "total", higher_is_better=False),
        metric(f"{called}_cost", "total", higher_is_better=False),
        *(metric(f"{called}.{id}", "graded_mean") for id in criteria),
        metric(f"{called}_result", "rubric_digest", higher_is_better=None),
    ]
    return {"process_results": process_results, "metric_list": metric_list}
