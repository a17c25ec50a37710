"""
The rubric of a prompt, as data sets publish it, and as it is used in training; and the reward of a result.

The forms are our own and those of RaR (arXiv 2507.17746), DR Tulu (2511.19399), RubricHub (2601.08430) and OpenRubrics
(2510.07743); docs/integrations/trl.md has them by column. Negative weights are penalties, as those systems count them.
`[Hard Rule]` becomes a tag, and no gate.

RaR's pitfalls have negative weights and are worded both ways: "Does not mention the dose" is a fault where it holds,
"Avoids a guess" where it does not. A sentence of the second kind is refused until `pitfalls` says what is meant.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import count
from typing import Any, Literal

from attrs import evolve

from rubric import Criterion, DefinitionError, Grade, Rubric, Ungraded, loads
from rubric.embed import as_rubric, fields, guided, shorten

_TEXTS, _WEIGHTS = ("criterion", "description", "text"), ("points", "weight")
_LISTS = ("rubrics", "Rubrics", "rubric")
_BESIDE = ("id", "index", "idx", "number")  # numbers that are not a weight
_PITFALL, _SUBJECT = r"\s*pitfall criteri(?:a|on):\s*", r"(?:(?:the|this|an?) \w+ |it )?"
_OMITS = (
    r"(?!(?:mention|state|include|identify|address|note|specify|list|provide|discuss|explain|acknowledge|consider|cite"
    r"|clarify|describe|account|advise|warn|ask|recogni[sz]e)s?\b)"
)
_AVOIDS = re.compile(
    rf"(?:{_PITFALL})?{_SUBJECT}(?:(?:must|should) )?(?:(?:be |is )?(?:careful not|free of)|avoid|refrain|steers? clear"
    rf"|never {_OMITS}|(?:must not|should not|mustn't|shouldn't) {_OMITS})"
    rf"|{_PITFALL}{_SUBJECT}(?:ensure|prevent|no |without|(?:do not|does not|don't|doesn't) {_OMITS})",
    re.IGNORECASE,
)
"""A sentence of what a good answer does; in RaR, where pitfalls are marked, "does not" as well."""
_DATA = re.compile(r"\s*(?:```|\[\s*[\[{'\"]|\{\s*['\"])")
_NUMBER = re.compile(r"^([ \t]*)\**(\d+)[.)]\**[ \t]+", re.MULTILINE)
_TAG = re.compile(r"[\s*]*\[((?i:hard rule|principle))\][\s*:]*(.+)|(.+?)[\s*]*\[([\w ]+)\][\s*.]*", re.DOTALL)
_KINDS = re.compile(r"\[(?:hard rule|principle)\]", re.IGNORECASE)


@guided
def rubric_of_row(value: Any, *, pitfalls: Literal["avoided", "present"] | None = None) -> Rubric:
    """
    Return the rubric in a cell as RaR, DR Tulu, RubricHub, OpenRubrics or we write it; equal cells give one object.

    Args:
        value: What the cell holds.
        pitfalls: What a negative weight means beside "Pitfall Criteria: Avoids ...". `avoided`: the answer should do
            so, and gets the points; `present`: it loses points where the sentence holds.

    Raises:
        DefinitionError: It is in none of the forms; a pitfall could be meant in two ways; or a rule of the data set's
            own, and no judge, decides a criterion.
    """
    if pitfalls is not None:
        fields.check_name("pitfalls", pitfalls, ("avoided", "present"))
    if isinstance(value, Rubric):
        return value
    return _read(value if isinstance(value, str) else json.dumps(value, default=_plain), pitfalls)


def _plain(value: Any) -> Any:
    """Return an array of a frame as a list."""
    if hasattr(value, "tolist"):
        return value.tolist()
    cure = "; of criteria, make Rubric(criteria=[...])" if isinstance(value, Criterion) else ""
    raise DefinitionError("rubrics", f"expected texts, numbers, lists and mappings, got {type(value).__name__}{cure}")


@lru_cache(maxsize=4096)  # a prompt comes back with each of its completions, and in each epoch
def _read(text: str, pitfalls: str | None) -> Rubric:
    try:
        value = json.loads(text)
    except ValueError:
        return _read_text(text)
    if isinstance(value, Mapping) and "criteria" in value:
        return loads(text)
    items: Any = value
    if isinstance(value, Mapping):
        items = next((value[k] for k in _LISTS if k in value), None)
    if not isinstance(items, list) or not items:
        allowed = f"a list of criteria, or a mapping with one in {', '.join(_LISTS)}"
        raise DefinitionError("rubrics", f"expected {allowed}, got {shorten(text, 80)}")
    return _rubric(
        _criterion(index, item if isinstance(item, Mapping) else {"text": item}, pitfalls)
        for index, item in enumerate(items)
    )


def _rubric(made: Iterable[Criterion]) -> Rubric:
    """Return the rubric of the criteria *made*; one that is there twice has an id of its own."""
    criteria: dict[str, Criterion] = {}
    for index, one in enumerate(made):
        free = (f"{one.id}-{number}" for number in count(index + 1))
        id_ = one.id if one.id not in criteria else next(id_ for id_ in free if id_ not in criteria)
        criteria[id_] = one if one.id == id_ else evolve(one, id=id_)
    mixed = len({one.polarity for one in criteria.values()}) > 1
    return Rubric(criteria=[*criteria.values()], aggregation="points" if mixed else "weighted_average")


def _read_text(text: str) -> Rubric:
    if re.search(r"^criteria:\s*(?:$|[\[#])", text, re.MULTILINE):
        return loads(text)
    if not text.strip():
        raise DefinitionError("rubrics", "the cell is empty; give each prompt a rubric, or leave the prompt out")
    if _DATA.match(text):
        why = f"it looks like data, and is not JSON: {shorten(text, 60)!r}"
        raise DefinitionError("rubrics", f"{why}; write the column by json.dumps")
    found = [*_NUMBER.finditer(text)]
    indent = min((len(one[1]) for one in found), default=0)
    starts = [one for one in found if len(one[1]) == indent]  # others are of a list within an item
    if starts and not text[: starts[0].start()].strip():
        numbers = [int(one[2]) for one in starts]
        if numbers not in ([*range(numbers[0], numbers[0] + len(numbers))], [1] * len(numbers)):
            why = f"the numbers of the items do not count up: {shorten(str(numbers), 60)}"
            raise DefinitionError("rubrics", f"{why}; indent the list within an item")
        ends = [*(one.start() for one in starts[1:]), len(text)]
        items = [text[one.end() : end].strip() for one, end in zip(starts, ends, strict=True)]
        return _rubric(_numbered(index, item) for index, item in enumerate(items))
    if _KINDS.search(text):
        why = "it has the tags of OpenRubrics, and does not begin with a number"
        raise DefinitionError("rubrics", f"{why}; begin with '1. ', or give one text: Rubric.of(text)")
    return as_rubric(text)


def _criterion(index: int, given: Mapping[str, Any], pitfalls: str | None) -> Criterion:
    where = f"rubrics[{index}]"
    item = {key: each for key, each in given.items() if each is not None}  # frames fill the keys that a row lacks
    said = next((item[key] for key in _TEXTS if key in item), None)
    numbers = [key for key, each in item.items() if type(each) in (int, float) and key not in _BESIDE]
    key = next((key for key in _WEIGHTS if key in item), None)
    weight = 1 if key is None else item[key]
    if not isinstance(said, str) or isinstance(weight, bool) or not isinstance(weight, int | float):
        form = f"one of {', '.join(_TEXTS)}, and a number as {' or '.join(_WEIGHTS)}"
        raise DefinitionError(where, f"expected {form}, got {shorten(str(given), 80)}")
    if key is None and numbers:
        why = f"{shorten(said, 60)!r} has neither {' nor '.join(_WEIGHTS)}, and the number in {numbers[0]!r} may be one"
        raise DefinitionError(where, f"{why}; name it {_WEIGHTS[0]!r}, or leave it out")
    tags = item.get("tags")
    if isinstance(tags, Mapping) and tags.get("verifier", "llm") != "llm":
        why = f"{shorten(said, 60)!r} is decided by the data set's own {tags.get('function')!r}, and by no judge"
        cure = '[one for one in row["Rubrics"] if one["tags"]["verifier"] == "llm"]'
        raise DefinitionError(where, f"{why}; leave it out: {cure}")
    avoids = weight < 0 and _AVOIDS.match(said) is not None
    if avoids and pitfalls is None:
        why = f"{shorten(said, 80)!r} has the weight {weight}, and could be meant in two ways"
        cure = "rubric_of_row(row['rubric'], pitfalls='avoided') gives points where it holds, pitfalls='present' takes"
        raise DefinitionError(where, f"{why}: {cure} them; map the column: {{'rubric': dumps(...)}}")
    penalty = weight < 0 and not (avoids and pitfalls == "avoided")
    return Criterion(said, weight=abs(weight), polarity="penalty" if penalty else "satisfy")


def _numbered(index: int, item: str) -> Criterion:
    """Return an item of OpenRubrics: its tag stands at its end, or at its start."""
    found = _TAG.fullmatch(item)
    tag, said = (None, item) if found is None else (found[1] or found[4], found[2] or found[3])
    if not said or _KINDS.search(said):
        why = f"the tag stands within {shorten(said, 60)!r}" if said else "it is empty"
        raise DefinitionError(f"rubrics[{index}]", f"{why}; give each item its text, with one tag at its end")
    return Criterion(" ".join(said.split()), tags=[tag] if tag else [])


@guided
def dropped(rubric: Rubric, share: float, seed: object) -> Rubric:
    """
    Return *rubric* without some of its criteria, so that a model cannot learn them by heart (arXiv 2608.11669).

    Args:
        rubric: Of criteria; its gates stay, and at least one criterion that earns points.
        share: The chance of each criterion to be left out, in 0..1.
        seed: The same seed drops the same.
    """
    chance = random.Random(f"{seed}/{rubric.digest}")  # noqa: S311 - a draw that can be repeated
    gates = {one.id for one in rubric.criteria if one.required or one.min_score or one.polarity == "guard"}
    drawn = {one.id: 1.0 if one.id in gates else chance.random() for one in rubric.criteria}
    earning = {one.id: drawn[one.id] for one in rubric.criteria if one.weight and one.polarity == "satisfy"}
    stays = max(earning, key=earning.__getitem__, default="")
    kept = [one for one in rubric.criteria if drawn[one.id] >= share or one.id == stays]
    return evolve(rubric, criteria=kept, tests=()) if len(kept) < len(drawn) else rubric


@guided
def reward_of(result: Grade | Ungraded | None, gated: float = 0.0) -> float | None:
    """
    Return the score of *result* as a reward; None where there is no grade.

    Args:
        result: A result; None: there is none.
        gated: The most that is earned where a gate failed, in 0..1: by the score alone, a model learns to fail a gate
            for the points beside it. 1 takes the score as it is.
    """
    most = fields.check_number("gated", gated, 0, 1)
    if not isinstance(result, Grade):
        return None
    failed = result.outcome.worst.gated and not result.rubric.negate  # in a negated rubric a failed gate is welcome
    return min(result.score, most) if failed else result.score
