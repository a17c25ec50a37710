"""
A LangChain `Runnable` that grades: `rubric_runnable(rubric)`.

Its output is a mapping of plain data; that of an ungraded input has the score None and the verdict `ungraded`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rubric import Candidate, DefinitionError, Rubric
from rubric.embed import Grader, JudgeLike, Mapped, is_chat, source_of
from rubric.integrations.mapping import importing

with importing("langchain", "langchain-core"):
    from langchain_core.prompt_values import PromptValue
    from langchain_core.runnables import Runnable, RunnableLambda


def default_candidate(value: Any, columns: Mapping[str, str | Sequence[str] | None] | None = None) -> Candidate:
    """
    Return *value* as the candidate.

    A text is the output; a message too, and of a chat (a list of messages, a prompt value, a state with `messages`) the
    last message; tool calls are kept. A mapping has the fields of a candidate under their names, or under those that
    *columns* maps them to, and the output may be a message or a chat there.
    """
    if isinstance(value, PromptValue):
        value = value.to_messages()
    if is_chat(value):
        value = {"messages": value}
    return source_of([], columns).candidate(value)


def rubric_runnable(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    candidate: Callable[[Any], Candidate] | None = None,
    **options: Any,
) -> Runnable[Any, dict[str, Any]]:
    """
    Return a runnable that grades its input, with `invoke`, `ainvoke`, `batch`, `abatch`, `stream` and a config.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        columns: The key of each field of a candidate that has another name in the input; None for a key to ignore.
        candidate: Makes the candidate of the input.
        options: What `grade` takes besides: `store`, `limits`, `budget`.
    """
    if candidate is not None and columns is not None:
        raise DefinitionError("columns", "have no effect, since candidate= makes the candidate; leave one of them out")

    grader = Grader(rubric, judge, options, candidate or partial(default_candidate, columns=columns))

    def grade(value: Any) -> dict[str, Any]:
        return _output(grader.evaluate(value))

    async def agrade(value: Any) -> dict[str, Any]:
        return _output(await grader.aevaluate(value))

    return RunnableLambda(grade, agrade, name=grader.name)


def _output(result: Mapped) -> dict[str, Any]:
    return {
        "score": result.score,
        "passed": result.passed,
        "verdict": result.label,
        "reason": result.reason,
        "criteria": dict(result.parts),
        "cost": result.cost,
        "prompt_tokens": result.prompt_tokens,
        "completion_tokens": result.completion_tokens,
        **result.metadata,
    }
