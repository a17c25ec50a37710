"""
A metric for DSPy: `rubric_metric(rubric)`.

An ungraded example raises, which DSPy logs and counts with its `failure_score`, 0 as a rule: read `metric.mean`, which
is that of the graded ones, and `metric.ungraded`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rubric import Candidate, DefinitionError, Grade, Rubric, ToolCall, Ungraded, UngradedError, evaluate
from rubric.driving import Usage
from rubric.embed import Grader, JudgeLike, checked_candidate
from rubric.integrations.mapping import beside, importing, mapped, output_text

with importing("dspy", "dspy"):
    from dspy.primitives import Example, Prediction


def default_candidate(gold: Example, prediction: Prediction, output: str | None = None) -> Candidate:
    """
    Return a field of *prediction* as the candidate, with the inputs of *gold* and its label of the same name.

    Without a label of that name all labels are the reference. The tool calls of `dspy.ReAct` are kept.
    """
    fields = dict(prediction.items())
    output = output or _only_output(fields)
    if output not in fields:
        known = ", ".join(sorted(fields)) or "none"
        raise DefinitionError("output", f"the prediction has no field {output!r}; its fields are: {known}")
    labels = dict(gold.labels().items())
    return Candidate(
        output_text(fields[output]),
        input=beside(dict(gold.inputs().items())),
        reference=beside(labels.get(output, labels or None)),
        tool_calls=_tool_calls(fields.get("trajectory")),
        remarks=[_THOUGHTS] if {"reasoning", "trajectory"} & fields.keys() else (),
    )


_THOUGHTS = "left out of the prediction, and not shown to the judge: thoughts"


def _only_output(fields: Mapping[str, Any]) -> str:
    names = [name for name in fields if name not in ("reasoning", "trajectory")]
    if len(names) == 1:
        return names[0]
    found = ", ".join(names) or "none"
    message = f"the prediction has {len(names)} output fields ({found}); name one: rubric_metric(..., output='answer')"
    raise DefinitionError("output", message)


def _tool_calls(trajectory: Any) -> list[ToolCall]:
    """Return the calls of a trajectory as `dspy.ReAct` numbers them, without the one that ends it."""
    calls: list[ToolCall] = []
    if not isinstance(trajectory, Mapping):
        return calls
    while (name := trajectory.get(f"tool_name_{len(calls)}")) not in (None, "finish"):
        number = len(calls)
        given, came = trajectory.get(f"tool_args_{number}"), beside(trajectory.get(f"observation_{number}"))
        ended: dict[str, Any] = {"error" if came.startswith("Execution error in ") else "result": came}
        calls.append(ToolCall(str(name), arguments=given if isinstance(given, Mapping) else {}, **ended))
    return calls


class RubricMetric:
    """
    A metric for `dspy.Evaluate` and for DSPy's optimizers, made by `rubric_metric`.

    A metric remembers what it graded until `reset`, so that one can be read after each evaluation.
    """

    def __init__(self, grader: Grader, output: str | None, candidate: Callable[..., Candidate]) -> None:
        self._grader, self._output, self._candidate = grader, output, candidate
        self.reset()

    def reset(self) -> None:
        """Forget earlier results."""
        self.graded: list[Grade] = []
        self.ungraded: list[Ungraded] = []
        self._last: dict[Candidate, Grade] = {}

    @property
    def mean(self) -> float | None:
        """Return the mean score of the graded examples, in 0..1; None if there are none."""
        return sum(each.score for each in self.graded) / len(self.graded) if self.graded else None

    @property
    def cost(self) -> float | None:
        """Return the cost of all results in US dollars; None if one is unknown."""
        return Usage.total(each.usage for each in (*self.graded, *self.ungraded)).cost

    def __call__(
        self, gold: Example, pred: Prediction, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
    ) -> Any:
        """
        Return a `dspy.Prediction` with `score` and `feedback`, or whether it passed if an optimizer gives a *trace*.

        Raises:
            UngradedError: If the prediction could not be graded.
        """
        del pred_trace
        made = checked_candidate(self._candidate(gold, pred, self._output), "candidate")
        # GEPA asks again, by predictor, for feedback on a prediction that it has had scored: that is not a new grade.
        result = self._last.get(made) if pred_name is not None else None
        if result is None:
            found = evaluate(made, self._grader.rubric, self._grader.judge, **self._grader.options)
            if isinstance(found, Ungraded):
                self.ungraded.append(found)
                raise UngradedError(found)
            self.graded.append(found)
            result = self._last[made] = found
        if trace is not None and pred_name is None:
            return result.passed
        said = mapped(result)
        return Prediction(
            score=said.score,
            feedback=said.reason,
            verdict=said.label,
            passed=said.passed,
            cost=said.cost,
            **said.metadata,
        )


def rubric_metric(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    output: str | None = None,
    candidate: Callable[..., Candidate] = default_candidate,
    **options: Any,
) -> RubricMetric:
    """
    Return a metric for `dspy.Evaluate`, GEPA, MIPROv2, BootstrapFewShot and the other optimizers.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge, the name of a model, or a `dspy.LM`; None takes the model that the environment has a key for.
        output: The field of the prediction that is graded; None takes the only one besides `reasoning`.
        candidate: Makes the candidate of the example, the prediction and *output*.
        options: What `evaluate` takes besides: `store`, `limits`, `budget`.
    """
    return RubricMetric(Grader(rubric, judge, options), output, candidate)
