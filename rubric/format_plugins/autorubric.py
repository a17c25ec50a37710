"""Rubrics of autorubric and The LLM Data Company, and datasets; docs/how-to/from_autorubric.md maps their keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rubric import Case, Choice, Choices, Criterion, Rubric, Suite
from rubric.embed import SURE, Cursor, Format, Loading, Notes, has
from rubric.format_plugins.signed_weights import Ids, as_penalty, by_points, warn_of_pass_mark
from rubric.formats.recognition import LIKELY, STRONG, Seen, case_has, holds, lists

WEIGHT = 10
"""What autorubric takes where a criterion gives no weight."""

_CRITERION = {"text": "requirement", "id": "name", "weight": "weight"}
_OPTION = {"label": "label", "score": "value"}

_ROOT = (
    *("name", "description", "prompt", "rubric", "sections", "criteria"),
    *("guidelines", "reference_submission", "items"),
)

_SECTION = ("name", "title", "id", "description", "weight", "criteria", "sections")
_ITEM = ("submission", "description", "ground_truth", "rubric", "reference_submission", "prompt")
_BOTH = {"input": "prompt", "reference": "reference_submission"}
_KEYS = {**_BOTH, "output": "submission"}
_ABOUT = ("description", "ground_truth")

_TOGETHER = {"scale_type": "ordinal", "aggregation": None}
"""How autorubric puts the votes of several judges together: there is a `Panel` for that."""


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*; errors are noted there."""
    root = Cursor.of(notes, loading)
    if isinstance(root.value, list):
        rubric = _rubric(root, "")
        cases = _case(root, {"id": "rubric", "rubric": rubric}) if rubric else []
    elif root.mapping("a list of criteria, or a mapping"):
        root.only(_ROOT)
        if "description" in root:
            root["description"].warn("what the file says of itself is left out", key=True)
        rubric = _whole(root)
        values = {"id": _name(root) or "rubric", "rubric": rubric, **root.given(_BOTH, blank=_BOTH.values())}
        cases = [*_items(root, rubric)] if "items" in root else _case(root, values) if rubric else []
    else:
        return Suite(format="autorubric")
    warn_of_pass_mark(root)
    return Suite(_name(root), cases, format="autorubric")


def _name(root: Cursor) -> str:
    name = root["name"].value
    return name if isinstance(name, str) else ""


def _whole(root: Cursor) -> Rubric | None:
    """Return the rubric of the whole file; a dataset may leave it to its items."""
    guidelines = root["guidelines"].value
    if root.has("rubric"):
        return _rubric(root["rubric"], _name(root), guidelines)
    inner = {key: root.value[key] for key in ("sections", "criteria") if key in root}
    if inner:
        return _rubric(root.holding(inner), _name(root), guidelines)
    if "items" not in root:
        root.error("there is no rubric: give `rubric`, `sections`, or a bare list of criteria")
    return None


def _rubric(at: Cursor, name: str, guidelines: object = None) -> Rubric | None:
    if isinstance(at.value, dict):
        at.only(("guidelines", "criteria", "sections", "rubric"))
        guidelines = at.value.get("guidelines") if guidelines is None else guidelines
    before = at.notes.failures
    items = [*_criteria(at, ())]
    names = [item[key].value for item, _ in items for key in ("name", "id")]
    ids = Ids(frozenset(name for name in names if isinstance(name, str)))
    found = [_criterion(item, tags, ids) for item, tags in items]
    values: dict[str, Any] = {"name": name, **by_points([criterion for criterion in found if criterion is not None])}
    if guidelines is not None:
        values["guidelines"] = guidelines
    if not values["criteria"]:
        if at.notes.failures == before:
            at.error("a rubric has nothing to grade by without criteria; give it some")
        return None
    return at.made(Rubric, values)


def _criteria(at: Cursor, tags: tuple[str, ...]) -> Iterator[tuple[Cursor, tuple[str, ...]]]:
    """Yield each criterion below *at*, with the sections that it belongs to as tags."""
    if isinstance(at.value, dict):
        for key in ("rubric", "sections", "criteria"):
            if key in at:
                yield from _criteria(at[key], tags)
        return
    if at.value == []:
        at.error("there is nothing to grade by in it without criteria; give it some")
    for item in at.listing("a list of criteria, or of sections with criteria"):
        if not isinstance(item.value, dict) or item.value.keys().isdisjoint(("criteria", "sections")):
            yield item, tags
            continue
        item.only(_SECTION)
        if "weight" in item:
            item["weight"].warn("a section's weight counts for nothing in the format, and neither here")
        if "description" in item:
            item["description"].warn("what a section is about is left out; put it into the guidelines")
        title = next((str(item.value[key]) for key in ("name", "title", "id") if item.value.get(key)), "")
        yield from _criteria(item, (*tags, title) if title else tags)


def _criterion(at: Cursor, tags: tuple[str, ...], ids: Ids) -> Criterion | None:
    if not at.mapping("a criterion (a mapping with requirement and weight)"):
        return None
    at.only((*_CRITERION.values(), "id", "options", *_TOGETHER))
    keys = _CRITERION if at.has("name") or "id" not in at else {**_CRITERION, "id": "id"}
    if at.has("name") and "id" in at:
        at["id"].warn("the name stands for the id; this one is left out", key=True)
    values = {"weight": WEIGHT, **at.given(keys, blank=("name",)), "tags": tags}
    as_penalty(values)
    if "id" not in values:
        values |= ids.make(values.get("text"))
    elif not ids.take(values["id"]):
        at[keys["id"]].error(f"the name {values['id']!r} belongs to another criterion already; change one")
        return None
    if at.has("options"):
        values |= _options(at["options"])
    for key, usual in _TOGETHER.items():
        if at.value.get(key, usual) not in (usual, None):
            at[key].warn("several judges are put together by a Panel, not by the criterion", key=True)
    return at.made(Criterion, values, keys)


def _options(at: Cursor) -> dict[str, Any]:
    choices: list[Choice] = []
    found: dict[str, Any] = {}
    for option in at.listing("a list of options"):
        if option["na"].value is True:
            option.only((*_OPTION.values(), "na"))
            found["abstain"] = "exclude"
        elif choice := option.noun(Choice, "an option (a mapping with label and value)", _OPTION, beside=("na",)):
            choices.append(choice)
    answer = at.built(Choices, *choices)
    return found if answer is None else {**found, "answer": answer}


def _items(root: Cursor, rubric: Rubric | None) -> Iterator[Case]:
    everywhere = root.given(_BOTH, blank=_BOTH.values())
    for item in root["items"].listing("a list of items"):
        if not item.mapping("an item (a mapping with submission)"):
            continue
        item.only(_ITEM)
        own = _rubric(item["rubric"], "") if item.has("rubric") else rubric
        if own is None:
            if not item.has("rubric"):
                item.error("neither this item nor the file has a rubric; give one")
            continue
        values = {**everywhere, **item.given(_BOTH, blank=_BOTH.values()), "rubric": own, "id": f"item {item.step + 1}"}
        values["output"] = item["submission"].value
        values["metadata"] = {key: item.value[key] for key in _ABOUT if item.has(key)}
        yield from _case(item, values)


def _case(at: Cursor, values: dict[str, Any]) -> list[Case]:
    """Return the case of *values*, which waits for an output where it has none; nothing if it is not a case."""
    case = at.made(Case, {**values, "place": at.place}, _KEYS)
    return [] if case is None else [case]


# -- recognition --------------------------------------------------------------------------------------------------


def _lists_requirements(seen: Seen) -> str:
    found = next(filter(None, (lists(key, "requirement")(seen) for key in ("rubric", "rubrics", "criteria"))), "")
    return found or (case_has("requirement")(seen) if isinstance(seen.data, list) else "")


_EVIDENCE = (
    (SURE, holds("rubric", "sections")),
    (STRONG, _lists_requirements),
    (STRONG, lists("items", "submission")),
    (LIKELY, has("sections")),
)

FORMAT = Format("autorubric", read, evidence=_EVIDENCE)
