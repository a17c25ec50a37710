"""
The methods of a rubric that add a criterion: a verb for each kind of answer and for each meaning of a text.

Their options are those of `Criterion`, and are written out at each, so that editors complete and show them.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from rubric.errors import DefinitionError
from rubric.internals.fields import check_number, refuse
from rubric.internals.frozen_map import FrozenMap, scalar
from rubric.internals.guided import guided_methods
from rubric.internals.text import shorten
from rubric.values.answers import Bands, Choices, Levels, Menu, ScoreRange, Unit, YesNo
from rubric.values.checks import Check, Opinion, as_check
from rubric.values.criteria import Abstention, Anchor, Criterion, Polarity, When, refuse_metric
from rubric.values.trees import DecisionTree, HalfAnswered, Question

if TYPE_CHECKING:
    from rubric.values.candidates import Candidate
    from rubric.values.rubrics import Rubric

Condition = When | Callable[["Candidate"], bool] | Mapping[str, Any] | None
"""When a criterion applies: a `When`, its one field as a mapping, or a function; None: always."""

NO_DATA: Mapping[str, Any] = FrozenMap()
_OPTIONS = (
    "id", "weight", "required", "polarity", "min_score", "when", "anchors", "evidence", "abstain", "tags", "metadata",
)  # fmt: skip
TREE = "a DecisionTree: ask('...').yes(...).no(...)"


def check_gate(polarity: object, options: Mapping[Any, Any]) -> None:
    """Refuse *options* that take its gate from a guard, whose polarity alone makes it one."""
    if polarity == "guard" and scalar(options.get("required", True)) is False:
        cure = "one that takes points off, and fails nothing, is penalizes(text, points=...)"
        raise DefinitionError("required", f"a guard that is found fails the grade, required or not; {cure}")


def levels_of(levels: Bands | Levels | int | None, high: int | None) -> Levels:
    """Return the levels that `rates` is given: in one argument, or as the lowest and the highest score."""
    if isinstance(levels, Levels):
        return levels
    if levels is None and high is None:
        return Levels()
    if (levels, high) == (0, 1) and not isinstance(levels, bool):
        cure = "for yes or no write expects(text), for any number from 0 to 1 scores(text)"
        raise DefinitionError("levels", f"0 and 1 could be no and yes, or the ends of a score; {cure}")
    if isinstance(levels, int) and not isinstance(levels, bool):
        if high is None:
            raise refuse("levels", levels, "the lowest and the highest score, as in rates('Is clear', 1, 5)")
        return Levels(ScoreRange(levels, high))
    if levels is None or high is not None:
        raise refuse("levels", levels, "a whole number before the highest score, as in rates('Is clear', 1, 5)")
    return Levels(levels)


@guided_methods
class Building:
    """The verbs of a rubric. Each returns a new rubric with one criterion more, at its end."""

    __slots__ = ()

    if TYPE_CHECKING:  # of the rubric; as a method of this class it would hide the rubric's own

        @abstractmethod
        def adding(self, *criteria: Criterion | str | Mapping[str, Any]) -> Self: ...

    def _adding(self, given: Mapping[str, Any], text: str, answer: Any, **fixed: Any) -> Self:
        """Add the criterion of a verb: *given* are its `locals()`, of which those count that `Criterion` has too."""
        if isinstance(text, list | tuple):  # here, where the verb is known
            raise refuse("text", text, "text")
        options = {name: given[name] for name in _OPTIONS if name in given}
        if isinstance(text, str) and not isinstance(answer, Check):  # whose text may be the name of its function
            refuse_metric("text", text, f"write rubric.adding(Criterion({text!r}))")
        return self.adding(Criterion(text, answer=answer, **options | fixed))

    def requires(
        self,
        text: str,
        /,
        *,
        id: str | None = None,
        weight: float = 1,
        required: bool = True,
        polarity: Polarity = "satisfy",
        min_score: float | None = None,
        when: Condition = None,
        anchors: Iterable[Anchor | Mapping[str, Any]] = (),
        evidence: bool | None = None,
        abstain: Abstention | float | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] = NO_DATA,
    ) -> Self:
        """Return the rubric with a yes/no criterion that must hold: unmet, the grade fails."""
        if not required:
            raise DefinitionError("required", "this verb means True, got False; use another verb, such as expects")
        return self._adding(locals(), text, YesNo())

    def expects(
        self,
        text: str,
        /,
        *,
        id: str | None = None,
        weight: float = 1,
        required: bool = False,
        polarity: Polarity = "satisfy",
        min_score: float | None = None,
        when: Condition = None,
        anchors: Iterable[Anchor | Mapping[str, Any]] = (),
        evidence: bool | None = None,
        abstain: Abstention | float | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] = NO_DATA,
    ) -> Self:
        """Return the rubric with a yes/no criterion."""
        return self._adding(locals(), text, YesNo())

    def scores(
        self,
        text: str,
        /,
        *,
        id: str | None = None,
        weight: float = 1,
        required: bool = False,
        polarity: Polarity = "satisfy",
        min_score: float | None = None,
        when: Condition = None,
        anchors: Iterable[Anchor | Mapping[str, Any]] = (),
        evidence: bool | None = None,
        abstain: Abstention | float | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] = NO_DATA,
    ) -> Self:
        """Return the rubric with a criterion that the judge scores in 0..1."""
        return self._adding(locals(), text, Unit())

    def rates(
        self,
        text: str,
        levels: Bands | Levels | int | None = None,
        high: int | None = None,
        /,
        *,
        id: str | None = None,
        weight: float = 1,
        required: bool = False,
        polarity: Polarity = "satisfy",
        min_score: float | None = None,
        when: Condition = None,
        anchors: Iterable[Anchor | Mapping[str, Any]] = (),
        evidence: bool | None = None,
        abstain: Abstention | float | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] = NO_DATA,
    ) -> Self:
        """
        Return the rubric with a criterion rated in whole numbers: `rates("Is clear", 1, 5)`, or from 0 to 10.

        Levels with texts are a mapping, `{0: "no way in", 5: "with effort", 10: "at once"}`: a number is an anchor on
        the scale, between two of which the judge may answer too, and a key such as `"0-3"` a band.
        """
        return self._adding(locals(), text, levels_of(levels, high))

    def chooses(
        self,
        text: str,
        choices: Menu | Choices,
        /,
        *,
        id: str | None = None,
        weight: float = 1,
        required: bool = False,
        polarity: Polarity = "satisfy",
        min_score: float | None = None,
        when: Condition = None,
        anchors: Iterable[Anchor | Mapping[str, Any]] = (),
        evidence: bool | None = None,
        abstain: Abstention | float | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] = NO_DATA,
    ) -> Self:
        """
        Return the rubric with a criterion answered by one of the named *choices*: labels with their scores in 0..1.

        Labels alone have no scores: `["formal", "casual"]` takes `weight=0`, which records the label.
        """
        return self._adding(locals(), text, choices if isinstance(choices, Choices) else Choices(choices))

    def forbids(
        self,
        text: str,
        /,
        *,
        id: str | None = None,
        weight: float = 1,
        required: bool | None = None,
        min_score: float | None = None,
        when: Condition = None,
        anchors: Iterable[Anchor | Mapping[str, Any]] = (),
        evidence: bool | None = None,
        abstain: Abstention | float | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] = NO_DATA,
    ) -> Self:
        """Return the rubric with a guard: *text* must not hold; found present, the grade fails."""
        check_gate("guard", {} if required is None else {"required": required})
        return self._adding(locals(), text, YesNo(), polarity="guard", required=bool(required))

    def penalizes(
        self,
        text: str,
        /,
        *,
        points: float = 1,
        id: str | None = None,
        when: Condition = None,
        anchors: Iterable[Anchor | Mapping[str, Any]] = (),
        evidence: bool | None = None,
        abstain: Abstention | float | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] = NO_DATA,
    ) -> Self:
        """
        Return the rubric with a penalty: *text* should not hold; found present, it takes off its *points*.

        It fails nothing by itself. Beside other criteria it needs a rubric `by_points`.
        """
        check_number("points", points, 0, above=True)
        return self._adding(locals(), text, YesNo(), polarity="penalty", weight=points)

    def checks(
        self,
        check: Check | str | re.Pattern[str] | Callable[[Candidate], Opinion],
        /,
        text: str = "",
        *,
        id: str | None = None,
        weight: float = 1,
        required: bool = False,
        polarity: Polarity = "satisfy",
        min_score: float | None = None,
        when: Condition = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] = NO_DATA,
    ) -> Self:
        """
        Return the rubric with a *check* that code decides: no call.

        A short text is a check that it occurs (`Contains`), a function from the `Candidate` one that decides (`Holds`).
        """
        if text and isinstance(check, str):
            from rubric.internals.guesses import refuse_named_check  # noqa: PLC0415 - needed for two texts alone

            refuse_named_check(check, text)
        found = as_check(check)
        words = id if id and str(found) == "<lambda>" else str(found)
        return self._adding(locals(), text or words, found)

    def decides(
        self,
        text: str | DecisionTree,
        /,
        by: DecisionTree | None = None,
        *,
        id: str | None = None,
        weight: float = 1,
        required: bool = False,
        polarity: Polarity = "satisfy",
        min_score: float | None = None,
        when: Condition = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] = NO_DATA,
    ) -> Self:
        """
        Return the rubric with a criterion that a walk down the tree *by* scores.

        With a tree alone, its first question is the text: `decides(ask("Is it urgent?").yes(1.0).no(0.0))`.
        """
        tree, words = (text, text.question) if isinstance(text, DecisionTree) and by is None else (by, text)
        if not isinstance(tree, DecisionTree):
            given = words if tree is None else tree
            half = " with both .yes(...) and .no(...)" if isinstance(given, Question | HalfAnswered) else ""
            raise refuse("by", given, f"{TREE}{half}")
        return self._adding(locals(), cast("str", words), tree)

    def includes(
        self,
        rubric: Rubric,
        /,
        text: str = "",
        *,
        id: str | None = None,
        weight: float = 1,
        required: bool = False,
        polarity: Polarity = "satisfy",
        min_score: float | None = None,
        when: Condition = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] = NO_DATA,
    ) -> Self:
        """Return the rubric with another *rubric* as one criterion."""
        if not isinstance(rubric, Building):
            raise refuse("rubric", rubric, "a Rubric")
        return self._adding(locals(), text or rubric.name or shorten(rubric.text, 80) or "included", rubric)
