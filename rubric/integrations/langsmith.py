"""
Evaluators for LangSmith and openevals: `rubric_evaluator(rubric)`, `arubric_evaluator(rubric)`.

They return the feedback on the rubric and on each criterion. An ungraded example has the score None and the label
`ungraded`, which LangSmith's averages leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Unpack

from rubric import Candidate, DefinitionError, Rubric
from rubric.embed import Grader, JudgeLike, Mapped
from rubric.integrations import mapping
from rubric.integrations.mapping import GradeOptions
from rubric.runs import is_run

Feedback = list[dict[str, Any]]


def default_candidate(inputs: Any, outputs: Any, reference_outputs: Any) -> Candidate:
    """Return *outputs* as the candidate; of several keys one may be meant, or all, so that none is guessed."""
    if isinstance(outputs, Mapping) and len(outputs) > 1 and "messages" not in outputs and not is_run(outputs):
        of = "candidate=lambda inputs, outputs, reference: default_candidate(inputs, "
        one, whole = f"{of}outputs[{next(iter(outputs))!r}], reference)", f"{of}json.dumps(outputs), reference)"
        source = "import json; from rubric.integrations.langsmith import default_candidate"
        ways = f"to grade one, give {one}; to grade all as JSON, give {whole}; both need: {source}"
        raise DefinitionError("outputs", f"there are {', '.join(map(repr, outputs))}; {ways}")
    return mapping.default_candidate(inputs, outputs, reference_outputs)


def rubric_evaluator(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    key: str | None = None,
    candidate: Callable[[Any, Any, Any], Candidate] = default_candidate,
    **options: Unpack[GradeOptions],
) -> Callable[..., Feedback]:
    """
    Return an evaluator for `langsmith.evaluate`, with the signature that openevals' evaluators have.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        key: The name of the feedback; None takes the rubric's name, or `rubric`. That on a criterion is `<key>.<id>`.
        candidate: Makes the candidate of inputs, outputs and reference outputs.
        options: What `evaluate` takes besides: `store`, `budget`, `limits`.
    """
    grader = Grader(rubric, judge, options, candidate)
    called = key or grader.name

    def evaluate(*, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None, **_: Any) -> Feedback:
        return _feedback(called, grader.evaluate(inputs, outputs, reference_outputs))

    evaluate.__name__ = called  # by which LangSmith's traces and errors tell rubrics apart
    return evaluate


def arubric_evaluator(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    key: str | None = None,
    candidate: Callable[[Any, Any, Any], Candidate] = default_candidate,
    **options: Unpack[GradeOptions],
) -> Callable[..., Coroutine[Any, Any, Feedback]]:
    """Return an evaluator like that of `rubric_evaluator` for `langsmith.aevaluate`."""
    grader = Grader(rubric, judge, options, candidate)
    called = key or grader.name

    async def evaluate(*, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None, **_: Any) -> Feedback:
        return _feedback(called, await grader.aevaluate(inputs, outputs, reference_outputs))

    evaluate.__name__ = called  # by which LangSmith's traces and errors tell rubrics apart
    return evaluate


def _feedback(key: str, result: Mapped) -> Feedback:
    whole = {
        "key": key,
        "score": result.score,
        "value": result.label,
        "comment": result.reason,
        "metadata": {**result.metadata, "passed": result.passed, "cost": result.cost},
    }
    return [whole, *({"key": f"{key}.{id}", "score": share} for id, share in result.parts.items())]
