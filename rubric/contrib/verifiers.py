"""
Rubric files of verifiers' rubric judge: criteria with names, weights and ordered choices.

| in the file                                      | here                                                     |
|--------------------------------------------------|----------------------------------------------------------|
| a list, or `criteria`                            | the criteria of one case, whose candidate a target makes |
| `name`, `text`, `weight`                         | `id`, `text`, `weight`                                   |
| `choices`, from the worst (0) to the best (1)    | `Choices`, evenly spaced; without them yes or no         |
"""

from __future__ import annotations

from collections.abc import Mapping

from rubric import Case, Choices, Criterion, Rubric, Suite, YesNo
from rubric.contrib.signed_weights import warn_of_pass_mark
from rubric.embed import SURE, Answer, Cursor, Format, Loading, Notes
from rubric.formats.recognition import Seen

_CRITERION = {"id": "name", "text": "text", "weight": "weight"}


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*: one case."""
    root = Cursor.of(notes, loading)
    listed = root["criteria"] if isinstance(root.value, dict) else root
    if isinstance(root.value, dict):
        root.reads(("criteria",))
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
        answer = at["choices"].built(Choices.in_steps, texts)
    return None if answer is None else at.made(Criterion, {**at.given(_CRITERION), "answer": answer}, _CRITERION)


# -- recognition --------------------------------------------------------------------------------------------------


def _named_criteria(seen: Seen) -> str:
    listed = seen.data if isinstance(seen.data, list) else seen.keys.get("criteria")
    items = listed if isinstance(listed, list) else []
    fits = items and all(isinstance(item, Mapping) and {"name", "text"} <= item.keys() for item in items)
    return "its criteria have a name and a text" if fits else ""


FORMAT = Format("verifiers", read, evidence=((SURE, _named_criteria),))
