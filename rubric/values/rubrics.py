"""Rubrics: criteria, one free-form text or one decision tree, and how these become a score and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, get_args

import attrs
from attrs import Attribute, evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.internals import fields
from rubric.internals.containers import Listed, Unchanging
from rubric.internals.fields import Shown, is_missing, refuse
from rubric.internals.frozen_map import FrozenMap, freeze, thaw
from rubric.internals.guided import guided_class
from rubric.internals.notebooks import as_html
from rubric.internals.text import cell, counted, shorten, table
from rubric.values.answers import EVEN, Answer, Scale, Unit, UnitScale, YesNo
from rubric.values.building import TREE, Building, check_gate
from rubric.values.checks import Check, is_matcher
from rubric.values.criteria import ANSWER_KEYS, Abstention, Criterion, abstention, only_answer, refuse_metric
from rubric.values.trees import DecisionTree

if TYPE_CHECKING:
    from rubric.values.candidates import Candidate
    from rubric.values.rubric_tests import RubricTest

Degenerate = Literal["fail", "judge", "error"]
T = TypeVar("T")
Aggregation = Literal["weighted_average", "min", "points"]  # `aggregations` has what each does
_FEWEST_DERIVED = 64

WHOLE = "overall"
"""The id of the one criterion of a free-form rubric or of a rubric that is a tree."""


def _as_criteria(value: Iterable[Criterion | str | Mapping[str, Any]], start: int = 0) -> tuple[Criterion, ...]:
    is_plain = type(value) in (list, tuple)  # an ABC is asked for the others alone: this runs for each rubric
    if not is_plain and (isinstance(value, str | Mapping | Criterion | Rubric) or not isinstance(value, Iterable)):
        from rubric.internals.guesses import instead  # noqa: PLC0415 - needed for errors alone

        problem = refuse("criteria", value, "a list of criteria (a Criterion, its text, or a mapping of its fields)")
        raise DefinitionError("criteria", problem.message + instead("criteria", value))
    if hasattr(value, "columns"):  # a frame, whose iterator yields the names of its columns
        rows = next((f"{name}()" for name in ("to_dicts", "to_pylist") if hasattr(value, name)), "to_dict('records')")
        raise DefinitionError("criteria", f"a frame gives its rows: write criteria=frame.{rows}")
    criteria = []
    for index, item in enumerate(value, start):
        if not isinstance(item, Criterion) and isinstance(item, str | Mapping):
            try:
                if isinstance(item, str) and fields.names_a_file(item):
                    cure = f"load the file: load({item!r}); or, to ask by this text, give Criterion({item!r})"
                    fields.refuse_path("text", item, cure)
                if isinstance(item, str):
                    refuse_metric("text", item, f"write Criterion({item!r})")
                item = Criterion(item) if isinstance(item, str) else _of_mapping(item)  # noqa: PLW2901
            except DefinitionError as problem:
                message = _empty_cell(item, problem.field) if isinstance(item, Mapping) else ""
                raise DefinitionError(f"criteria[{index}].{problem.field}", message or problem.message) from None
        if not isinstance(item, Criterion):
            from rubric.internals.guesses import instead  # noqa: PLC0415 - needed for errors alone

            form = "a Criterion, its text, or a mapping of its fields: {'text': 'Is polite', 'weight': 2}"
            problem = refuse(f"criteria[{index}]", item, form)
            raise DefinitionError(problem.field, problem.message + instead("item", item))
        criteria.append(item)
    return Unchanging(criteria)


def _empty_cell(row: Mapping[str, Any], name: str) -> str:
    """Return what to do with the empty cell of *row*, of a frame, in the column *name*; '' if it is not empty."""
    if name == "text" and is_missing(row.get("text")) and is_missing(row.get("check")):
        return "there is no text; leave the row out: [row for row in rows if isinstance(row.get('text'), str)]"
    line = "{k: v for k, v in row.items() if str(v) not in ('None', 'nan', 'NaT', '<NA>')}"  # NA == NA is an error
    return f"the cell is empty; leave it out: {line}" if name in row and is_missing(row[name]) else ""


def _of_mapping(item: Mapping[str, Any]) -> Criterion:
    """Return the criterion with the fields in *item*; what only a file writes as a mapping is read as from a file."""
    if isinstance(item.get("check"), Mapping) or isinstance(item.get("tree"), Mapping) or "rubric" in item:
        return Rubric.from_dict({"criteria": [thaw(freeze(item))]}).criteria[0]
    return Criterion(**item)


def _as_tests(value: Iterable[RubricTest | Mapping[str, Any]]) -> tuple[RubricTest, ...]:
    if value == ():
        return ()
    from rubric.values.rubric_tests import as_tests  # noqa: PLC0415 - few rubrics have tests

    return as_tests(value)


def _files() -> Any:
    from rubric.formats import rubrics  # noqa: PLC0415 - it brings the parsers of YAML and JSON

    return rubrics


def _as_name(value: str | Iterable[Criterion | str | Mapping[str, Any]]) -> str:
    # `Rubric([...])` is meant for a rubric without a name; the hook of the class rearranges it (`_rubric_of_criteria`).
    return cast("str", value)


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


@guided_class
@frozen(repr=False)
class Rubric(Building, Answer, Shown, Listed[Criterion]):
    """
    The criteria that a candidate is graded against. A rubric never changes; every method returns a new one.

    Its criteria are iterated, counted, and taken by id, by place or by slice: `rubric["cites"]`, `rubric[0]`,
    `rubric[-2:]`. A free-form text and a tree are one criterion, `overall`.

    At most one of *criteria*, *text* and *tree* is given. A rubric without any is a start for the methods that add
    criteria; it cannot grade.

    Args:
        name: Its name.
        criteria: The criteria: each a `Criterion`, its text (yes or no), or a mapping of its fields as in a file. A
            list alone, `Rubric([...])`, is a rubric without a name.
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
            (score 0, no call), `judge` (like any other), `error` (ungraded). A conversation that was answered before,
            and whose last answer alone is empty, is ungraded under `fail` too.
        binding: Where the rubric is nested in another: a gate that fails in it fails the other one too.
        all_or_nothing: Where the rubric is nested in another: count there as 1 if it passes, else as 0.
        tests: Replies with what a good judge says of them, for `check`: each a `RubricTest`, or a mapping of its
            fields as in a file. No judge sees them, and they change neither the digest nor what a store holds.
        max_steps: How many times a judge may call tools that read what the candidate made (its files, its diff, the
            results of its tools), before it has to answer. 0: it has no tools.
        reviewed: False for generated criteria that no person has read yet: grading with it warns once. True, or None
            (nothing is said), for all others.
        provenance: Where the criteria are from: the model that wrote them, and the digests of its sources. Free data;
            like *reviewed*, no judge sees it, and it changes neither the digest nor what a store holds.

    Raises:
        DefinitionError: A value that no rubric can have; the message names the field and the cure.
    """

    _items = "judged"

    _positional = ("name",)

    name: str = field(default="", converter=_as_name, validator=fields.string)
    criteria: tuple[Criterion, ...] = field(default=(), converter=_as_criteria, validator=_unique)
    text: str = field(default="", kw_only=True, validator=fields.string)
    tree: DecisionTree | None = field(
        default=None, kw_only=True, validator=fields.optional(_of_type(DecisionTree, TREE))
    )
    threshold: float | None = field(default=0.7, kw_only=True, validator=fields.optional(fields.number(0, 1)))
    borderline: float | None = field(default=None, kw_only=True, validator=fields.optional(fields.number(0, 1)))
    strict: bool = field(default=False, kw_only=True, validator=fields.flag)
    aggregation: Aggregation = field(
        default="weighted_average", kw_only=True, validator=fields.one_of(*get_args(Aggregation))
    )
    evidence: bool = field(default=False, kw_only=True, validator=fields.flag)
    abstain: Abstention | float = field(default="forbid", kw_only=True, validator=abstention)
    guidelines: str = field(default="", kw_only=True, validator=fields.wording)
    scale: Scale = field(
        default=UnitScale(), kw_only=True, validator=_of_type(Scale, "UnitScale(), Likert(1, 5), Boolean() or Letter()")
    )
    prompt: str | None = field(default=None, kw_only=True, validator=fields.optional(fields.wording))
    negate: bool = field(default=False, kw_only=True, validator=fields.flag)
    degenerate: Degenerate = field(default="fail", kw_only=True, validator=fields.one_of(*get_args(Degenerate)))
    binding: bool = field(default=False, kw_only=True, validator=fields.flag)
    all_or_nothing: bool = field(default=False, kw_only=True, validator=fields.flag)
    tests: tuple[RubricTest, ...] = field(default=(), kw_only=True, converter=_as_tests)
    max_steps: int = field(default=0, kw_only=True, validator=fields.count(0))
    reviewed: bool | None = field(default=None, kw_only=True, validator=fields.optional(fields.flag))
    provenance: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=fields.frozen, validator=fields.mapping)

    def __attrs_post_init__(self) -> None:
        given = [name for name in ("criteria", "text", "tree") if getattr(self, name)]
        if len(given) > 1:
            raise DefinitionError(given[1], f"a rubric has {given[0]} or {given[1]}, not both; nest one in the other")
        if self.text and not self.text.strip():
            raise DefinitionError("text", "expected text, got white space")
        if self.borderline is not None and self.threshold is not None and self.borderline > self.threshold:
            message = f"expected at most the threshold {self.threshold}, got {self.borderline}"
            raise DefinitionError("borderline", message)
        if self.text and self.aggregation != "weighted_average":
            raise DefinitionError(
                "aggregation",
                "a free-form text earns no points, and takes none: its one judgement is the score; take it out",
            )
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
            at, cure = f"criteria[{index}] {criterion.id!r}", "give a threshold from 0 to 1"
            if criterion.polarity == "penalty":
                raise DefinitionError("threshold", f"{at} is a penalty, and a score decides what that comes to; {cure}")
            if not isinstance(criterion.answer, YesNo | Check | Rubric) and criterion.answer != Unit(flag=True):
                message = f"{at} has no pass flag that could decide without a threshold; {cure}"
                raise DefinitionError("threshold", f"{message}, or make its answer YesNo() or Unit(flag=True)")

    # -- reading ---------------------------------------------------------------------------------

    @cached_property
    def judged(self) -> tuple[Criterion, ...]:
        """The criteria that are judged; a free-form text or a tree is one of its own."""
        if self.text:
            return (Criterion(self.text, id=WHOLE, answer=Unit(flag=self.threshold is None)),)
        if self.tree is not None:
            return (Criterion(self.tree.question, id=WHOLE, answer=self.tree),)
        return self.criteria

    def check_weights(self) -> None:
        """
        Refuse a rubric, or one nested in it, in which nothing counts, or whose penalties do not fit its aggregation.

        A rubric may pass through such a state while it is built; it cannot grade in it. Penalties alone are the
        exception that needs no points: the average of their contributions is the share of them that was not found.

        Raises:
            DefinitionError: It says what to change.
        """
        if self.criteria and not any(criterion.weight for criterion in self.criteria):
            raise DefinitionError("criteria", "their weights sum to 0; at least one must count, so give it a weight")
        counted = [criterion for criterion in self.criteria if criterion.weight]
        penalties = [criterion.id for criterion in counted if criterion.polarity == "penalty"]
        earning = len(counted) - len(penalties)
        if self.aggregation == "points" and counted and not earning:
            message = "no criterion earns points; add one that does, or leave points: penalties alone are averaged"
            raise DefinitionError("aggregation", message)
        if self.aggregation != "points" and penalties and earning:
            message = f"the penalty {penalties[0]!r} subtracts points, and {self.aggregation} has none"
            raise DefinitionError("aggregation", f'{message}; score by_points(), which is aggregation="points"')
        inner = [criterion.answer for criterion in self.criteria if isinstance(criterion.answer, Rubric)]
        unset = {"evidence": False, "abstain": "forbid", "guidelines": "", "prompt": None, "max_steps": 0}
        for name, nothing in unset.items() if len(inner) == len(self.criteria) else ():
            if (here := getattr(self, name)) != nothing and any(getattr(each, name) != here for each in inner):
                message = "it has no effect: each criterion is a rubric, which has settings of its own; set it in those"
                raise DefinitionError(name, message)
        for index, criterion in enumerate(self.criteria):
            if isinstance(criterion.answer, Rubric):
                try:
                    criterion.answer.check_weights()
                except DefinitionError as problem:
                    raise DefinitionError(f"criteria[{index}].{problem.field}", problem.message) from None

    def gate_of(self, criterion: Criterion) -> float | None:
        """Return the contribution below which *criterion* fails the grade; None if it is not a gate."""
        if criterion.min_score is None and (criterion.required or criterion.polarity == "guard"):
            return EVEN if self.threshold is None else self.threshold
        return criterion.min_score

    def policy(self, criterion: Criterion) -> str | float:
        """Return what becomes of an abstention on *criterion*, one of its own."""
        return self.abstain if criterion.abstain is None else criterion.abstain

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits of what is asked and how it is scored; equal after a round trip through a file."""
        from rubric.values.digest import digest_of  # noqa: PLC0415 - hashlib and json, which few rubrics need

        return digest_of(self)

    @cached_property
    def _places(self) -> dict[str, int]:
        """The place of each criterion, by id."""
        # A rubric hands it on to those that `adding` makes of it, so that a chain of 1,000 `expects` takes twice the
        # time of 500, and not four times. So it may also hold criteria that come after those of this rubric.
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

    def __bool__(self) -> bool:
        """True, also without criteria: a rubric to begin with is a rubric."""
        return True

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the criteria, in their order."""
        return tuple(criterion.id for criterion in self.judged)

    @property
    def weights(self) -> FrozenMap:
        """The weights of the criteria, by id."""
        return FrozenMap({criterion.id: criterion.weight for criterion in self.judged})

    # -- files: see `load`, `loads`, `dump` and `dumps` --------------------------------------------------

    @classmethod
    def load(cls, path: str | PathLike[str], /) -> Rubric:
        """Return the rubric in the file at *path* (YAML or JSON), like `load`."""
        return cast("Rubric", _files().load(path))

    @classmethod
    def from_yaml(cls, text: str, /) -> Rubric:
        """Return the rubric in *text*, which is YAML or JSON, like `loads`; a file is for `Rubric.load`."""
        return cast("Rubric", _files().loads(text))

    from_json = from_yaml

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> Rubric:
        """
        Return the rubric in *data*, which is what a file would hold.

        Raises:
            LoadError: With all problems of the data, each with its path, such as `criteria[2].weight`.
        """
        return cast("Rubric", _files().of_data(data))

    def save(self, path: str | PathLike[str], /) -> None:
        """Write the rubric to the file at *path* (.yaml, .yml or .json), like `dump`."""
        _files().dump(self, path)

    def to_yaml(self) -> str:
        """Return the rubric as YAML, like `dumps`."""
        return str(_files().dumps(self))

    def to_json(self) -> str:
        """Return the rubric as JSON."""
        return str(_files().dumps(self, format="json"))

    @cached_property
    def starts_programs(self) -> bool:
        """True if grading by it, or by one nested in it, starts programs where they are allowed."""
        return next(programs_in(self), None) is not None

    @property
    def is_reviewed(self) -> bool:
        """True unless the rubric, or one nested in it, has `reviewed` set to false."""
        nested = (criterion.answer for criterion in self.criteria if isinstance(criterion.answer, Rubric))
        return self.reviewed is not False and all(rubric.is_reviewed for rubric in nested)

    def to_dict(self) -> dict[str, Any]:
        """Return what a file of the rubric holds, as plain data; what has its default is left out."""
        return cast("dict[str, Any]", _files().to_data(self))

    # -- building: each method returns a new rubric --------------------------------------------------

    @classmethod
    def of(cls, text: str, /, *, name: str = "", threshold: float | None = 0.7) -> Self:
        """Return a rubric of one free-form *text*: a single, holistic judgement in 0..1."""
        return cls(name, text=text, threshold=threshold)

    @classmethod
    def deciding(cls, tree: DecisionTree, /, *, name: str = "", threshold: float = 0.7) -> Self:
        """Return a rubric that is one decision *tree*."""
        return cls(name, tree=tree, threshold=threshold)

    def passing_at(self, threshold: float | str | None, /) -> Self:
        """Return the rubric with another *threshold*: 0.8 or "80%"; None lets the judge's own pass flag decide."""
        share = fields.as_share(threshold) if isinstance(threshold, str) else None
        return evolve(self, threshold=cast("float | None", threshold) if share is None else share)

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

    def adding(self, *criteria: Criterion | str | Mapping[str, Any]) -> Self:
        """Return the rubric with *criteria* at its end; `rubric + criterion` does the same."""
        before, places = len(self.criteria), self._places
        added = _as_criteria(criteria, before)
        whole = Unchanging((*self.criteria, *added))
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

    def __add__(self, other: Criterion | str | Mapping[str, Any] | Iterable[Criterion | str]) -> Self:
        if isinstance(other, Rubric):
            cure = "all criteria in one are rubric.adding(*other), and other as one criterion is rubric.includes(other)"
            raise DefinitionError("rubric", f"the sum of two rubrics may mean two things; {cure}")
        return self.adding(*(_as_criteria(other) if isinstance(other, list | tuple) else (cast("Criterion", other),)))

    __or__ = __add__  # as sets are united: refused, or added, alike

    def tested_by(self, reply: str | Candidate, /, **expected: Any) -> Self:
        """Return the rubric with one more test at its end; *expected* are the fields of a `RubricTest`."""
        from rubric.values.rubric_tests import RubricTest  # noqa: PLC0415 - few rubrics have tests

        return evolve(self, tests=(*self.tests, RubricTest(reply, **expected)))

    def without(self, *ids: str) -> Self:
        """Return the rubric without the criteria called *ids*."""
        for id_ in ids:
            self._must_have(id_)
        return evolve(self, criteria=[c for c in self.criteria if c.id not in ids])

    def revising(self, id: str, /, **changes: Any) -> Self:
        """Return the rubric with *changes* to the fields of the criterion called *id*."""
        self._must_have(id, "revising", **changes)
        check_options(changes)
        changes = only_answer(changes)
        check_gate(changes.get("polarity", self[id].polarity), changes)
        return evolve(self, criteria=[evolve(c, **changes) if c.id == id else c for c in self.criteria])

    def _must_have(self, id: str, method: str = "without", /, **changes: Any) -> None:
        if not isinstance(id, str):
            raise refuse("id", id, "the id of a criterion")
        if id not in (known := [c.id for c in self.criteria]):
            call = f"{method}({', '.join([repr(id), *(f'{name}={value!r}' for name, value in changes.items())])})"
            held = [c.id for c in self.criteria if isinstance(c.answer, Rubric) and id in c.answer.ids]
            lines = [
                f"; it is in {at!r}: write rubric.revising({at!r}, answer=rubric[{at!r}].answer.{call})" for at in held
            ]
            raise DefinitionError("id", f"no criterion {id!r}{lines[0] if lines else fields.suggest(id, known)}")

    # -- showing -----------------------------------------------------------------------------------

    def __str__(self) -> str:
        return f"<Rubric {self.name!r}: {describe(self)}>"

    _repr_html_ = as_html

    def _repr_markdown_(self) -> str:
        head = f"**{cell(self.name) or 'rubric'}** ({describe(self)})"
        counts = "points" if self.aggregation == "points" else "weight"
        rows = [
            (c.id, shorten(c.text, 300), describe(c), f"{'-' if c.polarity == 'penalty' else ''}{c.weight:g}")
            for c in self.judged
        ]
        return f"{head}\n\n{table(('id', 'criterion', 'answer', counts), rows)}"


_FIELDS = tuple(one.name for one in attrs.fields(Rubric))


def is_ready(text: str) -> bool:
    """True if *text* is the name of a rubric of `rubric.presets`."""
    if not text.isidentifier():
        return False
    from importlib.resources import files  # noqa: PLC0415 - most rubrics are no words

    return files("rubric.presets").joinpath(f"{text}.yaml").is_file()


def rubric_of(value: object) -> Rubric:
    """
    Return *value* as a rubric; a text is a free-form one.

    Raises:
        DefinitionError: *value* is neither, or it is the path of a file.
    """
    if isinstance(value, str):
        path = value.removeprefix("file://")
        cure = f"load the file: load({path!r}); or give Rubric.of({value!r}) to grade by these words"
        fields.refuse_path("rubric", value, cure)
        if is_ready(value):
            cures = f"write from rubric import presets; presets.{value}; or, for this word, write Rubric.of({value!r})"
            raise DefinitionError("rubric", f"{value!r} is the name of a ready rubric; {cures}")
        refuse_metric("rubric", value, f"write Rubric.of({value!r})")
        return Rubric.of(value)
    if isinstance(value, Rubric):
        return value
    from rubric.internals.guesses import instead  # noqa: PLC0415 - needed for errors alone

    allowed = "a Rubric, the text of a free-form one, or the Path of its file"
    raise DefinitionError("rubric", f"expected {allowed}, got {shorten(repr(value))}{instead('rubric', value)}")


def check_options(given: Mapping[str, Any]) -> None:
    """Refuse names in *given* that no criterion has."""
    if "points" in given:
        raise DefinitionError("points", "the points of a criterion are its weight; give weight=...")
    fields.check_fields(Criterion, "a criterion", (name for name in given if name not in ANSWER_KEYS))


def programs_in(rubric: Rubric) -> Iterator[str]:
    """Yield the names of the programs that grading by *rubric* starts, where they are allowed."""
    for criterion in rubric.judged:
        yield from criterion.programs
        if isinstance(criterion.answer, Rubric):
            yield from programs_in(criterion.answer)


def _on(on: object) -> str:
    """Describe what a criterion is asked of, other than the whole conversation."""
    if isinstance(on, int):
        return f"turn {on}"
    return str(on) if isinstance(on, str) or is_matcher(on) else getattr(on, "__name__", "a part")


def describe(value: Rubric | Criterion) -> str:
    """Describe in a few words how a criterion is answered and what it gates; what a rubric holds and when it passes."""
    return _rubric_in_words(value) if isinstance(value, Rubric) else _criterion_in_words(value)


def _rubric_in_words(rubric: Rubric) -> str:
    what = counted(len(rubric.criteria), "criterion") if rubric.criteria else "one text" if rubric.text else "one tree"
    what = what if rubric.judged else "nothing yet"
    return f"{what}, {'the judge decides' if rubric.threshold is None else f'pass at {rubric.threshold:g}'}"


def _criterion_in_words(criterion: Criterion) -> str:
    match criterion.answer:
        case DecisionTree():
            words = ["tree"]
        case Rubric(name=name):
            words = [f"rubric {name!r}" if name else "rubric"]
        case Check() as check:
            words = ["check" if str(check) == str(criterion.text) else f"check: {check}"]
        case answer:  # of a `JudgeAnswer`, whose members all have words
            words = [answer.words]
    words += [criterion.polarity] if criterion.polarity != "satisfy" else []
    words += [f"on {_on(criterion.on)}"] if (criterion.on != "conversation") else []
    words += ["required"] if criterion.required else []
    words += [f"only {criterion.when!r}"] if criterion.when is not None else []
    words += [f"at least {criterion.min_score:g}"] if criterion.min_score is not None else []
    return ", ".join(words)
