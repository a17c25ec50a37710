"""
mcptest's rubrics: a text, weighted criteria, a decision tree, a name (`ref`), or a preset.

All of them are described in the chapter "Rubric scoring" of mcptest's documentation. For presets it gives their names
and one line for each; the criteria here are this library's own, each judged in 0..1 by a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from attrs import evolve

from rubric import Anchor, Criterion, DecisionTree, Likert, Rubric, Unit, When, YesNo, loads_suite
from rubric.embed import Cursor, fields
from rubric.values import Boolean, Leaf, Letter, UnitScale

FIELDS = {
    "id": "name", "text": "description", "weight": "weight", "required": "required", "polarity": "guard",
    "min_score": "threshold", "when": "when", "anchors": "examples",
}  # fmt: skip
"""For each field of a criterion that an mcptest file can give, its key there."""

_PLAIN = {name: FIELDS[name] for name in ("id", "text", "weight")}
_WHEN = ("contains", "regex")
_ANCHOR = {"response": "response", "score": "score"}


def read_criteria(at: Cursor, taken: Mapping[str, str]) -> list[Criterion]:
    """Return the criteria of a list; *taken* has the ids that are in use already, with where."""
    found: list[Criterion] = []
    first = dict(taken)
    for item in at.listing("a list of criteria"):
        criterion = _read_criterion(item)
        name = item["name"].value if criterion is None else criterion.id
        if not isinstance(name, str):
            continue
        if name in first:
            item["name"].error(f"the name {name!r} belongs to {first[name]} already; give one of them another")
            continue
        first[name] = f"criteria[{item.step}]"
        found += [] if criterion is None else [criterion]
    return found


def _read_criterion(at: Cursor) -> Criterion | None:
    if not at.mapping("a criterion (a mapping with name and description)"):
        return None
    at.only(FIELDS.values())
    at.needs("name", ": a criterion is reported by its name")
    values = {**at.given(_PLAIN), **_gates(at), "answer": Unit()}
    if "when" in at and (when := _read_when(at["when"])) is not None:
        values["when"] = when
    if "examples" in at:
        what = "an example (a mapping with response and score)"
        anchors = at["examples"].each("a list of examples", lambda one: one.noun(Anchor, what, _ANCHOR))
        if values["polarity"] == "guard":  # mcptest's score of a guard says how far it is there
            anchors = [evolve(anchor, score=YesNo().nearest(anchor.score)) for anchor in anchors]
        values["anchors"] = anchors
    return at.made(Criterion, values, FIELDS)


def _gates(at: Cursor) -> dict[str, Any]:
    """Return what makes the criterion a gate: a threshold of its own counts only where it is one."""
    required, guard = (key in at and at[key].flag() is True for key in ("required", "guard"))
    values: dict[str, Any] = {"required": required, "polarity": "guard" if guard else "satisfy"}
    own = at["threshold"]
    if "threshold" not in at or not own.passes(lambda field, value: fields.check_number(field, value, 0, 1)):
        return values
    threshold = own.value
    if not required and not guard:
        own.warn("a threshold of its own counts only where a criterion gates; add `required: true`, or take it out")
    elif threshold == 0 and not guard:
        own.warn("nothing is below 0, so this criterion gates nothing")
        values["required"] = False
    else:
        values["min_score"] = 1.0 if threshold == 1 else threshold  # a whole 1 could be a level
    return values


def _read_when(at: Cursor) -> When | None:
    if not at.mapping("a mapping with contains or regex"):
        return None
    at.only(_WHEN)
    named = [key for key in _WHEN if key in at]
    if len(named) != 1:
        found = " and ".join(named) or "neither"
        at.error(f"expected one of contains and regex, got {found}; a condition is one of them")
        return None
    return at.made(When, at.given({key: key for key in named}))


# -- trees ------------------------------------------------------------------------------------------

_QUESTION = {"question": "ask", "yes": "yes", "no": "no"}
_LEAF = {"score": "score", "reason": "reason"}


def read_tree(at: Cursor) -> DecisionTree | None:
    """Return a tree, whose root is a question."""
    if not at.mapping("a question (a mapping with ask, yes and no)"):
        return None
    if "ask" not in at and "score" in at:
        at.error("a tree starts with a question (ask, yes, no), and this is a leaf (score)")
        return None
    return _read_question(at)


def _read_question(at: Cursor) -> DecisionTree | None:
    at = at.holding({_BOOLEANS.get(key, key) if isinstance(key, bool) else key: at.value[key] for key in at.value})
    at.only(_QUESTION.values())
    values = at.given(_QUESTION)
    for side in ("yes", "no"):
        if side not in at:
            at.error(f"the branch {side!r} is missing; a question has both")
        branch = at[side]
        made: DecisionTree | Leaf | None = None
        if side in values and isinstance(branch.value, dict) and branch.value.keys().isdisjoint(_LEAF):
            made = _read_question(branch)
        elif side in values:
            made = branch.noun(Leaf, "a leaf (a mapping with score and reason) or a question (ask, yes, no)", _LEAF)
        values[side] = made
    whole = None not in values.values()
    values |= {side: Leaf(0) for side in ("yes", "no") if values[side] is None}  # so that what else is wrong shows too
    tree = at.made(DecisionTree, values, _QUESTION)
    return tree if whole else None


_BOOLEANS = {True: "yes", False: "no"}
"""What YAML 1.1 takes the keys `yes` and `no` for."""


@cache
def presets() -> dict[str, Rubric]:
    """Return the rubrics that a file can name as presets, by name; `presets.yaml` beside this file has them."""
    text = resources.files("rubric.formats.mcptest").joinpath("presets.yaml").read_text("utf-8")
    return {case.rubric.name: case.rubric for case in loads_suite(text, "native", source="presets.yaml")}


Shared = dict[str, Rubric | None]
"""The rubrics of a file by name; None for one that could not be read."""

_OVERRIDES = {"threshold": "threshold", "strict": "strict"}
OPTIONS = {**_OVERRIDES, "aggregation": "aggregation", "scale": "scale", "evidence": "require_evidence"}
"""For each option of a rubric that an mcptest file can give, its key there."""

_KEYS = ("criteria", "tree", "ref", "preset", *OPTIONS.values())
_BESIDE = {"ref": (*_OVERRIDES,), "preset": (*_OVERRIDES, "criteria")}
SCALES: dict[str, type[UnitScale | Boolean | Letter]] = {"unit": UnitScale, "boolean": Boolean, "letter": Letter}
_LIKERT = {"low": "min", "high": "max"}


def read_shared(at: Cursor) -> Shared:
    """Return the named rubrics of a file."""
    found: Shared = {}
    items = [*at.items()] if at.mapping("a mapping from names to rubrics") else []
    for name, rubric in items:
        if not isinstance(name, str):
            rubric.error(f"expected text as a name, got {name!r}; quote it", key=True)
        elif not (isinstance(rubric.value, dict) and "ref" in rubric):
            read = read_rubric(rubric, {})
            found[name] = None if read is None else evolve(read, name=name)
    # A named rubric may refer to another, wherever it stands; what is left when no more can be read refers in a circle.
    waiting = [one for name, one in items if isinstance(name, str) and name not in found]
    names = {*found, *(one.step for one in waiting)}
    while ready := [one for one in waiting if one.value["ref"] in found or one.value["ref"] not in names]:
        for one in ready:
            read = read_rubric(one, found)
            found[one.step] = None if read is None else evolve(read, name=one.step)
        waiting = [one for one in waiting if one not in ready]
    for one in waiting:
        one["ref"].error("these rubrics refer to one another in a circle; write one of them out", key=True)
        found[one.step] = None
    return found


def read_rubric(at: Cursor, shared: Shared) -> Rubric | None:
    """Return the rubric of a block, which may name one of *shared*."""
    if isinstance(at.value, str):
        return Rubric(text=at.value) if at.passes() else None
    if not at.mapping("a text, or a mapping with criteria, tree, ref or preset"):
        return None
    at.only(_KEYS)
    form = next((key for key in ("ref", "preset") if key in at), "")
    return _read_named(at, form, shared) if form else _read_whole(at)


def _read_whole(at: Cursor) -> Rubric | None:
    if "criteria" in at and "tree" in at:
        at["tree"].error("a rubric has criteria or tree, not both; keep one of them", key=True)
        return None
    options = _options(at)
    judged: dict[str, Any] = {}
    if "tree" in at:
        judged["tree"] = read_tree(at["tree"])
    elif "criteria" in at:
        judged["criteria"] = read_criteria(at["criteria"], {})
    if any(judged.values()):
        return at.made(Rubric, {**options, **judged}, OPTIONS)
    if not judged or at.value.get("criteria") == []:
        at.error("a rubric has nothing to grade by without criteria or tree; give it one of them")
    at.fits(Rubric, options, OPTIONS)
    return None


def _options(at: Cursor) -> dict[str, Any]:
    """Return the options by field; one that cannot be read is noted, and left as by default."""
    values = at.given(OPTIONS)
    if "scale" in values:
        scale = _read_scale(at["scale"])
        del values["scale"]
        values |= {} if scale is None else {"scale": scale}
    if values.get("aggregation") == "worst":
        values["aggregation"] = "min"
    return values


def _read_scale(at: Cursor) -> UnitScale | Boolean | Letter | Likert | None:
    if isinstance(at.value, str) and at.value in SCALES:
        return SCALES[at.value]()
    if not isinstance(at.value, dict) or "likert" not in at:
        at.refuse("unit, boolean, letter or {likert: {min: 1, max: 5}}", (*SCALES, "likert"))
        return None
    at.only(["likert"])
    ends = at["likert"]
    for key in (key for key in _LIKERT.values() if isinstance(ends.value, dict) and key not in ends):
        ends.error(f"the key {key!r} is missing; a Likert scale has both ends")
    return ends.noun(Likert, "a mapping with min and max", _LIKERT)


# -- by name ------------------------------------------------------------------------------------------


def _read_named(at: Cursor, form: str, shared: Shared) -> Rubric | None:
    """Return a rubric that is named (by ref or preset), with what the block changes of it."""
    for key in (key for key in at.value if key in _KEYS and key not in (form, *_BESIDE[form])):
        allowed = " and ".join(_BESIDE[form])
        at[key].error(f"only {allowed} may stand beside {form}; take {key} out", key=True)
    name, known = at[form].value, shared if form == "ref" else presets()
    found = known.get(name) if isinstance(name, str) else None
    if not isinstance(name, str) or name not in known:
        kind = "rubric" if form == "ref" else "preset"
        hint = fields.suggest(str(name), known) if known else "; the file has none under `rubrics`"
        at[form].error(f"there is no {kind} {name!r}{hint}")
    rubric = found if isinstance(found, Rubric) else None
    overrides = at.given(_OVERRIDES)
    sound = at.fits(Rubric, overrides)
    if "criteria" in at and form == "preset":
        taken = {c.id: "the preset" for c in rubric.criteria} if rubric else {}
        added = read_criteria(at["criteria"], taken)
        rubric = None if rubric is None else rubric.adding(*added)
    return evolve(rubric, **overrides) if rubric is not None and sound else None


def overridden(at: Cursor, rubric: Rubric) -> Rubric:
    """Return *rubric* with the threshold of *at*, an eval or a matcher, which wins over any other."""
    if "threshold" not in at:
        return rubric
    threshold = at.value["threshold"]
    if threshold is None:
        at["threshold"].error("expected a number from 0 to 1, got nothing; give one, or take the key out")
    elif at.fits(Rubric, {"threshold": threshold}):
        return evolve(rubric, threshold=threshold)
    return rubric
