"""
Make another rubric from labelled candidates: with some of them as anchors, or with texts by a writer.

Anchors need no call: of each criterion the judge is shown one candidate that people find good and one that they do not,
those that it misjudged by most. A writer is a model that sees the criteria, and the candidates on which the judge and
people differ. Candidates are untrusted text: each is fenced by a mark from a hash of all of them, and a reply of the
writer changes nothing but the texts of the criteria that it names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import evolve, frozen

from rubric import Anchor, Criterion, DecisionTree, DefinitionError, Grade, Judge, Levels, Rubric, Ungraded
from rubric.driving import Failure, Usage, adrive
from rubric.embed import Check, Options, cut, fields, run
from rubric.grading.writing import Writing
from rubric.quality.drafting import TEXT, prompt, schema_of
from rubric.quality.lint_rules import folded
from rubric.results import Scored

_LONGEST_ANCHOR = 4_000
"""Characters of a candidate that may become an anchor: each later prompt holds it."""

_LONGEST_SHOWN = 1_500
_SHOWN_WRONG, _SHOWN_RIGHT = 8, 4
_EVEN = 0.5
_SAME = 1e-6


@frozen
class Example:
    """A labelled candidate: the judge's *result*, and what *people* say in 0..1, on the whole and of criteria."""

    result: Grade | Ungraded
    people: float
    said: Mapping[str, float]
    is_verdict: bool
    reason: str = ""

    @property
    def output(self) -> str:
        return "" if self.result.candidate is None else self.result.candidate.output

    @property
    def error(self) -> float:
        """How far the judge is from people."""
        if self.is_verdict:
            return float(self.result.passed is not (self.people == 1))
        return 1.0 if self.result.score is None else abs(self.result.score - self.people)


@frozen
class Rewrite:
    """Another *rubric*, the *change*, the *usage* of the writer, and *why* there is none where nothing changed."""

    rubric: Rubric
    change: str = ""
    usage: Usage = Usage()
    why: str = ""


# -- anchors -----------------------------------------------------------------------------------------------


def with_anchors(rubric: Rubric, examples: Sequence[Example]) -> Rewrite:
    """Return *rubric* with misjudged *examples* as anchors."""
    changed, names, left = rubric, [], defaultdict[str, set[int]](set)
    tests = {folded(test.candidate.output) for test in rubric.tests}
    for criterion in rubric.criteria:
        if _is_asked(criterion) and (found := _anchors(criterion, examples, tests, left)):
            changed = changed.revising(criterion.id, anchors=(*criterion.anchors, *found))
            names.append(f"{len(found)} anchor{'s' if len(found) > 1 else ''} for {criterion.id}")
    told = ", ".join(f"{len(places)} {why}" for why, places in left.items()) or "no model judges a criterion"
    why = "" if names else f"no labelled candidate that was misjudged can be one: {told}"
    return Rewrite(changed, ", ".join(names), why=why)


def _anchors(
    criterion: Criterion, examples: Sequence[Example], tests: set[str], left: Mapping[str, set[int]]
) -> list[Anchor]:
    """Return a good and a bad example, those with the largest error, if any; note in *left* why others are none."""
    taken = {anchor.response for anchor in criterion.anchors}
    best: dict[bool, tuple[float, int, int]] = {}
    for place, example in enumerate(examples):
        finding, output = example.result[criterion.id], example.output
        target = example.said.get(criterion.id)
        lacks = {
            "without a label of a criterion": target is None,
            "without a score of a criterion": not isinstance(finding, Scored),
            "already an anchor or a test": output in taken or folded(output) in tests,
            f"empty, or longer than {_LONGEST_ANCHOR:,} characters": not 0 < len(output.strip()) <= _LONGEST_ANCHOR,
        }
        lack = next((why for why, holds in lacks.items() if holds), "")
        if example.error > _SAME:
            left[lack or "judged as people say on each criterion"].add(place)
        if not lack and target is not None and isinstance(finding, Scored):
            rank = (-abs(finding.score - target), len(output), place)
            best[target >= _EVEN] = min(best.get(target >= _EVEN, rank), rank)
    if not best or min(best.values())[0] > -_SAME:
        return []
    chosen = [examples[best[side][2]] for side in (True, False) if side in best]
    return [Anchor(one.output, _place(criterion, one.said[criterion.id])) for one in chosen]


def _place(criterion: Criterion, score: float) -> float | bool:
    """Return the score nearest to *score* that an answer to *criterion* can have; for a guard, whether it is there."""
    answer: Any = criterion.answer
    return score >= _EVEN if criterion.is_unwanted else float(answer.place(answer.nearest(score)))


def _is_asked(criterion: Criterion) -> bool:
    """True if a judge answers *criterion* itself."""
    return not isinstance(criterion.answer, Check | DecisionTree | Rubric)


# -- texts -------------------------------------------------------------------------------------------------

_FORM = '{"criteria": [{"id": "...", "text": "..."}, ...]}'


def rewritten(rubric: Rubric, examples: Sequence[Example], writer: Judge, options: Options) -> Rewrite:
    """Return *rubric* with texts by the *writer*, for these *examples*; without a change where it fails."""
    if not any(map(_is_asked, rubric.judged)):
        return Rewrite(rubric, why="no model judges a criterion")
    if not any(example.error > _SAME for example in examples):
        return Rewrite(rubric, why="the judge and people do not differ")

    async def write() -> Rewrite:
        with options.pipeline(writer) as opened:
            found, usage = await adrive(_writing(rubric, examples).steps(writer, partial(_read, rubric)), opened.send)
        if isinstance(found, Failure):
            return Rewrite(rubric, usage=usage, why=f"the writer failed: {found}")
        changed, ids = found
        why = "" if ids else "the writer changes nothing"
        return Rewrite(changed, f"texts of {', '.join(ids)}" if ids else "", usage, why)

    return run(write())


def _read(rubric: Rubric, found: Mapping[str, Any], _: int) -> tuple[Rubric, list[str]]:
    """Return the rubric with the texts that *found* has, and the ids of the criteria that are changed."""
    items = found.get("criteria")
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise DefinitionError("criteria", f"expected a JSON object of the form {_FORM}")
    changed, ids = rubric, []
    known = {criterion.id: criterion for criterion in rubric.judged if _is_asked(criterion)}
    for index, item in enumerate(items):
        id_, text = str(item.get("id")), item.get("text")
        if id_ not in known:
            message = f"no criterion {id_!r} to change{fields.suggest(id_, known)}"
            raise DefinitionError(f"criteria[{index}].id", message)
        if not isinstance(text, str) or not text.strip():
            raise DefinitionError(f"criteria[{index}].text", "expected the new text")
        if text.strip() != known[id_].text.strip():
            ids.append(id_)
            told: dict[str, Any] = {"text": text.strip()}
            changed = evolve(changed, **told) if rubric.text else changed.revising(id_, **told)
    return changed, ids


def _writing(rubric: Rubric, examples: Sequence[Example]) -> Writing:
    asked = [criterion for criterion in rubric.judged if _is_asked(criterion)]
    blocks = [("criterion " + criterion.id, _describe(criterion)) for criterion in asked]
    wrong = sorted((one for one in examples if one.error > _SAME), key=lambda one: -one.error)[:_SHOWN_WRONG]
    right = [one for one in examples if one.error <= _SAME][:_SHOWN_RIGHT]
    for one in (*wrong, *right):
        candidate = one.result.candidate
        blocks += [("question", cut(candidate.input, _LONGEST_SHOWN))] if candidate and candidate.input else []
        blocks += [("answer", cut(one.output, _LONGEST_SHOWN)), ("what is said of it", _verdicts(one))]
    exact = {"fewest": 0, "most": len(asked), "known": {"id": {"enum": [criterion.id for criterion in asked]}}}
    return Writing(prompt("rewrite"), {"form": _FORM}, tuple(blocks), schema_of({"id": TEXT, "text": TEXT}), exact)


def _describe(criterion: Criterion) -> str:
    answer: Any = criterion.answer
    lines = [criterion.text, f"answered by: {answer.words}" + (" (must not hold)" if criterion.is_unwanted else "")]
    lines += [f"{score}: {text}" for score, text in answer.texts.items()] if isinstance(answer, Levels) else []
    return "\n".join(lines)


def _verdicts(example: Example) -> str:
    result = example.result
    if example.is_verdict:
        people, judge = ("pass" if said else "fail" for said in (example.people == 1, result.passed))
    else:
        people, judge = f"{example.people:.2f} of 1", f"{result.score or 0.0:.2f} of 1"
    why = f". {cut(example.reason, 600)}" if example.reason else ""
    lines = [f"people: {people}{why}", f"the model: {judge}"]
    for finding in result.findings:
        if isinstance(finding, Scored):
            lines.append(f"  {finding.id}: {finding.score:g}. {cut(finding.reason, 300)}")
        if (own := example.said.get(finding.id)) is not None:
            lines.append(f"  {finding.id}, people: {own:g}")
    return "\n".join(lines)
