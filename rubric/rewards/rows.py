"""
The rubric of a prompt, as data sets publish it, and as it is used in training.

| data set                               | what its column holds                                         |
|----------------------------------------|---------------------------------------------------------------|
| RaR (arXiv 2507.17746), `rubric`       | a list of `description`, `title` and `weight`                 |
| DR Tulu (2511.19399), `ground_truth`   | JSON: `rubrics`, a list of `description` and `weight`         |
| RubricHub (2601.08430), `Rubrics`      | a list of `criterion` and `points`, as in HealthBench         |
| OpenRubrics (2510.07743), `rubric`     | a text: numbered lines that end with [Hard Rule], [Principle] |
| our own                                | a `Rubric`, the text of its file, a list of texts, one text   |

Negative weights are penalties, as those systems count them. `[Hard Rule]` becomes a tag, and no gate.

RaR's pitfalls have negative weights and are worded both ways: "Does not mention the dose" is a fault where it holds,
"Avoids a guess" where it does not. A sentence of the second kind is refused until `pitfalls` says what is meant.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from attrs import evolve

from rubric import Criterion, DefinitionError, Rubric, loads
from rubric.embed import as_rubric, fields, shorten

_TEXTS, _WEIGHTS = ("criterion", "description", "text"), ("points", "weight")
_LISTS = ("rubrics", "Rubrics", "rubric")
_AVOIDS = re.compile(
    r"\s*pitfall criteri(?:a|on):\s*(?:the (?:response|answer|explanation) )?(?:avoid|refrain|never|ensure|prevent"
    r"|(?:do|does|must|should) (?:not|never) (?!(?:mention|state|include|identify|address|note|specify|list|provide"
    r"|discuss|explain|acknowledge|consider|cite|clarify|describe|account)\b)|(?:must|should) (?:avoid|refrain))",
    re.IGNORECASE,
)
"""A pitfall of RaR that is worded as what a good answer does."""
_NUMBERED = re.compile(r"^\s*\d+[.)]\s+(.+?)\s*(?:\[([\w ]+)\])?\s*$", re.MULTILINE)


def rubric_of_row(value: Any, *, pitfalls: Literal["avoided", "present"] | None = None) -> Rubric:
    """
    Return the rubric that a column of a data set holds, in one of the forms above; equal cells give one object.

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
    plain = value if isinstance(value, str) else json.dumps(value, default=lambda one: one.tolist())  # arrays of frames
    return _read(plain, pitfalls)


@lru_cache(maxsize=4096)  # a prompt comes back with each of its completions, and in each epoch
def _read(text: str, pitfalls: str | None) -> Rubric:
    try:
        value = json.loads(text)
    except ValueError:
        if numbered := _NUMBERED.findall(text):
            return Rubric(criteria=[Criterion(said, tags=[tag] if tag else []) for said, tag in numbered])
        return loads(text) if re.search(r"^criteria:", text, re.MULTILINE) else as_rubric(text)
    if isinstance(value, Mapping) and "criteria" in value:
        return loads(text)
    items: Any = value
    if isinstance(value, Mapping):
        items = next((value[k] for k in _LISTS if k in value), None)
    if not isinstance(items, list) or not items:
        allowed = f"a list of criteria, or a mapping with one in {', '.join(_LISTS)}"
        raise DefinitionError("rubrics", f"expected {allowed}, got {shorten(text, 80)}")
    criteria: dict[str, Criterion] = {}
    for index, item in enumerate(items):
        given = item if isinstance(item, Mapping) else {"text": item}
        said = next((given[key] for key in _TEXTS if key in given), None)
        weight = next((given[key] for key in _WEIGHTS if key in given), 1)
        if not isinstance(said, str) or isinstance(weight, bool) or not isinstance(weight, int | float):
            form = f"one of {', '.join(_TEXTS)}, and a number as {' or '.join(_WEIGHTS)}"
            raise DefinitionError(f"rubrics[{index}]", f"expected {form}, got {shorten(str(item), 80)}")
        tags = given.get("tags")
        if isinstance(tags, Mapping) and tags.get("verifier", "llm") != "llm":
            why = f"{shorten(said, 60)!r} is decided by the data set's own {tags.get('function')!r}, and by no judge"
            cure = '[one for one in row["Rubrics"] if one["tags"]["verifier"] == "llm"]'
            raise DefinitionError(f"rubrics[{index}]", f"{why}; leave it out: {cure}")
        avoids = weight < 0 and _AVOIDS.match(said) is not None
        if avoids and pitfalls is None:
            why = f"{shorten(said, 80)!r} has the weight {weight}, and could be meant in two ways"
            cure = (
                "rubric_of_row(row['rubric'], pitfalls='avoided') gives points where it holds, pitfalls='present' takes"
            )
            end = "them; map the column: {'rubric': dumps(...)}"
            raise DefinitionError(f"rubrics[{index}]", f"{why}: {cure} {end}")
        penalty = weight < 0 and not (avoids and pitfalls == "avoided")
        made = Criterion(said, weight=abs(weight), polarity="penalty" if penalty else "satisfy")
        made = made if made.id not in criteria else evolve(made, id=f"{made.id}-{index + 1}")
        criteria[made.id] = made
    mixed = len({one.polarity for one in criteria.values()}) > 1
    return Rubric(criteria=[*criteria.values()], aggregation="points" if mixed else "weighted_average")


def dropped(rubric: Rubric, share: float, seed: object) -> Rubric:
    """
    Return *rubric* without some of its criteria, so that a model cannot learn them by heart (arXiv 2608.11669).

    Args:
        rubric: Of criteria; its gates stay, and at least one criterion does.
        share: The chance of each criterion to be left out, in 0..1.
        seed: The same seed drops the same.
    """
    chance = random.Random(f"{seed}/{rubric.digest}")  # noqa: S311 - a draw that can be repeated
    gates = {one.id for one in rubric.criteria if one.required or one.min_score or one.polarity == "guard"}
    drawn = {one.id: 1.0 if one.id in gates else chance.random() for one in rubric.criteria}
    kept = [one for one in rubric.criteria if drawn[one.id] >= min(share, max(drawn.values()))]
    return evolve(rubric, criteria=kept, tests=()) if len(kept) < len(drawn) else rubric
