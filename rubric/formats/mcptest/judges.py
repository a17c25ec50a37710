"""
Who judges an eval: mcptest's `judge` block ("Rubric scoring", judge model and jury).

One eval fanned out over models and prompts: a case for each cell ("Rubric scoring", matrix).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from attrs import evolve, fields, frozen

from rubric.errors import DefinitionError
from rubric.formats.cursor import given, listing, made, mapping, only
from rubric.formats.model_names import litellm_name
from rubric.internals.fields import check_text, identifier
from rubric.models.registry import EnvironmentModel
from rubric.suites.cases import cells as fanned_out
from rubric.values.judges import AnyJudge, Judge, Jury, Panel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rubric.formats.cursor import Notes
    from rubric.formats.document import KeyPath
    from rubric.suites.cases import Case


_JUDGE = ("model", "jury", "panel", "aggregate", "tie_break")
_JURY = {"size": "size", "consensus": "consensus"}
_PANEL = {"aggregate": "aggregate", "tie_break": "tie_break"}


def model_name(name: str) -> str:
    """
    Return what LiteLLM calls the model *name*: a bare name is one already, `vendor:model` is another system's.

    Raises:
        DefinitionError: The vendor is not known.
    """
    vendor = name.partition(":")[0]
    return litellm_name(name) if vendor != name and "/" not in vendor else name


def read_model(notes: Notes, path: KeyPath, value: object) -> Judge | None:
    """Return the judge that is named at *path*."""
    name = value
    if isinstance(value, str):
        try:
            identifier(None, fields(Judge).model, value)
            name = model_name(value)
        except DefinitionError as problem:
            notes.error(path, problem.message)
            return None
    elif value is None:
        notes.error(path, "expected the name of a model, got nothing")
        return None
    return made(notes, path[:-1], Judge, {"model": name}, {"model": path[-1]})


def read_judge(notes: Notes, path: KeyPath, data: object) -> AnyJudge | None:
    """Return who judges, as the block at *path* says: a model, a jury of one model, or a panel of several."""
    block = mapping(notes, path, data, "a mapping with model, jury or panel")
    if block is None:
        return None
    only(notes, path, block, _JUDGE)
    if "jury" in block and "panel" in block:
        message = "a judge is a jury (one model, several times) or a panel (several models), not both; keep one of them"
        notes.error((*path, "panel"), message, key=True)
        return None
    if "panel" in block:
        return _read_panel(notes, path, block)
    for key in _PANEL.keys() & block.keys():
        notes.error((*path, key), "this belongs to a panel, and here is none; give one, or take it out", key=True)
    judge = read_model(notes, (*path, "model"), block["model"]) if "model" in block else None
    if "jury" in block:
        return _read_jury(notes, (*path, "jury"), block["jury"], judge or Judge(EnvironmentModel(), sealed=True))
    return judge


def _read_jury(notes: Notes, path: KeyPath, data: object, judge: Judge) -> Jury | None:
    block = mapping(notes, path, data, "a mapping with size and consensus")
    if block is None:
        return None
    only(notes, path, block, _JURY)
    return made(notes, path, Jury, {"judge": judge, **given(notes, path, block, _JURY)})


def _read_panel(notes: Notes, path: KeyPath, block: dict[Any, Any]) -> Panel | None:
    if "model" in block:
        notes.warn((*path, "model"), "a panel names its own models; this one is left out", key=True)
    here = (*path, "panel")
    names = listing(notes, here, block["panel"], "a list of models")
    judges = [read_model(notes, (*here, index), name) for index, name in enumerate(names)]
    if not isinstance(block["panel"], list) or None in judges:
        return None
    if block.get("aggregate", "mean") != "majority" and "tie_break" in block:
        notes.warn((*path, "tie_break"), "only a majority has ties; this does nothing, and is left out", key=True)
        block = {key: value for key, value in block.items() if key != "tie_break"}
    return made(notes, path, Panel, {"judges": judges, **given(notes, path, block, _PANEL)}, {"judges": "panel"})


def with_model(bench: AnyJudge | None, judge: Judge) -> AnyJudge:
    """Return *bench* with *judge* in the place of its model; a panel has none to replace."""
    return evolve(bench, judge=judge) if isinstance(bench, Jury) else judge


_AXES = ("models", "prompts")


@frozen
class Axes:
    """The models (as the file names them, with their judges) and the prompts of a matrix; an axis may be empty."""

    models: tuple[tuple[str, Judge], ...] = ()
    prompts: tuple[str, ...] = ()


def read_matrix(notes: Notes, path: KeyPath, data: object, judge: AnyJudge | None) -> Axes | None:
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


def _axis(notes: Notes, path: KeyPath, block: dict[Any, Any]) -> list[Any]:
    if path[-1] not in block:
        return []
    values = listing(notes, path, block[path[-1]], f"a list of {path[-1]}")
    if values == [] == block[path[-1]]:
        notes.error(path, f"expected at least one of the {path[-1]}, got none; give one, or take the key out")
    for index, value in enumerate(values):
        if value in values[:index]:
            notes.error((*path, index), "this stands in the list already; each cell is there once")
    return [value for index, value in enumerate(values) if value not in values[:index]]


def _is_text(notes: Notes, path: KeyPath, index: int, prompt: object) -> bool:
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
