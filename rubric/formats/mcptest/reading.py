"""
mcptest files: their evals as cases ("Rubric scoring", and the reference of the `evals` block).

| in the file                          | here                                                             |
|--------------------------------------|------------------------------------------------------------------|
| `rubric:` text, criteria, tree       | `Case.rubric`; criteria are judged in 0..1                       |
| `ref`, `preset`, `rubrics`           | the rubric they name, under that name                            |
| threshold of the eval, inline, named | the first that is given, else 0.7                                |
| `prompt`, `response`                 | `Case.input`, `Case.output`; no response: a live target makes it |
| `judge`, `matrix`                    | `Case.judge`; a case for each cell                               |
| `server`                             | `Case.server`                                                    |
| matchers `llm-judge`, `llm-jury`     | cases too; their calls of tools are not made                     |
| everything else                      | a warning for each block                                         |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rubric.formats.locating import fits, given, listing, made, mapping, only
from rubric.formats.mcptest.judges import read_judge
from rubric.formats.mcptest.matchers import Found, read_matchers
from rubric.formats.mcptest.matrix import cells, read_matrix
from rubric.formats.mcptest.rubrics import Shared, overridden, read_rubric, read_shared
from rubric.suites.cases import Case
from rubric.suites.suites import Suite
from rubric.validating import misspelt

if TYPE_CHECKING:
    from rubric.formats.documents import Path
    from rubric.formats.includes.loading import Loading
    from rubric.formats.notes import Notes

__all__ = ["FIELDS", "read"]

FIELDS = {"id": "name", "server": "server", "input": "prompt", "output": "response"}
"""For each plain field of a case that an mcptest file can give, its key there."""

_EVAL = (*FIELDS.values(), "rubric", "threshold", "judge", "matrix")
_BLOCKS = ("evals", "rubrics")


def read(notes: Notes, loading: Loading) -> Suite:  # noqa: ARG001 - every dialect is read with both
    """Return the suite in the document of *notes*; what is wrong with it is noted there."""
    data = mapping(notes, (), notes.data(), "a mapping with evals")
    if data is None:
        return Suite(format="mcptest")
    shared = read_shared(notes, ("rubrics",), data["rubrics"]) if "rubrics" in data else {}
    found: list[Found] = []
    for index, item in enumerate(listing(notes, ("evals",), data.get("evals", []), "a list of evals")):
        path = ("evals", index)
        found += [((*path, "name"), case) for case in _read_eval(notes, path, item, shared)]
    for key in data:
        if key not in _BLOCKS:
            found += _read_other(notes, key, data[key], shared)
    return Suite(cases=_unique(notes, found), format="mcptest")


def _read_eval(notes: Notes, path: Path, data: object, shared: Shared) -> list[Case]:
    item = mapping(notes, path, data, "an eval (a mapping with name, prompt and rubric)")
    if item is None:
        return []
    only(notes, path, item, _EVAL)
    values = _values(notes, path, item)
    judge = read_judge(notes, (*path, "judge"), item["judge"]) if "judge" in item else None
    axes = read_matrix(notes, (*path, "matrix"), item["matrix"], judge) if "matrix" in item else None
    if not (values.keys() & {"input", "output"} or (axes and axes.prompts)):
        notes.error(path, "nothing to grade: an eval has a prompt for a live run, or a fixed response; give one")
    if "rubric" not in item:
        notes.error(path, "the key 'rubric' is missing; add it")
    rubric = read_rubric(notes, (*path, "rubric"), item["rubric"], shared) if "rubric" in item else None
    if rubric is None:
        fits(notes, path, Case, {"rubric": "unknown", **values}, FIELDS)
        return []
    if "threshold" in item:
        rubric = overridden(notes, (*path, "threshold"), rubric, item["threshold"])
    values |= {"rubric": rubric, "judge": judge, "place": notes.place(path)}
    case = made(notes, path, Case, values, FIELDS)
    if case is None:
        return []
    return [case] if axes is None else [*cells(case, axes)]


def _values(notes: Notes, path: Path, item: dict[Any, Any]) -> dict[str, Any]:
    """Return the plain fields; `response:` without a value is no response."""
    present = {key: value for key, value in item.items() if value is not None or key != "response"}
    values = given(notes, path, present, FIELDS)
    if "name" not in item:
        values["id"] = f"eval {path[-1] + 1}"
        notes.warn(path, f"this eval has no name; it is called {values['id']!r} here")
    return values


def _read_other(notes: Notes, key: Any, value: object, shared: Shared) -> list[Found]:
    """Read the matchers that grade by rubric out of a block that is not about rubrics, and tell the rest."""
    if misspelt(key, _BLOCKS):
        notes.unknown((key,), "", _BLOCKS)
        return []
    found = [*read_matchers(notes, (key,), value, shared)]
    what = "only its rubrics are read" if found else "this is not about rubrics, and is left out"
    notes.warn((key,), f"{what}; mcptest itself runs the rest", key=True)
    return found


def _unique(notes: Notes, found: list[Found]) -> list[Case]:
    """Return the cases with names of their own; note the others."""
    seen: dict[str, Case] = {}
    for path, case in found:
        first = seen.setdefault(case.id, case)
        if first is not case:
            line = first.place.line if first.place else 1
            notes.error(path, f"the name {case.id!r} belongs to what line {line} starts already; give one another")
    return [*seen.values()]
