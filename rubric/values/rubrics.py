"""Rubrics: criteria, one free-form text or one decision tree, and how these become a score and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike, fspath
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack, cast, get_args

from attrs import Attribute, evolve, field, fields, frozen

from rubric.errors import DefinitionError
from rubric.internals.containers import Listed
from rubric.internals.fields import (
    Shown,
    check_fields,
    check_number,
    flag,
    number,
    one_of,
    optional,
    refuse,
    refuse_path,
    string,
    suggest,
    wording,
)
from rubric.internals.frozen_map import scalar
from rubric.internals.text import cell, shorten, table
from rubric.values.answers import (
    Answer,
    Bands,
    Choices,
    JudgeAnswer,
    Levels,
    Menu,
    Scale,
    ScoreRange,
    Unit,
    UnitScale,
    YesNo,
)
from rubric.values.candidates import Candidate
from rubric.values.checks import AnyCheck, Check
from rubric.values.criteria import Abstention, Anchor, Criterion, Polarity, When, abstention
from rubric.values.trees import DecisionTree

Aggregation = Literal["weighted_average", "min", "points"]
Degenerate = Literal["fail", "judge", "error"]
T = TypeVar("T")
_FEWEST_DERIVED = 64

WHOLE = "overall"
"""The id of the one criterion of a free-form rubric or of a rubric that is a tree."""


class CriterionOptions(TypedDict, total=False):
    """The options of every method that adds a criterion; see `Criterion`."""

    id: str
    weight: float
    required: bool
    polarity: Polarity
    min_score: float | None
    when: When | Callable[[Candidate], bool] | None
    anchors: Iterable[Anchor]
    evidence: bool | None
    abstain: Abstention | float | None
    tags: Iterable[str]
    metadata: Mapping[str, Any]


def _as_criteria(value: Iterable[Criterion | str], start: int = 0) -> tuple[Criterion, ...]:
    if isinstance(value, str | Mapping | Criterion | Rubric) or not isinstance(value, Iterable):
        raise refuse("criteria", value, "a list of criteria (a Criterion, or its text)")
    criteria = []
    for index, item in enumerate(value, start):
        if isinstance(item, str):
            try:
                item = Criterion(item)  # noqa: PLW2901
            except DefinitionError as problem:
                raise DefinitionError(f"criteria[{index}].{problem.field}", problem.message) from None
        if not isinstance(item, Criterion):
            raise refuse(f"criteria[{index}]", item, "a Criterion, or its text")
        criteria.append(item)
    return tuple(criteria)


def _unique(_: Any, __: Attribute[Any], value: tuple[Criterion, ...]) -> None:
    places: dict[str, int] = {}
    for index, criterion in enumerate(value):
        if (first := places.setdefault(criterion.id, index)) != index:
            message = f"the id {criterion.id!r} belongs to criteria[{first}] already; give one of them another"
            raise DefinitionError(f"criteria[{index}].id", message)


def _of_type(expected: type, what: str) -> Callable[[Any, Attribute[Any], Any], None]:
    def validate(_: Any, attribute: Attribute[Any], value: object) -> None:
        if not isinstance(value, expected):
            raise refuse(attribute.name, value, what)

    return validate


_TREE = "a DecisionTree: ask('...').yes(...).no(...)"


@frozen(repr=False)
class Rubric(Answer, Shown, Listed[Criterion]):
    """
    The criteria that a candidate is graded against. A rubric never changes; every method returns a new one.

    Its criteria are iterated, counted, and taken by id, by place or by slice: `rubric["cites"]`, `rubric[0]`,
    `rubric[-2:]`. A free-form text and a tree are one criterion, `overall`.

    At most one of *criteria*, *text* and *tree* is given. A rubric without any is a start for the methods that add
    criteria; it cannot grade.

    Args:
        name: Its name.
        criteria: The criteria; a plain text is a yes/no criterion.
        text: One free-form text for a single, holistic judgement in 0..1.
        tree: One decision tree; the leaf that is reached is the score.
        threshold: The score in 0..1 from which a grade passes. None: the judge's own pass flag decides, so every
            criterion must have one (yes/no, a check, `Unit(flag=True)`, a nested rubric).
        borderline: The score from which a failed grade is shown as borderline.
        strict: Pass only if every contribution is 1.
        aggregation: `weighted_average`; `min` for the worst contribution; `points` for the points (weights) of what is
            met, less those of the penalties that are found, over all points that can be met, cut to 0..1.
        evidence: Whether judges must quote the candidate. A verdict whose quote is missing, or is not found in the
            candidate, scores 0 and fails the grade; an absence has nothing to quote and is exempt.
        abstain: How "cannot tell" counts, see `Criterion`.
        guidelines: Advice for the judge that holds for all criteria.
        scale: How the score is shown to people.
        prompt: A template of your own for the judge: text, or a JSON list of messages, with slots such as
            `{{ candidate }}`, `{{ criterion }}` and `{{ reply }}`.
        negate: Turn the outcome over: the score is 1 - score, and pass is fail. A failure stays a failure.
        degenerate: The treatment of an empty, punctuation-only or "master key" candidate (arXiv 2507.08794): `fail`
            (score 0, no call), `judge` (like any other), `error` (ungraded).
        binding: Where the rubric is nested in another: a gate that fails in it fails the other one too.

    Raises:
        DefinitionError: A value that no rubric can have; the message names the field and the cure.
    """

    _kind = "criterion"

    name: str = field(default="", validator=string)
    criteria: tuple[Criterion, ...] = field(default=(), kw_only=True, converter=_as_criteria, validator=_unique)
    text: str = field(default="", kw_only=True, validator=string)
    tree: DecisionTree | None = field(default=None, kw_only=True, validator=optional(_of_type(DecisionTree, _TREE)))
    threshold: float | None = field(default=0.7, kw_only=True, validator=optional(number(0, 1)))
    borderline: float | None = field(default=None, kw_only=True, validator=optional(number(0, 1)))
    strict: bool = field(default=False, kw_only=True, validator=flag)
    aggregation: Aggregation = field(default="weighted_average", kw_only=True, validator=one_of(*get_args(Aggregation)))
    evidence: bool = field(default=False, kw_only=True, validator=flag)
    abstain: Abstention | float = field(default="forbid", kw_only=True, validator=abstention)
    guidelines: str = field(default="", kw_only=True, validator=wording)
    scale: Scale = field(
        default=UnitScale(),
        kw_only=True,
        validator=_of_type(Scale, "UnitScale(), Likert(1, 5), Boolean() or Letter()"),
    )
    prompt: str | None = field(default=None, kw_only=True, validator=optional(wording))
    negate: bool = field(default=False, kw_only=True, validator=flag)
    degenerate: Degenerate = field(default="fail", kw_only=True, validator=one_of(*get_args(Degenerate)))
    binding: bool = field(default=False, kw_only=True, validator=flag)

    def __attrs_post_init__(self) -> None:
        given = [name for name in ("criteria", "text", "tree") if getattr(self, name)]
        if len(given) > 1:
            raise DefinitionError(given[1], f"a rubric has {given[0]} or {given[1]}, not both; nest one in the other")
        if self.text and not self.text.strip():
            raise DefinitionError("text", "expected text, got white space")
        if self.borderline is not None and self.threshold is not None and self.borderline > self.threshold:
            message = f"expected at most the threshold {self.threshold}, got {self.borderline}"
            raise DefinitionError("borderline", message)
        if self.text and self.aggregation == "points":
            raise DefinitionError("aggregation", "a free-form text earns no points: its one judgement is the score")
        if self.text and self.aggregation != "weighted_average":
            raise DefinitionError("aggregation", "a free-form text takes none: it has one score; take it out")
        if self.tree is not None:
            # Not evidence: mcptest's files require it of trees too, whose leaves have nothing to quote.
            for name, default in (("aggregation", "weighted_average"), ("abstain", "forbid")):
                if getattr(self, name) != default:
                    raise DefinitionError(name, "a tree takes none: the leaf that is reached is the score")
        if self.threshold is None:
            self._check_flags()

    def _check_flags(self) -> None:
        if self.tree is not None:
            raise DefinitionError("threshold", "a tree has no pass flag of the judge's; give a threshold from 0 to 1")
        for index, criterion in enumerate(self.criteria):
            if criterion.polarity == "penalty":
                message = f"criteria[{index}] {criterion.id!r} is a penalty, and a score decides what that comes to"
                raise DefinitionError("threshold", f"{message}; give a threshold from 0 to 1")
            if not isinstance(criterion.answer, YesNo | Check | Rubric) and criterion.answer != Unit(flag=True):
                message = (
                    f"criteria[{index}] {criterion.id!r} has no pass flag that could decide without a threshold; "
                    "give a threshold from 0 to 1, or make its answer YesNo() or Unit(flag=True)"
                )
                raise DefinitionError("threshold", message)

    # -- reading ---------------------------------------------------------------------------------

    @cached_property
    def judged(self) -> tuple[Criterion, ...]:
        """The criteria that are judged; a free-form text or a tree is one of its own."""
        if self.text:
            return (Criterion(self.text, id=WHOLE, answer=Unit(flag=self.threshold is None)),)
        if self.tree is not None:
            return (Criterion(self.tree.question, id=WHOLE, answer=self.tree),)
        return self.criteria

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits of what is asked and how it is scored; equal after a round trip through a file."""
        from rubric.values.digest import digest_of  # noqa: PLC0415 - hashlib and json, which few rubrics need

        return digest_of(self)

    @cached_property
    def _places(self) -> dict[str, int]:
        """
        The place of each criterion, by id.

        A rubric hands it on to those that `adding` makes of it, so that a chain of 1,000 `expects` takes twice the time
        of 500, and not four times. So it may also hold criteria that come after those of this rubric.
        """
        return {criterion.id: index for index, criterion in enumerate(self.criteria)}

    @cached_property
    def _derived(self) -> dict[tuple[object, ...], Any]:
        return {}

    def derive(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """
        Return what *make* returned for *key* the first time: a cache of what grading derives from the rubric alone.

        It lives and goes with the rubric. Its bound grows with the criteria, a few entries each: with a fixed one, a
        rubric of more criteria than that would derive all of it anew for every candidate.
        """
        kept = self._derived
        made: T | None = kept.get(key)
        if made is None:  # two threads may both make it: the results are equal, and the later one is kept
            while len(kept) > _FEWEST_DERIVED + 4 * len(self.judged):
                kept.pop(next(iter(kept)), None)
            made = kept[key] = make()
        return made

    @property
    def _listed(self) -> Sequence[Criterion]:
        return self.judged

    def __bool__(self) -> bool:
        """True, also without criteria: a rubric to begin with is a rubric."""
        return True

    # -- building: each method returns a new rubric --------------------------------------------------

    @classmethod
    def of(cls, text: str, /, *, name: str = "", threshold: float | None = 0.7) -> Self:
        """Return a rubric of one free-form *text*: a single, holistic judgement in 0..1."""
        return cls(name, text=text, threshold=threshold)

    @classmethod
    def deciding(cls, tree: DecisionTree, /, *, name: str = "", threshold: float = 0.7) -> Self:
        """Return a rubric that is one decision *tree*."""
        return cls(name, tree=tree, threshold=threshold)

    def requires(self, text: str, /, **options: Unpack[CriterionOptions]) -> Self:
        """Return the rubric with a yes/no criterion that must hold: unmet, the grade fails."""
        return self._with(text, YesNo(), _meaning(options, required=True))

    def expects(self, text: str, /, **options: Unpack[CriterionOptions]) -> Self:
        """Return the rubric with a yes/no criterion."""
        return self._with(text, YesNo(), options)

    def scores(self, text: str, /, **options: Unpack[CriterionOptions]) -> Self:
        """Return the rubric with a criterion that the judge scores in 0..1."""
        return self._with(text, Unit(), options)

    def rates(
        self, text: str, levels: Bands | ScoreRange | Levels = (), /, **options: Unpack[CriterionOptions]
    ) -> Self:
        """
        Return the rubric with a criterion rated in whole numbers: on *levels*, a `ScoreRange`, or from 0 to 10.

        In a mapping a number is an anchor on the scale, between two of which the judge may answer too, and a key such
        as `"0-3"` a band.
        """
        return self._with(text, levels if isinstance(levels, Levels) else Levels(levels), options)

    def chooses(self, text: str, choices: Menu | Choices, /, **options: Unpack[CriterionOptions]) -> Self:
        """Return the rubric with a criterion answered by one of the named *choices*."""
        return self._with(text, choices if isinstance(choices, Choices) else Choices(choices), options)

    def forbids(self, text: str, /, **options: Unpack[CriterionOptions]) -> Self:
        """Return the rubric with a guard: *text* must not hold; found present, the grade fails."""
        check_gate("guard", options)
        return self._with(text, YesNo(), _meaning(options, polarity="guard"))

    def penalizes(self, text: str, /, *, points: float = 1, **options: Unpack[CriterionOptions]) -> Self:
        """
        Return the rubric with a penalty: *text* should not hold; found present, it takes off its *points*.

        It fails nothing by itself. Beside other criteria it needs a rubric `by_points`.
        """
        if "weight" in options:
            raise DefinitionError("weight", "the weight of a penalty is its points; give points alone")
        check_number("points", points, 0, above=True)
        return self._with(text, YesNo(), _meaning(options, polarity="penalty", weight=points))

    def checks(self, check: Check, /, text: str = "", **options: Unpack[CriterionOptions]) -> Self:
        """Return the rubric with a *check* that code decides: no call."""
        if not isinstance(check, Check):
            raise refuse("check", check, "a check such as Contains('...')")
        return self._with(text or str(check), check, options)

    def decides(self, text: str, /, by: DecisionTree, **options: Unpack[CriterionOptions]) -> Self:
        """Return the rubric with a criterion that a walk down the tree *by* scores."""
        if not isinstance(by, DecisionTree):
            raise refuse("by", by, _TREE)
        return self._with(text, by, options)

    def includes(self, rubric: Rubric, /, text: str = "", **options: Unpack[CriterionOptions]) -> Self:
        """Return the rubric with another *rubric* as one criterion."""
        if not isinstance(rubric, Rubric):
            raise refuse("rubric", rubric, "a Rubric")
        return self._with(text or rubric.name or shorten(rubric.text, 80) or "included", rubric, options)

    def passing_at(self, threshold: float | None, /) -> Self:
        """Return the rubric with another *threshold*; None lets the judge's own pass flag decide."""
        return evolve(self, threshold=threshold)

    def borderline_at(self, score: float | None, /) -> Self:
        """Return the rubric with *score* as the start of the borderline band."""
        return evolve(self, borderline=score)

    def strictly(self) -> Self:
        """Return the rubric that passes only if every contribution is 1."""
        return evolve(self, strict=True)

    def by_worst(self) -> Self:
        """Return the rubric whose score is its worst contribution."""
        return evolve(self, aggregation="min")

    def by_points(self) -> Self:
        """Return the rubric scored by points: those met, less penalties, over all that can be met."""
        return evolve(self, aggregation="points")

    def with_evidence(self) -> Self:
        """Return the rubric whose judges must quote the candidate."""
        return evolve(self, evidence=True)

    def shown_as(self, scale: Scale, /) -> Self:
        """Return the rubric whose scores are shown on *scale*."""
        return evolve(self, scale=scale)

    def abstaining(self, policy: Abstention | float, /) -> Self:
        """Return the rubric whose judges may say "cannot tell", which counts by *policy*."""
        return evolve(self, abstain=policy)

    def guided_by(self, guidelines: str, /) -> Self:
        """Return the rubric with *guidelines* that hold for all criteria."""
        return evolve(self, guidelines=guidelines)

    def adding(self, *criteria: Criterion | str) -> Self:
        """Return the rubric with *criteria* at its end."""
        before, places = len(self.criteria), self._places
        added = _as_criteria(criteria, before)
        whole = (*self.criteria, *added)
        plain = type(self) is Rubric and not self.text and self.tree is None and self.threshold is not None
        # A shared dict that is longer holds criteria of another rubric that was made of this one, perhaps by another
        # thread just now: then everything is checked anew, as it is for an id that seems to be taken.
        if (
            not plain
            or len(places) != before
            or any(places.setdefault(c.id, n) != n for n, c in enumerate(added, before))
        ):
            return evolve(self, criteria=whole)
        longer = object.__new__(type(self))
        for name in _FIELDS:
            object.__setattr__(longer, name, whole if name == "criteria" else getattr(self, name))
        object.__setattr__(longer, "_places", places)
        return longer

    def without(self, *ids: str) -> Self:
        """Return the rubric without the criteria called *ids*."""
        for id_ in ids:
            self._must_have(id_)
        return evolve(self, criteria=[c for c in self.criteria if c.id not in ids])

    def revising(self, id: str, /, **changes: Any) -> Self:
        """Return the rubric with *changes* to the fields of the criterion called *id*."""
        self._must_have(id)
        _check_fields(changes)
        check_gate(changes.get("polarity", self[id].polarity), changes)
        return evolve(self, criteria=[evolve(c, **changes) if c.id == id else c for c in self.criteria])

    def _with(self, text: str, answer: Answer, options: CriterionOptions) -> Self:
        _check_fields(options)
        return self.adding(Criterion(text, answer=answer, **cast("dict[str, Any]", options)))

    def _must_have(self, id: str) -> None:
        if id not in {c.id for c in self.criteria}:
            raise DefinitionError("id", f"no criterion {id!r}{suggest(id, [c.id for c in self.criteria])}")

    # -- showing -----------------------------------------------------------------------------------

    def __str__(self) -> str:
        return f"<Rubric {self.name!r}: {self._summary()}>"

    def _summary(self) -> str:
        what = f"{len(self.criteria)} criteria" if self.criteria else "one text" if self.text else "one tree"
        what = what if self.judged else "nothing yet"
        return f"{what}, {'the judge decides' if self.threshold is None else f'pass at {self.threshold:g}'}"

    def _repr_html_(self) -> str:
        from rubric.rendering.html import fragment  # noqa: PLC0415 - only notebooks need these
        from rubric.values.cards import rubric_card  # noqa: PLC0415

        return fragment(rubric_card(self, self._summary(), describe))

    def _repr_markdown_(self) -> str:
        head = f"**{cell(self.name) or 'rubric'}** ({self._summary()})"
        counts = "points" if self.aggregation == "points" else "weight"
        rows = [
            (c.id, shorten(c.text, 300), describe(c), f"{'-' if c.polarity == 'penalty' else ''}{c.weight:g}")
            for c in self.judged
        ]
        return f"{head}\n\n{table(('id', 'criterion', 'answer', counts), rows)}"


AnyAnswer = JudgeAnswer | DecisionTree | Rubric | AnyCheck
"""Every answer there is: a `match` over it ends with `assert_never`, so that type checkers name each one forgotten."""

_FIELDS = tuple(one.name for one in fields(Rubric))


def _meaning(options: CriterionOptions, **meant: Any) -> CriterionOptions:
    """Return *options* with those that the method itself sets; an option that contradicts them is refused."""
    for name, value in meant.items():
        given = options.get(name, value)
        if given != value:
            raise DefinitionError(name, f"this verb means {value!r}, got {given!r}; use another verb, such as expects")
    return cast("CriterionOptions", {**options, **meant})


def check_gate(polarity: object, options: Mapping[Any, Any]) -> None:
    """Refuse *options* that take its gate from a guard, whose polarity alone makes it one."""
    if polarity == "guard" and scalar(options.get("required", True)) is False:
        cure = "one that takes points off, and fails nothing, is penalizes(text, points=...)"
        raise DefinitionError("required", f"a guard that is found fails the grade, required or not; {cure}")


def rubric_of(value: object) -> Rubric:
    """
    Return *value* as a rubric; a text is a free-form one.

    Raises:
        DefinitionError: *value* is neither, or it is the path of a file.
    """
    if isinstance(value, str):
        cure = f"load the file: load({value!r}); or give Rubric.of({value!r}) to grade by these words"
        refuse_path("rubric", value, cure)
        return Rubric.of(value)
    if isinstance(value, Rubric):
        return value
    match value:
        case list() | tuple():
            cure = "; give Rubric(criteria=[...])"
        case Mapping():
            cure = "; what a file would hold is read by loads(json.dumps(data))"
        case PathLike():
            cure = f"; give load({fspath(value)!r})"
        case _:
            cure = ""
    allowed = "a Rubric, the text of a free-form one, or the Path of its file"
    raise DefinitionError("rubric", f"expected {allowed}, got {shorten(repr(value))}{cure}")


def check_weights(rubric: Rubric) -> None:
    """
    Refuse a rubric, or one nested in it, in which nothing counts, or whose penalties do not fit its aggregation.

    A rubric may pass through such a state while it is built; it cannot grade in it. Penalties alone are the exception
    that needs no points: the average of their contributions is the share of them that was not found.
    """
    if rubric.criteria and not any(criterion.weight for criterion in rubric.criteria):
        raise DefinitionError("criteria", "their weights sum to 0; at least one must count, so give it a weight")
    counted = [criterion for criterion in rubric.criteria if criterion.weight]
    penalties = [criterion.id for criterion in counted if criterion.polarity == "penalty"]
    earning = len(counted) - len(penalties)
    if rubric.aggregation == "points" and counted and not earning:
        message = "no criterion earns points; add one that does, or leave points: penalties alone are averaged"
        raise DefinitionError("aggregation", message)
    if rubric.aggregation != "points" and penalties and earning:
        message = f"the penalty {penalties[0]!r} subtracts points, and {rubric.aggregation} has none"
        raise DefinitionError("aggregation", f'{message}; score by_points(), which is aggregation="points"')
    for index, criterion in enumerate(rubric.criteria):
        if isinstance(criterion.answer, Rubric):
            try:
                check_weights(criterion.answer)
            except DefinitionError as problem:
                raise DefinitionError(f"criteria[{index}].{problem.field}", problem.message) from None


def averaged(rubric: Rubric) -> Rubric:
    """Return *rubric* for files that know no points: without penalties, points are the weighted average."""
    return evolve(rubric, aggregation="weighted_average") if rubric.aggregation == "points" else rubric


def _check_fields(given: Mapping[str, Any]) -> None:
    if "points" in given:
        raise DefinitionError("points", "the points of a criterion are its weight; give weight=...")
    check_fields(Criterion, "a criterion", given)


def describe(criterion: Criterion) -> str:
    """Describe in a few words how *criterion* is answered and what it gates."""
    match criterion.answer:
        case DecisionTree():
            words = ["tree"]
        case Rubric(name=name):
            words = [f"rubric {name!r}" if name else "rubric"]
        case Check() as check:
            words = [f"check: {check}"]
        case answer:  # of a `JudgeAnswer`, whose members all have words
            words = [answer.words]
    words += [criterion.polarity] if criterion.polarity != "satisfy" else []
    words += ["required"] if criterion.required else []
    words += [f"at least {criterion.min_score:g}"] if criterion.min_score is not None else []
    return ", ".join(words)
