"""
A scorer for Inspect: `rubric_scorer(rubric)`.

A judge with a name is a model of Inspect's, asked with its `generate`, so that Inspect's cache, limits, retries, roles
and logs apply, under asyncio and under trio. Other judges (a function, a client, `via="http"`), and all judges with
`store=`, `budget=` or `limits=`, are asked through the library's own pipeline, which needs asyncio. An ungraded sample
is `Score.unscored`, which Inspect's metrics leave out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Unpack

from attrs import evolve

from rubric import Candidate, Cascade, DefinitionError, Judge, Jury, ModelError, Panel, Rubric, aevaluate, dumps
from rubric import model as held
from rubric.driving import Ask, Failure, Reply, adrive, flow
from rubric.embed import Grader, JudgeLike, candidate_of_chat, checked_candidate
from rubric.formats import DumpError
from rubric.integrations.mapping import GradeOptions, importing, mapped
from rubric.values import AnyJudge

with importing("inspect_ai", "inspect-ai>=0.3.261"):
    from inspect_ai.model import Model, get_model, model_roles
    from inspect_ai.scorer import Score, Scorer, ScoreReason, Target, mean, scorer, stderr  # noqa: F401 - since 0.3.261
    from inspect_ai.solver import TaskState
    from inspect_ai.util import collect

GRADER = "grader"
"""The role whose model judges, unless another is named."""


def default_candidate(state: TaskState, target: Target) -> Candidate:
    """Return the completion as the candidate, with input, target, conversation and tool calls of the sample."""
    said = {"output": state.output.completion, "input": state.input_text, "reference": target.text}
    return candidate_of_chat(state.messages, **said)


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator]  # Inspect may not be installed
def rubric_scorer(
    rubric: Rubric | str | Path,
    *,
    model: str | Model | None = None,
    model_role: str = GRADER,
    judge: JudgeLike | None = None,
    candidate: Callable[[TaskState, Target], Candidate] = default_candidate,
    **options: Unpack[GradeOptions],
) -> Scorer:
    """
    Score samples against a rubric.

    The value is the score in 0..1, the explanation a line a criterion, and the metadata has the whole result under
    `rubric`, and the rubric as YAML.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        model: The model that judges. None takes the model of *model_role*, or the evaluated model where that role has
            none; a role of several models is a panel that decides by their mean.
        model_role: The role whose model judges.
        judge: The judge, instead of *model*: a name, or with settings `Judge("grader", reasoning="none")`, a `Jury`, a
            `Panel`. The name `grader`, or that of another role, means its model; another name is a model of Inspect's.
            Judges without a name, and those with `via="http"` or an address, are asked as anywhere else.
        candidate: Makes the candidate of a sample.
        options: What `evaluate` takes besides: `store`, `budget`, `limits`.

    Raises:
        DefinitionError: An argument that cannot be graded with.
    """
    grader = Grader(rubric, judge, options)
    if judge is not None and model is not None:
        raise DefinitionError("model", "has no effect beside judge=; leave one of them out")
    if model_role != GRADER and (judge is not None or model is not None):
        other = "model" if judge is None else "judge"
        raise DefinitionError("model_role", f"has no effect beside {other}=; leave one of them out")
    given, text = grader.rubric, _as_yaml(grader.rubric)

    async def score(state: TaskState, target: Target) -> Score:
        by = _judge(grader.judge, model, model_role)
        made = checked_candidate(candidate(state, target), "candidate")
        if options or not all(getattr(each.model, "kind", "") == "inspect" for each in by.single_judges()):
            result = mapped(await aevaluate(made, given, by, **options))
        else:
            result = mapped(await adrive(flow(made, given, by), _send, together=_together))
        metadata = {**result.metadata, "rubric_yaml": text}
        said = {"answer": made.output, "explanation": result.reason, "metadata": metadata}
        if result.score is None:
            return Score.unscored(reason="grader_failed", **said)
        return Score(value=result.score, **said)

    return score


def _as_yaml(rubric: Rubric) -> str:
    try:
        return dumps(rubric)
    except DumpError as problem:  # it holds a function, which no file can
        return f"# {problem}"


def _judge(judge: AnyJudge | None, model: str | Model | None, role: str) -> AnyJudge:
    if judge is not None:
        return _with_models(judge)
    models = [get_model(model)] if model is not None else _of_role(role)
    judges = [Judge(held(each)) for each in models]
    return judges[0] if len(judges) == 1 else Panel(judges)


def _of_role(role: str) -> list[Model]:
    found = model_roles().get(role)
    return found if isinstance(found, list) else [get_model(role=role)]


def _with_models(judge: AnyJudge) -> AnyJudge:
    """Return *judge* with Inspect's models in place of names."""
    match judge:
        case Judge(model=str(name)) if name != "offline" and judge.via != "http" and "api_base" not in judge.params:
            models = _of_role(name) if name == GRADER or name in model_roles() else [get_model(name)]
            several = [evolve(judge, model=held(each)) for each in models]
            return several[0] if len(several) == 1 else Panel(several)
        case Judge():
            return judge
        case Jury():
            return evolve(judge, judge=_with_models(judge.judge))
        case Panel():
            return evolve(judge, judges=[_with_models(each) for each in judge.judges])
        case Cascade():
            return evolve(judge, first=_with_models(judge.first), then=_with_models(judge.then))


async def _together(send: Callable[[Ask], Awaitable[Reply | Failure]], batch: Sequence[Ask]) -> list[Reply | Failure]:
    outcomes: list[Reply | Failure] = await collect(*(send(ask) for ask in batch))
    return outcomes


async def _send(ask: Ask) -> Reply | Failure:
    """Return the reply of Inspect's model to *ask*; Inspect sees to retries, so a failure is final."""
    model: Any = ask.judge.model
    try:
        return await evolve(model, own_retries=True).answer(ask)  # type: ignore[no-any-return]
    except ModelError as error:
        cause = error.__cause__
        if cause is not None and type(cause).__module__.startswith("inspect_ai"):  # a limit, which ends the sample
            raise cause from None
        return error.failure
