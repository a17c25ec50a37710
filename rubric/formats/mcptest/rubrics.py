"""The forms of an mcptest rubric: a text, criteria, a tree, a name (ref), a preset ("Rubric scoring")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve

from rubric.errors import DefinitionError
from rubric.formats.documents import Unreadable
from rubric.formats.locating import fits, given, made, mapping, only
from rubric.formats.mcptest.criteria import read_criteria, read_tree
from rubric.formats.mcptest.presets import PRESETS
from rubric.rubrics import Rubric
from rubric.scales import Boolean, Letter, Likert, Scale, UnitScale
from rubric.validating import check_text, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rubric.formats.documents import Path
    from rubric.formats.notes import Notes

__all__ = ["OPTIONS", "SCALES", "overridden", "read_rubric", "read_shared"]

Shared = dict[str, Rubric | None]
"""The rubrics of a file by name; None for one that could not be read."""

OPTIONS = {
    "threshold": "threshold",
    "strict": "strict",
    "aggregation": "aggregation",
    "scale": "scale",
    "evidence": "require_evidence",
}
"""For each field of a rubric that an mcptest file can give beside what is judged, its key there."""

_OVERRIDES = {"threshold": "threshold", "strict": "strict"}
_KEYS = ("criteria", "tree", "ref", "preset", *OPTIONS.values())
_BESIDE = {"ref": (*_OVERRIDES,), "preset": (*_OVERRIDES, "criteria")}
SCALES: dict[str, type[Scale]] = {"unit": UnitScale, "boolean": Boolean, "letter": Letter}
_LIKERT = {"low": "min", "high": "max"}


def read_shared(notes: Notes, path: Path, data: object) -> Shared:
    """Return the named rubrics at *path*."""
    found: Shared = {}
    for name, value in (mapping(notes, path, data, "a mapping from names to rubrics") or {}).items():
        here = (*path, name)
        if not isinstance(name, str):
            notes.error(here, f"expected text as a name, got {name!r}; quote it", key=True)
        elif isinstance(value, dict) and "ref" in value:
            notes.error((*here, "ref"), "a named rubric is written out; it cannot refer to another", key=True)
            found[name] = None
        else:
            rubric = read_rubric(notes, here, value, {})
            found[name] = None if rubric is None else evolve(rubric, name=name)
    return found


def read_rubric(notes: Notes, path: Path, data: object, shared: Shared) -> Rubric | None:
    """Return the rubric at *path*, which may name one of *shared*."""
    if isinstance(data, str):
        return _read_text(notes, path, data)
    block = mapping(notes, path, data, "a text, or a mapping with criteria, tree, ref or preset")
    if block is None:
        return None
    only(notes, path, block, _KEYS)
    form = next((key for key in ("ref", "preset") if key in block), "")
    if form:
        return _read_named(notes, path, block, form, shared)
    return _read_whole(notes, path, block)


def _read_text(notes: Notes, path: Path, text: str) -> Rubric | None:
    try:
        check_text("rubric", text)
    except DefinitionError as problem:
        notes.error(path, problem.message)
        return None
    return Rubric(text=text)


def _read_whole(notes: Notes, path: Path, block: dict[Any, Any]) -> Rubric | None:
    if "criteria" in block and "tree" in block:
        notes.error((*path, "tree"), "a rubric has criteria or tree, not both; keep one of them", key=True)
        return None
    values = _options(notes, path, block, OPTIONS)
    if "tree" in block:
        values["tree"] = read_tree(notes, (*path, "tree"), block["tree"])
    elif "criteria" in block:
        values["criteria"] = read_criteria(notes, (*path, "criteria"), block["criteria"], {})
    if values.get("tree") or values.get("criteria"):
        return made(notes, path, Rubric, values, OPTIONS)
    if block.get("criteria") == [] or not block.keys() & {"criteria", "tree"}:
        notes.error(path, "a rubric has nothing to grade by without criteria or tree; give it one of them")
    fits(notes, path, Rubric, {k: v for k, v in values.items() if k in OPTIONS}, OPTIONS)
    return None


def _options(notes: Notes, path: Path, block: Mapping[Any, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    """Return the options by field; one that cannot be read is noted, and left as by default."""
    values = given(notes, path, block, keys)
    if "scale" in values:
        scale = _read_scale(notes, (*path, "scale"), values.pop("scale"))
        values |= {} if scale is None else {"scale": scale}
    if values.get("aggregation") == "worst":
        values["aggregation"] = "min"
    return values


def _read_scale(notes: Notes, path: Path, data: object) -> Scale | None:
    if isinstance(data, str) and data in SCALES:
        return SCALES[data]()
    if not isinstance(data, dict) or "likert" not in data:
        if not isinstance(data, Unreadable):
            hint = suggest(data, [*SCALES, "likert"]) if isinstance(data, str) else ""
            message = f"expected unit, boolean, letter or {{likert: {{min: 1, max: 5}}}}, got {data!r}"
            notes.error(path, message + (hint if "did you mean" in hint else ""))
        return None
    only(notes, path, data, ["likert"])
    here = (*path, "likert")
    ends = mapping(notes, here, data["likert"], "a mapping with min and max")
    if ends is None:
        return None
    only(notes, here, ends, _LIKERT.values())
    for key in _LIKERT.values() - ends.keys():
        notes.error(here, f"the key {key!r} is missing; a Likert scale has both ends")
    return made(notes, here, Likert, given(notes, here, ends, _LIKERT), _LIKERT)


# -- by name ------------------------------------------------------------------------------------------


def _read_named(notes: Notes, path: Path, block: dict[Any, Any], form: str, shared: Shared) -> Rubric | None:
    """Return a rubric that is named (by ref or preset), with what the block changes of it."""
    for key in block:
        if key in _KEYS and key not in (form, *_BESIDE[form]):
            allowed = " and ".join(_BESIDE[form])
            notes.error((*path, key), f"only {allowed} may stand beside {form}; take {key} out", key=True)
    rubrics = shared if form == "ref" else PRESETS
    rubric = _found(notes, (*path, form), block[form], form, rubrics)
    overrides = given(notes, path, block, _OVERRIDES)
    sound = fits(notes, path, Rubric, overrides)
    if "criteria" in block and form == "preset":
        taken = {c.id: "the preset" for c in rubric.criteria} if rubric else {}
        added = read_criteria(notes, (*path, "criteria"), block["criteria"], taken)
        rubric = None if rubric is None else rubric.adding(*added)
    return evolve(rubric, **overrides) if rubric is not None and sound else None


def _found(notes: Notes, path: Path, name: object, form: str, rubrics: Mapping[str, Any]) -> Rubric | None:
    if not isinstance(name, str) or name not in rubrics:
        kind = "rubric" if form == "ref" else "preset"
        hint = suggest(str(name), rubrics) if rubrics else "; the file has none under `rubrics`"
        notes.error(path, f"there is no {kind} {name!r}{hint}")
        return None
    found = rubrics[name]
    return found if isinstance(found, Rubric) else None


def overridden(notes: Notes, path: Path, rubric: Rubric, threshold: Any) -> Rubric:
    """Return *rubric* with the *threshold* that an eval gives at *path*, which wins over any other."""
    if threshold is None:
        notes.error(path, "expected a number from 0 to 1, got nothing; give one, or take the key out")
    elif fits(notes, path[:-1], Rubric, {"threshold": threshold}):
        return evolve(rubric, threshold=threshold)
    return rubric
