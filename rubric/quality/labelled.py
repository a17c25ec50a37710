"""Labelled candidates with their results, and how far a rubric agrees on them with people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from rubric import Candidate, DefinitionError, Grade, Rubric, Ungraded
from rubric.quality.cross_fitting import Agreements
from rubric.quality.rewriting import Example
from rubric.trust.assumptions import of_labels, sentences
from rubric.trust.inference import Codes, Floats, compact
from rubric.trust.labels import Labels, as_labels
from rubric.trust.ratings import Judged, Ratings, as_judged, match_labels

_FEWEST = 20


@frozen(eq=False)
class Sample:
    """
    Labelled candidates, with their results under one rubric, and what people say of each in 0..1.

    *said* is what they say of criteria by id, NaN without a label; *ungraded* counts those that the judge failed on;
    *notes* say what is not as assumed.
    """

    results: tuple[Grade | Ungraded, ...]
    people: Floats
    said: Mapping[str, Floats]
    groups: Codes
    weights: Floats
    is_verdict: bool
    ungraded: int = 0
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def candidates(self) -> list[Candidate]:
        """The candidates themselves, where the results hold them."""
        return [result.candidate for result in self.results if result.candidate is not None]

    def agreements(self, rubric: Rubric) -> Agreements:
        """Return how far each result agrees with people under *rubric*; one that is ungraded does not agree."""
        found = [result.rescore(rubric) for result in self.results]
        if self.is_verdict:
            return np.array([float(r.passed is bool(p == 1)) for r, p in zip(found, self.people, strict=True)])
        scores = [r.score if isinstance(r, Grade) else np.inf for r in found]
        return np.asarray(np.maximum(0.0, 1 - np.abs(np.array(scores) - self.people)))

    def mean(self, agreements: Agreements) -> float:
        """Return the mean by weight."""
        return float(np.average(agreements, weights=self.weights))

    def where(self, kept: NDArray[np.bool_]) -> Sample:
        """Return the candidates that are *kept*."""
        return Sample(
            tuple(result for result, keep in zip(self.results, kept, strict=True) if keep),
            self.people[kept],
            {id_: said[kept] for id_, said in self.said.items()},
            compact(self.groups[kept]),
            self.weights[kept],
            self.is_verdict,
            reasons=tuple(reason for reason, keep in zip(self.reasons, kept, strict=True) if keep),
        )

    def examples(self) -> list[Example]:
        """Return the candidates as examples for a rewriter."""
        return [
            Example(
                result,
                float(self.people[row]),
                {id_: float(said[row]) for id_, said in self.said.items() if not np.isnan(said[row])},
                self.is_verdict,
                self.reasons[row],
            )
            for row, result in enumerate(self.results)
        ]


def sample_of(rubric: Rubric, grades: Sequence[Grade | Ungraded], labels: Any) -> Sample:
    results = tuple(each.rescore(rubric) for each in grades)
    graded = np.array([isinstance(one, Grade) for one in results], dtype=bool)
    if not graded.any():
        raise DefinitionError("grades", "expected at least one grade, got none")
    given = as_labels(labels)
    judge = as_judged(results)
    found = match_labels(judge, given)  # the ungraded ones, too: labels may name candidates by their place
    names = dict(zip(given.criteria, found, strict=True))
    if (whole := names.get("")) is None:
        message = "expected verdicts of people on the whole, or scores, got labels of criteria alone"
        raise DefinitionError("labels", f"{message}; leave the criterion out: {{key: True}}")
    said = {one.criterion: _scores(one, rubric) for name, one in names.items() if name or one.criterion}
    is_verdict = not whole.criterion and whole.scale.kind == "verdict"
    # On the whole, in 0..1; of numbers on the scale of its one criterion, its score.
    people = _flip(_scores(whole, rubric), rubric) if whole.criterion else whole.target
    if len(rubric.judged) == 1 and rubric.judged[0].id not in said:
        said[rubric.judged[0].id] = _flip(people, rubric)  # what people say of the whole, they say of its criterion
    labelled = ~np.isnan(people)
    rows = labelled & graded
    if rows.sum() < _FEWEST:
        raise DefinitionError("labels", f"expected {_FEWEST} graded candidates with a label at least, got {rows.sum()}")
    reasons = tuple("; ".join(said) for said in _reasons(judge, given))
    sample = Sample(results, people, said, whole.groups, whole.weights, is_verdict, 0, reasons).where(rows)
    weights = sample.weights / sample.weights.mean()  # so that a tolerance means the same whatever their unit is
    notes = tuple(sentences(of_labels(judge, given, [whole], verdicts=False, cure="label one, or give weights")))
    return evolve(sample, weights=weights, ungraded=int((labelled & ~graded).sum()), notes=notes)


def _reasons(judge: Judged, labels: Labels) -> list[list[str]]:
    """Return why people say what they say, for each candidate, with the criterion before it."""
    found: list[list[str]] = [[] for _ in range(len(judge))]
    rows, _ = labels.rows_by_name(judge.keys, judge.places)
    for label in labels:
        for row in rows.get(label.key, ()) if label.reason and labels.counts(label) else ():
            found[row].append(f"{label.criterion}: {label.reason}" if label.criterion else label.reason)
    return found


def _scores(ratings: Ratings, rubric: Rubric) -> Floats:
    """Return what people say of a criterion as scores in 0..1."""
    answer, scale = rubric[ratings.criterion].answer, ratings.scale
    if scale.kind == "option":
        places = np.array([answer.place(name) for name in scale.options])  # type: ignore[union-attr]
        there = ~np.isnan(ratings.target)
        return np.where(there, places[np.where(there, ratings.target, 0).astype(int)], np.nan)
    low, high = scale.low or 0.0, 1.0 if scale.high is None else scale.high
    return np.asarray((ratings.target - low) / (high - low))


def _flip(scores: Floats, rubric: Rubric) -> Floats:
    """Return the score of the whole for *scores* of its one criterion, and the other way round."""
    return 1 - scores if rubric.judged[0].is_unwanted != rubric.negate else scores
