"""
Agreement: how far a judge is from people, two judges from each other, and the votes of a jury among themselves.

Every figure stands beside its 95 % interval, beside what people reach among themselves, and beside a judge that always
says the same: 84 % is good where that one has 50 %, and nothing where it has 95 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter
from os import PathLike
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from rubric import DefinitionError, Grades
from rubric.driving import Usage
from rubric.embed import Listed, Presented, Table, counted, guided, percent
from rubric.suites.report import Report
from rubric.trust.annotators import Votes, votes_of
from rubric.trust.assumptions import count_unmatched, of_grades, of_labels, sentences
from rubric.trust.calibration import Calibration
from rubric.trust.criterion_agreement import BRIEF, CriterionAgreement, agreement_of, among_people
from rubric.trust.disagreements import Disagreements
from rubric.trust.drift import Baseline, Drift, drift
from rubric.trust.labels import Labels, as_labels
from rubric.trust.ratings import Judged, Ratings, among, as_judged, beside, match_labels
from rubric.view.plots import BAD, GOOD, chart, forest, part, row_of


@frozen(repr=False)
class Agreement(Presented, Listed[CriterionAgreement]):
    """
    What `agreement` returns: each criterion, and what was matched.

    Args:
        criteria: The whole first, where it is labelled, and each criterion; by id, `agreement(...)["clarity"]`.
        judge: The judge's name.
        other: `people`, or the name of another judge; empty for the votes of a jury, `each other` for people alone.
        digest: The rubric's.
        raters: The people.
        unmatched: Keys of labels without a candidate.
        unlabelled: Candidates without a label.
        votes: Of a jury: how much its votes agree.
        ratings: What the figures rest on.
        notes: What is not as the figures assume.
        brief: Whether the tables hold the figures to look at first alone; `found.detailed` has all of them.
        calls: How many requests the results took; None where it is not known.
    """

    _truth = "its figures"
    _id = attrgetter("title")

    criteria: tuple[CriterionAgreement, ...]
    judge: str
    other: str = "people"
    digest: str = ""
    raters: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    unlabelled: int = 0
    votes: tuple[Votes, ...] = ()
    ratings: tuple[Ratings, ...] = field(default=(), eq=False)
    notes: tuple[str, ...] = ()
    brief: bool = field(default=True, eq=False)
    calls: int | None = field(default=None, eq=False)

    @property
    def detailed(self) -> Agreement:
        """The same with every statistic, the rates of each class and the confusion in its tables."""
        return evolve(self, brief=False)

    @property
    def overall(self) -> CriterionAgreement | None:
        """The whole, else all criteria together; None where they have different scales."""
        return next((c for c in self.criteria if c.id in ("", "all criteria")), None)

    @property
    def disagreements(self) -> Disagreements:
        """The candidates of which the judge and people do not say the same, by criterion."""
        if not self.criteria:
            raise DefinitionError(
                "others", "votes of a jury have no other side; give labels, or another judge's grades"
            )
        own = [c for c in self.criteria if c.id != "all criteria"]
        sides = ("the judge", "people") if self.other == "people" else (self.judge, self.other)
        if self.other == "each other":
            sides = (*self.raters,) if len(self.raters) == 2 else ("one person", "the others")
        n = sum(c.n for c in own) if sides != ("one person", "the others") else 0
        return Disagreements(tuple(one for c in own for one in c.disagreements), n, sides)

    @property
    def by_rater(self) -> dict[str, CriterionAgreement]:
        """The judge beside each of several people, on what that person labelled, of the first criterion."""
        lead = self.ratings[0] if self.ratings else None
        if lead is None or len(lead.raters) < 2:
            return {}
        alone = (evolve(lead, people=lead.people[:, [nth]]) for nth in range(len(lead.raters)))
        return dict(zip(lead.raters, map(agreement_of, alone), strict=True))

    @property
    def sentence(self) -> str:
        """A description of the main figure."""
        if not self.criteria:
            votes = self.votes[0]
            share = votes.flip_rate
            return f"Two votes on one candidate differ in {percent(share.value or 0.0, share.interval)}."
        lead = self.criteria[0] if self.overall is None else self.overall
        if self.other == "each other":
            return _among_sentence(self.criteria[0], len(self.raters))
        said = lead.sentence("The judge" if self.other == "people" else self.judge, self.other)
        return said if lead is self.overall or len(self.criteria) == 1 else f"{lead.title}: {said}"

    def remarks(self) -> list[str]:
        """What to know before a figure is trusted."""
        lines = []
        if self.unmatched:
            lines.append(f"{count_unmatched(self.unmatched)}.")
        if self.unlabelled:
            verb = "has" if self.unlabelled == 1 else "have"
            lines.append(f"{counted(self.unlabelled, 'candidate')} {verb} no label.")
        lines += sentences([*self.notes, *(f"{c.title}: {remark}" for c in self.criteria for remark in c.remarks)])
        if hidden := sum(not self._shows(c, one.name) for c in self.criteria for one in c.statistics):
            cure = "print(found.detailed), or --all at a terminal"
            lines.append(f"{counted(hidden, 'more figure')}, and what is behind them: {cure}.")
        return lines

    def _shows(self, found: CriterionAgreement, name: str) -> bool:
        of_people = self.other == "each other" and not found.confusion and name in ("alpha", "alpha, interval")
        return not self.brief or name in BRIEF[found.kind] or of_people

    def tables(self) -> list[Table]:
        """The figures, as tables with a title and a head each."""
        out: list[Table] = []
        one, other = ("the judge", "people") if self.other == "people" else (self.judge, self.other)
        lines = []
        for c in self.criteria:
            judged, each, among = ({s.name: str(s) for s in found} for found in (c.statistics, c.each, c.ceiling))
            for name in judged | among:
                if self._shows(c, name):
                    constant = f"{c.constant.name}: {c.constant}" if c.constant and name == _LEADS[c.kind] else ""
                    figures = (judged.get(name, ""), each.get(name, ""), among.get(name, ""), constant)
                    lines.append((c.title, c.n, name, *figures))
        if kept := [at for at in range(len(_HEAD)) if any(line[at] != "" for line in lines)]:
            titles = [one if name == "judge" and self.other == "each other" else name for name in _HEAD]
            out.append(("", tuple(titles[at] for at in kept), [tuple(line[at] for at in kept) for line in lines]))
        if beside := self.by_rater:
            name = "pearson" if self.ratings[0].scale.kind == "number" else "agreement"
            known = {rater: {s.name: str(s) for s in c.statistics} for rater, c in beside.items()}
            shown = [(rater, c.n, known[rater].get(name, "too few")) for rater, c in beside.items()]
            out.append(
                (f"{self.ratings[0].criterion or 'the whole'}: {one} and each person", ("", "n", name), [*shown])
            )
        for c in () if self.brief else self.criteria:
            if c.rates:
                top = ("class", other, one, "recall", "specificity", "precision", "F1")
                figures_of = ((r, (r.recall, r.specificity, r.precision, r.f1)) for r in c.rates)
                shares = [(r.name, r.people, r.judge, *map(str, figures)) for r, figures in figures_of]
                out.append((f"{c.title}: each class", top, [*shares]))
            if c.confusion:
                cells = [(name, *row) for name, row in zip(c.categories, c.confusion, strict=True)]
                out.append((f"{c.title}: {other} in rows, {one} in columns", ("", *c.categories), [*cells]))
        if self.votes:
            votes = [(v.id or "the whole", v.n, v.flip_rate, v.icc, v.alpha, v.needed or "–") for v in self.votes]
            head = ("criterion", "n", "flip rate", "ICC(1)", "alpha", "votes for reliability .9")
            out.append(("The votes of the jury", head, [tuple(map(str, line)) for line in votes]))
        return out

    def plot(self) -> Any:
        """Return the confusion of each criterion, or judge against people for numbers, as an Altair chart."""
        if not self.criteria:
            rows = [row_of(v.id or "the whole", v.flip_rate.value, v.flip_rate.interval) for v in self.votes]
            return chart(forest(rows, "share of votes that flip"), title=self.sentence)
        parts = []
        for one in self.criteria:
            if one.confusion:
                cells = [
                    {"people": person, "judge": said, "count": count, "color": GOOD if person == said else BAD}
                    for person, counts in zip(one.categories, one.confusion, strict=True)
                    for said, count in zip(one.categories, counts, strict=True)
                ]
                parts.append(part("confusion", rows=cells, title=one.title))
            elif (ratings := next((r for r in self.ratings if r.criterion == one.id), None)) is not None:
                both = ~np.isnan(ratings.target) & ~np.isnan(ratings.judge)
                pairs = zip(ratings.judge[both].tolist(), ratings.target[both].tolist(), strict=True)
                points = [{"judge": a, "people": b} for a, b in islice(pairs, 4_000)]  # Altair takes 5,000
                ends = {value for point in points for value in point.values()} or {0.0}
                line = [{"judge": end, "people": end} for end in (min(ends), max(ends))]
                parts.append(part("against people", rows=points, line=line, title=one.title))
        return chart(*parts, title=self.sentence)

    def dump(self, path: str | PathLike[str]) -> None:
        """Write it to *path*, as YAML or as JSON by its ending, as a baseline for `against`."""
        self.baseline.dump(path, self.to_dict())

    @property
    def baseline(self) -> Baseline:
        """What later agreements are compared with."""
        return Baseline.of_ratings(self.judge, self.digest, self.ratings)

    def against(self, saved: Agreement | Calibration | Baseline | str | PathLike[str], *, risk: float = 0.05) -> Drift:
        """
        Say whether the judge, or the people, have changed since an agreement that was *saved*.

        Args:
            saved: An earlier agreement or calibration, or the file that its `dump` wrote.
            risk: How often an unchanged judge may be called changed.
        """
        before = saved if isinstance(saved, Baseline | str | PathLike) else saved.baseline
        return drift(self.baseline, before, risk, self.calls)


_LEADS = {"verdict": "agreement", "option": "agreement", "number": "RMSE"}
_HEAD = ("criterion", "n", "statistic", "judge", "with each person", "people with each other", "constant judge")


def _among_sentence(found: CriterionAgreement, raters: int) -> str:
    lead, alpha = ("pearson", "alpha, interval") if found.kind == "number" else ("agreement", "alpha")
    if all(one.name != lead for one in found.statistics):
        return f"{raters} people label {counted(found.n, 'candidate')} in common, too few for a figure."
    first = found[lead]
    shown = percent(first.value, first.interval) if lead == "agreement" and first.value is not None else str(first)
    if first.value is None:
        return f"{raters} people label {found.n:,} candidates, and their {lead} is {shown}."
    verb = "correlate with each other at" if found.kind == "number" else "agree with each other in"
    return f"{raters} people {verb} {shown} on {found.n:,} candidates; alpha is {found[alpha]}."


def _of_people(labels: Labels) -> Agreement:
    """Return how far people agree with each other; a rater who saw a verdict is one like the others."""
    found = among(labels)
    several = [one for one in found if len(one.raters) > 1]
    if not several:
        cure = "name them, Labels.by_rater({key: {rater: value}}), or compare with grades, agreement(grades, labels)"
        raise DefinitionError("grades", f"expected labels of two raters or more, got those of one; {cure}")
    criteria = [each for one in several for each in among_people(one)]
    raters = tuple(dict.fromkeys(rater for one in several for rater in one.raters))
    notes, keys = [], [*dict.fromkeys(repr(row.key) for row in labels.rows)]
    if len({(row.key, row.rater) for row in labels.rows}) > len(keys) ** 2 > 1:  # as if it were turned round
        said = f"more people label each candidate than there are candidates; if {', '.join(keys[:3])} are people"
        notes = [f"{said}, write Labels.by_rater({{key: {{rater: value}}}})"]
    return Agreement(tuple(criteria), "people", "each other", raters=raters, notes=tuple(notes))


@guided
def agreement(
    grades: Grades | Report | Judged | Labels | Mapping[Any, Any] | str | PathLike[str],
    others: Labels | Mapping[Any, Any] | Grades | Judged | str | PathLike[str] | None = None,
) -> Agreement:
    """
    Measure how far a judge agrees with people, with another judge, or with itself.

    Args:
        grades: What the judge said: `Grades`, the `Report` of a suite, or a file of results. Or the labels of several
            raters, without *others*: how far people agree with each other.
        others: Labels of people, also as a mapping such as `{0: True}`; or the grades of another judge on the
            same candidates; or a file of labels. None for the votes of a jury.

    Raises:
        DefinitionError: A label is outside of its criterion's scale, nothing matches, or a jury has no votes.
    """
    if isinstance(grades, Labels | Mapping) and others is None:
        return _of_people(as_labels(grades))
    given = as_judged(grades)
    votes = tuple(votes_of(name, given.columns[name][0], table, given) for name, table in given.votes.items())
    if others is None:
        if not votes:
            why = "one judge has no votes to compare; give labels, or grade with Jury(judge, 5)"
            raise DefinitionError("grades", why)
        return Agreement((), given.name, "", given.digest, votes=votes)
    other = "people"
    try:
        labels = as_labels(others)
        ratings = match_labels(given, labels)
        notes = of_labels(given, labels, ratings)
    except DefinitionError as error:
        if error.field != "labels" or not isinstance(others, Grades | Judged):
            raise
        theirs = as_judged(others, "others")
        other = theirs.name if theirs.name != given.name else "the other judge"
        ratings = beside(given, theirs, other)
        notes = [f"{one.name}: {remark}" for one in (given, theirs) for remark in of_grades(one)]
    raters = tuple(dict.fromkeys(rater for each in ratings for rater in each.raters))
    ratings.sort(key=lambda each: each.criterion != "")
    found = [agreement_of(each) for each in ratings]
    if (pooled := _pool(ratings)) is not None:
        every = tuple(one for each in found for one in each.disagreements)
        found.insert(0, evolve(agreement_of(pooled), disagreements=every))
    labelled = np.any([~np.isnan(each.people).all(axis=1) for each in ratings], axis=0)
    unmatched = tuple(dict.fromkeys(key for each in ratings for key in each.unmatched))
    matching = raters, unmatched, int((~labelled).sum())
    used = [result.usage for result in given.results]
    calls = None if Usage(cost=None) in used else sum(each.calls for each in used)  # a file may not have kept it
    rest = tuple(ratings), tuple(notes)
    return Agreement(tuple(found), given.name, other, given.digest, *matching, votes, *rest, calls=calls)


def _pool(ratings: Sequence[Ratings]) -> Ratings | None:
    """Return all criteria as one, each candidate a group; None for one criterion, the whole, or different scales."""
    scales = {evolve(each.scale, is_inverted=False) for each in ratings}
    if len(ratings) < 2 or not ratings[0].criterion or len(scales) > 1:
        return None
    raters = max(each.people.shape[1] for each in ratings)
    people = [np.pad(r.people, ((0, 0), (0, raters - r.people.shape[1])), constant_values=np.nan) for r in ratings]
    columns = ("judge", "groups", "weights")
    joined: dict[str, Any] = {name: np.concatenate([getattr(each, name) for each in ratings]) for name in columns}
    joined["names"] = ratings[0].names * len(ratings)
    return evolve(ratings[0], criterion="all criteria", people=np.concatenate(people), grouped=True, **joined)
