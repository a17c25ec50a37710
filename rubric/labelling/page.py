"""
The page on which people label: a candidate beside the questions of the rubric, with the judge's verdict behind a key.

Served, it sends each answer to where it came from; as a file of its own, it keeps them in the browser and exports them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from attrs import field, frozen

from rubric import Candidate, Criterion, Rubric
from rubric.labelling.drawing import Draw, Drawn
from rubric.labelling.questions import Question, questions_of
from rubric.labelling.sheet import Answer
from rubric.view.label_page import render

Results = Mapping[str, Sequence[Mapping[str, Any]]]
"""What each file of results says of a candidate, by its name."""


@frozen(eq=False)
class LabelPage:
    """
    A page on which the criteria of *rubric* are asked of some *candidates*: the first in the order of the *draw*.

    *results* are what judges said of them; *title* is the name of the data.
    """

    rubric: Rubric
    draw: Draw
    candidates: Sequence[Candidate]
    results: Results = field(factory=dict)
    title: str = "Labels"
    questions: tuple[Question, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "questions", questions_of(self.rubric))

    @property
    def allowed(self) -> dict[str, frozenset[str] | None]:
        """The values that each question takes, by criterion."""
        return {question.criterion: question.values for question in self.questions}

    def html(self, answers: Iterable[Answer] = (), mode: Literal["server", "file"] = "server") -> str:
        """Return the page, on which *answers* have been given already."""
        shown = self.draw.items[: len(self.candidates)]
        pairs = [*zip(shown, self.candidates, strict=True)]
        data = {
            "mode": mode,
            "id": f"{self.rubric.digest} {self.title}",
            "by": self.draw.by,
            "questions": [self._of_question(question) for question in self.questions],
            "items": [self._of_item(item, candidate) for item, candidate in pairs],
            "answers": [
                [each.name, each.rater, each.criterion, each.value, each.reason, each.judge_seen] for each in answers
            ],
        }
        return render(self, data, mode)

    def _of_question(self, question: Question) -> dict[str, Any]:
        options = [[option.value, option.key] for option in question.options]
        return {"criterion": question.criterion, "options": options, "bounds": question.bounds}

    def _of_item(self, item: Drawn, candidate: Candidate) -> dict[str, Any]:
        skipped = [n for n, question in enumerate(self.questions) if not _applies(question.source, candidate)]
        return {"name": item.name, "skipped": skipped}


def _applies(criterion: Criterion | None, candidate: Candidate) -> bool:
    try:
        return criterion is None or criterion.applies_to(candidate)
    except Exception:  # noqa: BLE001 - a user's function; a person can say that it does not apply
        return True
