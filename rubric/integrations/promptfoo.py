"""
A Python assertion for promptfoo: `get_assert`, or one of your own by `rubric_assert(rubric)`.

promptfoo has no "no score". An ungraded output fails with the score 0 and a reason that begins with `UNGRADED:`, and
has no named score. So the named score of the rubric has the mean of the graded outputs. `extension_hook` makes one
error of a rubric file that cannot be loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from rubric import Candidate, DefinitionError, LoadError, NoJudgeError, Rubric
from rubric.embed import Grader, JudgeLike, Mapped, fields
from rubric.integrations.mapping import GradeOptions, rubric_of
from rubric.runs.logs import promptfoo_candidate

Assertion = Callable[[Any, Mapping[str, Any]], dict[str, Any]]
_CONFIG = ("rubric", "judge", "reference", "store")
_HELD_BY_PROMPTFOO = {
    "budget": "`promptfoo eval --filter-first-n 10` grades ten tests",
    "limits": "`promptfoo eval -j 1 --delay 500` waits half a second between tests",
    "concurrency": "`promptfoo eval -j 1` runs one test at a time",
}
"""Options that would hold for one assertion, since each is a process of its own; and what promptfoo has instead."""


def default_candidate(output: Any, context: Mapping[str, Any], reference: str | None = None) -> Candidate:
    """
    Return the output as the candidate, with the prompt as its input and the variables of the test.

    Of a prompt that is a chat the last message is the input, and those before it are the conversation. An output that
    is a chat, or a list of tool calls, is read as such. *reference* is the variable with the reference answer.
    """
    variables = context.get("vars") or {}
    if reference is not None and reference not in variables:
        raise DefinitionError("reference", f"there is no variable {reference!r}; there are: {', '.join(variables)}")
    return promptfoo_candidate(output, context.get("prompt"), variables, reference)


def rubric_assert(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    reference: str | None = None,
    candidate: Callable[[Any, Mapping[str, Any]], Candidate] | None = None,
    **options: Unpack[GradeOptions],
) -> Assertion:
    """
    Return a function for `type: python` assertions: name it `get_assert`.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        reference: The variable of the test with the reference answer; None: there is none.
        candidate: Makes the candidate of the output and the context of the assertion.
        options: Of what `evaluate` takes besides, `store` and `keep`; the others cannot span promptfoo's processes.
    """
    for name in _HELD_BY_PROMPTFOO.keys() & options.keys():
        cure = f"leave it out; {_HELD_BY_PROMPTFOO[name]}"
        raise DefinitionError(name, f"would hold for one assertion, since promptfoo starts a process for each; {cure}")
    if candidate is not None and reference is not None:
        raise DefinitionError("reference", "has no effect, since candidate= makes the candidate; leave one of them out")
    grader = Grader(rubric, judge, options, candidate or partial(default_candidate, reference=reference))

    def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return _result(grader, grader.evaluate(output, context), context)
        except NoJudgeError as problem:  # promptfoo shows the last line of what is raised, without the cure
            return _ungraded_result(str(problem), context)

    return get_assert


def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """
    Grade *output* as the assertion's `config` says: `rubric`, and if wanted `judge`, `reference`, `store`.

    Raises:
        DefinitionError: The config has no rubric, or another key.
    """
    config = context.get("config") or {}
    if unknown := [name for name in config if name not in _CONFIG]:
        raise DefinitionError(f"config.{unknown[0]}", f"is not a key of it{fields.suggest(unknown[0], _CONFIG)}")
    if "rubric" not in config:
        raise DefinitionError("config.rubric", "is not there; give the path of a rubric file, or a text")
    reference, store = config.get("reference"), config.get("store")
    try:
        assertion = rubric_assert(config["rubric"], config.get("judge"), reference=reference, store=store)
    except LoadError as problem:  # promptfoo would show the last line alone
        return _ungraded_result(str(problem), context)
    return assertion(output, context)


def extension_hook(hook: str, context: Mapping[str, Any]) -> None:
    """
    Load the rubrics of all assertions before promptfoo begins, so that a broken file is one error.

    promptfoo counts whatever an assertion raises as a failure of each test. With `extensions:
    [file://grade.py:extension_hook]` it calls this first, and an error here ends the evaluation.

    Raises:
        RubricError: A rubric cannot be loaded.
    """
    suite = context.get("suite") or {}
    for test in (suite.get("defaultTest"), *(suite.get("tests") or ())) if hook == "beforeAll" else ():
        for each in (test.get("assert") or ()) if isinstance(test, Mapping) else ():
            if isinstance(each, Mapping) and each.get("type") == "python" and "rubric" in (each.get("config") or {}):
                rubric_of(each["config"]["rubric"])


def _result(grader: Grader, result: Mapped, context: Mapping[str, Any]) -> dict[str, Any]:
    given = {
        "tokensUsed": {
            "total": result.prompt_tokens + result.completion_tokens,
            "prompt": result.prompt_tokens,
            "completion": result.completion_tokens,
        },
        "metadata": {**result.metadata, "verdict": result.label, "cost": result.cost},
    }
    if result.score is None:
        return {**_ungraded_result(result.reason, context), **given}
    name = grader.name
    scores = {name: result.score, **{f"{name}/{key}": share for key, share in result.parts.items()}}
    return {"pass": result.passed, "score": result.score, "reason": result.reason, "namedScores": scores, **given}


def _ungraded_result(reason: str, context: Mapping[str, Any]) -> dict[str, Any]:
    asserted = (context.get("test") or {}).get("assert") or ()
    if any(isinstance(each, Mapping) and each.get("type") == "not-python" for each in asserted):
        message = "not-python would make a pass of what is ungraded; give a rubric with negate=True"
        raise DefinitionError("assert", f"{message} ({reason})")
    return {"pass": False, "score": 0, "reason": f"UNGRADED: {reason}"}
