"""
Tests of a rubric: replies, each with what a good judge says of it. No judge ever sees them.

`rubric.check` runs them. An anchor is the other kind of example: it is shown to the judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from rubric.errors import DefinitionError
from rubric.internals import fields
from rubric.internals.fields import Shown, refuse
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.guided import guided_class
from rubric.internals.text import shorten
from rubric.values.answers import Choices, Levels, YesNo
from rubric.values.candidates import Candidate
from rubric.values.checks import Check

if TYPE_CHECKING:
    from rubric.values.criteria import Criterion
    from rubric.values.findings import Scored
    from rubric.values.rubrics import Rubric

Range = tuple[float, float]
_EVEN = 0.5


def as_range(field: str, value: Any) -> Range:
    """Return *value*, a number, `"0..0.4"` or `[0, 0.4]`, as the lowest and the highest number."""
    wanted = "a number, or a range such as 0..0.4"
    ends = value.split("..") if isinstance(value, str) else [*value] if isinstance(value, list | tuple) else [value]
    if not all(isinstance(end, str | int | float) and not isinstance(end, bool) for end in ends):
        raise refuse(field, value, wanted)
    try:
        low, high = map(float, ends if len(ends) > 1 else ends * 2)
    except ValueError:
        raise refuse(field, value, wanted) from None
    if not low <= high:
        raise refuse(field, value, f"{wanted}, the lowest number first")
    return low, high


def show_range(given: Range) -> float | str:
    """Return *given* as a file holds it: a number, or `"0..0.4"`."""
    low, high = (int(end) if end.is_integer() else end for end in given)
    return low if low == high else f"{low!r}..{high!r}"


def is_reference(text: str) -> bool:
    """True if *text* names a file, as `file://reply.txt` does."""
    return text.startswith("file://")


def _as_reply(value: str | Candidate | Mapping[str, Any]) -> str | Candidate:
    """Return *value* as a text where that says it all; one that may be meant as a path stays a candidate."""
    if isinstance(value, Mapping):
        value = Candidate(**value)
    if isinstance(value, Candidate):
        is_plain = value == Candidate(value.output) and not (
            is_reference(value.output) or fields.names_a_file(value.output)
        )
        return value.output if is_plain else value
    if isinstance(value, str):
        if is_reference(value):
            cure = "it is read where the rubric is loaded from a file of its own, load(path); here, write the text"
            raise DefinitionError("reply", f"{shorten(repr(value), 80)}: {cure}")
        fields.refuse_path("reply", value, f'name the file: "file://{value}", in the file of the rubric')
        return value
    raise refuse("reply", value, "a text, a Candidate, or a mapping of its fields")


def _ids_or_flag(name: str, value: Any) -> bool | tuple[str, ...] | None:
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, list | tuple) or not value:
        raise refuse(name, value, "true, false, or a list of ids of criteria")
    return fields.as_tuple(name, value, str, "ids of criteria")


def _as_passes(value: bool | Iterable[str] | None) -> bool | tuple[str, ...] | None:  # noqa: FBT001 - a verdict
    return _ids_or_flag("passes", value)


def _as_fails(value: bool | Iterable[str] | None) -> bool | tuple[str, ...] | None:  # noqa: FBT001 - as above
    found = _ids_or_flag("fails", value)
    if found is False:
        raise DefinitionError("fails", "expected true or a list of ids, got false; write passes: true")
    return found


def _as_score(value: Any) -> Range | None:
    if value is None:
        return None
    low, high = as_range("score", fields.plain_number(value))
    fields.check_number("score", low, 0, 1)
    fields.check_number("score", high, 0, 1)
    return low, high


@guided_class
@frozen(repr=False)
class RubricTest(Shown):
    """
    A reply, and what a good judge says of it.

    Args:
        reply: The text that is graded, or a `Candidate`. In a file also `file://reply.txt`, beside the rubric's file.
        passes: True: the grade passes; False: it fails; or the ids of criteria that are met.
        fails: True: the grade fails; or the ids of criteria that are not met.
        score: The score of the grade in 0..1: a number, or a range such as `"0..0.4"`.
        expects: The answer to a criterion, by id: yes or no (of a guard: whether it is there), a level, a label, a
            number, or a range of numbers.

    Raises:
        DefinitionError: A value that no test can have, or nothing that it expects.
    """

    _positional = ("reply",)

    reply: str | Candidate = field(converter=_as_reply)
    passes: bool | tuple[str, ...] | None = field(default=None, kw_only=True, converter=_as_passes)
    fails: bool | tuple[str, ...] | None = field(default=None, kw_only=True, converter=_as_fails)
    score: Range | None = field(default=None, kw_only=True, converter=_as_score)
    expects: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=fields.frozen, validator=fields.mapping)

    def __attrs_post_init__(self) -> None:
        if self.passes is None and self.fails is None and self.score is None and not self.expects:
            raise DefinitionError("passes", "a test expects something; give passes, fails, score or expects")
        if self.passes is True and self.fails is True:
            raise DefinitionError("fails", "a grade passes or fails, and here it does both; take one out")
        if both := sorted({*self.met} & {*self.unmet}):
            raise DefinitionError("fails", f"{both[0]!r} is to be met and not to be met; take one out")

    @property
    def candidate(self) -> Candidate:
        """The reply as a candidate."""
        return Candidate.of(self.reply)

    @property
    def verdict(self) -> bool | None:
        """Whether the grade should pass; None if the test does not say."""
        if self.fails is True:
            return False
        return self.passes if isinstance(self.passes, bool) else None

    @property
    def met(self) -> tuple[str, ...]:
        """The ids of criteria that should be met."""
        return self.passes if isinstance(self.passes, tuple) else ()

    @property
    def unmet(self) -> tuple[str, ...]:
        """The ids of criteria that should not be met."""
        return self.fails if isinstance(self.fails, tuple) else ()

    def check(self, rubric: Rubric, field: str = "tests") -> None:
        """
        Refuse a test, which stands at *field*, that names no criterion of *rubric*, or an answer that it cannot have.

        A rubric may pass through such a state while it is built; it cannot be checked or written in it.
        """
        known = rubric.ids
        for name, ids in (("passes", self.met), ("fails", self.unmet), ("expects", self.expects)):
            for id_ in ids:
                if id_ not in known:
                    raise DefinitionError(f"{field}.{name}", f"no criterion {id_!r}{fields.suggest(id_, known)}")
        for id_, value in self.expects.items():
            _as_expectation(f"{field}.expects.{id_}", rubric[id_], value)

    def fits(self, criterion: Criterion, finding: Scored) -> bool:
        """True if *finding* is the answer to *criterion* that the test expects."""
        match _as_expectation("expects", criterion, self.expects[criterion.id]), criterion.answer:
            case bool() as said, _:
                return (finding.score >= _EVEN) is said
            case str() as label, Choices() as choices:
                return isinstance(finding.value, str) and choices.get(finding.value) == choices.get(label)
            case (float() as low, float() as high), answer:
                at = finding.score
                if isinstance(answer, Levels):
                    at = answer.low + at * (answer.high - answer.low)
                return low - _ROUNDING <= at <= high + _ROUNDING
        raise AssertionError(criterion)  # pragma: no cover


def as_tests(value: Iterable[RubricTest | Mapping[str, Any]]) -> tuple[RubricTest, ...]:
    """Return *value*, tests or mappings of their fields, as tests."""
    if isinstance(value, list | tuple):
        tests: list[Any] = []
        for index, item in enumerate(value):
            try:
                tests.append(RubricTest(**item) if isinstance(item, Mapping) else item)
            except DefinitionError as problem:
                raise DefinitionError(f"tests[{index}].{problem.field}", problem.message) from None
            except TypeError as problem:
                raise DefinitionError(f"tests[{index}]", f"RubricTest: {problem}") from None
        value = tests
    return fields.as_tuple("tests", value, RubricTest, "RubricTest")


def _as_expectation(field: str, criterion: Criterion, value: Any) -> bool | str | Range:
    """Return *value* as what the answer to *criterion* is compared with; refuse what it cannot be."""
    match criterion.answer:
        case YesNo() | Check():
            if not isinstance(value, bool):
                raise refuse(field, value, "true or false")
            return value
        case Choices() as choices:
            if not isinstance(value, str) or choices.get(value) is None:
                raise refuse(field, value, f"one of {choices.words}")
            return value
        case answer:
            low, high = (answer.low, answer.high) if isinstance(answer, Levels) else (0, 1)
            found = as_range(field, value)
            for end in found:
                fields.check_number(field, end, low, high)
            return found


_ROUNDING = 1e-9
