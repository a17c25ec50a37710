"""
Rubric files of verifiers' rubric judge: criteria with names, weights and ordered choices.

| in the file                                      | here                                                     |
|--------------------------------------------------|----------------------------------------------------------|
| a list, or `criteria`                            | the criteria of one case, whose candidate a target makes |
| `name`, `text`, `weight`                         | `id`, `text`, `weight`                                   |
| `choices`, from the worst (0) to the best (1)    | `Choices`, evenly spaced; without them yes or no         |
"""

from __future__ import annotations

from rubric.formats.benchmarks.signed_weights import warn_of_pass_mark
from rubric.formats.cursor import Cursor, Loading, Notes
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.answers import Answer, Choices, YesNo, in_steps
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric

_CRITERION = {"id": "name", "text": "text", "weight": "weight"}


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*: one case."""
    root = Cursor.of(notes, loading)
    listed = root["criteria"] if isinstance(root.value, dict) else root
    seen: set[str] = set()
    criteria = listed.each("a list of criteria", lambda item: _criterion(item, seen))
    warn_of_pass_mark(root)
    rubric = listed.built(Rubric, criteria=criteria) if criteria and not notes.errors else None
    return Suite(cases=[] if rubric is None else [Case("rubric", rubric, place=root.place)], format="verifiers")


def _criterion(at: Cursor, seen: set[str]) -> Criterion | None:
    if not at.mapping("a criterion (a mapping with name and text)") or not at.needs("name"):
        return None
    at.only((*_CRITERION.values(), "choices"))
    name = at["name"].value
    if isinstance(name, str) and name in seen:
        at["name"].error(f"the name {name!r} belongs to another criterion already; change one")
        return None
    seen.add(str(name))
    labels = at["choices"].listing("choices, from the worst to the best") if at.has("choices") else []
    texts = [text for label in labels if (text := label.text("a choice")) is not None]
    answer: Answer | None = YesNo()
    if texts and [text.lower() for text in texts] != ["no", "yes"]:
        answer = at["choices"].built(Choices, in_steps(texts))
    return None if answer is None else at.made(Criterion, {**at.given(_CRITERION), "answer": answer}, _CRITERION)
