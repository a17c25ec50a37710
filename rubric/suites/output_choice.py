"""
Criteria that compare the outputs of one test: promptfoo's `select-best` and `max-score`.

A test that several prompts or providers answer is as many cases. The output that a judge picks (`SelectBest`), or whose
other criteria have the highest mean or sum (`MaxScore`), meets such a criterion, and the others fail. So it is decided
when all of these cases have been graded by everything else. An output without a grade (its target failed, or it is
empty) takes no part. One that is not there yet may be the best, so nothing is decided without it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from math import fsum

from attrs import evolve, field, frozen

from rubric import Candidate, Choices, Criterion, Grade, Holds, ModelError, Rubric, RubricError, Ungraded
from rubric.driving import Failure
from rubric.embed import Decided, Finding, FrozenMap, counted, shorten
from rubric.results import Scored, Unjudged

_CURE = (
    "it compares the outputs of several prompts or providers for one test: run the suite where two or more answer it "
    "(--target, --target providers, or --outputs)"
)


class AloneError(RubricError):
    """A criterion compares outputs, and there is one output."""


@frozen
class OutputChoice:
    """A function for `Holds` that a run decides, once it has all outputs of a *test*, whose cases share that name."""

    test: str

    def __call__(self, candidate: Candidate) -> Decided:  # noqa: ARG002 - as all functions of `Holds`
        """Raise that one output cannot be compared."""
        raise AloneError(_CURE)


@frozen
class SelectBest(OutputChoice):
    """
    A judge picks the best of the outputs.

    Args:
        text: By what it picks.
        prompt: In place of ours; `{{ output }}` shows the outputs, `{{ rubric }}` the text.
        shown: In place of both: makes the whole prompt, text or a JSON list of messages, of the outputs and the text.
    """

    text: str = ""
    prompt: str | None = None
    shown: Callable[[Sequence[str], str], str] | None = None

    @property
    def __name__(self) -> str:
        return shorten(f"select-best: {self.text}", 80)


@frozen
class MaxScore(OutputChoice):
    """
    The output with the highest score by its other criteria is the best, if that meets *threshold*.

    *weights* are of these criteria, by id; others do not count. Their weighted mean counts, or with *total* their sum.
    """

    weights: FrozenMap = field(default=FrozenMap(), converter=FrozenMap)
    total: bool = False
    threshold: float | None = None

    @property
    def __name__(self) -> str:
        return "max-score"


def choices_of(rubric: Rubric) -> list[tuple[Criterion, SelectBest | MaxScore]]:
    """Return the criteria of *rubric* that compare outputs, each with how it does."""
    coded = [(each, each.answer.function) for each in rubric.criteria if isinstance(each.answer, Holds)]
    return [(each, function) for each, function in coded if isinstance(function, SelectBest | MaxScore)]


# -- what a judge is shown -------------------------------------------------------------------------------------

_QUESTION = (
    "The candidate is {count} responses to one task, numbered from 0, each after a line with its number and the mark "
    "{mark}; a line without it is a part of a response. Which of them is the best by this: {text}\nThe order in which "
    "they are shown does not matter, and a longer one is not better for that. Answer with its number."
)


def question(check: SelectBest, outputs: Sequence[Candidate]) -> tuple[Candidate, Rubric]:
    """Return the candidate and the rubric by which a judge picks one of *outputs*."""
    prompt, variables = check.prompt, outputs[0].variables
    if check.shown is not None:
        prompt, texts = _with_slots(check.shown([one.output for one in outputs], check.text))
        variables = FrozenMap({**variables, **texts})
    inputs = {(one.input, one.messages) for one in outputs}
    # No response can write the line of another: the mark depends on all of them, and is the same in every process.
    mark = sha256("\0".join(one.output for one in outputs).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    shown = "\n\n".join(f"=== Response {number} {mark} ===\n{one.output}" for number, one in enumerate(outputs))
    asked, messages = next(iter(inputs)) if len(inputs) == 1 else ("", ())
    # A label per output: what a choice scores does not matter, since its label is read.
    menu = Choices({str(number): float(not number) for number in range(len(outputs))})
    text = check.text if prompt else _QUESTION.format(count=len(outputs), mark=mark, text=check.text)
    rubric = Rubric(criteria=[Criterion(text, id="best", answer=menu)], threshold=0, degenerate="judge", prompt=prompt)
    return Candidate(shown, input=asked, messages=messages, variables=variables), rubric


def _with_slots(prompt: str) -> tuple[str, dict[str, str]]:
    """Return *prompt* with a slot for each of its texts, and these texts: nothing in an output is read as a slot."""
    if not prompt.lstrip().startswith("["):
        return "{{ shown.0 }}", {"shown.0": prompt}
    try:
        messages = json.loads(prompt)
        texts = {f"shown.{number}": message["content"] for number, message in enumerate(messages)}
        slotted = [{**message, "content": f"{{{{ {name} }}}}"} for message, name in zip(messages, texts, strict=True)]
    except (ValueError, TypeError, KeyError):
        return "{{ shown.0 }}", {"shown.0": prompt}
    return json.dumps(slotted), texts


def picked_output(result: Grade | Ungraded) -> int | Failure:
    """Return the number that the judge picked, the one with the most votes; the failure if none did."""
    votes = [vote["best"] for vote in result.votes or (result,)]
    labels = Counter(vote.value for vote in votes if isinstance(vote, Scored) and isinstance(vote.value, str))
    if labels:
        return int(labels.most_common(1)[0][0])
    lost = next((vote.failure for vote in votes if isinstance(vote, Unjudged)), None)
    return lost or Failure("unreadable", "the judge picked none of the outputs")


# -- verdicts --------------------------------------------------------------------------------------------------


def highest(check: MaxScore, results: Sequence[Grade | Ungraded]) -> tuple[int | None, str]:
    """
    Return the place of the best of *results*, None if it is below the threshold; and what is told of it.

    One without a score, or a criterion that counts and was not judged, is a `ModelError`.
    """
    scores = [_score(check, result) for result in results]
    best = max(range(len(scores)), key=lambda number: (scores[number], -number))
    told = f"the scores are {', '.join(f'{score:.3f}' for score in scores)}"
    if check.threshold is not None and scores[best] < check.threshold - 1e-9:
        return None, f"{told}; the highest is below {check.threshold:g}"
    return best, told


def _score(check: MaxScore, result: Grade | Ungraded) -> float:
    """Return the score of *result* by its other criteria."""
    rows: list[tuple[float, float]] = []
    for finding in result.findings:
        if (weight := check.weights.get(finding.id)) is None:
            continue
        if isinstance(finding, Unjudged):
            why = f"max-score needs the others' scores: {finding.failure.message}"
            raise ModelError(evolve(finding.failure, message=why))
        if isinstance(finding, Scored):
            rows.append((finding.score * weight, weight))
    weights, points = fsum(weight for _, weight in rows), fsum(score for score, _ in rows)
    if not (rows if check.total else weights):
        raise ModelError(Failure("bad_request", "max-score: this output has no other score with a weight above 0"))
    return points if check.total else points / weights


def incomplete(awaited: Sequence[str], count: int) -> Failure:
    """Return why nothing is decided before the *awaited* cases, of the *count* of a test, have outputs."""
    there = f"only {count - len(awaited)} of the {counted(count, 'output')} to compare are there"
    missing = shorten(awaited[0], 60) + (f" and {len(awaited) - 1} more" if awaited[1:] else "")
    cure = "give them (--outputs, --target), or leave their cases out (--filter)"
    return Failure("bad_request", f"{there}; missing: {missing}; {cure}")


def verdict(criterion: Criterion, best: int | Failure | None, place: int, told: str) -> Finding:
    """Return the finding of *criterion* for the output at *place*."""
    if isinstance(best, Failure):
        return Unjudged(criterion.id, evolve(best, criterion=criterion.id))
    is_best = best == place
    reason = f"{'selected' if is_best else 'not selected'}; {told}"
    return Scored(criterion.id, float(is_best), float(is_best), reason, flag=is_best)
