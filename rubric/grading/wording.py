"""A criterion in words: its text, its levels and options, its calibration examples, and how it is meant."""

from __future__ import annotations

from collections.abc import Sequence

from rubric.answers import Choices, Levels, YesNo
from rubric.criteria import Anchor, Criterion
from rubric.grading.forms import Form, value_words
from rubric.grading.scoring import EVEN, asks_evidence, policy
from rubric.prompts import rendering
from rubric.rubrics import Rubric
from rubric.showing import as_json


def body(
    rubric: Rubric, criteria: Sequence[Criterion], form: Form, *, output: str, complaint: str, guidelines: str
) -> str:
    """Return the tail of a prompt: the *criteria*, what helps to judge them, and any *complaint*."""
    parts = [f"Guidelines for this part:\n{guidelines.strip()}"] if guidelines.strip() else []
    for criterion in criteria:
        title = f'Criterion "{criterion.id}":' if form.many else "Criterion:"
        lines = [title, criterion.text.strip(), *_advice(rubric, criterion, output, form)]
        parts.append("\n".join(line for line in lines if line))
    if complaint:
        ours = complaint.partition(", got ")[0]  # what follows is a judge's, and may be the candidate's words
        parts.append(rendering.fill(rendering.text("repair"), {"complaint": ours}))
    return "\n\n".join(parts)


def _advice(rubric: Rubric, criterion: Criterion, output: str, form: Form) -> list[str]:
    levels = level_lines(criterion.answer) if isinstance(criterion.answer, Levels) else []
    advice = ["\n".join(levels), _options(criterion.answer), _anchors(criterion, output)]
    if criterion.polarity != "satisfy" or not isinstance(criterion.answer, Choices):
        advice.append(rendering.text("guard" if criterion.is_unwanted else criterion.polarity))
    if asks_evidence(rubric, criterion):
        advice.append(rendering.text("evidence"))
    if policy(rubric, criterion) != "forbid":
        advice.append(rendering.fill(rendering.text("abstain"), {"key": form.key}))
    if form.many:
        advice.append(f'"verdict" is {value_words(criterion.answer)}.')
    return advice


def level_lines(levels: Levels) -> list[str]:
    """Return what the numbers of *levels* mean, a line each; and that those between anchors are answers too."""
    between = [rendering.text("between")] if levels.has_between else []
    return [*(f"- {r}: {r.text}" for r in levels.ranges if r.text), *between]


def _options(answer: object) -> str:
    if not isinstance(answer, Choices) or not any(c.text for c in answer.choices):
        return ""
    return "\n".join(f"- {c.label}: {c.text}" for c in answer.choices if c.text)


def _anchors(criterion: Criterion, output: str) -> str:
    """Return the calibration examples, without the graded text itself: it would carry its own verdict."""
    graded = " ".join(output.split()).casefold()
    kept = [a for a in criterion.anchors if " ".join(a.response.split()).casefold() != graded]
    if not kept:
        return ""
    return "\n".join(["Calibration examples:", *(_anchor(criterion, a) for a in kept)])


def _anchor(criterion: Criterion, anchor: Anchor) -> str:
    why = f" ({anchor.reason})" if anchor.reason else ""
    return f"Response: {as_json(anchor.response)} -> {_anchor_value(criterion, anchor.score)}{why}"


def _anchor_value(criterion: Criterion, score: float) -> str:
    match criterion.answer:
        case YesNo():
            return "yes" if score >= EVEN else "no"
        case Levels(low=low, high=high):
            return f"score {round(low + score * (high - low))}"
        case Choices(choices=choices):
            return min(choices, key=lambda c: abs(c.score - score)).label
        case _:
            return f"score {score:.2f}"
