"""One eval fanned out over models and prompts: a case for each cell ("Rubric scoring", matrix)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from rubric.errors import DefinitionError
from rubric.formats.locating import listing, mapping, only
from rubric.formats.mcptest.judges import model_name, read_model, with_model
from rubric.judges import Judge, Jury, Panel
from rubric.suites.matrices import cells as fanned_out
from rubric.validating import check_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rubric.formats.documents import Path
    from rubric.formats.notes import Notes
    from rubric.judges import Bench
    from rubric.suites.cases import Case

__all__ = ["Axes", "cells", "gathered", "read_matrix"]

_AXES = ("models", "prompts")


@frozen
class Axes:
    """The models (as the file names them, with their judges) and the prompts of a matrix; an axis may be empty."""

    models: tuple[tuple[str, Judge], ...] = ()
    prompts: tuple[str, ...] = ()


def read_matrix(notes: Notes, path: Path, data: object, judge: Bench | None) -> Axes | None:
    """Return the axes at *path* for an eval that *judge* judges."""
    block = mapping(notes, path, data, "a mapping with models, prompts or both")
    if block is None:
        return None
    only(notes, path, block, _AXES)
    if not block.keys() & {*_AXES}:
        notes.error(path, "a matrix has models, prompts or both, and here is neither; give one")
        return None
    if "models" in block and isinstance(judge, Panel):
        message = "the models of a matrix vary the judge, and a panel names its own; keep the models or the panel"
        notes.error((*path, "models"), message, key=True)
    names = _axis(notes, (*path, "models"), block)
    judges = [read_model(notes, (*path, "models", index), name) for index, name in enumerate(names)]
    prompts = [p for i, p in enumerate(_axis(notes, (*path, "prompts"), block)) if _is_text(notes, path, i, p)]
    return Axes(tuple((n, j) for n, j in zip(names, judges, strict=True) if j is not None), tuple(prompts))


def _axis(notes: Notes, path: Path, block: dict[Any, Any]) -> list[Any]:
    if path[-1] not in block:
        return []
    values = listing(notes, path, block[path[-1]], f"a list of {path[-1]}")
    if values == [] == block[path[-1]]:
        notes.error(path, f"expected at least one of the {path[-1]}, got none; give one, or take the key out")
    for index, value in enumerate(values):
        if value in values[:index]:
            notes.error((*path, index), "this stands in the list already; each cell is there once")
    return [value for index, value in enumerate(values) if value not in values[:index]]


def _is_text(notes: Notes, path: Path, index: int, prompt: object) -> bool:
    try:
        check_text("prompt", prompt)
    except DefinitionError as problem:
        notes.error((*path, "prompts", index), problem.message)
        return False
    return True


def cells(case: Case, axes: Axes) -> Iterator[Case]:
    """Yield *case* once for each cell: a model varies who judges, a prompt what is answered."""
    return fanned_out(case, [(name, with_model(case.judge, judge)) for name, judge in axes.models], axes.prompts)


# -- and back -----------------------------------------------------------------------------------------

_CELL = re.compile(r"(.+) \[[^\[\]]*\]", re.DOTALL)
"""The id of a cell: the name of its eval, and its label."""


def gathered(cases: Sequence[Case]) -> tuple[Case, Axes, int]:
    """Return the eval that the first of *cases* comes from, its axes, and how many of *cases* are its cells."""
    first = cases[0]
    name = _CELL.fullmatch(first.id)
    if name and first.cell and first.cell.keys() <= {"model", "prompt"}:
        siblings = [case for case in cases if case.cell and case.id.startswith(f"{name[1]} [")]
        for group in (siblings, [first]):
            whole, axes = _whole(name[1], group)
            expected = [*cells(whole, axes)]
            if [*cases[: len(expected)]] == expected:
                return whole, axes, len(expected)
    return first, Axes(), 1


def _whole(name: str, group: Sequence[Case]) -> tuple[Case, Axes]:
    """Return the eval whose cells *group* may be, and its axes."""
    first = group[0]
    models = dict.fromkeys(str(case.cell["model"]) for case in group if "model" in case.cell)
    prompts = dict.fromkeys(str(case.cell["prompt"]) for case in group if "prompt" in case.cell)
    judge = first.judge if not models or isinstance(first.judge, Jury) else None
    whole = evolve(first, id=name, cell={}, judge=judge, input="" if prompts else first.input)
    return whole, Axes(tuple((model, _named(model)) for model in models), tuple(prompts))


def _named(model: str) -> Judge:
    try:
        return Judge(model_name(model))
    except DefinitionError:
        return Judge("unknown")
