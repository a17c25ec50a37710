"""
Judges that are functions of the candidate and a criterion: `judge_function`.

A function from messages to text is a judge as it is; this adapter is for one that decides by itself, without a prompt.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from attrs import define

from rubric.errors import DefinitionError, ModelError
from rubric.internals.fields import plain_number, refuse
from rubric.internals.guided import guided
from rubric.internals.secrets import describe
from rubric.models.threads import in_thread
from rubric.values.answers import Choices, Levels, Unit, YesNo
from rubric.values.candidates import Candidate
from rubric.values.criteria import Criterion
from rubric.values.judges import Judge, is_async
from rubric.values.requests import Ask, Failure, Reply, Usage

Decision = bool | float | str | tuple[bool | float | str, str]
"""What a function decides: a bool, a score in 0..1, a number of the levels, a label; or a pair of that and a reason."""

CriterionFunction = Callable[[Candidate, Criterion], Decision | Awaitable[Decision]]


@guided
def judge_function(function: CriterionFunction, /, *, threads: int = 1, identity: str | None = None) -> Judge:
    """
    Return the judge that decides each criterion by `function(candidate, criterion)`.

    The function returns what the criterion asks for: True or False; a score in 0..1; for levels a whole number of
    them; for choices a label. A pair adds the reason: `(True, "it thanks the customer")`. Anything else, and an error,
    leaves the criterion unjudged: a score such as 0.5 for yes or no, or 1.0 for levels from 1, which could be the best.
    A question of a decision tree is scored in 0..1. Quotes cannot be given, so the rubric must not require evidence.

    Args:
        function: Sync or async. The candidate is whole, with its `input` and all.
        threads: How many calls of a sync function may run side by side.
        identity: Which function it is, for a store, as of `Judge`.

    Raises:
        DefinitionError: It is not a function of two arguments.

    Example:
        >>> from rubric import Rubric, grade, judge_function
        >>> def by_length(candidate, criterion):
        ...     return len(candidate.output) < 20, "short enough"
        >>> grade("All done.", Rubric(["Is short"]), judge_function(by_length)).passed
        True
    """
    if not callable(function) or isinstance(function, type):
        raise refuse("function", function, "a function of the candidate and a criterion")
    try:
        first, second = [*inspect.signature(function).bind(None, None).arguments, "candidate"][:2]  # or `*args` alone
    except TypeError:
        cure = "write def decide(candidate, criterion): ...; a function from messages to text is a judge as it is"
        raise DefinitionError("function", f"it takes other arguments than two; {cure}") from None
    if first in ("criterion", "rubric", "question"):
        name = getattr(function, "__name__", "")
        name, told = name if name.isidentifier() else "function", "" if second == "candidate" else ".output"
        cure = f"write judge_function(lambda candidate, criterion: {name}(criterion, candidate{told}))"
        raise DefinitionError(
            "function", f"its first argument is called {first!r}, and the candidate comes first; {cure}"
        )
    return Judge(FunctionJudge(function, threads), sealed=False, identity=identity)


@define(eq=False, repr=False)
class FunctionJudge:
    """The model behind `judge_function`: it decides the criteria of an ask, and replies in the form that is asked."""

    function: CriterionFunction
    threads: int = 1

    def __repr__(self) -> str:
        return f"judge_function({self.__name__})"

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the decisions of the function; raise `ModelError` where it raises."""
        if quoted := sorted(
            ask.quoted
        ):  # without quotes every verdict would count as unmet: a score that no judge gave
            why = f"a function gives no quotes, and {quoted[0]!r} requires evidence; give it evidence=False"
            raise ModelError(Failure("bad_request", why, criterion=quoted[0]))
        if not ask.criteria:
            why = (
                "a judge_function decides criteria and cannot write; give a model, or a function from messages to text"
            )
            raise ModelError(Failure("bad_request", why))
        candidate = ask.about or Candidate(ask.candidate)
        verdicts = []
        for criterion in ask.criteria:
            said = await self._decide(candidate, criterion)
            if why := _ambiguous(criterion, said):
                raise ModelError(Failure("bad_response", why, criterion=criterion.id))
            verdicts.append(_verdict(criterion, said, ask))
        body = {"verdicts": verdicts} if ask.many else verdicts[0]
        return Reply(json.dumps(body, ensure_ascii=False, default=str), usage=Usage(calls=1, cost=0.0))

    async def _decide(self, candidate: Candidate, criterion: Criterion) -> Any:
        try:
            if is_async(self.function):
                return await cast("Awaitable[Decision]", self.function(candidate, criterion))
            return await in_thread((id(self),), lambda: self.function(candidate, criterion), self.threads)
        except Exception as error:
            raise ModelError(Failure("exception", describe(error), criterion=criterion.id)) from error


def _ambiguous(criterion: Criterion, said: Any) -> str:
    """Return why *said* is not a verdict, or could mean two things for *criterion*, with what to return; else ''."""
    if isinstance(said, Mapping):
        return (
            "got a dict; return the verdict, such as True, or a pair with the reason: (True, 'it thanks the customer')"
        )
    value = plain_number(said[0] if isinstance(said, tuple) and len(said) == 2 else said)  # noqa: PLR2004 - a pair
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    match criterion.answer:
        case YesNo() if value not in (0, 1):
            cure = "return True or False, or have it scored, by scores(text) in place of expects(text)"
            return f"got {value:g} for a yes or no; {cure}"
        case Levels(low=low, high=high) if isinstance(value, float) and 0 <= value <= 1 and (value or low):
            best = f"the share {value:g} of {low} to {high}, or a level"
            return f"got {value!r}, which could be {best}; return a whole number of the levels: {high} for the best"
    return ""


def _verdict(criterion: Criterion, said: Any, ask: Ask) -> dict[str, Any]:
    """Return *said* as one verdict of a reply; what it cannot be is left to the reader of replies, which refuses it."""
    value, reason = said if isinstance(said, tuple) and len(said) == 2 else (said, "")  # noqa: PLR2004 - a pair
    value, key = plain_number(value), "verdict"
    is_score = isinstance(value, int | float) and not isinstance(value, bool)
    match criterion.answer:
        case YesNo() if is_score and value in (0, 1):
            value = bool(value)
        case Unit():
            key, value = "score", float(value) if isinstance(value, bool) else value
        case Levels(low=low, high=high):
            key, value = "score", (high if value else low) if isinstance(value, bool) else value
        case Choices():
            key = "choice"
    verdict = {"reason": str(reason), "verdict" if ask.many else key: value}
    verdict |= {"id": criterion.id} if ask.many else {}
    verdict |= {"evidence": []} if criterion.id in ask.quoted else {}
    return verdict
