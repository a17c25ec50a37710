"""
Which verdicts of a judge can be trusted: those that people would share, up to an error that is guaranteed.

The fixed-sequence test of J. Jung, F. Brahman and Y. Choi (arXiv 2407.18370): thresholds of confidence are tried from
the strictest on, each by an exact binomial test that the judge is wrong more often than allowed, until one fails. No
correction for the number of thresholds is needed, since the order is fixed beforehand.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
from attrs import evolve, field, frozen
from scipy import stats

from rubric import DefinitionError, Grade, Grades, Ungraded
from rubric.embed import TOLERANCE, Presented, Table, counted, fields, guided, percent
from rubric.trust.assumptions import of_labels, sentences
from rubric.trust.inference import Floats
from rubric.trust.labels import Labels, as_labels
from rubric.trust.pairwise.preference import Preference
from rubric.trust.pairwise.win_rates import Preferences
from rubric.trust.ratings import as_judged as judged_of
from rubric.trust.ratings import mark_of, ratings_of

_WEIGHTED = "have weights, and the exact test takes a random sample; label one"
START, FORGIVEN = 30, 2
"""The fewest labelled verdicts that a threshold is tried on; and so many that two wrong ones do not end the search."""


@frozen
class Unsure:
    """
    True of a first result that is not confident enough to be kept: an occasion for a cascade's second judge.

    Args:
        by: `score`: how far the score is from the threshold, as a share of the room on that side. `votes`: the share of
            the votes with the verdict. `margin`: how clear a preference is, whatever its unjudged criteria would say.
        least: The confidence that is kept; None keeps nothing.
        labels: The labels by which it was chosen, as `mark_of` returns them.
    """

    by: str
    least: float | None
    labels: str = ""

    def __call__(self, result: Grade | Ungraded | Preference) -> bool:
        """Return whether the second judge, or a person, is to be asked."""
        found = confidence(result, self.by)
        return self.least is None or found is None or found < self.least - 1e-9

    @property
    def __name__(self) -> str:
        return f"confidence by {self.by} below {'any' if self.least is None else f'{self.least:.3f}'}"


def confidence(result: Grade | Ungraded | Preference, by: str) -> float | None:
    """Return how confident *result* is; None if it is ungraded, or prefers neither."""
    if isinstance(result, Preference):
        return min(map(abs, result.bounds)) if result.outcome in ("a", "b") else None
    if not isinstance(result, Grade):
        return None
    if by == "votes":
        verdicts = [vote.passed for vote in result.votes if isinstance(vote, Grade)]
        return sum(verdict == result.passed for verdict in verdicts) / len(verdicts) if verdicts else None
    return distance(result.score, 0.5 if result.rubric.threshold is None else result.rubric.threshold)


def distance(score: float, threshold: float) -> float:
    """Return how far *score* is from *threshold*, as a share of the room on its side, so that yes and no are alike."""
    room = 1 - threshold if score >= threshold - TOLERANCE else threshold
    return abs(score - threshold) / room if room > 0 else 1.0


@frozen(repr=False)
class Trusted(Presented):
    """
    What `trusted` returns.

    Args:
        when: For `Cascade(first, then, when=...)`: true where the first judge is not to be trusted.
        error: The share of kept verdicts that may differ from people's.
        risk: The probability with which that is exceeded.
        kept: The share of graded candidates whose verdict is kept.
        labels: The labelled verdicts that were tested.
        kept_labels: Those among them that are kept.
        wrong: Those of the kept that differ from people's.
        needed: Where nothing can be kept: about how many labels would do; None if no verdicts are right enough.
        notes: What is not as the figures assume.
    """

    _truth = ".kept"

    when: Unsure = field()
    error: float
    risk: float
    kept: float
    labels: int
    kept_labels: int = 0
    wrong: int = 0
    needed: int | None = None
    notes: tuple[str, ...] = ()

    def remarks(self) -> list[str]:
        """What is not as the figures assume."""
        return sentences(self.notes)

    @property
    def sentence(self) -> str:
        """A description of the main figure."""
        allowed = f"{percent(self.error)} of them, at a risk of {percent(self.risk)}"
        if self.kept:
            return f"{percent(self.kept)} of the verdicts can be kept: people differ from at most {allowed}."
        if self.needed is None:
            return f"No verdict can be kept: the judge is wrong too often for at most {allowed}, whatever the labels."
        return (
            f"{counted(self.labels, 'label')} {'is' if self.labels == 1 else 'are'} too few to keep a verdict "
            f"(at most {allowed}); about {self.needed:,} would do."
        )

    def tables(self) -> list[Table]:
        """What was found."""
        head = ("kept when", "kept", "labels", "of them kept", "wrong")
        row = (
            "never" if self.when.least is None else str(self.when.__name__).replace("below", "from"),
            percent(self.kept),
            self.labels,
            self.kept_labels,
            self.wrong,
        )
        return [("", head, [row])]


@guided
def trusted(grades: Grades | Preferences, labels: Labels | Any, error: float = 0.05, risk: float = 0.05) -> Trusted:
    """
    Find the verdicts that can be kept: people differ from at most a share *error* of them, but for a *risk*.

    A jury is as confident as its votes agree; any other judge as its score is far from the threshold, as a share of the
    room on that side. Verdicts that are equally sure are kept together.

    Args:
        grades: What the judge said: grades, or the preferences of `prefer_many`, whose ties are never kept.
        labels: What people say of the whole, a random sample: pass or fail; or of pairs, which is better: `a`, `b`, the
            name of a system, or `tie`.
        error: The share of the kept verdicts that may be wrong, in 0..1.
        risk: The probability of exceeding it.

    Raises:
        DefinitionError: Labels are not verdicts, or nothing matches.
    """
    fields.check_number("error", error, 1e-6, 0.5)
    fields.check_number("risk", risk, 1e-9, 0.5)
    every = as_labels(labels)
    if isinstance(grades, Preferences):
        return _of_pairs(grades, every, (error, risk))
    given = judged_of(grades)
    ratings = ratings_of(given, every, "")
    if ratings.scale.kind != "verdict":
        raise DefinitionError("labels", "expected verdicts, pass or fail, got numbers")
    if ratings.is_weighted:
        raise DefinitionError("labels", _WEIGHTED)
    by = "votes" if any(len(result.votes) > 1 for result in grades) else "score"
    sure = np.array([np.nan if (c := confidence(r, by)) is None else c for r in grades], dtype=float)
    target, verdict = ratings.target, given.columns[""][1]
    both = ~np.isnan(target) & ~np.isnan(sure) & ~np.isnan(verdict)
    wrong = (verdict != target)[both].astype(float)
    if not both.any():
        raise DefinitionError("labels", "expected graded candidates on which people are not divided, got none")
    found = _try_thresholds(sure, sure[both], wrong, by, allowed=(error, risk))
    notes = tuple(of_labels(given, every, [ratings], cure="label one"))
    return evolve(found, when=evolve(found.when, labels=mark_of(given, every)), notes=notes)


def _of_pairs(preferences: Preferences, labels: Labels, allowed: tuple[float, float]) -> Trusted:
    """Return what can be kept of *preferences*; a pair on which people are divided, or were not asked, says nothing."""
    if len({label.weight for label in labels}) > 1:
        raise DefinitionError("labels", _WEIGHTED)
    by_key = labels.by == "key" or (labels.by is None and any(one.key for one in preferences))
    said: dict[str, list[str]] = {}
    for label in labels:
        said.setdefault(label.key, []).extend([] if label.judge_seen or label.criterion else [str(label.value)])
    sure, wrong, known = np.full(len(preferences), np.nan), np.full(len(preferences), np.nan), set[str]()
    for at, one in enumerate(preferences):
        sides = {**dict(zip(one.names, "ab", strict=True)), "a": "a", "b": "b", "tie": "tie"}
        people = said.get(name := one.key if by_key else str(at), [])
        known.add(name)
        if unknown := [each for each in people if each not in sides]:
            raise DefinitionError("labels", f"expected one of {', '.join(sides)} for a pair, got {unknown[0]!r}")
        (best, most), *others = Counter(sides[each] for each in people).most_common(2) or [("", 0)]
        if (margin := confidence(one, "margin")) is not None:
            sure[at] = margin
            if most and most not in [count for _, count in others]:
                wrong[at] = best != one.outcome
    if (both := ~np.isnan(wrong)).sum() == 0:
        raise DefinitionError("labels", "expected some of pairs with a winner, by key or by place, got none")
    found = _try_thresholds(sure, sure[both], wrong[both], "margin", allowed=allowed)
    kept = float((sure >= found.when.least - TOLERANCE).mean()) if found.when.least is not None else 0.0
    unmatched = [repr(name) for name in said if name not in known]
    notes = (f"{len(unmatched):,} labels match no pair ({', '.join(unmatched[:3])}, ...)",) if unmatched else ()
    return evolve(found, kept=kept, when=evolve(found.when, labels=labels.digest), notes=notes)


def _try_thresholds(every: Floats, sure: Floats, wrong: Floats, by: str, *, allowed: tuple[float, float]) -> Trusted:
    """Try the thresholds in order."""
    error, risk = allowed
    start = next(n for n in itertools.count(START) if stats.binom.cdf(FORGIVEN, n, error) <= risk)
    sure = np.round(sure, 9)  # equal levels are one
    levels = np.unique(sure)[::-1]
    counts = [
        (float(level), int(kept.sum()), int(wrong[kept].sum())) for level in levels if (kept := sure >= level).any()
    ]
    best: tuple[float, int, int] | None = None
    for level, n, k in counts:
        if n < start and level != levels[-1]:
            continue
        if stats.binom.cdf(k, n, error) > risk:
            break
        best = level, n, k
    if best is None:
        enough = [
            rest * len(sure) / n
            for _, n, k in counts
            if n >= min(START, len(sure)) and (rest := _labels_needed(k / n, error, risk))
        ]
        needed = int(np.ceil(max(min(enough), len(sure) + 1))) if enough else None
        return Trusted(Unsure(by, None), error, risk, 0.0, len(sure), needed=needed)
    level, n, k = best
    share = float((every[~np.isnan(every)] >= level - 1e-9).mean())
    return Trusted(Unsure(by, level), error, risk, share, len(sure), n, k)


def _labels_needed(rate: float, error: float, risk: float) -> int | None:
    """Return how many labels among the kept let the test pass, if the judge is wrong at the *rate* that was seen."""
    if rate >= error:
        return None
    n = START
    while n < 1_000_000:
        allowed = int(stats.binom.ppf(risk, n, error))
        allowed -= stats.binom.cdf(allowed, n, error) > risk
        if allowed >= 0 and stats.binom.cdf(allowed, n, rate) >= 0.8:
            return n
        n = int(n * 1.1) + 1
    return None
