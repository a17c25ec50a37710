"""
Rubrics of autorubric and of The LLM Data Company's `rubric`, and autorubric's datasets.

| in the file                        | here                                                                     |
|------------------------------------|--------------------------------------------------------------------------|
| a list; `rubric`; `sections`       | one rubric; a section is a tag of its criteria, since neither scores it  |
| `requirement`, `name` or `id`      | `Criterion.text`, `Criterion.id`                                         |
| `weight` (autorubric: 10 if none)  | `weight`; a negative one makes a penalty, and the rubric one by points   |
| `options` (`label`, `value`, `na`) | `Choices`; an `na` option is "cannot tell", and out of the mean          |
| `guidelines`                       | `Rubric.guidelines`                                                      |
| `items` (`submission`, ...)        | a case each; without items, one case that waits for an output            |

Scores by the rule of other systems, from a grade of this one: pure, and exact until the last rounding.

autorubric, The LLM Data Company's `rubric` and HealthBench give every criterion a signed weight. What is met adds its
weight, so what should not be there and is subtracts, and only positive weights stand below the line:

    S = sum of value x weight      P = sum of the positive weights      N = sum of the negative ones, without sign
    score = S / P  if P > 0;  1 + S / N  if only N > 0;  0 if neither;  then cut to 0..1

A rubric by points with penalties has this score natively, and so has one of penalties alone. `llm_data_score` gives it
for every rubric, those with guards too, and uncut.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rubric.errors import DefinitionError
from rubric.formats.benchmarks.signed_weights import Ids, as_penalty, by_points, tell_scores
from rubric.formats.cursor import given, listing, made, mapping, only
from rubric.scoring.outcomes import policy
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.answers import Choice, Choices
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, NotApplicable, Scored
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rubric.formats.cursor import Loading, Notes
    from rubric.formats.document import KeyPath
    from rubric.results.result import Grade
    from rubric.values.findings import Finding


WEIGHT = 10
"""What autorubric takes where a criterion gives no weight."""

_CRITERION = {"text": "requirement", "id": "name", "weight": "weight"}
_OPTION = {"label": "label", "score": "value"}

_ROOT = (
    "name",
    "description",
    "prompt",
    "rubric",
    "sections",
    "criteria",
    "guidelines",
    "reference_submission",
    "items",
)

_SECTION = ("name", "title", "id", "description", "weight", "criteria", "sections")
_ITEM = ("submission", "description", "ground_truth", "rubric", "reference_submission", "prompt")
_BOTH = {"input": "prompt", "reference": "reference_submission"}
_KEYS = {**_BOTH, "output": "submission"}
_ABOUT = ("description", "ground_truth")

_TOGETHER = {"scale_type": "ordinal", "aggregation": None}
"""How autorubric puts the votes of several judges together: there is a `Panel` for that."""


def read(notes: Notes, loading: Loading) -> Suite:  # noqa: ARG001 - every format is read with both
    """Return the suite in the document of *notes*; what is wrong with it is noted there."""
    data = notes.data()
    root = {"rubric": data} if isinstance(data, list) else mapping(notes, (), data, "a list of criteria, or a mapping")
    if root is None:
        return Suite(format="autorubric")
    only(notes, (), root, _ROOT)
    if "description" in root:
        notes.warn(("description",), "what the file says of itself is left out", key=True)
    rubric = _read_root(notes, root, () if isinstance(data, list) else ("rubric",))
    cases = [*_read_items(notes, root, rubric)] if "items" in root else [*_alone(notes, root, rubric)]
    tell_scores(notes, ())
    return Suite(_name(root), cases, format="autorubric")


def _name(root: dict[Any, Any]) -> str:
    name = root.get("name")
    return name if isinstance(name, str) else ""


def _read_root(notes: Notes, root: dict[Any, Any], path: KeyPath) -> Rubric | None:
    """Return the rubric of the whole file; a dataset may leave it to its items."""
    if root.get("rubric") is not None:
        return _read_rubric(notes, path, root["rubric"], _name(root), root.get("guidelines"))
    if root.keys() & {"sections", "criteria"}:
        inner = {key: root[key] for key in ("sections", "criteria") if key in root}
        return _read_rubric(notes, (), inner, _name(root), root.get("guidelines"))
    if "items" not in root:
        notes.error((), "there is no rubric: give `rubric`, `sections`, or a bare list of criteria")
    return None


def _read_rubric(notes: Notes, path: KeyPath, data: object, name: str, guidelines: object = None) -> Rubric | None:
    if isinstance(data, dict):
        only(notes, path, data, ("guidelines", "criteria", "sections", "rubric"))
        guidelines = data.get("guidelines") if guidelines is None else guidelines
    items = [*_items(notes, path, data, ())]
    names = [item.get(key) for _, item, _ in items if isinstance(item, dict) for key in ("name", "id")]
    ids = Ids(frozenset(name for name in names if isinstance(name, str)))
    found = [_read_criterion(notes, where, item, tags, ids) for where, item, tags in items]
    values: dict[str, Any] = {"name": name, **by_points([criterion for criterion in found if criterion is not None])}
    if guidelines is not None:
        values["guidelines"] = guidelines
    if not values["criteria"]:
        notes.error(path, "a rubric has nothing to grade by without criteria; give it some")
        return None
    return made(notes, path, Rubric, values)


def _items(
    notes: Notes, path: KeyPath, data: object, tags: tuple[str, ...]
) -> Iterator[tuple[KeyPath, Any, tuple[str, ...]]]:
    """Yield each criterion below *path* with its place, and with the sections that it stands in as tags."""
    if isinstance(data, dict):
        for key in ("rubric", "sections", "criteria"):
            if key in data:
                yield from _items(notes, (*path, key), data[key], tags)
        return
    for index, item in enumerate(listing(notes, path, data, "a list of criteria, or of sections with criteria")):
        here = (*path, index)
        if isinstance(item, dict) and item.keys() & {"criteria", "sections"}:
            only(notes, here, item, _SECTION)
            if "weight" in item:
                notes.warn((*here, "weight"), "a section's weight counts for nothing in the format, and neither here")
            if "description" in item:
                notes.warn((*here, "description"), "what a section is about is left out; put it into the guidelines")
            title = next((str(item[key]) for key in ("name", "title", "id") if item.get(key)), "")
            yield from _items(notes, here, item, (*tags, title) if title else tags)
        else:
            yield here, item, tags


def _read_criterion(notes: Notes, path: KeyPath, data: object, tags: tuple[str, ...], ids: Ids) -> Criterion | None:
    item = mapping(notes, path, data, "a criterion (a mapping with requirement and weight)")
    if item is None:
        return None
    only(notes, path, item, (*_CRITERION.values(), "id", "options", *_TOGETHER))
    keys = {**_CRITERION, "id": _key_of_id(notes, path, item)}
    present = {key: value for key, value in item.items() if value is not None or key != "name"}
    values = {"weight": WEIGHT, **given(notes, path, present, keys), "tags": tags}
    as_penalty(values)
    if "id" not in values:
        values |= ids.make(values.get("text"))
    elif not ids.take(values["id"]):
        notes.error((*path, keys["id"]), f"the name {values['id']!r} belongs to another criterion already; change one")
        return None
    if item.get("options") is not None:
        values |= _read_options(notes, (*path, "options"), item["options"])
    for key, usual in _TOGETHER.items():
        if item.get(key, usual) not in (usual, None):
            notes.warn((*path, key), "several judges are put together by a Panel, not by the criterion", key=True)
    return made(notes, path, Criterion, values, keys)


def _key_of_id(notes: Notes, path: KeyPath, item: dict[Any, Any]) -> str:
    """Return the key that gives the id; with two, the name does."""
    if item.get("name") is None:
        return "id" if "id" in item else "name"
    if "id" in item:
        notes.warn((*path, "id"), "the name stands for the id; this one is left out", key=True)
    return "name"


def _read_options(notes: Notes, path: KeyPath, data: object) -> dict[str, Any]:
    choices: list[Choice] = []
    found: dict[str, Any] = {}
    for index, item in enumerate(listing(notes, path, data, "a list of options")):
        here = (*path, index)
        option = mapping(notes, here, item, "an option (a mapping with label and value)")
        if option is None:
            continue
        only(notes, here, option, (*_OPTION.values(), "na"))
        if option.get("na") is True:
            found["abstain"] = "exclude"
            continue
        choice = made(notes, here, Choice, given(notes, here, option, _OPTION), _OPTION)
        choices += [] if choice is None else [choice]
    try:
        found["answer"] = Choices(*choices)
    except DefinitionError as problem:
        notes.error(path, problem.message)
    return found


# -- cases --------------------------------------------------------------------------------------------


def _alone(notes: Notes, root: dict[Any, Any], rubric: Rubric | None) -> Iterator[Case]:
    """Yield the one case of a file without items: it waits for an output."""
    if rubric is not None:
        values = {"id": _name(root) or "rubric", "rubric": rubric, "place": notes.place(()), **_shared(notes, (), root)}
        case = made(notes, (), Case, values, _KEYS)
        yield from () if case is None else (case,)


def _shared(notes: Notes, path: KeyPath, data: dict[Any, Any]) -> dict[str, Any]:
    """Return what a file and its items may both give; nothing stands for "not given"."""
    return given(notes, path, {key: value for key, value in data.items() if value is not None}, _BOTH)


def _read_items(notes: Notes, root: dict[Any, Any], rubric: Rubric | None) -> Iterator[Case]:
    everywhere = _shared(notes, (), root)
    for index, data in enumerate(listing(notes, ("items",), root["items"], "a list of items")):
        path = ("items", index)
        item = mapping(notes, path, data, "an item (a mapping with submission)")
        if item is not None:
            only(notes, path, item, _ITEM)
            yield from _read_item(notes, path, item, everywhere, rubric)


def _read_item(
    notes: Notes, path: KeyPath, item: dict[Any, Any], everywhere: dict[str, Any], rubric: Rubric | None
) -> Iterator[Case]:
    own = item.get("rubric")
    chosen = rubric if own is None else _read_rubric(notes, (*path, "rubric"), own, "")
    if chosen is None:
        if own is None:
            notes.error(path, "neither this item nor the file has a rubric; give one")
        return
    values = {**everywhere, **_shared(notes, path, item), "rubric": chosen, "id": f"item {path[-1] + 1}"}
    values |= {"output": item.get("submission"), "place": notes.place(path)}
    values["metadata"] = {key: item[key] for key in _ABOUT if item.get(key) is not None}
    case = made(notes, path, Case, values, _KEYS)
    yield from () if case is None else (case,)


def llm_data_score(grade: Grade, *, cut: bool = True) -> float:
    """
    Return the score of *grade* as autorubric, LLM Data Co and HealthBench compute it.

    Abstentions follow the rubric's policy, as autorubric's do: `exclude` is its SKIP, `zero` its ZERO, `fail` its FAIL,
    and a number its PARTIAL.

    Args:
        grade: Of a rubric whose criteria are judged one by one; guards and penalties count with negative weight.
        cut: Cut to 0..1. HealthBench averages the uncut scores of its examples, and cuts the average.

    Raises:
        DefinitionError: Several judges gave the grade; their votes have scores of their own.
    """
    if grade.votes:
        raise DefinitionError("grade", "several judges gave it; score each of its `votes`")
    pairs = zip(grade.rubric.judged, grade.findings, strict=True)
    parts = [part for c, f in pairs if (part := _part(grade.rubric, c, f)) is not None]
    total = sum((value * weight for value, weight in parts), Fraction())
    above = sum((weight for _, weight in parts if weight > 0), Fraction())
    below = -sum((weight for _, weight in parts if weight < 0), Fraction())
    score = total / above if above else 1 + total / below if below else Fraction()
    return float(min(max(score, Fraction()), Fraction(1)) if cut else score)


def _part(rubric: Rubric, criterion: Criterion, finding: Finding) -> tuple[Fraction, Fraction] | None:
    """Return the value and the signed weight of *criterion*; None where it does not count."""
    negative = criterion.is_unwanted
    weight = Fraction(criterion.weight) * (-1 if negative else 1)
    match finding:
        case Scored():
            return Fraction(finding.score), weight
        case Abstained():
            credit = policy(rubric, criterion)
            return None if credit == "exclude" else (_of_abstention(criterion, credit), weight)
        case NotApplicable():
            return None
    raise AssertionError(finding)  # a grade has no unjudged criterion


def _of_abstention(criterion: Criterion, credit: str | float) -> Fraction:
    """Return the value that stands in for "cannot tell"; a guard gets no partial credit."""
    negative = criterion.is_unwanted
    match credit:
        case "fail" if isinstance(criterion.answer, Choices):
            scores = [choice.score for choice in criterion.answer.choices]
            return Fraction(max(scores) if negative else min(scores))
        case "fail":
            return Fraction(negative)
        case str():
            return Fraction()
        case number:
            return Fraction() if negative else Fraction(number)
