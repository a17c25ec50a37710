"""Questions to people: one a criterion, with the answers that `Labels` takes, and the keys for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from attrs import frozen

from rubric import Choices, Criterion, Levels, Rubric, YesNo
from rubric.embed import Check

MOST = 21
"""Points of a scale that have a button each; a longer one has a field for a number."""

Layout = Literal["words", "lines", "numbers", "field"]


@frozen
class Option:
    """An answer: the *value* for `Labels`, the *key* that chooses it, its *name*, and what it means."""

    value: str
    key: str
    name: str
    text: str = ""


@frozen
class Question:
    """
    What is asked of one criterion, or of the whole, whose id is empty.

    It has no *options* where any whole number within *bounds* is an answer; *texts* say what some numbers mean.
    """

    criterion: str
    text: str
    hint: str = ""
    options: tuple[Option, ...] = ()
    layout: Layout = "words"
    bounds: tuple[int, int] = (0, 1)
    texts: tuple[tuple[str, str], ...] = ()
    source: Criterion | None = None

    @property
    def values(self) -> frozenset[str] | None:
        """The values that it takes; None for any whole number within the bounds."""
        if self.layout == "field":
            low, high = self.bounds
            return None if high - low > 10_000 else frozenset(map(str, range(low, high + 1)))  # noqa: PLR2004
        return frozenset(option.value for option in self.options)


_YES, _NO = Option("yes", "y", "Yes"), Option("no", "n", "No")
_HINTS = {
    "guard": "Should not hold. Yes: it does, and the candidate fails. No: all is well.",
    "penalty": "Should not hold. Yes: it does. No: all is well.",
    "contradiction": "A fact. Yes: the candidate says so, or nothing about it. No: it says something else.",
    "correctness": "A fact. Yes: the candidate says so. No: it says nothing about it, or something else.",
}
_SHARES = "From 0, not at all, to 1, wholly."


def questions_of(rubric: Rubric) -> tuple[Question, ...]:
    """Return a question for each criterion that people can answer, and one for the whole if there are several."""
    asked = tuple(_question(criterion) for criterion in rubric.judged if not isinstance(criterion.answer, Check))
    if len(rubric.judged) == 1 and asked:
        return asked
    verdict = (Option("pass", "p", "Pass"), Option("fail", "f", "Fail"))
    return (*asked, Question("", "All in all, does it pass?", options=verdict))


def _question(criterion: Criterion) -> Question:
    options: tuple[Option, ...] = ()
    hint, layout, bounds = _HINTS.get(criterion.polarity, ""), "words", (0, 1)
    texts: tuple[tuple[str, str], ...] = ()
    match criterion.answer:
        case YesNo():
            options = (_YES, _NO)
        case Levels() as levels:
            bounds = (levels.low, levels.high)
            named = {each.low: each.text for each in levels.ranges if each.is_anchor}
            texts = tuple((str(each), each.text) for each in levels.ranges if each.text)
            layout = "numbers" if levels.high - levels.low < MOST else "field"
            if layout == "numbers":
                is_whole = len(named) == levels.high - levels.low + 1
                options = tuple(_level_options(levels, named if is_whole else {}))
                layout, texts = ("lines", ()) if is_whole else (layout, texts)
        case Choices(choices=choices):
            keyed = zip(choices, "123456789", strict=False) if len(choices) <= 9 else ((c, "") for c in choices)  # noqa: PLR2004
            options = tuple(Option(choice.label, key, choice.label, choice.text) for choice, key in keyed)
            layout = "lines"
        case _:  # in 0..1: a unit, a tree, a rubric
            options = tuple(Option(f"{n / 10:g}", str(n), f"{n / 10:g}") for n in range(11))
            hint, layout = f"{hint} {_SHARES}".strip(), "numbers"
    return Question(criterion.id, str(criterion.text), hint, options, layout, bounds, texts, criterion)  # type: ignore[arg-type]


def _level_options(levels: Levels, named: dict[int, str]) -> Iterator[Option]:
    """Yield an option for each level; its key is the number, or its place in the row where numbers are negative."""
    for place, number in enumerate(range(levels.low, levels.high + 1), 1):
        key = str(number) if levels.low >= 0 else str(place)
        yield Option(str(number), key, str(number), named.get(number, ""))
