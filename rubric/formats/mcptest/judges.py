"""Who judges an eval: mcptest's `judge` block ("Rubric scoring", judge model and jury)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, fields

from rubric.errors import DefinitionError
from rubric.formats.locating import given, listing, made, mapping, only
from rubric.formats.providers import litellm_name
from rubric.judges import Bench, Judge, Jury, Panel
from rubric.models.environment import EnvironmentModel
from rubric.validating import identifier

if TYPE_CHECKING:
    from rubric.formats.documents import Path
    from rubric.formats.notes import Notes

__all__ = ["model_name", "read_judge", "read_model", "with_model"]

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


def read_model(notes: Notes, path: Path, value: object) -> Judge | None:
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


def read_judge(notes: Notes, path: Path, data: object) -> Bench | None:
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


def _read_jury(notes: Notes, path: Path, data: object, judge: Judge) -> Jury | None:
    block = mapping(notes, path, data, "a mapping with size and consensus")
    if block is None:
        return None
    only(notes, path, block, _JURY)
    return made(notes, path, Jury, {"judge": judge, **given(notes, path, block, _JURY)})


def _read_panel(notes: Notes, path: Path, block: dict[Any, Any]) -> Panel | None:
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


def with_model(bench: Bench | None, judge: Judge) -> Bench:
    """Return *bench* with *judge* in the place of its model; a panel has none to replace."""
    return evolve(bench, judge=judge) if isinstance(bench, Jury) else judge
