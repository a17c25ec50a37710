"""
The assertions of one test, as a rubric.

One assertion is the rubric itself. Several are its criteria: without a threshold of the test all must pass; with one
the weighted mean decides alone, so each judged one is a rubric of its own, whose failing flag fails that one only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import evolve, field, frozen

from rubric.checks import NOTHING
from rubric.criteria import Criterion
from rubric.errors import DefinitionError
from rubric.formats.promptfoo.checking import checked
from rubric.formats.promptfoo.criteria import Made, criteria_of, degenerate_of, unsupported
from rubric.formats.promptfoo.judging import judged
from rubric.formats.promptfoo.parts import Part, as_text
from rubric.formats.promptfoo.shorthand import KNOWN
from rubric.formats.promptfoo.tests import OPTIONS
from rubric.formats.promptfoo.values import Context, rendered
from rubric.judges import Judge
from rubric.rubrics import Rubric
from rubric.showing import shorten
from rubric.validating import misspelt

__all__ = ["Graded", "graded"]

_DEEPEST = 10
_KNOWN_KEYS = frozenset({"type", "value", "threshold", "weight", "metric", "provider", "rubricPrompt", "transform"})
_QUIET_KEYS = frozenset({"description", "reason"})
_FATES = {
    "config": "the configuration of an assertion is not used",
    "contextTransform": "contextTransform is not carried out",
}
_ELSEWHERE = dict.fromkeys(("vars", "options", "assertScoringFunction"), "it belongs to the test") | dict.fromkeys(
    OPTIONS - _KNOWN_KEYS, "it belongs to the test, under `options`"
)
_OF_SETS = {"assert": "only a set has assertions of its own: `type: assert-set`"}


@frozen
class Graded:
    """A *rubric*, and who judges it: *judge* all of it, *judges* the single criteria with those ids."""

    rubric: Rubric
    judge: Judge | None = None
    judges: dict[str, Judge] = field(factory=dict)


def graded(
    asserts: Sequence[Part], context: Context, threshold: Part | None, place: Part, more: Sequence[Made] = ()
) -> Graded | None:
    """
    Return the rubric that *asserts*, of the test at *place*, come down to; None if it was noted why they do not.

    Args:
        asserts: In the order of the file.
        threshold: Of the test.
        more: What else the test asks for and this library does not have.
    """
    made = [made for part in asserts if (made := _made(part, context)) is not None]
    bar = None if threshold is None else threshold.number()
    if len(made) < len(asserts) or (threshold is not None and bar is None):
        return None
    made += more
    if not made:
        place.warn("this test asserts nothing, so it stays ungraded; give it an `assert`")
        made = [Made("nothing is asserted", NOTHING, kind="no assertions")]
    single = made[0]
    if len(made) == 1 and single.weight == 1 and bar is None and not single.tags and isinstance(single.answer, Rubric):
        return Graded(single.answer, judge=next(iter(single.judges), None))
    return _several(made, bar, threshold or place)


def _several(made: Sequence[Made], bar: float | None, place: Part) -> Graded | None:
    try:
        criteria = criteria_of(made, flat=bar is None)
        rubric = Rubric(criteria=criteria, threshold=bar, degenerate=degenerate_of(made))
    except DefinitionError as problem:
        place.error(problem)
        return None
    everyone = frozenset(judge for one in made for judge in one.judges)
    if len(everyone) == 1:
        return Graded(rubric, judge=next(iter(everyone)))
    return Graded(rubric, judges=_by_id(criteria, made))


def _by_id(criteria: Sequence[Criterion], made: Sequence[Made]) -> dict[str, Judge]:
    found: dict[str, Judge] = {}
    for criterion, one in zip(criteria, made, strict=True):
        if len(one.judges) > 1 and one.place is not None:
            one.place.warn("the assertions of a set have one grader; the first one's is taken")
        judge = next((judge for judge in one.judges if judge is not None), None)
        if judge is not None:
            found[criterion.id] = judge
    return found


# -- one assertion ---------------------------------------------------------------------------------------


def _made(part: Part, context: Context, depth: int = 0) -> Made | None:
    resolved = _resolved(part)
    if resolved is None or not resolved.mapping("an assertion"):
        return None
    if depth > _DEEPEST:
        resolved.error(f"sets of assertions nest more than {_DEEPEST} deep; make them flatter")
        return None
    return _weighed(resolved, context, depth)


def _resolved(part: Part) -> Part | None:
    """Return what a `$ref` within the file stands for; keys beside it win over what it names."""
    for _ in range(_DEEPEST):
        if not isinstance(part.value, dict) or "$ref" not in part.value:
            return part
        target = _target(part)
        if target is None or not target.mapping("an assertion"):
            return None
        own = {key: value for key, value in part.value.items() if key != "$ref"}
        part = target.holding({**target.value, **own})
    part.error("these references lead in a circle")
    return None


def _target(part: Part) -> Part | None:
    reference = part.value["$ref"]
    steps = reference.removeprefix("#/").split("/") if isinstance(reference, str) else []
    if not steps or not reference.startswith("#/"):
        part.error(f"expected a reference such as #/assertionTemplates/name, got {shorten(repr(reference), 60)}")
        return None
    target = evolve(part, value=part.root, path=())
    for step in steps:
        if not target.has(step):
            part.error(f"there is no {step!r} at {shorten(reference, 80)} in this file")
            return None
        target = target.at(step)
    return target


def _weighed(part: Part, context: Context, depth: int) -> Made | None:
    made = _of_type(part, context, depth)
    weight = part.at("weight").number() if part.has("weight") else 1
    if made is None or weight is None:
        return None
    if weight < 0:
        part.at("weight").error(f"expected a weight of at least 0, got {weight:g}")
        return None
    metric = part.value.get("metric")
    tags = (rendered(metric, part.at("metric"), context) or "",) if isinstance(metric, str) else ()
    return evolve(made, weight=weight, tags=tuple(filter(str.strip, tags)), place=part)


def _of_type(part: Part, context: Context, depth: int) -> Made | None:
    kind = part.value.get("type")
    if kind == "assert-set" or (kind is None and part.has("assert")):
        return _set(part, context, depth)
    if not isinstance(kind, str) or not kind.strip():
        part.error("an assertion has a type, such as llm-rubric or contains")
        return None
    bare = kind.removeprefix("not-")
    if near := _misspelt(kind):
        part.at("type").error(f"unknown type {kind!r}; did you mean {near!r}?")
        return None
    part.unknown_keys(_KNOWN_KEYS, _QUIET_KEYS, _FATES, _ELSEWHERE | _OF_SETS)
    if part.has("transform"):
        return unsupported(f"{kind} with a transform", as_text(part.value["transform"]), part)
    if bare == "llm-rubric":
        return judged(part, context, kind)
    return checked(part, context, kind)


_TURNED = re.compile(r"\Anot[-_ ]?", re.IGNORECASE)


def _misspelt(kind: str) -> str:
    bare = kind.removeprefix("not-")
    if bare in KNOWN or ":" in bare:
        return ""
    near = misspelt(_TURNED.sub("", kind), KNOWN)
    return f"not-{near}" if near and _TURNED.match(kind) else near


def _set(part: Part, context: Context, depth: int) -> Made | None:
    part.unknown_keys(_KNOWN_KEYS | {"assert"}, _QUIET_KEYS, _FATES, _ELSEWHERE)
    children = part.at("assert").listed("assertions")
    if not children:
        part.error("a set of assertions has at least one; give it an `assert`")
        return None
    made = [made for child in children if (made := _made(child, context, depth + 1)) is not None]
    bar = part.at("threshold").number() if part.has("threshold") else None
    if len(made) < len(children) or (part.has("threshold") and bar is None):
        return None
    if len(made) == 1 and bar is None and made[0].weight and not made[0].tags:
        return evolve(made[0], weight=1)
    try:
        rubric = Rubric(criteria=criteria_of(made, flat=bar is None), threshold=bar, degenerate=degenerate_of(made))
    except DefinitionError as problem:
        part.error(problem)
        return None
    words = part.value.get("description") or ", ".join(one.text for one in made)
    everyone = frozenset(judge for one in made for judge in one.judges)
    return Made(shorten(str(words)), rubric, kind="assert-set", judges=everyone)
