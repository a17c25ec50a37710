"""
Ratings: grades and labels side by side, as arrays.

Each criterion, and the whole verdict, becomes a column of the judge and a table of people, on one scale: verdicts are 0
and 1, numbers are points of the criterion's scale, options are numbered. What is missing is NaN. Results are matched
with labels by key, or by their place; what has no partner is counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations
from os.path import isfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import evolve, field, frozen

from rubric import Choices, Criterion, DefinitionError, Grade, Judge, Levels, Rubric, Ungraded, Unit, YesNo
from rubric.embed import Check, Finding, Wording, fields, shorten
from rubric.results import Record, Scored, places_by
from rubric.suites.report import Report
from rubric.trust.inference import Codes, Floats
from rubric.trust.labels import OUTCOMES, SAID, Label, Labels, Value, number_in

Kind = Literal["verdict", "number", "option"]
_Result = Grade | Ungraded | Record

VERDICTS = "pass or fail, yes or no, true or false, 1 or 0, good or bad, ok or nok, met or unmet, accepted or rejected"
_HALF = 0.5


@frozen
class Scale:
    """
    The values that a judge and people may give.

    Args:
        kind: `verdict` (0 and 1), `number`, or `option` (numbered from 0).
        low: The lowest number; None where it is not known.
        high: The highest number.
        options: The names of options.
        is_inverted: True if a pass is a "no": of a guard and a penalty.
        is_whole: True for labels of the whole, which may all be verdicts instead.
        told: Of results without their rubric: the ends of a scale of numbers, where scores tell them; else empty.
    """

    kind: Kind
    low: float | None = None
    high: float | None = None
    options: tuple[str, ...] = ()
    is_inverted: bool = False
    is_whole: bool = field(default=False, eq=False)
    told: tuple[float, ...] | None = field(default=None, eq=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of categories; empty for numbers."""
        return ("no", "yes") if self.kind == "verdict" else self.options

    def ends(self, values: Floats) -> tuple[float, float]:
        """Return the lowest and the highest number; where they are not known, those of *values*."""
        low, high = float(values.min()), float(values.max())
        return low if self.low is None else self.low, high if self.high is None else self.high

    def read(self, value: Value, place: str) -> float:
        """
        Return *value*, as a person gave it, on this scale.

        Raises:
            DefinitionError: It is outside of the scale.
        """
        number = number_in(value)
        if self.kind == "verdict":
            found = self.verdict(value)
        elif self.kind == "option":
            places = {name.casefold(): float(code) for code, name in reversed([*enumerate(self.options)])}
            found = places.get(str(value).strip().casefold())
        else:
            low, high = self._bounds or (-math.inf, math.inf)
            found = number if number is not None and low <= number <= high else None
        if found is None and self.kind == "option" and self.told is not None:
            why = (
                f"the judge chose {' and '.join(self.options)} alone, and {shorten(repr(value))} may be another option"
            )
            raise DefinitionError(place, f"{why}, which results do not hold{NEEDS_RUBRIC}")
        if found is None:
            cure = _share_of(number) if self.kind == "number" and self.high == 1 and number is not None else ""
            shown, other = shorten(repr(value)), ""
            if self.kind == "verdict" or (number is None and self.is_whole):
                other = f"{', or in all labels of the whole a verdict' * self.is_whole} ({VERDICTS})"
                ways = [f"labels.replace({{{shown}: {verdict!r}}})" for verdict in ("pass", "fail")]
                cure = f"; if it is a pass, write {ways[0]}, and if it is a fail, {ways[1]}"
            cure += LEFT_OUT if isinstance(value, str) and number is None else ""
            raise DefinitionError(place, f"expected {self}{other}, got {shown}{cure}")
        return found

    def verdict(self, value: Value) -> float | None:
        """Return 1 for a yes and 0 for a no; None for anything else."""
        found = SAID.get(said := str(value).strip().casefold())
        return None if found is None else float(found != (self.is_inverted and said in OUTCOMES))

    @property
    def _bounds(self) -> tuple[float, ...]:
        """The lowest and the highest number; empty where they are not known."""
        return self.told or ((self.low, self.high) if self.low is not None and self.high is not None else ())

    def __str__(self) -> str:
        if self.kind == "number":
            return "a number in {:g}..{:g}".format(*self._bounds) if self._bounds else "a number"
        return "yes or no" if self.kind == "verdict" else f"one of {', '.join(self.options)}"


def _share_of(number: float) -> str:
    """Return the end of the message on a *number* that is no share: of a scale from 1, or of 100."""
    if not 1 < number <= 100:
        return ""
    if number > 10:
        line = "Labels.from_pandas(frame.assign(value=frame['value'] / 100))"
        return f"; {number:g} of 100 is {number / 100:g}; write {line}"
    top = 5 if number <= 5 else 10
    line = f"Labels.from_pandas(frame.assign(value=(frame['value'] - 1) / {top - 1}))"
    return f"; {number:g} on a scale from 1 to {top} is {(number - 1) / (top - 1):.3g}; write {line}"


LEFT_OUT = "; if it is not a label, leave its cell empty"
"""The end of the message on a text that is no label, such as `n/a`."""


NEEDS_RUBRIC = "; write Grades.read_jsonl('results.jsonl', rubric), which has the options of the rubric"
"""The end of the message on a label that may be an option which no result names."""

VERDICT, UNIT = Scale("verdict"), Scale("number", 0.0, 1.0)


def scale_of(criterion: Criterion) -> Scale:
    """Return the scale of what a judge says of *criterion*."""
    match criterion.answer:
        case Levels(low=low, high=high):
            return Scale("number", float(low), float(high))
        case Choices(choices=choices):
            return Scale("option", options=tuple(choice.label for choice in choices))
        case YesNo() | Check():
            return Scale("verdict", is_inverted=criterion.is_unwanted)
        case _:
            return UNIT


def value_of(finding: Finding | None, scale: Scale) -> float:
    """Return what *finding* says on *scale*; NaN if it has no score."""
    if not isinstance(finding, Scored):
        return np.nan
    if scale.kind == "verdict":
        return float(finding.score >= _HALF)
    if scale.kind == "option":
        return scale.read(str(finding.value), "value") if isinstance(finding.value, str) else np.nan
    if scale.low is None:  # of a file: the value is all that is known
        return float(finding.value) if isinstance(finding.value, int | float) else np.nan
    return scale.low + finding.score * ((1.0 if scale.high is None else scale.high) - scale.low)


@frozen(eq=False)
class Judged:
    """
    What a judge said about many candidates.

    Args:
        keys: Of each candidate; empty where it has none. So too *places* among all, from 0, and numbers of *groups*.
        columns: Each criterion by its id, with its scale; `""` is the verdict on the whole.
        scores: The score of the whole, in 0..1; NaN if ungraded.
        votes: For each criterion the values of the members of a jury, a column a member.
        name: The judge's; *digest*: the rubric's, empty if there are several.
        grouped: True if candidates have groups or share keys.
        rubrics: How many results each rubric has, by its digest; *judges*: each judge, by its digest and its name.
        used: The labels by which the rubric or the judge was chosen, as `mark_of` returns them; *calibrated*: those by
            which results are calibrated.
        anchored: Whether each candidate is shown to the judge, as an anchor of a criterion.
        results: Those of which it was made.
    """

    keys: tuple[str, ...]
    places: tuple[int, ...]
    groups: Codes
    columns: Mapping[str, tuple[Scale, Floats]]
    scores: Floats
    votes: Mapping[str, Floats] = field(factory=dict)
    name: str = ""
    digest: str = ""
    grouped: bool = False
    rubrics: Mapping[str, int] = field(factory=dict)
    judges: Mapping[tuple[str, str], int] = field(factory=dict)
    used: frozenset[str] = frozenset()
    calibrated: frozenset[str] = frozenset()
    results: tuple[_Result, ...] = ()
    anchored: tuple[bool, ...] = ()

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def names(self) -> tuple[str, ...]:
        """What each candidate is called: its key, or its place where candidates have no keys."""
        return self.keys if any(self.keys) else tuple(map(str, self.places))

    def rows_by(self, by: str | Mapping[Any, str], *cure: str) -> dict[str, list[int]]:
        """Return the rows of each group: of what results share, as `Grades.by` has it, or of a mapping from names."""
        if not isinstance(by, Mapping):
            return places_by(self.results, by, *cure)
        of, found = {str(name): str(group) for name, group in by.items()}, dict[str, list[int]]()
        for row, name in enumerate(self.names):
            if name in of:
                found.setdefault(of[name], []).append(row)
        return found

    def part(self, rows: Sequence[int]) -> Judged:
        """Return what was said of the candidates in these *rows*."""
        return evolve(_judged_of([self.results[row] for row in rows]), places=tuple(self.places[row] for row in rows))


def as_judged(grades: object, field: str = "grades", rubrics: Iterable[Rubric] = ()) -> Judged:
    """
    Return *grades* as arrays: `Grades`, a list of results, a `Report`, or the path of a file of `Grades.to_jsonl`.

    The results in a file do not hold the scales of criteria, which their *rubrics* do.

    Raises:
        DefinitionError: They are something else, there are none, or a file has results of other rubrics.
    """
    if isinstance(grades, Report):
        grades = grades.grades
    if isinstance(grades, Judged):
        return grades
    if isinstance(grades, str) and not fields.names_a_file(grades) and not isfile(grades):  # noqa: PTH113 - it raises for no text
        raise fields.refuse(field, grades, "results, or the path of a file that has them")
    if isinstance(grades, str | Path):
        path = Path(grades)
        records = [Record.from_dict(one, f"{path.name}[{n}]") for n, one in enumerate(Record.data_in("grades", path))]
        if not records:
            raise DefinitionError(path.name, "there is no result in it")
        known = {rubric.digest: rubric for rubric in rubrics}
        if known and (others := {record.digest for record in records} - known.keys()):
            said = f"{path.name} has results of the rubric {min(others)}, and given is {', '.join(known)}"
            raise DefinitionError("rubrics", f"{said}; give it as it was when they were graded")
        return _judged_of(records, {known[record.digest] for record in records} if known else ())
    if isinstance(grades, Grade | Ungraded | str) or not isinstance(grades, Iterable):
        raise fields.refuse(field, grades, "many results, such as what grade_many(...).collect() returns")
    results = tuple(grades)
    if not results or not all(isinstance(each, Grade | Ungraded) for each in results):
        allowed = "many results, such as what grade_many(...).collect() returns; there is none here"
        if results and all(isinstance(each, bool | int | float) for each in results):
            pairs = "{str(n): {'judge': a, 'human': b} for n, (a, b) in enumerate(zip(judge, human))}"
            allowed += f"; two lists of verdicts are two raters': agreement(Labels.by_rater({pairs}))"
        raise fields.refuse(field, grades, allowed)
    return _judged_of(results)


def _judged_of(results: Sequence[_Result], given: Iterable[Rubric] = ()) -> Judged:
    said: dict[str, list[Finding | None]] = {}
    scales: dict[str, Scale] = {}
    live = [result for result in results if not isinstance(result, Record)]
    rubrics = {*given, *(result.rubric for result in live)}
    for rubric in rubrics:
        scales |= {criterion.id: scale_of(criterion) for criterion in rubric.judged}
    for row, result in enumerate(results):
        for finding in result.findings:
            said.setdefault(finding.id, [None] * len(results))[row] = finding
    columns: dict[str, tuple[Scale, Floats]] = {"": (VERDICT, np.array([*map(_verdict, results)], dtype=float))}
    for id_, found in said.items():
        if id_ in scales or not rubrics:
            scale = scales[id_] if rubrics else _infer_scale(id_, results, found)
            columns[id_] = scale, np.array([value_of(each, scale) for each in found], dtype=float)
    clusters = [(r.group or r.key or None) if isinstance(r, Record) else r.cluster for r in results]
    named = [place if cluster is None else cluster for place, cluster in enumerate(clusters)]  # else a group by itself
    numbers = {name: number for number, name in enumerate(dict.fromkeys(named))}
    digests = Counter((r if isinstance(r, Record) else r.rubric).digest for r in results)
    graded = [result for result in results if _outcome(result).score is not None]  # rows that no judge saw have none
    judges = Counter(map(_judge, graded or results))
    names = sorted({name for _, name in judges})
    anchors = {rubric: {anchor.response for one in rubric.judged for anchor in one.anchors} for rubric in rubrics}

    def is_anchor(one: _Result) -> bool:
        return not isinstance(one, Record) and getattr(one.candidate, "output", None) in anchors[one.rubric]

    return Judged(
        tuple(result.key for result in results),
        tuple(n if result.index is None else result.index for n, result in enumerate(results)),
        np.array([numbers[name] for name in named], dtype=np.intp),
        columns,
        np.array([_outcome(result).score for result in results], dtype=float),  # NaN for None
        _votes(results, columns),
        ", ".join(names) if len(names) <= 3 else f"{len(names)} judges",
        next(iter(digests)) if len(digests) == 1 else "",
        len(numbers) < len(results),
        digests,
        judges,
        frozenset(mark for each in results for mark in each.chosen_by),
        frozenset(one.labels for result in live for one in result.calibrated.values() if one.labels),
        results=tuple(results),
        anchored=tuple(map(is_anchor, results)),
    )


def _outcome(result: _Result) -> Any:
    return result if isinstance(result, Record) else result.outcome


def _verdict(result: _Result) -> float:
    said = _outcome(result)
    return np.nan if said.score is None else float(bool(said.passed))


def _judge(result: _Result) -> tuple[str, str]:
    """Return digest and name."""
    if isinstance(result, Record):
        return result.judge_digest, result.judge
    judge = result.judge
    return getattr(judge, "digest", ""), judge.name if isinstance(judge, Judge) else str(judge)


def mark_of(given: Judged, labels: Labels) -> str:
    """Return the digest of *labels*, and where candidates have keys 8 digits for each labelled one."""
    by_key = any(given.keys) and labels.by != "index"
    return ":".join([labels.digest, *sorted({*labels.places} if by_key else ())])


def count_reused(marks: Iterable[str], labels: Labels) -> int:
    """Return how many of *labels* are those of *marks*, known by their candidates' keys."""
    known = {part for mark in marks for part in mark.split(":")}
    return len(labels) if labels.digest in known else sum(place in known for place in labels.places)


def _votes(results: Sequence[_Result], columns: Mapping[str, tuple[Scale, Floats]]) -> dict[str, Floats]:
    """Return the values of the members of a jury for each criterion; nothing where there are no votes."""
    most = max(len(result.votes) for result in results)
    if most < 2:
        return {}
    tables = {name: np.full((len(results), most), np.nan) for name in columns}
    for row, result in enumerate(results):
        for vote, each in enumerate(result.votes):
            tables[""][row, vote] = _verdict(each)
            for finding in each.findings:
                if finding.id in tables:
                    tables[finding.id][row, vote] = value_of(finding, columns[finding.id][0])
    return tables


def _infer_scale(id_: str, results: Sequence[Any], findings: Sequence[Finding | None]) -> Scale:
    """Return the scale of the criterion *id_* of a file, which holds no rubric, by what was said."""
    scored = [(r, each) for r, each in zip(results, findings, strict=True) if isinstance(each, Scored)]
    values = [each.value for _, each in scored]
    if options := {value for value in values if isinstance(value, str)}:
        return Scale("option", options=tuple(sorted(options)), told=())
    if any(isinstance(value, bool) for value in values) or not any(isinstance(value, int | float) for value in values):
        return Scale("verdict", is_inverted=any(r.contributions.get(id_) == 1 - each.score for r, each in scored))
    pairs = [
        (each.value, each.score) for _, each in scored if isinstance(each.value, int | float) and not each.weighted
    ]
    (low, least), (high, most) = min(pairs, default=(0, 0)), max(pairs, default=(0, 0))
    if least == most:  # one value alone tells no ends
        return Scale("number", told=())
    width = (high - low) / (most - least)
    ends = round(low - least * width, 6), round(high + (1 - most) * width, 6)
    fits = all(math.isclose(ends[0] + score * width, value, abs_tol=1e-6) for value, score in pairs)
    return Scale("number", told=ends if fits else ())


# -- matching ----------------------------------------------------------------------------------------------


@frozen(eq=False)
class Ratings:
    """
    One criterion, as the judge and people see it.

    Args:
        criterion: Its id; empty for the whole.
        judge: What the judge said of each candidate; NaN without a verdict.
        people: What each person said, a column for each of the *raters*.
        groups: The number of the group of each candidate; they are *grouped* if some are larger than one.
        weights: How many candidates each labelled one represents.
        unmatched: The keys of labels without a candidate.
        names: The key of each candidate, or its place where candidates have no keys.
        seen: The labels whose raters had seen the judge's verdict; *counts_seen* is True if they count.
    """

    criterion: str
    scale: Scale
    judge: Floats
    people: Floats
    groups: Codes
    grouped: bool
    raters: tuple[str, ...]
    weights: Floats
    unmatched: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    seen: int = 0
    counts_seen: bool = False

    @property
    def target(self) -> Floats:
        """What people say together: the mean of numbers, the majority of verdicts and options; NaN for a tie."""
        return together(self.people, self.scale)

    @property
    def votes(self) -> Floats:
        """The mean of what people say of each, also of verdicts: a tie is a half; NaN without a label."""
        return together(self.people, UNIT)

    @property
    def is_weighted(self) -> bool:
        """True if some labelled candidates represent more than others."""
        return len({*self.weights[~np.isnan(self.people).all(axis=1)]}) > 1


def together(people: Floats, scale: Scale) -> Floats:
    """Return what *people*, a column each, say together; NaN where none says anything, or for a tie."""
    count = (~np.isnan(people)).sum(axis=1)
    if people.shape[1] == 1:
        return people[:, 0]
    if scale.kind == "number":
        total = np.nansum(people, axis=1)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)
    options = max(2, len(scale.options))
    tally = np.stack([(people == code).sum(axis=1) for code in range(options)], axis=1)
    best = tally.max(axis=1)
    is_clear = (count > 0) & ((tally == best[:, None]).sum(axis=1) == 1)
    return np.where(is_clear, tally.argmax(axis=1).astype(float), np.nan)


def match_labels(given: Judged, labels: Labels) -> list[Ratings]:
    """
    Return the ratings of each criterion that is labelled, in the order of the labels.

    Raises:
        DefinitionError: A label is outside of its criterion's scale, names no criterion, or none has a candidate.
    """
    rows_of, by = labels.rows_by_name(given.keys, given.places)
    names = {label.key for label in labels}
    if by == "index" and 0 in given.places and "0" not in names and str(len(given)) in names:
        cure = "write {place - 1: value for place, value in labels.items()}"
        raise DefinitionError("labels", f"places are counted from 0, and these begin at 1; {cure}")
    out, lost = list[Ratings](), 0
    for criterion, every in _by_criterion(labels).items():
        mine, seen = [label for label in every if labels.counts(label)], sum(label.judge_seen for label in every)
        if not mine:
            lost += seen
            continue
        if not criterion:
            _check_whole(given, labels.column, {label.rater for label in mine})
        name, scale, values = _column(given, criterion, [label.value for label in mine], mine[0].place or "labels")
        people, weights, raters = _tabulate(mine, rows_of, len(given), scale)
        if np.isnan(people).all():
            cure = "; by rater, write Labels.by_rater({key: {rater: value}})" * bool({*raters} & {*given.keys} - {""})
            raise DefinitionError("labels", _no_match(given, mine[0].key, by) + cure)
        unmatched = tuple(label.key for label in mine if label.key not in rows_of)
        among, left = (given.groups, given.grouped, raters), (unmatched, given.names, seen)
        out.append(Ratings(name, scale, values, people, *among, weights, *left, labels.counts_seen))
    if out:
        return [evolve(out[0], seen=out[0].seen + lost), *out[1:]]
    what = f"all {lost} were given after a look at the judge's verdict (judge_seen), so they cannot show its errors"
    cure = "label without it, or give labels.with_seen; at a terminal, --with-seen"
    raise DefinitionError("labels", f"{what}; {cure}" if lost else "there is none")


_KEYED = """grade with them, such as rubric grade-many rubric.yaml answers.jsonl --column key=id --out results.jsonl;
write grade_many(rows, rubric, judge, columns={'key': 'id'})""".replace("\n", " ")
_PLACED = "if these are places from 0, call their column index; else "


def _by_criterion(labels: Labels) -> dict[str, list[Label]]:
    found: dict[str, list[Label]] = {}
    for label in labels:
        found.setdefault(label.criterion, []).append(label)
    return found


def whole_of(results: Sequence[Grade | Ungraded], labels: Labels) -> Labels:
    """Return the verdicts on the whole to which *labels* of all criteria lead by the one rubric of *results*."""
    rubric, given = results[0].rubric, as_judged(results)
    cure = "label whether each should pass: {key: True}"
    if rubric.evidence or any(criterion.evidence for criterion in rubric.judged):
        why = "labels have no quotes, and the rubric asks for some, so that it cannot decide by labels"
        raise DefinitionError("grades", f"{why}; {cure}")
    rows_of, _ = labels.rows_by_name(given.keys, given.places)
    said = dict[tuple[str, str], dict[str, Label]]()
    for label in labels:
        if label.criterion and label.key in rows_of:
            said.setdefault((label.key, label.rater), {})[label.criterion] = label
    found = []
    for (key, _), mine in said.items():
        result = results[rows_of[key][0]]
        own = dict(zip([criterion.id for criterion in rubric.judged], result.findings, strict=False))
        every = (_said_of(criterion, mine.get(criterion.id), own.get(criterion.id)) for criterion in rubric.judged)
        findings = tuple(finding for finding in every if finding is not None)
        if len(findings) == len(rubric.judged):
            judged = evolve(result, judge=Judge("offline"), votes=(), findings=findings)
            first, seen = next(iter(mine.values())), any(label.judge_seen for label in mine.values())
            found.append(evolve(first, criterion="", value=bool(judged.rescore().passed), reason="", judge_seen=seen))
    if not found:
        raise DefinitionError("labels", f"nobody labels all criteria of a candidate; {cure}")
    return evolve(labels, rows=found, column="")


def _said_of(criterion: Criterion, label: Label | None, own: Finding | None) -> Finding | None:
    """Return what a person says of *criterion*, or what code says, its *own* finding; None if nobody does."""
    if label is None or not isinstance(criterion.answer, YesNo | Levels | Unit | Choices):
        return own if isinstance(criterion.answer, Check) else None
    scale, place = scale_of(criterion), label.place or f"labels[{label.key!r}]"
    value, (low, high) = scale.read(label.value, place), (scale.low or 0.0, scale.high or 1.0)
    if isinstance(criterion.answer, Choices):
        return Scored(criterion.id, criterion.answer.choices[int(value)].score)
    return Scored(criterion.id, (value - low) / (high - low))


def _check_whole(given: Judged, column: str, raters: AbstractSet[str]) -> None:
    """Raise for labels of the whole from a *column*, or by *raters*, of the name of a criterion."""
    if named := [name for name in given.columns if name and name in {column, *raters}]:
        what = f"{' and '.join(map(repr, named))} {'is a criterion' if len(named) == 1 else 'are criteria'}"
        why = f"{what} of the grades, and labels without a criterion are of the whole; read them with "
        other = "if they are of the whole, call the column value" if column in named else "people take other names"
        raise DefinitionError("labels", Wording(why, Wording(criteria=named), f"; {other}"))


def _tabulate(
    labels: Sequence[Label], rows_of: Mapping[str, Sequence[int]], n: int, scale: Scale
) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Return what *labels* of one criterion say of *n* candidates, a column a rater; their weights; and the raters."""
    raters = {rater: column for column, rater in enumerate(dict.fromkeys(label.rater for label in labels))}
    people, weights = np.full((n, len(raters)), np.nan), np.ones(n)
    known: dict[tuple[type, Value], float] = {}
    for label in labels:
        said = (type(label.value), label.value)  # by type too: True equals 1, and "1" is a name or a number
        if (value := known.get(said)) is None:
            value = known[said] = scale.read(label.value, label.place or f"labels[{label.key!r}]")
        for row in rows_of.get(label.key, ()):
            people[row, raters[label.rater]], weights[row] = value, label.weight
    return people, weights, tuple(raters)


def ratings_of(given: Judged, labels: Labels, criterion: str | None = None) -> Ratings:
    """
    Return the ratings of one *criterion*, empty for the whole; None: of the only one that is labelled, or the whole.

    Raises:
        DefinitionError: It has no label, or none that fits.
    """
    if criterion is None:
        criterion = labels.criteria[0] if len(labels.criteria) == 1 else ""
    wanted = [label for label in labels if label.criterion == criterion]
    if not wanted:
        named = ", ".join(repr(name) if name else "the whole" for name in labels.criteria) or "none"
        what = repr(criterion) if criterion else "the whole"
        raise DefinitionError("labels", f"there is no label for {what}; there are labels for: {named}")
    return match_labels(given, evolve(labels, rows=tuple(wanted)))[0]


def _no_match(given: Judged, key: str, by: str) -> str:
    if not any(given.keys) and (by == "key" or not key.isdigit()):
        cures = f"{_PLACED if key.isdigit() else ''}{_KEYED}"
        return f"the candidates have no keys, and labels are by key ({key!r}, ...); {cures}"
    theirs = given.keys[0] if by == "key" else str(given.places[0])
    return f"none matches a candidate by {by}: labels are for {key!r}, ..., candidates are {theirs!r}, ..."


def _column(given: Judged, criterion: str, values: Sequence[Value], place: str) -> tuple[str, Scale, Floats]:
    """Return name, scale and values of *criterion*. Numbers for the whole are its score, or its one criterion's."""
    if criterion:
        if criterion not in given.columns:
            why = f"there is no criterion {criterion!r} in the grades"
            names = ", ".join(repr(name) for name in given.columns if name)
            cure = "raters are named by Labels.by_rater({key: {rater: value}})"
            raise DefinitionError(place, f"{why} (there are: {names}); {cure}")
        return criterion, *given.columns[criterion]
    single = [name for name in given.columns if name]
    name, (scale, said) = "", (UNIT, given.scores)
    if len(single) == 1 and given.columns[single[0]][0].kind != "verdict":
        name, (scale, said) = single[0], given.columns[single[0]]
    own = {*map(str.casefold, scale.options)} & {"good", "bad", "accepted", "rejected"}  # else a verdict, as pass is
    said_of = {v: VERDICT.verdict(v) for v in values if str(v).strip().casefold() not in own}
    are_words = any(v is not None for v in said_of.values()) and all(number_in(v) is None for v in values)
    if said_of and (are_words or None not in said_of.values()):  # one word that is no verdict is told as such
        return "", *given.columns[""]
    return name, evolve(scale, is_whole=True), said


def items_of(ratings: Ratings) -> list[tuple[str, list[float | None], int]]:
    """Return name, what judge and people said, and group of each labelled candidate; repeated names are numbered."""
    target = ratings.target
    rows = np.flatnonzero(~np.isnan(target))
    said = ((None if np.isnan(ratings.judge[row]) else float(ratings.judge[row]), float(target[row])) for row in rows)
    names = (name if time == 1 else f"{name} ({time})" for name, time in numbered(ratings.names[row] for row in rows))
    return [(name, [*both], int(ratings.groups[row])) for name, both, row in zip(names, said, rows, strict=True)]


def numbered(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield each of *names* with how often it has come so far."""
    seen = Counter[str]()
    for name in names:
        seen[name] += 1
        yield name, seen[name]


def beside(given: Judged, other: Judged, rater: str) -> list[Ratings]:
    """Return the ratings of two judges on the same candidates, the *other* in the place of people."""
    by_key = any(given.keys) and any(other.keys)
    mine, theirs = (one.keys if by_key else tuple(map(str, one.places)) for one in (given, other))
    rows = {name: row for row, name in enumerate(theirs)}
    order = np.array([rows.get(name, -1) for name in mine])
    if (order < 0).all():
        raise DefinitionError("others", _no_match(given, theirs[0], "key" if by_key else "index"))
    known = {*mine}
    unmatched = tuple(name for name in theirs if name not in known)
    out: list[Ratings] = []
    for name, (mine_on, values) in given.columns.items():
        if name in other.columns:
            its, said = other.columns[name]
            scale = evolve(mine_on, options=tuple(dict.fromkeys((*mine_on.options, *its.options))))
            if scale.options:  # each file names those alone that its judge chose
                said = np.array([*map(scale.options.index, its.options), np.nan])[
                    np.nan_to_num(said, nan=-1).astype(int)
                ]
            people = np.where(order < 0, np.nan, said[order])[:, None]
            among, ones = (given.groups, given.grouped, (rater,)), np.ones(len(given))
            out.append(Ratings(name, scale, values, people, *among, ones, unmatched, mine))
    return out


def among(labels: Labels) -> list[Ratings]:
    """Return what several people say, without a judge, on scales that fit what was said."""
    out = []
    for criterion, mine in _by_criterion(labels).items():
        rows_of = {key: [row] for row, key in enumerate(dict.fromkeys(label.key for label in mine))}
        n, scale = len(rows_of), _scale_of_labels(mine)
        try:
            people, _, raters = _tabulate(mine, rows_of, n, scale)
        except DefinitionError as error:
            if scale is not VERDICT:
                raise
            read = {label.value: VERDICT.verdict(label.value) for label in mine}
            names = {value: "a yes" if verdict else "a no" for value, verdict in read.items() if verdict is not None}
            own = f"; if it is a category of its own, the verdicts take other names: labels.replace({names})"
            raise DefinitionError(error.field, f"{error.message}{own}") from None
        each = (np.arange(n, dtype=np.intp), False, raters)
        out.append(Ratings(criterion, scale, np.full(n, np.nan), people, *each, np.ones(n), names=tuple(rows_of)))
    return out


def _scale_of_labels(labels: Sequence[Label]) -> Scale:
    """Return the scale of all but a few of *labels*, since it refuses these by name; refuse two vocabularies."""
    values = [label.value for label in labels]
    lost, of_numbers = (sum(read(value) is None for value in values) for read in (VERDICT.verdict, number_in))
    if 4 * min(lost, of_numbers) <= len(values):
        return VERDICT if lost <= of_numbers else Scale("number")
    said: dict[str, dict[str, Value]] = {}
    for label in labels:
        said.setdefault(label.rater, {})[label.key] = label.value
    for one, other in combinations(said, 2):
        pairs = [(said[one][key], value) for key, value in said[other].items() if key in said[one]]
        words = [{str(pair[side]).strip().casefold() for pair in pairs} for side in (0, 1)]
        verdicts = [{*each} & SAID.keys() for each in words]
        least = 1 if any(verdicts) else 2  # of words that come again: single ones may differ in one vocabulary
        apart = not words[0] & words[1] and least <= min(map(len, words)) and max(map(len, words)) < len(pairs)
        if apart or (min(map(len, verdicts)) > 1 and not verdicts[0] & verdicts[1]):
            mine, theirs = (", ".join(map(repr, sorted(words[side] - words[1 - side]))) for side in (0, 1))
            why = f"{one!r} says {mine} and {other!r} says {theirs}, and these have no word in common"
            beside = {b: Counter(a for a, c in pairs if c == b) for _, b in pairs}
            same = {b: a.most_common(1)[0][0] for b, a in beside.items() if str(b).strip().casefold() not in words[0]}
            cure = f"if they mean the same, write the words of one in all rows: labels.replace({same})"
            raise DefinitionError("labels", f"{why}; {cure}")
    return Scale("option", options=tuple(sorted({str(value).strip() for value in values})))
