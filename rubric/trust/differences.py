"""
Differences between two runs over the same candidates: which is better, by how much, and could it be noise?

Results are paired by key, else by place. What has no partner is listed. Where both runs are labelled, the difference is
corrected by PPI++ like an estimate: people's differences, moved by the judge's on unlabelled candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from rubric import DefinitionError, Grades
from rubric.embed import Listed, NoTruth, Presented, Table, counted, few_groups, fields, guided
from rubric.suites.report import Report
from rubric.trust.assumptions import beside_holm, first_of, of_grades, of_labels, of_runs, sentences
from rubric.trust.inference import Codes, Contrast, Floats, Interval, compact, contrast, holm, paired_contrast
from rubric.trust.labels import Labels, as_labels
from rubric.trust.ratings import UNIT, Judged, Ratings, Scale, as_judged, match_labels, numbered
from rubric.view.comparison_page import sentence_of
from rubric.view.plots import chart, forest, row_of

_WHOLE = ("pass rate", "score")
"""The figures of the whole, which stand first."""


@frozen
class CriterionDifference(NoTruth):
    """
    The difference on one criterion, new less old.

    Args:
        id: The criterion's; `pass rate` and `score` for the whole.
        n: The pairs.
        new: The mean of the new run over the pairs.
        old: The mean of the old run.
        difference: The mean difference.
        interval: Where the true difference lies, with 95 % confidence.
        p: The probability of such a difference if there is none.
        adjusted: The same after Holm's correction for the number of criteria, or of groups; of the whole, as it is.
        gained: Of verdicts: pairs of which only the new one passes.
        lost: Of verdicts: pairs of which only the old one passes.
        worse: The keys (or places) of the candidates to which the new run gives less; more, where a yes is unwanted.
        better: Those to which it gives more, or less.
        detectable: The smallest difference that 80 % of such comparisons find.
        error: The standard error of the difference.
        bounds: The lowest and the highest difference that ungraded sides leave open; None without any.
        labels: The labelled pairs, where the difference is corrected.
        ungraded_labels: The labelled pairs with an ungraded side, by which such pairs count; 0 where they are left out.
    """

    _truth = ".difference"

    id: str
    n: int
    new: float
    old: float
    difference: float
    interval: Interval
    p: float
    adjusted: float
    gained: int | None = None
    lost: int | None = None
    detectable: float = 0.0
    error: float = 0.0
    labels: int | None = None
    bounds: Interval | None = None
    ungraded_labels: int = 0
    worse: tuple[str, ...] = ()
    better: tuple[str, ...] = ()

    @classmethod
    def of(cls, id: str, n: int, new: Floats, old: Floats, found: Contrast) -> CriterionDifference:
        """Return what was *found* of the values in two runs."""
        made = cls(id, n, float(new.mean()), float(old.mean()), found.value, found.interval, found.p, found.p)
        return evolve(made, detectable=found.detectable, error=found.error)

    @property
    def is_shown(self) -> bool:
        """True if chance does not explain the difference: its adjusted p-value is below .05."""
        return self.adjusted < 0.05

    @property
    def is_share(self) -> bool:
        """True of verdicts and of the score, of which no two means are further apart than 1."""
        return self.gained is not None or self.id == "score"

    def row(self, name: str) -> tuple[object, ...]:
        """Return the figures of a table, after a *name*."""
        interval = f"{self.interval[0]:+.3f} to {self.interval[1]:+.3f}"
        least = "none" if self.is_share and self.detectable > 1 else self.detectable
        means, moved = (self.n, self.new, self.old), f"{self.difference:+.3f}"
        return name, *means, moved, interval, self.adjusted, least, len(self.worse), len(self.better)

    def pairs_for(self, difference: float) -> int:
        """Return how many pairs find a *difference* with a power of 80 %."""
        fields.check_number("difference", difference, 1e-9, 1e9)
        return max(2, int(np.ceil(self.n * (self.detectable / difference) ** 2)))


@frozen(repr=False)
class Difference(Presented, Listed[CriterionDifference]):
    """
    What `compare` returns: the whole, then each criterion.

    Args:
        criteria: `pass rate` and `score` first.
        new: The judge of the new run.
        old: The judge of the old run.
        unpaired_new: What the new run alone has.
        unpaired_old: What the old run alone has.
        ungraded: Pairs that are left out, since one of them is ungraded.
        notes: What to know before it is trusted.
        by: What the pairs are grouped by; empty where they are not.
        groups: The pass rate and the score of each group of pairs, by its name.
    """

    _truth = "its figures"

    criteria: tuple[CriterionDifference, ...]
    new: str
    old: str
    unpaired_new: tuple[str, ...] = ()
    unpaired_old: tuple[str, ...] = ()
    ungraded: int = 0
    notes: tuple[str, ...] = ()
    by: str = ""
    groups: Mapping[str, Difference] = field(factory=dict, hash=False)

    @property
    def sentence(self) -> str:
        """A description of the main figure, and of criteria that chance does not explain and that it does not show."""
        lead = self.criteria[0]
        moves = [c for c in self.criteria[1:] if c.is_shown]
        unsaid = [c for c in moves if not (lead.is_shown and lead.difference * c.difference > 0)]
        moved = _moves(" But ", [(repr(c.id), c) for c in unsaid])
        if self.groups:
            looked = counted(len(self.groups), "group") + (f" by {self.by}" if self.by != "group" else "")
            first = [(name, c) for name, one in self.groups.items() for c in [c for c in one if c.is_shown][:1]]
            told = _moves(f" Of {looked}, ", [(f"the {c.id} of {name!r}", c) for name, c in first])
            moved += told or f" None of {looked} shows a difference by itself."
        return sentence_of(lead.id, lead.difference, lead.interval, lead.n, is_shown=lead.is_shown) + moved

    @property
    def worse(self) -> tuple[str, ...]:
        """The keys (or places) of the candidates that score lower in the new run; each criterion has its own."""
        return next((one.worse for one in self.criteria if one.id == "score"), ())

    @property
    def better(self) -> tuple[str, ...]:
        """Those that score higher in the new run."""
        return next((one.better for one in self.criteria if one.id == "score"), ())

    def remarks(self) -> list[str]:
        """What to know before it is trusted."""
        lines = []
        for keys, how in ((self.worse, "lower"), (self.better, "higher")):
            if keys:
                lines.append(f"{counted(len(keys), 'candidate')} scored {how} ({first_of(keys, 10)}).")
        for name, keys in (("new", self.unpaired_new), ("old", self.unpaired_old)):
            if keys:
                lines.append(f"{counted(len(keys), 'candidate')} in the {name} run alone ({first_of(keys)}).")
        lead = self.criteria[0]
        if self.ungraded:
            by = f"with an ungraded side count by {lead.ungraded_labels:,} labels"
            said = by if lead.ungraded_labels else "left out, since one of the two is ungraded"
            over = "" if lead.bounds is None else f": over all, it is {lead.bounds[0]:+.3f} to {lead.bounds[1]:+.3f}"
            lines.append(f"{counted(self.ungraded, 'pair')} {said}{over}.")
        if corrected := [c for c in self.criteria if c.labels]:
            which = ", ".join(c.id for c in corrected)
            basis = f"{corrected[0].labels:,} labels of both outputs"
            lines.append(f"The difference in {which} is by {basis}; all else is what the judge says.")
        if lead.detectable > 1:
            lines.append("No difference is so large that 80 % of such comparisons find it; grade more candidates.")
        else:
            lines.append(f"A difference of {lead.detectable:.3f} is found by 80 % of such comparisons.")
        return [*lines, "Each difference is that of the new run, given first, less the old one.", *self.notes]

    def tables(self) -> list[Table]:
        """Each criterion in a row; then each group."""
        head = ("pairs", "new", "old", "difference", "95 % interval", "p (Holm)", "detectable", "worse", "better")
        tables: list[Table] = [("", ("", *head), [c.row(c.id) for c in self.criteria])]
        for one in _WHOLE if self.groups else ():
            title = f"{one} by {self.by}, {counted(len(self.groups), 'group')}: p is corrected for their number"
            tables.append((title, (self.by, *head), [group[one].row(name) for name, group in self.groups.items()]))
        return tables

    def plot(self) -> Any:
        """Return each difference with its interval and the band that cannot be told from 0, as an Altair chart."""
        rows = [
            row_of(c.id, c.difference, c.interval, unseen_low=-c.detectable, unseen_high=c.detectable)
            for c in self.criteria
        ]
        drawn = forest(rows, "difference, new less old, with its 95 % interval", [(0, "no difference")])
        return chart(drawn, title=self.sentence)


def _moves(start: str, named: Sequence[tuple[str, CriterionDifference]]) -> str:
    """Return that *named* ones went up or down; empty if there are none."""
    moves = []
    for name, c in named:
        went, (low, high) = "up" if c.difference > 0 else "down", c.interval
        moves.append(f"{name} went {went} by {c.difference:+.3f} ({low:+.3f} to {high:+.3f})")
    return f"{start}{', '.join(moves)}: chance does not explain it." if moves else ""


@guided
def compare(
    new: Grades | Report | Judged | str | PathLike[str],
    old: Grades | Report | Judged | str | PathLike[str],
    labels: tuple[Labels | Any, Labels | Any] | None = None,
    *,
    by: str | Mapping[Any, str] | None = None,
) -> Difference:
    """
    Compare two runs over the same candidates, paired by key, else by place.

    Args:
        new: The grades of one run.
        old: The grades of the other.
        labels: What people say of the new and of the old outputs, a pair; the difference is corrected by them.
        by: Look at each group of candidates too: a variable of theirs, such as `topic`, or `group`, `tag` and the like,
            as for `Grades.by`; or a mapping from the key (or place) of a candidate to its group.

    Raises:
        DefinitionError: No candidate is in both, labels are not a pair, or nothing is grouped like that.
    """
    if hasattr(by, "tolist"):  # a column of a frame
        line = "compare(new, old, by=dict(zip([g.key or str(g.index) for g in new], by)))"
        raise DefinitionError("by", f"a column has no names of candidates, by which groups are told; write {line}")
    a, b = as_judged(new, "new"), as_judged(old, "old")
    found = _compare(a, b, labels)
    return found if by is None else _by_group(found, a, b, labels, by)


def _compare(a: Judged, b: Judged, labels: Any) -> Difference:
    names, rows_a, rows_b, only_a, only_b = _pairs(a, b)
    groups = a.groups[rows_a] if a.grouped else None
    targets, remarks = _targets(a, b, labels)
    columns = {"pass rate": (a.columns[""][1], b.columns[""][1]), "score": (a.scores, b.scores)}
    for name, (scale, values) in a.columns.items():
        if name and name in b.columns and scale.kind != "option" and b.columns[name][0] == scale:
            columns[name] = values, b.columns[name][1]
    found = []
    for name, (mine, theirs) in columns.items():
        x, z = mine[rows_a], theirs[rows_b]
        both = ~np.isnan(x) & ~np.isnan(z)
        people = targets.get(name, (np.full(len(a), np.nan), np.full(len(b), np.nan)))
        labelled = people[0][rows_a] - people[1][rows_b]
        kept = None if groups is None else compact(groups[both])
        is_verdict = name == "pass rate" or (name in a.columns and a.columns[name][0].kind == "verdict")
        if name in targets and (there := int((both & ~np.isnan(labelled)).sum())) < 2:
            what = f"{there} graded pairs have labels of both outputs"
            raise DefinitionError("labels", f"{what} on {name!r}, and a correction takes two; label both of some pairs")
        one = _difference(name, x[both], z[both], kept, labelled[both], is_verdict=is_verdict)
        if one is None:
            continue
        ends = _bounds(x, z, UNIT if name in _WHOLE else a.columns[name][0])
        apart = ~both & ~np.isnan(labelled)
        rest = paired_contrast(labelled[apart], None if groups is None else groups[apart]) if apart.sum() > 1 else None
        if rest is not None and ends is not None:
            basis = both & ~np.isnan(labelled) if one.labels else both
            freedom = [len(np.unique(np.arange(len(x))[of] if groups is None else groups[of])) for of in (basis, apart)]
            one, ends = _with_ungraded(one, rest, float(1 - both.mean()), int(apart.sum()), freedom), None
        moved = (one.difference - float((x - z)[both].mean())) * float(both.mean())  # by labels
        less, more = ([names[row] for row in np.flatnonzero(both & side)] for side in (x < z, x > z))
        if name in a.columns and a.columns[name][0].is_inverted:
            less, more = more, less
        ends = ends and (ends[0] + moved, ends[1] + moved)
        found.append(evolve(one, bounds=ends, worse=tuple(less), better=tuple(more)))
    if not found:
        units = "groups of candidates" if groups is not None else "candidates"
        raise DefinitionError("new", f"fewer than two {units} are graded in both runs, so nothing can be compared")
    own = [c for c in found if c.id not in _WHOLE]
    adjusted = iter(holm([c.p for c in own]))
    found = [c if c.id in _WHOLE else evolve(c, adjusted=next(adjusted)) for c in found]
    graded = ~np.isnan(a.columns[""][1][rows_a]) & ~np.isnan(b.columns[""][1][rows_b])
    notes = [few] if groups is not None and (few := few_groups(len(np.unique(groups)))) else []
    notes += [*of_runs(a, b), *remarks]
    if unwanted := [c.id for c in own if a.columns[c.id][0].is_inverted]:
        notes.append(f"A yes to {', '.join(map(repr, unwanted))} is unwanted: a minus is the better")
    notes += beside_holm([(c.id, c.interval, c.adjusted) for c in found if c.id not in _WHOLE], 0.05)
    return Difference(
        tuple(found), a.name, b.name, tuple(only_a), tuple(only_b), int((~graded).sum()), tuple(sentences(notes))
    )


def _grouped_anew(a: Judged, b: Judged, by: str | Mapping[Any, str]) -> str:
    """Return how the runs get the groups that they lack."""
    lacking = []
    for run, which in ((a, "new"), (b, "old")):
        try:
            run.rows_by(by)
        except DefinitionError:
            lacking.append(which)
    line = f"rubric grade-many rubric.yaml data.csv --by {by} --out {lacking[0]}.jsonl"
    again = f"grade the {' and the '.join(lacking)} run again with columns as before, such as {line}"
    joined = f"write compare(new, old, by={{row['key']: row[{by!r}] for row in rows}}) to join rows by key"
    return f"{again}; the same --store pays nothing twice; {joined}"


def _by_group(whole: Difference, a: Judged, b: Judged, labels: Any, by: str | Mapping[Any, str]) -> Difference:
    """Return *whole* with the difference of each group, p corrected for their number, and what is left out."""
    try:
        sides = [run.rows_by(by) for run in (a, b)]
    except DefinitionError:
        sides = [run.rows_by(by, _grouped_anew(a, b, by)) for run in (a, b)]
    runs = zip((a, b), sides, strict=True)
    new, old = ({(run.names[row], name) for name, rows in side.items() for row in rows} for run, side in runs)
    if apart := sorted({key for key, _ in new ^ old}.difference(whole.unpaired_new, whole.unpaired_old)):
        what = f"{counted(len(apart), 'candidate')} in other groups in the new run than in the old ({first_of(apart)})"
        raise DefinitionError("by", f"{what}; name the groups by a mapping from keys: by={{'a': 'billing'}}")
    groups, few = dict[str, Difference](), list[str]()
    for name in sorted(sides[0].keys() & sides[1].keys()):
        try:
            one = _compare(a.part(sides[0][name]), b.part(sides[1][name]), labels)
            groups[name] = evolve(one, criteria=(one["pass rate"], one["score"]))
        except (DefinitionError, KeyError):  # too few pairs, or of single criteria alone
            few.append(name)
    enough = "two graded pairs" if labels is None else "two graded pairs with labels"
    if not groups:
        raise DefinitionError("by", f"no group has {enough}, so nothing can be compared")
    adjusted = [iter(holm([one[id_].p for one in groups.values()])) for id_ in _WHOLE]
    for name, one in groups.items():
        criteria = (evolve(c, adjusted=next(p)) for c, p in zip(one, adjusted, strict=True))
        groups[name] = evolve(one, criteria=tuple(criteria))
    leads = [(name, one.criteria[0]) for name, one in groups.items()]
    notes = beside_holm([(name, c.interval, c.adjusted) for name, c in leads], 0.05)
    notes += [f"left out, without {enough}: {first_of(few)}"] if few else []
    if left := len({*range(len(a))}.difference(*sides[0].values())):
        notes.append(f"{counted(left, 'candidate')} of the new run in no group")
    told = (*whole.notes, *sentences(notes))
    return evolve(whole, notes=told, by=by if isinstance(by, str) else "group", groups=groups)


def _with_ungraded(
    one: CriterionDifference, rest: Contrast, share: float, n: int, units: Sequence[int]
) -> CriterionDifference:
    """Return *one* over all pairs, of which a *share* has an ungraded side and counts by the *rest* of the labels."""
    of_share = (one.difference - rest.value) * np.sqrt(share * (1 - share) / sum(units))
    errors = (1 - share) * one.error, share * rest.error
    spread = sum(each**4 / (m - 1) for each, m in zip(errors, units, strict=True))
    freedom = sum(each**2 for each in errors) ** 2 / spread  # F. E. Satterthwaite, 1946
    error = float(np.sqrt(errors[0] ** 2 + errors[1] ** 2 + of_share**2))
    whole = contrast((1 - share) * one.difference + share * rest.value, error, freedom)
    ends = (max(whole.interval[0], -1.0), min(whole.interval[1], 1.0)) if one.is_share else whole.interval
    figures: dict[str, Any] = {"p": whole.p, "adjusted": whole.p, "detectable": whole.detectable, "error": error}
    return evolve(one, difference=whole.value, interval=ends, ungraded_labels=n, **figures)


def _bounds(new: Floats, old: Floats, scale: Scale) -> Interval | None:
    """Return the lowest and the highest mean difference that ungraded sides leave open; None if there are none."""
    low, high = (0.0, 1.0) if scale.kind == "verdict" else (scale.low, scale.high)
    if low is None or high is None or not (np.isnan(new) | np.isnan(old)).any():
        return None
    least = np.nan_to_num(new, nan=low) - np.nan_to_num(old, nan=high)
    most = np.nan_to_num(new, nan=high) - np.nan_to_num(old, nan=low)
    return float(least.mean()), float(most.mean())


_CELLS = (
    "from attrs import evolve; "
    "new, old = ([evolve(g, key=g.key.rpartition({!r})[0]) for g in half] for half in (new, old))"
)
"""Makes the keys of two halves of a matrix those of its cases."""


def _pairs(a: Judged, b: Judged) -> tuple[list[str], Codes, Codes, list[str], list[str]]:
    """Return the names of the pairs, their rows in both, and what one lacks. Names that repeat pair in order."""
    by_key = any(a.keys) and any(b.keys)
    if any(a.keys) != any(b.keys):
        which = "new" if any(b.keys) else "old"
        raise DefinitionError(which, "has no keys, and the other run has; grade both with Candidate(..., key=...)")

    names = (numbered(one.keys if by_key else map(str, one.places)) for one in (a, b))
    rows_a, rows_b = ({name: row for row, name in enumerate(some)} for some in names)
    both = [name for name in rows_a if name in rows_b]
    if not both:
        (one, _), (other, _) = next(iter(rows_a)), next(iter(rows_b))
        ends = (end for end in (" [", " / ") if one.rpartition(end)[0] == other.rpartition(end)[0] != "")
        cure = "".join(f"; the cells of a matrix: {_CELLS.format(end)}" for end in ends)
        raise DefinitionError("new", f"no candidate is in both runs: {one!r}, ... and {other!r}, ...{cure}")
    sides = ((rows_a, rows_b), (rows_b, rows_a))
    only_a, only_b = ([n if k == 1 else f"{n}, result {k}" for n, k in x if (n, k) not in y] for x, y in sides)
    first, second = (np.array([rows[name] for name in both], dtype=np.intp) for rows in (rows_a, rows_b))
    return [name for name, _ in both], first, second, only_a, only_b


def _targets(a: Judged, b: Judged, labels: Any) -> tuple[dict[str, tuple[Floats, Floats]], list[str]]:
    """Return what people say of both runs, by criterion, and what is to be remarked on their labels."""
    if labels is None:
        return {}, []
    if isinstance(labels, Labels) or not isinstance(labels, tuple | list) or len(labels) != 2:
        cure = "give both: compare(new, old, labels=(labels_of_new, labels_of_old))"
        raise DefinitionError("labels", f"labels are of one output, and a pair has two; {cure}")
    sides, remarks = list[dict[str, Ratings]](), list[str]()
    for which, one, of in (("new", a, as_labels(labels[0])), ("old", b, as_labels(labels[1]))):
        ratings = match_labels(one, of)
        if any(each.is_weighted for each in ratings):
            why = f"those of the {which} run have weights, and a corrected difference has none"
            raise DefinitionError("labels", why)
        notes, known = of_labels(one, of, ratings, ties=False, cure="label one"), of_grades(one)
        remarks += [f"labels of the {which} run: {note}" for note in notes if note not in known]
        sides.append({each.criterion: each for each in ratings})
    found = {}
    for name in sides[0].keys() & sides[1].keys():
        mine, theirs = (side[name] for side in sides)
        if mine.scale.kind == "option":
            raise DefinitionError("labels", f"{name!r} has options, and options have no mean; label something else")
        key = name or ("pass rate" if mine.scale.kind == "verdict" else "score")
        found[key] = mine.votes, theirs.votes
    if not found:
        raise DefinitionError("labels", "those of the two runs are of other criteria; label the same one of both")
    return found, remarks


def _difference(
    name: str, new: Floats, old: Floats, groups: Codes | None, labelled: Floats, *, is_verdict: bool
) -> CriterionDifference | None:
    moved = new - old
    found: Contrast | None = None if len(moved) < 2 else paired_contrast(moved, groups)
    if found is None:
        return None
    labels = None
    if (there := ~np.isnan(labelled)).sum() > 1:
        labels = int(there.sum())
        found = _correct(labelled[there], moved[there], moved[~there], groups, there)
    interval = found.interval
    if is_verdict or name == "score":  # shares, of which no two are further apart than 1
        interval = max(interval[0], -1.0), min(interval[1], 1.0)
    made: dict[str, Any] = {}
    if is_verdict:
        made = {"gained": int((moved > 0).sum()), "lost": int((moved < 0).sum())}
    return evolve(CriterionDifference.of(name, len(moved), new, old, found), interval=interval, labels=labels, **made)


def _correct(y: Floats, f: Floats, more: Floats, groups: Codes | None, there: NDArray[np.bool_]) -> Contrast:
    """Return the contrast of people's differences *y*, moved by the judge's on unlabelled pairs (PPI++)."""
    n, extra = len(y), len(more)
    largest = max(float(np.abs(y).max()), float(np.abs(f).max())) or 1.0
    var_f = f.var(ddof=1)
    covariance = float(np.cov(y, f)[0, 1]) if n > 1 else 0.0
    power = min(max(covariance / var_f / (1 + n / extra), 0.0), 1.0) if extra and var_f > 0 else 0.0
    value = float(y.mean() + power * ((more.mean() if extra else f.mean()) - f.mean()))
    residual = y - power * f
    variance = (residual.var(ddof=1) + 1.5 * largest**2 / n) / n + (power**2 * more.var() / extra if extra else 0.0)
    m = n
    if groups is not None:
        among = groups[there]
        m = len(np.unique(among))
        sums = np.bincount(among, weights=residual - residual.mean())
        design = (sums**2).sum() / max(((residual - residual.mean()) ** 2).sum(), 1e-12)
        variance *= max(1.0, design)
    return contrast(value, float(np.sqrt(variance)), max(1, m - 1))
