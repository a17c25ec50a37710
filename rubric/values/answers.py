"""
Types of answers to a criterion, with the place in 0..1 of each answer; and scales that show a score.

A further answer for judges is a member of `JudgeAnswer`; `grading.reply_parser` asks for it and reads it, and
`formats.native.answers` has its form in files. Type checkers and `tests/values/test_closed_unions.py` name what lacks.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, cast

from attrs import field, frozen

from rubric.errors import DefinitionError
from rubric.internals.fields import Shown, as_tuple, check_text, flag, number, plain_number, refuse, string, text
from rubric.internals.guided import guided_class

Said = bool | float | str
"""A judge's answer itself: yes, 0.8, 7, `"warm"`."""

_LARGEST = 2**53  # beyond it not every whole number is a float, and (value - low) / (high - low) would be wrong


def _one_or_all(given: tuple[Any, ...], kind: type) -> Any:
    """Return the collection that was *given*, or the items given one by one."""
    return given[0] if len(given) == 1 and not isinstance(given[0], kind) else given


class Answer:
    """
    The parent of every `answer` of a criterion.

    A judge gives `YesNo`, `Unit`, `Levels` or `Choices`; it walks a `DecisionTree`; code decides a `Check`; and a
    `Rubric` is graded as one criterion of another.
    """

    __slots__ = ()


class Check(Answer):
    """The parent of all checks. A check reads the candidate's output, or its run."""

    __slots__ = ()


EVEN = 0.5
"""Where yes begins, for a score that means yes or no."""


@guided_class
@frozen(repr=False)
class YesNo(Answer, Shown):
    """Yes (1) or no (0): the criterion holds or it does not."""

    words: ClassVar[str] = "yes or no"
    """The answers there are, in a few words."""

    def place(self, value: Said) -> float:
        """Return the place in 0..1 of *value*."""
        return float(value)

    def nearest(self, score: float) -> bool:
        """Return what a judge would say for a *score* in 0..1."""
        return score >= EVEN


@guided_class
@frozen(repr=False)
class Unit(Answer, Shown):
    """
    A number in 0..1.

    Args:
        flag: Also ask the judge for its own pass flag; a false one fails the grade. It decides where a rubric has no
            threshold (promptfoo's `llm-rubric`).
    """

    words: ClassVar[str] = "0..1"
    """The answers there are, in a few words."""

    flag: bool = field(default=False, kw_only=True, validator=flag)

    def place(self, value: Said) -> float:
        """Return the place in 0..1 of *value*, which is *value*."""
        return float(value)

    def nearest(self, score: float) -> float:
        """Return what a judge would say for a *score* in 0..1."""
        return score


@guided_class
@frozen(repr=False)
class ScoreRange(Shown):
    """
    The scores from *low* to *high* (whole numbers, both included), and the *text* that describes them.

    A range of several scores is a band, of a single score an anchor. A lone range needs no text: `ScoreRange(1, 5)` is
    a plain scale.
    """

    low: int
    high: int
    text: str = field(default="", validator=string)

    def __attrs_post_init__(self) -> None:
        for name, given in (("low", self.low), ("high", self.high)):
            value = plain_number(given)
            if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
                raise refuse(name, given, "a whole number")
            object.__setattr__(self, name, value)
        if self.low > self.high:
            raise DefinitionError("low", f"a range starts at {self.low} and ends below that, at {self.high}; swap them")

    @property
    def is_anchor(self) -> bool:
        """True if it is a single score."""
        return self.low == self.high

    def __contains__(self, score: object) -> bool:
        return isinstance(score, int | float) and self.low <= score <= self.high

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


Bands = Mapping[Any, Any] | Iterable[ScoreRange] | range | tuple[int, int] | ScoreRange
"""
Levels in one argument; or each `ScoreRange` is an argument.

A mapping has the texts by their numbers, or the numbers by their texts. `range(1, 6)` and the pair `(1, 5)` are a plain
scale from 1 to 5.
"""

_PLAIN = (0, 10)


def _as_ranges(value: Bands) -> tuple[ScoreRange, ...]:
    value = _as_bands(value)
    if isinstance(value, Mapping):
        ranges = []
        for low, high, words in sorted(((*_read_key(k), words) for k, words in value.items()), key=itemgetter(0)):
            check_text(f"ranges[{low}]", words)
            ranges.append(ScoreRange(low, high, words))
    else:
        ranges = sorted(as_tuple("ranges", value, ScoreRange, "ScoreRange"), key=attrgetter("low"))
    for before, after in pairwise(ranges):
        _check_neighbours(before, after)
    if len(ranges) == 1 and not ranges[0].text and (ranges[0].low, ranges[0].high) == _PLAIN:
        return ()
    if len(ranges) > 1:
        for index, band in enumerate(ranges):
            check_text(f"ranges[{index}].text", band.text)
    if ranges and ranges[0].low == ranges[-1].high:
        low = ranges[0].low
        raise DefinitionError("ranges", f"a range from {low} to itself tells nothing; give at least two scores")
    return tuple(ranges)


def _as_bands(value: Any) -> Any:  # noqa: C901 - a branch a form
    """Return *value* as a mapping from numbers to texts or as ranges, where it is another plain form of levels."""
    if isinstance(value, str) and (ends := re.fullmatch(_SCALE, value.strip())):
        value = ScoreRange(int(ends[1]), int(ends[2]))
    if isinstance(value, ScoreRange):
        return (value,)
    if isinstance(value, range):
        if value.step != 1 or len(value) < 2:  # noqa: PLR2004 - the ends of a scale
            raise refuse("ranges", value, "every whole number of the scale, such as range(1, 6) for 1 to 5")
        return (ScoreRange(value[0], value[-1]),)
    if isinstance(value, Mapping):
        numbers = [plain_number(score) for score in value.values()]
        is_swapped = value and all(isinstance(key, str) and not re.fullmatch(_KEY, key.strip()) for key in value)
        if is_swapped and all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
            if len({*numbers}) < len(numbers):
                raise refuse("ranges", dict(value), "a number of its own for each text")
            return dict(zip(numbers, value, strict=True))
        return value
    if isinstance(value, tuple | list) and len(value) > 1 and all(isinstance(each, str) for each in value):
        last, first = dict(enumerate(value)), dict(enumerate(reversed(value)))
        message = f"labels alone have no numbers; write {last} if the last is the best, {first} if the first is"
        raise DefinitionError("ranges", message)
    if isinstance(value, tuple | list) and value and all(isinstance(each, Mapping) for each in value):
        raise DefinitionError("ranges", f"levels are given by their numbers{_of_rows(value)}")
    if isinstance(value, tuple | list) and len(value) == 2:  # noqa: PLR2004 - a pair
        low, high = map(plain_number, value)
        if isinstance(low, int) and isinstance(high, int) and not isinstance(low, bool) and not isinstance(high, bool):
            return (ScoreRange(low, high),)
    return value


def _of_rows(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Return the end of the message on *rows* as files have them, `{score_range: [0, 2], text: ...}`: the mapping."""
    found: dict[Any, str] = {}
    for row in rows:
        numbers = [n for each in row.values() for n in (each if isinstance(each, tuple | list) else [each])]
        texts = [numbers.pop(n) for n in range(len(numbers) - 1, -1, -1) if isinstance(numbers[n], str)]
        key = numbers[0] if len({*numbers}) == 1 else "-".join(map(str, numbers))
        if not 1 <= len(numbers) <= 2 or len(texts) != 1:  # noqa: PLR2004 - the ends
            return ", such as {1: 'unclear', 5: 'clear'}"
        found[key] = texts[0]
    return f"; write {found}"


# Compiled on first use: few rubrics are built of such texts.
_SCALE = r"(?a)(-?\d{1,16})\.\.(-?\d{1,16})"
"""How a scale without texts is written in files."""

_KEY = r"(?a)(-?\d{1,16})(?:\s*(?:-|\.\.|–)\s*(-?\d{1,16}))?"


def _read_key(key: object) -> tuple[int, int]:
    """Read `5` or `"5"`, an anchor, or `"5-7"`, a band: the first score and the last."""
    if isinstance(key, str) and (match := re.fullmatch(_KEY, key.strip())):
        return int(match[1]), int(match[2] or match[1])
    value = plain_number(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse("ranges", key, 'a whole number, or a range such as "7-10", as the key of a level')
    return value, value


def _check_neighbours(before: ScoreRange, after: ScoreRange) -> None:
    if after.low == before.low:
        raise DefinitionError("ranges", f"two bands start at {before.low}; each score belongs to one")
    if after.low <= before.high:
        raise DefinitionError("ranges", f"{before} and {after} overlap; each score belongs to one band")
    if after.low > before.high + 1 and not before.is_anchor:  # the end of a band means that the next score is another's
        gap = ScoreRange(before.high + 1, after.low - 1, "gap")
        raise DefinitionError("ranges", f"no band covers {gap}, between {before} and {after}; close the gap")


@guided_class
@frozen(repr=False, init=False)
class Levels(Answer, Shown):
    """
    A whole number on the criterion's own range, with texts that describe the numbers.

    The score is (value - low) / (high - low): texts guide the judge, they do not quantise. `Levels()` is a number
    from 0 to 10, `Levels(ScoreRange(1, 5))` one from 1 to 5. Texts are given as a mapping, or as ranges, one by one or
    in a list. A single number is an anchor, `{0: "no way in", 5: "with effort", 10: "at once"}`: the judge may also
    answer a number between two of them. A key such as `"0-3"` is a band, whose text holds for all of its scores. The
    first key is the lowest score and the last the highest; behind a band there is no gap.
    """

    ranges: tuple[ScoreRange, ...] = field(default=(), converter=_as_ranges)

    def __init__(self, *ranges: ScoreRange | Bands | int) -> None:
        if len(ranges) == 1 and isinstance(ranges[0], Mapping | list | tuple) and not ranges[0]:
            raise refuse("ranges", ranges[0], "levels with their texts, or for a plain scale its ends, as in (0, 10)")
        self.__attrs_init__(_one_or_all(ranges, ScoreRange))  # pyright: ignore[reportAttributeAccessIssue] - attrs makes it

    @property
    def low(self) -> int:
        """The lowest score there is."""
        return self.ranges[0].low if self.ranges else _PLAIN[0]

    @property
    def high(self) -> int:
        """The highest score there is."""
        return self.ranges[-1].high if self.ranges else _PLAIN[1]

    @property
    def texts(self) -> dict[int | str, str]:
        """The texts by their keys in a mapping: a number for an anchor, such as `"0-3"` for a band."""
        return {(r.low if r.is_anchor else str(r)): r.text for r in self.ranges if r.text}

    def band(self, value: float) -> str:
        """Return the text of the anchor or band of *value*; between two anchors both; empty without texts."""
        for before, after in pairwise(self.ranges):
            if before.high < value < after.low:
                return f"between {before} ({before.text}) and {after} ({after.text})"
        return next((r.text for r in self.ranges if value in r), "")

    def place(self, value: Said) -> float:
        """Return the place in 0..1 of *value*."""
        return (float(value) - self.low) / (self.high - self.low)

    def nearest(self, score: float) -> int:
        """Return what a judge would say for a *score* in 0..1."""
        return round(self.low + score * (self.high - self.low))

    @property
    def words(self) -> str:
        """The answers there are, and which of them have a text for themselves (anchors) or together (bands)."""
        texts = [band for band in self.ranges if band.text]
        kinds = {"anchors": [r for r in texts if r.is_anchor], "bands": [r for r in texts if not r.is_anchor]}
        said = "; ".join(f"{kind} {', '.join(map(str, ranges))}" for kind, ranges in kinds.items() if ranges)
        return f"{self.low}..{self.high}" + (f" ({said})" if said else "")

    def __repr__(self) -> str:
        return f"Levels({self.texts!r})" if self.texts else super().__repr__()


@guided_class
@frozen(repr=False)
class Choice(Shown):
    """One option: the *label* that the judge gives back, its *score* in 0..1, and its meaning."""

    label: str = field(validator=text)
    score: float = field(validator=number(0, 1))
    text: str = field(default="", kw_only=True, validator=string)


def fold(label: str) -> str:
    """Return *label* for comparison: compatibility forms, case and outer white space do not matter."""
    return unicodedata.normalize("NFKC", label).strip().casefold()


Menu = Mapping[str, float] | Iterable[Choice] | Iterable[str]
"""Choices in one argument; or each `Choice` is an argument. Labels alone have no scores."""


def _as_choices(value: Menu) -> tuple[Choice, ...]:
    if isinstance(value, Mapping):
        choices = tuple(Choice(label, score) for label, score in cast("Mapping[str, float]", value).items())
    else:
        choices = as_tuple("choices", value, Choice, "Choice")
    if len(choices) < 2:  # noqa: PLR2004
        raise DefinitionError("choices", f"expected at least two options, got {len(choices)}")
    seen: set[str] = set()
    for choice in choices:
        if fold(choice.label) in seen:
            raise DefinitionError("choices", f"the label {choice.label!r} stands twice (case does not matter)")
        seen.add(fold(choice.label))
    return choices


def in_steps(labels: Sequence[str]) -> dict[str, float]:
    """Return *labels*, from the worst to the best, with scores in equal steps from 0 to 1."""
    return {label: round(n / max(1, len(labels) - 1), 6) for n, label in enumerate(labels)}


@guided_class
@frozen(repr=False, init=False)
class Choices(Answer, Shown):
    """
    One of several named options, each with its own score: `Choices({"hostile": 0, "neutral": 0.6, "warm": 1})`.

    Labels alone, `Choices(["formal", "casual"])`, have no scores: which end is the best cannot be known. They are for a
    criterion of weight 0, which records the label; each then counts as 1.
    """

    choices: tuple[Choice, ...] = field(converter=_as_choices)
    is_scored: bool = field(default=True, kw_only=True)

    def __init__(self, *choices: Choice | Menu) -> None:
        given = _one_or_all(choices, Choice)
        scored = not (isinstance(given, list | tuple) and given and all(isinstance(label, str) for label in given))
        options = given if scored else [Choice(label, 1) for label in given]
        self.__attrs_init__(options, is_scored=scored)  # pyright: ignore[reportAttributeAccessIssue] - attrs makes it

    def __repr__(self) -> str:
        return super().__repr__() if self.is_scored else f"Choices({[choice.label for choice in self.choices]})"

    @classmethod
    def in_steps(cls, labels: Sequence[str]) -> Choices:
        """Return the choices *labels*, from the worst to the best, with scores in equal steps from 0 to 1."""
        return cls(in_steps(labels))

    def check_scores(self) -> None:
        """Refuse labels alone, with what to write in both orders."""
        if self.is_scored:
            return
        labels = [choice.label for choice in self.choices]
        best_last = in_steps(labels)
        best_first = dict(zip(labels, reversed(best_last.values()), strict=True))
        message = (
            f"labels alone have no scores; write {best_first} if the first is the best, {best_last} if the last is; to "
            f"record the label, weight=0 beside criteria that count, else {dict.fromkeys(labels, 1)}, which all pass"
        )
        raise DefinitionError("choices", message)

    @property
    def words(self) -> str:
        """The labels."""
        return " | ".join(choice.label for choice in self.choices)

    def place(self, value: Said) -> float:
        """Return the score of the choice that *value* names."""
        if (choice := self.get(str(value))) is None:
            raise refuse("value", value, f"one of {self.words}")
        return choice.score

    def nearest(self, score: float) -> str:
        """Return what a judge would say for a *score* in 0..1."""
        return min(self.choices, key=lambda choice: abs(choice.score - score)).label

    def get(self, label: str) -> Choice | None:
        """Return the choice that *label* names; upper and lower case do not matter."""
        wanted = fold(label)
        return next((c for c in self.choices if fold(c.label) == wanted), None)


_NAMED: dict[object, Answer] = {
    **dict.fromkeys(("yes_no", "yesno", "yes/no", "bool", "boolean", "binary", "pass_fail", bool), YesNo()),
    **dict.fromkeys(("unit", "float", "0..1", "0-1", float), Unit()),
}


def as_answer(value: object) -> object:
    """Return the answer that *value* is a plain form of: a name, a range, a mapping, a list; anything else as it is."""
    if isinstance(value, str | type):
        return _NAMED.get(value.lower() if isinstance(value, str) else value, value)
    if isinstance(value, ScoreRange | range):
        return Levels(value)
    if isinstance(value, Mapping) and value:
        is_menu = all(isinstance(key, str) and not re.fullmatch(_KEY, key.strip()) for key in value)
        is_menu = is_menu and not any(isinstance(score, int) and score > 1 for score in value.values())
        return Choices(value) if is_menu else Levels(value)
    if isinstance(value, list | tuple) and value:
        kinds = {type(item) for item in value}
        if kinds in ({str}, {Choice}):
            return Choices(value)
        if kinds == {ScoreRange} or (kinds == {int} and len(value) == 2):  # noqa: PLR2004 - a pair
            return Levels(value)
    return value


JudgeAnswer = YesNo | Unit | Levels | Choices
"""What a judge is asked for in one reply: a closed union, so that a type checker names where a new one is missing."""


@frozen(repr=False)
class Scale(Shown):
    """The parent of the four ways to show a score."""

    def show(self, score: float, *, passed: bool) -> str:
        """Return *score* (0..1) as people read it."""
        raise NotImplementedError


@guided_class
class UnitScale(Scale):
    """The score with two decimals: `0.80`."""

    __slots__ = ()

    def show(self, score: float, *, passed: bool) -> str:  # noqa: ARG002
        return f"{score:.2f}"


@guided_class
@frozen(repr=False)
class Likert(Scale):
    """A band of numbers: 0..1 becomes *low* to *high*, with one decimal: `4.0/5`."""

    low: float = field(default=1, validator=number(-1e9, 1e9))
    high: float = field(default=5, validator=number(-1e9, 1e9))

    def __attrs_post_init__(self) -> None:
        if self.low >= self.high:
            raise DefinitionError("high", f"a Likert scale runs upwards, not from {self.low:g} to {self.high:g}")

    def show(self, score: float, *, passed: bool) -> str:  # noqa: ARG002
        return f"{self.low + score * (self.high - self.low):.1f}/{self.high:g}"


@guided_class
class Boolean(Scale):
    """`pass` or `fail`."""

    __slots__ = ()

    def show(self, score: float, *, passed: bool) -> str:  # noqa: ARG002
        return "pass" if passed else "fail"


@guided_class
class Letter(Scale):
    """A letter: A from 0.9, B from 0.8, C from 0.7, D from 0.6, else F."""

    __slots__ = ()

    def show(self, score: float, *, passed: bool) -> str:  # noqa: ARG002
        return "FDCBA"[bisect_right((0.6, 0.7, 0.8, 0.9), score + 1e-9)]  # 0.7999999999999999 is a B, as it meets 0.8
