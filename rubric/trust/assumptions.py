"""
What figures assume of grades and labels, looked at in one place, where they meet.

Each function returns remarks, each with the numbers that it rests on; none where all is as assumed. How often a remark
is made, and how often for nothing, is simulated in tests/simulations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from rubric.embed import counted, percent
from rubric.trust import coefficients as co
from rubric.trust.inference import UPPER, compact, effective_size, unpaired_contrast
from rubric.trust.labels import Labels
from rubric.trust.ratings import Judged, Ratings, count_reused

_RISK, _FEW, _PER_RUBRIC = 0.01, 20, 5
_ADVICE = "give weights; if they were chosen by their quality, not by its verdicts, how='rogan-gladen' estimates a rate"

_CHANCE = 0.001
_OF_ANOTHER = (
    "all {:,} labelled places are among the first {:,} of {:,} places, where no random draw lies: if they are those of "
    "another file, such as a sample, they are paired with other candidates; label and grade with --column key=id"
)
_CHOSE = "chose the rubric or the judge: their figures flatter; use others"
_CALIBRATED = (
    "calibrated the grades: figures of scores stay as they are, those of calibrated values flatter; use others"
)


def of_labels(
    given: Judged,
    labels: Labels,
    ratings: Sequence[Ratings],
    *,
    by_chance: bool = True,
    ties: bool = True,
    verdicts: bool = True,
    cure: str = _ADVICE,
) -> list[str]:
    """
    Return what is not as figures of these grades and labels, joined as *ratings*, assume.

    The labels must be drawn *by_chance*, if so said, else *cure* is advised; *ties* of people may be left out,
    and what the *verdicts* say at a threshold that is being chosen.
    """
    said = [*of_grades(given)]
    for marks, what in ((given.used, _CHOSE), (given.calibrated, _CALIBRATED)):
        if again := count_reused(marks, labels):
            which = f"these {again:,}" if again == len(labels) else f"{again:,} of these {len(labels):,}"
            said.append(f"{which} labels {what}")
    labelled = np.any([~np.isnan(one.people).all(axis=1) for one in ratings], axis=0)
    if shown := int((labelled & np.array(given.anchored, dtype=bool)).sum()):
        said.append(f"{counted(shown, 'labelled candidate')} among the anchors that the judge is shown; label others")
    if seen := sum(one.seen for one in ratings):
        does = "count although" if any(one.counts_seen for one in ratings) else "left out, since"
        said.append(f"{counted(seen, 'label')} {does} the rater had seen the judge's verdict")
    if not any(given.keys) and (twice := len(given.places) - len({*given.places})):
        why = "a label counts for each of them, as if they were independent; give candidates keys"
        said.append(f"{counted(twice, 'place')} of candidates have two results or more, and {why}")
    rows_of, by = labels.rows_by_name(given.keys, given.places)
    if by == "index" and by_chance and (named := {int(row.key) for row in labels if row.key in rows_of}):
        first, every = max(named) + 1, max(given.places) + 1
        if 2 * first <= every and (first / every) ** len(named) < _CHANCE:
            said.append(_OF_ANOTHER.format(len(named), first, every))
    held = Counter(given.keys)
    if same := [key for key in dict.fromkeys(row.key for row in labels) if key and held[key] > 1]:
        why = "a label counts for each of them, as one group; if one stands there twice, leave it out"
        said.append(f"{counted(len(same), 'key')} ({first_of(same)}) of two results or more: {why}")
    for one in ratings:
        name = f"{one.criterion}: " if one.criterion and len(ratings) > 1 else ""
        checks = [_sample_remark(one, _RISK / len(ratings), cure), _weight_remark(one)] if by_chance else []
        checks += [_division_remark(one) if ties else "", _useless(one) if verdicts else ""]
        said += [f"{name}{remark}" for remark in checks if remark]
    return said


def sentences(notes: Sequence[str]) -> list[str]:
    """Return each of *notes* as a sentence; one that begins with the id of a criterion keeps it as it is."""
    starts = (note[0] if re.match(r"\S+: ", note) else note[0].upper() for note in notes)
    return [f"{start}{note[1:]}{'' if note.endswith('?') else '.'}" for start, note in zip(starts, notes, strict=True)]


def count_unmatched(keys: Sequence[str]) -> str:
    """Return how many labels match no candidate, with the first *keys* of theirs."""
    return f"{counted(len(keys), 'label')} match{'es' if len(keys) == 1 else ''} no candidate ({first_of(keys)})"


def first_of(keys: Sequence[str], most: int = 3) -> str:
    """Return the first of *keys*, and that there are more."""
    return ", ".join([*map(repr, keys[:most]), *(["..."] if len(keys) > most else [])])


def of_grades(given: Judged) -> list[str]:
    """Return what is mixed up in grades: rubrics, if each has several results, and judges."""
    said = []
    if 1 < len(given.rubrics) <= len(given) / _PER_RUBRIC:
        said.append(f"the grades are of {len(given.rubrics)} rubrics ({_counts(given.rubrics)}); look at each alone")
    if len(given.judges) > 1:
        names = {name for _, name in given.judges}
        what = f"{len(given.judges)} judges" if len(names) > 1 else f"{len(given.judges)} settings of one judge"
        shown = {f"{name} {digest[:6]}".strip(): count for (digest, name), count in given.judges.items()}
        said.append(f"the grades are of {what} ({_counts(shown)}); look at each alone")
    return said


def of_runs(new: Judged, old: Judged) -> list[str]:
    """Return in what two runs differ beside their outputs."""
    said = [f"{which} run: {remark}" for which, one in (("new", new), ("old", old)) for remark in of_grades(one)]
    if {*new.rubrics} != {*old.rubrics}:
        said.append("the two runs were graded by different rubrics")
    if new.judges and old.judges and {*new.judges} != {*old.judges}:
        names = f"{new.name} and {old.name}" if new.name != old.name else f"{new.name}, with other settings"
        said.append(f"the two runs were graded by different judges ({names}), who may make the difference")
    return said


def beside_holm(rows: Sequence[tuple[str, tuple[float, float] | None, float]], risk: float) -> list[str]:
    """Return a remark if intervals, of each *(id, interval, adjusted p)*, leave out 0 where p says noise."""
    found = [id_ for id_, ends, p in rows if p >= risk and ends is not None and not ends[0] <= 0 <= ends[1]]
    shown = ", ".join(found[:5])
    said = f"the intervals are of each figure alone; among {len(rows)}, chance may explain {shown} (see p)"
    return [said] if found else []


def _counts(counts: Mapping[str, int]) -> str:
    most = sorted(counts.items(), key=lambda each: -each[1])
    return ", ".join(f"{name}: {count:,}" for name, count in most[:3]) + (", ..." if len(most) > 3 else "")


def _sample_remark(one: Ratings, risk: float, cure: str) -> str:
    """Return a remark if what the judge says of labelled candidates differs from the others: no random sample."""
    labelled, judge = ~np.isnan(one.target), one.judge
    graded = ~np.isnan(judge)
    a, b = judge[labelled & graded], judge[~labelled & graded]
    if min(len(a), len(b)) < 2 or np.ptp(one.weights[labelled]) > 0:
        return ""
    if one.scale.kind == "option":  # as a verdict: the commonest option, or another
        first = stats.mode(judge[graded]).mode
        a, b = (a == first).astype(float), (b == first).astype(float)
    if one.grouped:
        among = (compact(one.groups[where & graded]) for where in (labelled, ~labelled))
        found = unpaired_contrast(a, b, *among)
        p = 1.0 if found is None else found.p
    elif one.scale.kind == "number":
        ranks: Any = stats.mannwhitneyu(a, b) if np.ptp(judge[graded]) > 0 else None
        p = 1.0 if ranks is None else float(ranks.pvalue)
    else:
        exact: Any = stats.fisher_exact([[a.sum(), len(a) - a.sum()], [b.sum(), len(b) - b.sum()]])
        p = float(exact.pvalue)
    if p >= risk:
        return ""
    if one.scale.kind == "number":
        said = f"the judge gives the labelled candidates {a.mean():.2f} and the others {b.mean():.2f} on average"
    else:
        verb = "passes" if not one.criterion else "says yes to" if one.scale.kind == "verdict" else "says the same of"
        mine, others = (percent(float(side.mean())) for side in (a, b))
        said = f"the judge {verb} {mine} of the labelled and {others} of the others"
    return f"{said}: the labels are not a random sample (p = {p:.1g}); {cure}"


def _weight_remark(one: Ratings) -> str:
    weights = one.weights[~np.isnan(one.target)]
    if not len(weights) or np.ptp(weights) == 0:
        return ""
    spread = f"{len(weights):,} labels of weight {weights.min():.3g} to {weights.max():.3g}"
    return f"figures are by weight: {spread} are worth {effective_size(weights):,.0f} that count alike"


def _division_remark(one: Ratings) -> str:
    """Return on how many candidates people are divided, and how the judge sees these."""
    tied = ~np.isnan(one.people).all(axis=1) & np.isnan(one.target)
    said = f"people are divided on {counted(int(tied.sum()), 'candidate')}, left out here"
    a, b = (one.judge[where & ~np.isnan(one.judge)] for where in (tied, ~tied & ~np.isnan(one.target)))
    if not tied.any() or one.scale.kind != "verdict" or not len(a) or not len(b):
        return said if tied.any() else ""
    lean = f"{percent(float(a.mean()))} of them, and to {percent(float(b.mean()))} of the others"
    return f"{said} (the judge says yes to {lean})"


def _useless(one: Ratings) -> str:
    """Return a remark where the judge tells nothing of what people say, or the opposite."""
    both = ~np.isnan(one.target) & ~np.isnan(one.judge)
    a, b = one.judge[both], one.target[both]
    if len(a) < _FEW or np.ptp(b) == 0:
        return ""
    if np.ptp(a) == 0:
        return f"the judge says the same of all {len(a):,} labelled candidates, so it tells nothing"
    groups, is_option = compact(one.groups[both]) if one.grouped else None, one.scale.kind == "option"
    name, found = ("kappa", co.cohen(a, b)) if is_option else ("correlation", co.pearson(a, b))
    figure = co.coefficient(name, found, groups)
    if figure.value is None or figure.interval is None:
        return ""
    together, apart = figure.interval[0] > 0, figure.interval[1] < 0
    if one.scale.kind == "verdict" and not one.grouped:  # of few labels, Fisher's exact test shows more
        table = [[np.sum((a == said) & (b == true)) for said in (1, 0)] for true in (1, 0)]
        exact: list[Any] = [stats.fisher_exact(table, side) for side in ("greater", "less")]
        together, apart = (at or p.pvalue <= 1 - UPPER for at, p in zip((together, apart), exact, strict=True))
    if together:
        return ""
    # What is said rests on the plain interval: the wider one, which is told, may hold 0 for a good judge of few labels.
    low, high = figure.interval if is_option else co.correlation(name, a, b, groups).interval or figure.interval
    shown = f"{name} {figure.value:.2f}, {low:.2f} to {high:.2f}"
    if apart:
        return f"the judge says the opposite of people ({shown}): is the criterion meant the other way round?"
    return f"no agreement with people beyond chance is shown ({shown}): the judge may be of no use"
