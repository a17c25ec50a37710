"""
What every adapter reads of a result, and how it makes candidates of a harness's samples.

docs/integrations/index.md has what becomes of each part of a result. An `Ungraded` is never 0, and never False.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from attrs import field, frozen
from attrs.converters import optional

from rubric import Budget, Candidate, DefinitionError, Grade, Rubric, Ungraded, aevaluate, evaluate
from rubric.embed import Limiter, Options, StoreLike, as_rubric, candidate_of, is_chat
from rubric.runs import is_run
from rubric.values import AnyJudge, as_judge
from rubric.values.chats import text_of

UNGRADED = "ungraded"
"""The label of a result without a verdict."""


@frozen
class Mapped:
    """
    A result in the terms that harnesses share.

    Args:
        score: In 0..1; None where it is ungraded.
        passed: None where it is ungraded, even if the verdict is certain: harnesses count what is True or False.
        label: `pass`, `borderline`, `fail` or `ungraded`.
        reason: A line a criterion; never empty.
        parts: The contribution of each criterion that was judged, by id, in 0..1.
        metadata: `{"rubric": result.to_dict()}`, as JSON has it.
        cost: In US dollars; None where it is unknown.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens received.
    """

    score: float | None
    passed: bool | None
    label: str
    reason: str
    parts: Mapping[str, float]
    metadata: dict[str, Any]
    cost: float | None
    prompt_tokens: int
    completion_tokens: int

    @property
    def graded(self) -> bool:
        """True if there is a score."""
        return self.score is not None


def mapped(result: Grade | Ungraded) -> Mapped:
    """Return *result* in the terms that harnesses share."""
    grade = result if isinstance(result, Grade) else None
    return Mapped(
        score=None if grade is None else grade.score,
        passed=None if grade is None else grade.passed,
        label=UNGRADED if grade is None else str(grade.verdict),
        reason=result.explain(),
        parts={} if grade is None else dict(result.contributions),
        metadata={"rubric": json.loads(json.dumps(result.to_dict(), default=str))},
        cost=result.usage.cost,
        prompt_tokens=result.usage.prompt_tokens,
        completion_tokens=result.usage.completion_tokens,
    )


def rubric_of(value: Rubric | str | Path) -> Rubric:
    """
    Return *value* as a rubric: a value, a free-form text, or the path of a file.

    In a configuration a path is a text as well, so a text that ends like a rubric file and names one is loaded.
    """
    if isinstance(value, str) and "\n" not in value and value.endswith((".yaml", ".yml", ".json")):
        return as_rubric(Path(value))
    return as_rubric(value)


class GradeOptions(TypedDict, total=False):
    """The options that every adapter takes besides its own; `evaluate` says what they mean."""

    store: StoreLike | None
    budget: Budget | None
    limits: Limiter | None
    concurrency: int
    keep: bool | None


def checked_options(options: Mapping[str, Any], judge: AnyJudge | None = None) -> Mapping[str, Any]:
    """Return *options* if `evaluate` takes them for *judge*; a wrong one is an error where the adapter is made."""
    budget = Options.of(options).budget
    if budget is not None and judge is not None:
        budget.check(judge)
    return options


@frozen
class Grader:
    """
    A rubric and a judge, as adapters are given them.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the default judge when it is first needed.
        options: What `evaluate` takes besides: `store`, `limits`, `budget`.
        candidate: Makes the candidate of a sample, which is all that the harness has at hand; by default it is one.
    """

    rubric: Rubric = field(converter=rubric_of)
    judge: AnyJudge | None = field(default=None, converter=optional(as_judge))
    options: Mapping[str, Any] = field(factory=dict)
    candidate: Callable[..., Candidate] = Candidate.of

    def __attrs_post_init__(self) -> None:
        checked_options(self.options, self.judge)

    @property
    def name(self) -> str:
        """The rubric's name, or `rubric`."""
        return self.rubric.name or "rubric"

    def evaluate(self, *sample: Any) -> Mapped:
        """Return the mapped result for the candidate of *sample*."""
        made = checked_candidate(self.candidate(*sample), "candidate")
        return mapped(evaluate(made, self.rubric, self.judge, **self.options))

    async def aevaluate(self, *sample: Any) -> Mapped:
        """Return the mapped result for the candidate of *sample*, without holding up the event loop."""
        made = checked_candidate(self.candidate(*sample), "candidate")
        return mapped(await aevaluate(made, self.rubric, self.judge, **self.options))


# -- candidates -------------------------------------------------------------------------------------------


def default_candidate(inputs: Any, output: Any, reference: Any) -> Candidate:
    """
    Return *output* as the candidate, with inputs and reference.

    An output with `messages` is a chat: its last message is the candidate, those before it the conversation, and its
    tool calls are kept. So are those of an output that is a run in another format, such as a response of OpenAI's.
    """
    asked, expected = beside(inputs), beside(reference)
    said: Any = output.get("messages") if isinstance(output, Mapping) else output
    if is_chat(said) or (not isinstance(output, str) and is_run(output)):
        return candidate_of(output, asked, reference=expected)
    return Candidate(output_text(output), input=asked, reference=expected)


def output_text(output: Any) -> str:
    """
    Return *output*, which a harness's task returned, as the text to grade.

    Raises:
        DefinitionError: It is None, or a mapping without a value, which harnesses hand on for a task that failed
            (LangSmith: `{"output": None}`). An empty text is an answer, and is graded; these are none, and a score of
            0 would be the judge's word for a crash.
    """
    if output is None or (isinstance(output, Mapping) and all(each is None for each in output.values())):
        message = f"there is none ({output!r}), as of a task that failed; nothing is graded. An empty answer is ''"
        raise DefinitionError("output", message)
    return text_of(output)


def beside(value: Any) -> str:
    """Return inputs or a reference as a text; '' for None and for a mapping without keys."""
    return "" if isinstance(value, Mapping) and not value else text_of(value)


def checked_candidate(value: Any, made_by: str) -> Candidate:
    """Return *value*, which the user's function *made_by* returned, as a candidate."""
    if isinstance(value, Candidate | str):
        return Candidate.of(value)
    message = f"{made_by} returned {type(value).__name__}; expected a Candidate, or the text of one"
    raise DefinitionError("candidate", message)


@contextmanager
def importing(package: str, install: str) -> Iterator[None]:
    """Say what an adapter needs if what is imported in it is not installed, or too old."""
    try:
        yield
    except ImportError as error:
        name = install.partition(">")[0]
        raise ImportError(f"rubric.integrations.{package} needs {install}: pip install -U {name}") from error
