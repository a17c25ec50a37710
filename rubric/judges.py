"""Who judges: one model, the same judge several times, or several different judges."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, runtime_checkable

from attrs import evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.mappings import FrozenMap
from rubric.showing import Shown, cell, table
from rubric.validating import as_map, count, flag, number, one_of, optional, refuse, string

if TYPE_CHECKING:
    from attrs import Attribute

    from rubric.exchanges import Ask, Reply

__all__ = ["Bench", "Judge", "Jury", "Model", "Panel", "as_judge"]


@runtime_checkable
class Model(Protocol):
    """What answers an `Ask`: LiteLLM, a direct client, a script. It raises `ModelError` where it cannot."""

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the reply to *ask*: one attempt, without retries."""
        ...


Function = Callable[[list[dict[str, Any]]], str | Awaitable[str]]
"""A judge of one's own: from chat messages (`{"role": ..., "content": ...}`) to the text of the reply."""

_OWNED = {
    "model": "the judge's model",
    "messages": "the prompt",
    "temperature": "Judge(temperature=...)",
    "max_tokens": "Judge(max_tokens=...)",
    "max_completion_tokens": "Judge(max_tokens=...)",
    "seed": "Judge(seed=...)",
    "timeout": "Judge(timeout=...)",
    "max_retries": "Judge(retries=...)",
    "num_retries": "Judge(retries=...)",
    "response_format": "the criterion's answer type",
    "stream": "nothing: replies are read whole",
    "n": "Jury(judge, size)",
}


def _model(_: Any, attribute: Attribute[Any], value: object) -> None:
    if isinstance(value, str):
        string(_, attribute, value)
        if not value.strip() or value != value.strip():
            raise refuse(attribute.name, value, "the name of a model, such as 'openai/gpt-5.6' or 'offline'")
    elif not callable(value) and not isinstance(value, Model):
        raise refuse(attribute.name, value, "a LiteLLM model name, 'offline', or a function from messages to text")


def _per_call(_: Any, attribute: Attribute[Any], value: object) -> None:
    if value != "all":
        count(1)(_, attribute, value)


def _as_params(value: Mapping[str, Any]) -> FrozenMap:
    return as_map("params", value)


def _params(_: Any, attribute: Attribute[Any], value: Mapping[str, Any]) -> None:
    for name in value:
        if name in _OWNED:
            raise DefinitionError(f"{attribute.name}.{name}", f"this is set by {_OWNED[name]}")


_WRITTEN_PRECISION = 0.005
_SECRET = re.compile("key|token|secret|password|credential|headers", re.IGNORECASE)


@frozen(repr=False)
class Judge(Shown):
    """
    One model, and how it is asked.

    Args:
        model: A LiteLLM name (`"openai/gpt-5.6"`), `"offline"`, or a function, sync or async, from chat
            messages to text. A sync function is called from one thread, one call after another.
        temperature: As the vendor reads it; None sends none.
        max_tokens: The longest reply, thinking included; a reply that is cut there is asked again with twice as many.
        seed: For vendors that take one.
        timeout: Seconds for one attempt, from sending to the last byte.
        retries: How many further attempts a call gets that failed in passing: rate limit, overload, timeout,
            broken connection.
        per_call: How many criteria one call judges: 1, a number, or `"all"`. Trees are always walked alone.
        prompt: A template of your own; it goes before the rubric's.
        repairs: How many times an unreadable reply is asked again, with the complaint.
        sealed: Whether a verdict must carry the nonce of its ask. None: yes for a model name with our own prompt.
        reasoning: Whether the judge gives its reason `before` its verdict, `after` it, or not at all (`none`).
        params: Further parameters for the vendor, as LiteLLM names them.

    Raises:
        DefinitionError: A value that no judge can have.
    """

    _positional = ("model",)

    model: str | Function | Model = field(validator=_model)
    temperature: float | None = field(default=None, kw_only=True, validator=optional(number(0, 2)))
    max_tokens: int = field(default=4096, kw_only=True, validator=count(1))
    seed: int | None = field(default=None, kw_only=True, validator=optional(count(-(2**63))))
    timeout: float = field(default=60.0, kw_only=True, validator=number(0, 86_400, above=True))
    retries: int = field(default=2, kw_only=True, validator=count(0))
    per_call: int | Literal["all"] = field(default=1, kw_only=True, validator=_per_call)
    prompt: str | None = field(default=None, kw_only=True, validator=optional(string))
    repairs: int = field(default=1, kw_only=True, validator=count(0))
    sealed: bool | None = field(default=None, kw_only=True, validator=optional(flag))
    reasoning: Literal["before", "after", "none"] = field(
        default="before", kw_only=True, validator=one_of("before", "after", "none")
    )
    params: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=_as_params, validator=_params)

    def __repr__(self) -> str:
        """Return what one would type, without the secrets."""
        shown = {name: "***" if _SECRET.search(name) else value for name, value in self.params.items()}
        return Shown.__repr__(evolve(self, params=shown))

    @property
    def name(self) -> str:
        """The model's name, or the function's."""
        if isinstance(self.model, str):
            return self.model
        return str(getattr(self.model, "__name__", None) or type(self.model).__name__)

    def is_sealed(self, *, own_prompt: bool = False) -> bool:
        """Say whether verdicts must carry the nonce; *own_prompt*: the rubric brings a template."""
        if self.sealed is not None:
            return self.sealed
        return isinstance(self.model, str) and self.prompt is None and not own_prompt

    def _repr_markdown_(self) -> str:
        return table(("judge", "settings"), [(self.name, repr(self))])


def _as_bench(value: Bench | str | Function | Model) -> Judge | Jury | Panel:
    return as_judge(value)


@frozen(repr=False)
class Jury(Shown):
    """
    The same judge several times: the whole rubric is graded *size* times.

    It passes when the share of passing votes meets *consensus*; the score is the mean, the cost the sum.

    Args:
        judge: Who votes.
        size: How many votes.
        consensus: The share of passing votes in (0, 1] that passes. Counts are compared: 2 of 3 meets 0.67.
        early_stop: Stop when the votes that are left cannot change the verdict.
        quorum: How many votes must have come to a grade; None means all.
    """

    _positional = ("judge", "size")

    judge: Judge | Panel | Jury = field(converter=_as_bench)
    size: int = field(default=3, validator=count(1))
    consensus: float = field(default=0.5, validator=number(0, 1, above=True))
    early_stop: bool = field(default=False, kw_only=True, validator=flag)
    quorum: int | None = field(default=None, kw_only=True, validator=optional(count(1)))

    def __attrs_post_init__(self) -> None:
        _check_quorum(self.quorum, self.size)

    @property
    def needed(self) -> int:
        """How many passing votes meet the consensus, of *size* votes."""
        return passes_needed(self.consensus, self.size)

    def _repr_markdown_(self) -> str:
        return f"jury of {self.size}, consensus {self.consensus:g}: {cell(repr(self.judge))}"


def passes_needed(consensus: float, votes: int) -> int:
    """
    Return how many of *votes* must pass to meet *consensus*.

    Counts are compared: a consensus within half a hundredth of k of n means k, so 2 of 3 meets 0.67.
    """
    nearest = round(consensus * votes)
    if nearest and abs(nearest / votes - consensus) <= _WRITTEN_PRECISION:
        return nearest
    return max(1, math.ceil(consensus * votes))


def _check_quorum(quorum: int | None, size: int) -> None:
    if quorum is not None and quorum > size:
        raise DefinitionError("quorum", f"expected at most the number of votes, {size}, got {quorum}")


def _as_judges(value: Iterable[Bench | str | Function | Model]) -> tuple[Judge | Jury | Panel, ...]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise refuse("judges", value, "a list of judges")
    judges = tuple(as_judge(judge) for judge in value)
    if not judges:
        raise DefinitionError("judges", "a panel has at least one judge, this one has none")
    return judges


def _as_weights(value: Iterable[float] | None) -> tuple[float, ...] | None:
    if value is None:
        return None
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise refuse("weights", value, "a list of numbers, one a judge")
    return tuple(value)


@frozen(repr=False)
class Panel(Shown):
    """
    Several different judges, each of whom grades the whole rubric. The reported score is the panel's mean.

    Args:
        judges: The members: judges, juries, panels, or model names.
        aggregate: What decides: the `mean` or the `median` of the scores against the threshold (gates: more than
            half of the members must find them passed), or the `majority` of the members' verdicts.
        tie_break: What an even split of a majority is: `fail` or `pass`.
        quorum: How many members must have come to a grade; None means all.
        weights: One positive number a member; None counts all alike.
        level: `rubric` pools verdicts; `criterion` pools the members' findings one by one, then scores once.
        early_stop: Stop when the members that are left cannot change the verdict.
    """

    _positional = ("judges",)

    judges: tuple[Judge | Jury | Panel, ...] = field(converter=_as_judges)
    aggregate: Literal["mean", "median", "majority"] = field(
        default="mean", kw_only=True, validator=one_of("mean", "median", "majority")
    )
    tie_break: Literal["fail", "pass"] = field(default="fail", kw_only=True, validator=one_of("fail", "pass"))
    quorum: int | None = field(default=None, kw_only=True, validator=optional(count(1)))
    weights: tuple[float, ...] | None = field(default=None, kw_only=True, converter=_as_weights)
    level: Literal["rubric", "criterion"] = field(
        default="rubric", kw_only=True, validator=one_of("rubric", "criterion")
    )
    early_stop: bool = field(default=False, kw_only=True, validator=flag)

    def __attrs_post_init__(self) -> None:
        _check_quorum(self.quorum, len(self.judges))
        if self.weights is None:
            return
        if len(self.weights) != len(self.judges):
            raise DefinitionError("weights", f"expected one a judge, {len(self.judges)}, got {len(self.weights)}")
        for weight in self.weights:
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
                raise refuse("weights", weight, "positive finite numbers")

    def _repr_markdown_(self) -> str:
        weights = self.weights or (1,) * len(self.judges)
        rows = [(repr(judge), f"{weight:g}") for judge, weight in zip(self.judges, weights, strict=True)]
        return f"panel, {self.aggregate}\n\n{table(('judge', 'weight'), rows)}"


Bench = Judge | Jury | Panel
"""Whoever can grade a rubric."""


def as_judge(value: Bench | str | Function | Model | Iterable[Any], /) -> Judge | Jury | Panel:
    """Return *value* as a judge: a model name or a function is one, a list is a panel."""
    if isinstance(value, Judge | Jury | Panel):
        return value
    if isinstance(value, list | tuple):
        return Panel(value)
    return Judge(cast("str | Function | Model", value))
