"""
The judges of an eval: mcptest's `judge` block, and its `matrix`, which makes a case for each model and prompt.

Both are described in the chapter "Rubric scoring" of mcptest's documentation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from attrs import evolve, fields, frozen

from rubric.errors import DefinitionError
from rubric.formats.model_names import litellm_name
from rubric.internals.fields import check_text, identifier
from rubric.models.registry import EnvironmentModel
from rubric.suites.cases import cells as fanned_out
from rubric.values.judges import AnyJudge, Judge, Jury, Panel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rubric.formats.cursor import Cursor
    from rubric.suites.cases import Case


_JUDGE = ("model", "jury", "panel", "aggregate", "tie_break")
_JURY = {"size": "size", "consensus": "consensus"}
_PANEL = {"aggregate": "aggregate", "tie_break": "tie_break"}


def model_name(name: str) -> str:
    """
    Return LiteLLM's name for the model *name*: a bare name is one already, `vendor:model` is another system's.

    Raises:
        DefinitionError: The vendor is not known.
    """
    vendor = name.partition(":")[0]
    return litellm_name(name) if vendor != name and "/" not in vendor else name


def read_model(at: Cursor) -> Judge | None:
    """Return the judge that *at* names."""
    name = at.value
    if isinstance(name, str):
        try:
            identifier(None, fields(Judge).model, name)
            name = model_name(name)
        except DefinitionError as problem:
            at.error(problem.message)
            return None
    elif name is None:
        at.error("expected the name of a model, got nothing")
        return None
    return at.parent.made(Judge, {"model": name}, {"model": at.step}) if at.parent else None


def read_judge(at: Cursor) -> AnyJudge | None:
    """Return the judge of a block: a model, a jury of one model, or a panel of several."""
    if not at.mapping("a mapping with model, jury or panel"):
        return None
    at.only(_JUDGE)
    if "jury" in at and "panel" in at:
        message = "a judge is a jury (one model, several times) or a panel (several models), not both; keep one of them"
        at["panel"].error(message, key=True)
        return None
    if "panel" in at:
        return _read_panel(at)
    for key in (key for key in _PANEL if key in at):
        at[key].error("this belongs to a panel, and here is none; give one, or take it out", key=True)
    judge = read_model(at["model"]) if "model" in at else None
    return _read_jury(at["jury"], judge or Judge(EnvironmentModel(), sealed=True)) if "jury" in at else judge


def _read_jury(at: Cursor, judge: Judge) -> Jury | None:
    if not at.mapping("a mapping with size and consensus"):
        return None
    at.only(_JURY)
    return at.made(Jury, {"judge": judge, **at.given(_JURY)})


def _read_panel(at: Cursor) -> Panel | None:
    if "model" in at:
        at["model"].warn("a panel names its own models; this one is left out", key=True)
    judges = [read_model(name) for name in at["panel"].listing("a list of models")]
    if not isinstance(at["panel"].value, list) or None in judges:
        return None
    rules = dict(_PANEL)
    if at.value.get("aggregate", "mean") != "majority" and "tie_break" in at:
        at["tie_break"].warn("only a majority has ties; this does nothing, and is left out", key=True)
        del rules["tie_break"]
    return at.made(Panel, {"judges": judges, **at.given(rules)}, {"judges": "panel"})


def with_model(whole: AnyJudge | None, judge: Judge) -> AnyJudge:
    """Return the judge *whole* with *judge* in the place of its model; a panel has none to replace."""
    return evolve(whole, judge=judge) if isinstance(whole, Jury) else judge


_AXES = ("models", "prompts")


@frozen
class Axes:
    """The models (as the file names them, with their judges) and the prompts of a matrix; an axis may be empty."""

    models: tuple[tuple[str, Judge], ...] = ()
    prompts: tuple[str, ...] = ()


def read_matrix(at: Cursor, judge: AnyJudge | None) -> Axes | None:
    """Return the axes of a matrix for an eval that *judge* judges."""
    if not at.mapping("a mapping with models, prompts or both"):
        return None
    at.only(_AXES)
    if at.value.keys().isdisjoint(_AXES):
        at.error("a matrix has models, prompts or both, and here is neither; give one")
        return None
    if "models" in at and isinstance(judge, Panel):
        message = "the models of a matrix vary the judge, and a panel names its own; keep the models or the panel"
        at["models"].error(message, key=True)
    models = [(name.value, read_model(name)) for name in _axis(at, "models")]
    prompts = tuple(prompt.value for prompt in _axis(at, "prompts") if passes(prompt))
    return Axes(tuple((name, judge) for name, judge in models if judge is not None), prompts)


def _axis(at: Cursor, axis: str) -> list[Cursor]:
    if axis not in at:
        return []
    if at.value[axis] == []:
        at[axis].error(f"expected at least one of the {axis}, got none; give one, or take the key out")
    found: list[Cursor] = []
    for item in at[axis].listing(f"a list of {axis}"):
        if any(item.value == other.value for other in found):
            item.error("this stands in the list already; each cell is there once")
        else:
            found.append(item)
    return found


def passes(at: Cursor, check: Callable[[str, Any], object] = check_text) -> bool:
    """True if *check* lets the value pass, by default as a text with words in it; else note its refusal."""
    try:
        check("", at.value)
    except DefinitionError as problem:
        at.error(problem.message)
        return False
    return True


def cells(case: Case, axes: Axes) -> Iterator[Case]:
    """Yield *case* once for each cell: a model varies the judge, a prompt the input."""
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
