"""
Fit a rubric to labels of people, and say what that is worth on candidates that it was not fitted to.

A rubric that is chosen by labels looks better on these labels even where nothing is to be gained. So the whole search
is repeated for each part of the groups, without their labels (`cross_fitting`), and an edit is accepted only if the
grades of those parts agree with people more than those of the old rubric. Threshold and weights need no call: grades
are scored anew. For anchors and texts (`rewriting`) the candidates are graded anew, within a budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np
from attrs import asdict, evolve, field, frozen
from attrs.filters import exclude

from rubric import Budget, DefinitionError, Grade, Grades, Rubric, Ungraded, grade_many, plan
from rubric.driving import Usage
from rubric.embed import (
    CONCURRENCY,
    JudgeLike,
    NoTruth,
    Options,
    Presented,
    StoreLike,
    Table,
    Wording,
    counted,
    fields,
    guided,
)
from rubric.quality import cross_fitting
from rubric.quality.cross_fitting import Agreements
from rubric.quality.drafting import writer_of
from rubric.quality.labelled import Sample, sample_of
from rubric.quality.rewriting import Rewrite, rewritten, with_anchors
from rubric.trust.inference import folds_of
from rubric.trust.labels import Labels, as_labels
from rubric.trust.ratings import as_judged, mark_of
from rubric.values import AnyJudge, as_judge

Kind = Literal["threshold", "weights", "anchors", "texts"]


@frozen
class Proposal(NoTruth):
    """
    One changed rubric, and its *agreement* with the labels that it was chosen by.

    With a *fold*, it was made without the labels of that fold, and the agreement is with these.
    """

    _truth = ".agreement"

    change: str
    agreement: float
    rubric: Rubric = field(repr=False)
    fold: int | None = None
    usage: Usage = Usage()


@frozen
class Edit(NoTruth):
    """
    The best change of one kind. An agreement is a share of verdicts, or 1 less the mean distance of scores in 0..1.

    Args:
        kind: `threshold`, `weights`, `anchors` or `texts`.
        change: The change; empty if none looks better than the rubric as it is.
        accepted: Whether it is shown to agree with people more.
        before: The agreement of the rubric before it.
        apparent: Its agreement on the labels that it was chosen by, which is too high on average.
        honest: Its agreement on candidates that it was not chosen by.
        p: The probability of such a gain, or a larger one, if there is none.
        missing: How many labels more would show the gain in four of five such samples; 0 if it is shown; None if there
            is no gain to show.
        proposals: All changes that were tried, each with its cost.
        why: Why there is no change, where that is not for want of a better one.
    """

    _truth = ".accepted"

    kind: Kind
    change: str
    accepted: bool
    before: float
    apparent: float
    honest: float
    p: float
    missing: int | None
    proposals: tuple[Proposal, ...] = field(repr=False)
    why: str = ""

    @property
    def usage(self) -> Usage:
        """What it took."""
        return Usage.total(proposal.usage for proposal in self.proposals)

    @property
    def calls(self) -> int:
        """The calls that it took."""
        return self.usage.calls


@frozen(repr=False)
class Alignment(Presented):
    """
    What `align` returns.

    Args:
        rubric: The rubric with the accepted edits; the old one if there are none. `dump(rubric, path)` changes the file
            where it differs, and keeps its comments.
        edits: One for each kind, in the order in which they were tried.
        n: The labels that were used.
        baseline: The agreement of the old rubric.
        constant: The agreement of the best judge that always says the same.
        risk: How often a rubric that cannot gain is changed.
        measure: What agrees: `verdicts` or `scores`.
        ungraded: The labelled candidates that are left out, since the judge failed.
        notes: What is not as the figures assume.
    """

    _truth = ".accepted"

    rubric: Rubric = field(repr=False)
    edits: tuple[Edit, ...]
    n: int
    baseline: float
    constant: float
    risk: float
    measure: Literal["verdicts", "scores"] = "verdicts"
    ungraded: int = 0
    notes: tuple[str, ...] = ()

    @property
    def accepted(self) -> tuple[Edit, ...]:
        """The accepted edits."""
        return tuple(edit for edit in self.edits if edit.accepted)

    @property
    def usage(self) -> Usage:
        """What all edits took."""
        return Usage.total(edit.usage for edit in self.edits)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        shown = f"{self.n:,} labels"
        took = f"; {self.usage.calls:,} calls" if self.usage.calls else ""
        if not self.accepted:
            so_far = f"the rubric, which agrees with {self.baseline:.0%} of {shown}"
            return f"No edit is shown to be better than {so_far}{took}."
        changes = "; ".join(edit.change for edit in self.accepted)
        last = self.accepted[-1]
        gain = f"agreement rises from {self.baseline:.0%} to {last.honest:.0%} of {shown}, cross-fitted"
        return f"{changes}: {gain}{took}."

    def remarks(self) -> list[str]:
        """What to know before the rubric is changed."""
        some = [(e.change or e.kind, counted(e.missing, "label")) for e in self.edits if e.missing]
        lines = ["Agreement is 1 less the mean distance of scores, in 0..1."] if self.measure == "scores" else []
        if self.ungraded:
            lines.append(f"{counted(self.ungraded, 'labelled candidate')} without a grade left out.")
        lines.append(f"A judge that always says the same agrees with {self.constant:.0%}.")
        lines += [f"{what}: some {labels} more may show whether it is better." for what, labels in some]
        return [*lines, *(f"{e.kind}: {e.why}." for e in self.edits if e.why), *self.notes]

    def tables(self) -> list[Table]:
        """Each kind of edit in a row."""
        head = ("edit", "best change", "before", "apparent", "honest", "p", "calls", "accepted")
        rows = [
            (e.kind, e.change or "–", e.before, e.apparent, e.honest, e.p, e.calls, "yes" if e.accepted else "no")
            for e in self.edits
        ]
        return [("Agreement with people", head, rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data; a rubric is named by its digest."""
        kept: dict[str, Any] = asdict(self, filter=exclude("rubric", "proposals"))
        for shown, edit in zip(kept["edits"], self.edits, strict=True):
            shown["calls"], shown["cost"] = edit.calls, edit.usage.cost
            shown["proposals"] = [
                {"change": one.change, "agreement": one.agreement, "fold": one.fold, "calls": one.usage.calls}
                | {"cost": one.usage.cost, "digest": one.rubric.digest}
                for one in edit.proposals
            ]
        return {"kind": "alignment", "sentence": self.sentence, **kept, "digest": self.rubric.digest}


_FREE = ("threshold", "weights")
_CALLED_FOLDS = 5
_MOST_THRESHOLDS = 50
_ALIKE = "people say the same of all candidates, so no gain can be shown"
_FACTORS = (0.0, 0.5, 2.0)
"""What a weight is multiplied by."""


@guided
def align(  # noqa: PLR0917 - the order of the arguments is the order of the work
    rubric: Rubric,
    grades: Grades | Sequence[Grade | Ungraded],
    labels: Labels | Mapping[Any, Any] | str | PathLike[str],
    edits: Sequence[Kind] = ("threshold", "weights"),
    writer: JudgeLike | None = None,
    budget: Budget | None = None,
    risk: float = 0.05,
    *,
    judge: JudgeLike | None = None,
    store: StoreLike | None = None,
    concurrency: int = CONCURRENCY,
) -> Alignment:
    """
    Return *rubric* with edits that are shown to agree better with people.

    Threshold and weights take no call. Anchors and texts have the candidates graded anew, twice at most: under
    the edit, and under edits that were made without their labels.

    Args:
        rubric: The rubric; its criteria are those of the grades.
        grades: What the judge said. Ungraded results are left out.
        labels: What people say of the whole: verdicts, or scores. Labels of criteria are for anchors.
        edits: The kinds of edit to try, each on the rubric with those accepted before it, in this order: `threshold`;
            `weights`; `anchors`, labelled candidates that the judge is shown; `texts` of criteria, by the writer.
        writer: The model that writes texts.
        budget: What may be spent by the writer and by grading anew; an edit that it ends is not accepted.
        risk: How often a rubric that cannot gain is changed at all.
        judge: The judge that graded, to grade anew. Left out, the one that the grades name.
        store: As for `grade`: what an edit does not change is not paid for twice.
        concurrency: How many candidates are graded at once.

    Raises:
        DefinitionError: There are no labels of the whole, or fewer than 20 have a grade; a kind of edit is unknown, or
            needs a writer, or candidates that the grades do not hold.
    """
    fields.check_number("risk", risk, 1e-6, 0.5)
    if isinstance(edits, str) or not edits:
        raise fields.refuse("edits", edits, 'a list of kinds, such as ["threshold"]')
    for kind in edits:
        fields.check_name("edits", kind, get_args(Kind))
    if not isinstance(rubric, Rubric):
        raise fields.refuse("rubric", rubric, "a Rubric")
    if isinstance(grades, str | PathLike) or not all(isinstance(each, Grade | Ungraded) for each in grades):
        raise fields.refuse("grades", grades, "results to score anew, such as what grade_many(...).collect() returns")
    kinds: list[Kind] = [kind for kind in get_args(Kind) if kind in edits]
    called = {*kinds} - {*_FREE}
    idle = {} if called else {"judge": judge, "budget": budget, "store": store}
    idle |= {} if "texts" in called else {"writer": writer}
    if name := next((name for name, value in idle.items() if value is not None), ""):
        cure = f"edits={[*kinds, 'texts' if name == 'writer' else 'anchors']}"
        raise DefinitionError("edits", f"with {kinds}, {name}= has no effect; leave it out, or write {cure}")
    options = Options(concurrency, store, budget)
    sample = sample_of(rubric, grades, labels)
    grader = _Grader(sample, judge, writer, options, kinds) if called else None
    now, found, start, levels = rubric, [], sample, _Risk(risk, risk / len(kinds))
    for kind in kinds:
        if np.ptp(sample.people) == 0:
            edit = _no_edit(kind, sample, sample.agreements(now), _ALIKE)
        elif kind in _FREE or grader is None:
            edit, now = _free(now, kind, sample, levels)
        else:
            edit, now, sample = _try_edit(now, kind, sample, grader, levels)
        found.append(edit)
    baseline = start.mean(start.agreements(rubric))
    measure: Literal["verdicts", "scores"] = "verdicts" if start.is_verdict else "scores"
    best = cross_fitting.constant(start.people, start.weights, of_verdicts=start.is_verdict)
    if now is not rubric:  # a later use of these labels is remarked
        used = [*rubric.provenance.get("labels", ()), mark_of(as_judged(sample.results), as_labels(labels))]
        now = evolve(now, provenance={**rubric.provenance, "labels": used})
    size = len(start.results)
    return Alignment(now, tuple(found), size, baseline, best, risk, measure, start.ungraded, start.notes)


@frozen
class _Risk:
    """The levels of tests: *whole* of the exact test of free edits, whose search loses most; *share* of any other."""

    whole: float
    share: float


# -- edits that need no call -------------------------------------------------------------------------------


def _free(rubric: Rubric, kind: Kind, sample: Sample, risk: _Risk) -> tuple[Edit, Rubric]:
    """Return the best edit of one *kind*, and the rubric with it if it is accepted."""
    changes = [*(_thresholds(rubric, sample) if kind == "threshold" else _weights(rubric))]
    if not changes:
        none = "scores of people need no threshold"
        if kind == "weights":
            none = "one weight alone changes nothing"
        elif sample.is_verdict:
            none = "no other threshold lies between two scores"
        return _no_edit(kind, sample, sample.agreements(rubric), none), rubric
    tried = [("", rubric), *changes]
    right = np.stack([sample.agreements(changed) for _, changed in tried])
    best, honest = cross_fitting.cross_fit(right, sample.groups, sample.weights)
    proposals = tuple(
        Proposal(change, sample.mean(r), changed) for (change, changed), r in zip(tried[1:], right[1:], strict=True)
    )
    known = {"apparent": sample.mean(right[best]), "proposals": proposals}
    edit = _edit(kind, tried[best][0], sample, right[0], honest, risk=risk, **known)
    return edit, tried[best][1] if edit.accepted else rubric


def _no_edit(kind: Kind, sample: Sample, before: Agreements, why: str, proposals: Sequence[Proposal] = ()) -> Edit:
    now = sample.mean(before)
    figures: dict[str, Any] = {"before": now, "apparent": now, "honest": now, "p": 1.0, "missing": None}
    return Edit(kind, "", accepted=False, **figures, proposals=tuple(proposals), why=why)


def _edit(
    kind: Kind, change: str, sample: Sample, before: Agreements, honest: Agreements, *, risk: _Risk, **known: Any
) -> Edit:
    p = cross_fitting.p_of_gain(before, honest, sample.groups, sample.weights)
    level = risk.whole if kind in _FREE and sample.is_verdict else risk.share
    accepted = bool(change and p <= level)
    if accepted and sample.is_verdict and cross_fitting.p_of_constant(sample.people, honest) > risk.share:
        accepted, known["why"] = False, "its verdicts are not shown to go with those of people, as a constant's do not"
    missing = None if known.get("why") else 0  # a constant is no better with more labels
    if not accepted and missing == 0:
        missing = cross_fitting.missing_labels(before, honest, level, sample.groups, sample.weights)
    means: dict[str, Any] = {"before": sample.mean(before), "honest": sample.mean(honest)}
    return Edit(kind, change, accepted, p=p, missing=missing, **means, **known)


def _thresholds(rubric: Rubric, sample: Sample) -> Iterator[tuple[str, Rubric]]:
    """Yield the rubric with each threshold between two scores that were given; none where people gave scores."""
    if rubric.threshold is None:
        raise DefinitionError("edits", 'the rubric has no threshold: the judge decides; give edits=["weights"]')
    if not sample.is_verdict:
        return
    given = [r.score for r in sample.results if r.score is not None]
    scores = np.unique([round(1 - score if rubric.negate else score, 9) for score in given])
    middles = (scores[1:] + scores[:-1]) / 2
    if len(middles) > _MOST_THRESHOLDS:
        middles = np.quantile(middles, np.linspace(0, 1, _MOST_THRESHOLDS))
    for cut in dict.fromkeys(round(float(middle), 3) for middle in middles):
        if cut != rubric.threshold:
            borderline = None if rubric.borderline is None else min(rubric.borderline, cut)
            yield f"threshold {rubric.threshold:g} -> {cut:g}", evolve(rubric, threshold=cut, borderline=borderline)


def _weights(rubric: Rubric) -> Iterator[tuple[str, Rubric]]:
    """Yield the rubric with one weight halved, doubled or 0."""
    counted = [criterion for criterion in rubric.criteria if criterion.weight]
    if len(counted) < 2:  # noqa: PLR2004 - one weight alone changes nothing
        return
    for criterion in counted:
        for factor in _FACTORS:
            weight = criterion.weight * factor
            change = f"weight of {criterion.id} {criterion.weight:g} -> {weight:g}"
            changed = rubric.revising(criterion.id, weight=weight)
            if any(one.weight and one.polarity != "penalty" for one in changed.criteria):
                yield change, changed


# -- edits that call ---------------------------------------------------------------------------------------


class _EndedError(Exception):
    """The edit cannot be carried through; its text says why."""


class _Grader:
    """Makes rubrics by calls, and grades candidates anew."""

    def __init__(
        self, sample: Sample, judge: JudgeLike | None, writer: JudgeLike | None, options: Options, kinds: Sequence[Kind]
    ) -> None:
        if writer is None and "texts" in kinds:
            why = Wording("texts are written by a model; name it: ", writer="openai/gpt-5")
            raise DefinitionError("writer", why)
        if any(result.candidate is None for result in sample.results):
            cure = "a file of results has none, grade_many(...).collect() has them"
            raise DefinitionError("grades", f"expected grades that hold their candidates, to grade them anew; {cure}")
        known = {result.judge.digest: result.judge for result in sample.results}
        if len(known) > 1:
            raise DefinitionError("grades", f"expected grades by one judge, got {len(known)}; grade all with one")
        (by,) = known.values()
        if judge is not None and as_judge(judge).digest not in known:
            message = f"expected the judge that gave the grades, {by.name}, got another"
            raise DefinitionError("judge", f"{message}; grade with it first: agreement may rise by the judge alone")
        self.judge: AnyJudge = by if judge is None else as_judge(judge)
        self.writer = None if writer is None else writer_of(writer)
        self.options = options

    def rewrite(self, kind: Kind, rubric: Rubric, sample: Sample) -> Rewrite:
        if kind == "anchors":
            return with_anchors(rubric, sample.examples())
        assert self.writer is not None  # noqa: S101 - these kinds are refused without one
        return rewritten(rubric, sample.examples(), self.writer, self.options)

    def regrade(self, rubric: Rubric, sample: Sample) -> Sample:
        given = {name: getattr(self.options, name) for name in ("concurrency", "store", "budget")}
        results = grade_many(sample.candidates, rubric, self.judge, progress=False, **given).collect()
        return evolve(sample, results=tuple(results))

    def check_budget(self, rubric: Rubric, sample: Sample, writes: int) -> None:
        """Raise if the budget cannot hold what the edit takes at least; a store may hold any part of that."""
        budget = self.options.budget
        if budget is None or self.options.store is not None:
            return
        planned = plan(sample.candidates, rubric, self.judge)
        left, calls = budget.left, 2 * planned.least + writes
        if left.calls is not None and calls > left.calls:
            raise _EndedError(f"it takes {calls:,} calls at least, and the budget has {left.calls:,} left")
        cost = None if planned.cost is None else 2 * planned.cost[0]
        if left.cost is not None and cost is not None and cost > left.cost:
            raise _EndedError(f"it takes ${cost:.4f} at least, and the budget has ${left.cost:.4f} left")


def _try_edit(rubric: Rubric, kind: Kind, sample: Sample, grader: _Grader, risk: _Risk) -> tuple[Edit, Rubric, Sample]:
    """
    Return the edit of one *kind*, the rubric with it if it is accepted, and the sample with the results under that.

    It is made from all labels first, and once more for each fold without the labels of that fold: these are graded
    under it. A candidate that has become an anchor is left out from then on.
    """
    before, proposals = sample.agreements(rubric), []

    def attempt(made_from: Sample, graded: Sample, fold: int | None) -> tuple[Proposal, Sample, str]:
        made = grader.rewrite(kind, rubric, made_from)
        again = graded if made.rubric == rubric else grader.regrade(made.rubric, graded)
        used = made.usage + Usage.total(r.usage for r in again.results) if again is not graded else made.usage
        proposal = Proposal(made.change, again.mean(again.agreements(made.rubric)), made.rubric, fold, used)
        proposals.append(proposal)
        if any(f.kind == "budget" for r in again.results if isinstance(r, Ungraded) for f in r.failures):
            raise _EndedError("the budget ended before all candidates were graded")
        return proposal, again, made.why

    honest = before
    try:
        folds = folds_of(sample.groups, _CALLED_FOLDS)
        grader.check_budget(rubric, sample, len({*folds}) + 1 if kind == "texts" else 0)
        whole, again, why = attempt(sample, sample, None)
        change = whole.change if whole.agreement > sample.mean(before) else ""
        if change:
            honest = np.array(before)
            for fold in np.unique(folds):
                inside = folds == fold
                made, parts, _ = attempt(sample.where(~inside), sample.where(inside), int(fold))
                honest[inside] = parts.agreements(made.rubric)
    except _EndedError as ended:
        return _no_edit(kind, sample, before, str(ended), proposals), rubric, sample
    known = {"apparent": whole.agreement, "proposals": tuple(proposals), "why": why}
    edit = _edit(kind, change, sample, before, honest, risk=risk, **known)
    if not edit.accepted:
        return edit, rubric, sample
    shown = {anchor.response for criterion in whole.rubric.criteria for anchor in criterion.anchors}
    kept = np.array([r.candidate is None or r.candidate.output not in shown for r in again.results])
    return edit, whole.rubric, again.where(kept)
