"""Assertions that code decides."""

from __future__ import annotations

from pathlib import PurePosixPath

from rubric.checks import Check, Holds
from rubric.criteria import Criterion
from rubric.errors import DefinitionError
from rubric.formats.assertions import check_of, is_known
from rubric.formats.promptfoo.criteria import Made, unsupported
from rubric.formats.promptfoo.parts import Part, as_text
from rubric.formats.promptfoo.rubric_prompts import UnsupportedPromptError
from rubric.formats.promptfoo.values import Context, content_of
from rubric.rubrics import Rubric

__all__ = ["checked"]


def checked(part: Part, context: Context, kind: str) -> Made | None:
    """Return what the assertion *part* of type *kind*, ours or foreign, comes to; None where an error was noted."""
    bare = kind.removeprefix("not-")
    check = _function(part, bare)
    if check is not None:
        return _thresholded(part, check, kind)
    detail = as_text(part.value.get("value"))
    if not is_known(bare):
        return unsupported(kind, detail, part)
    value = part.at("value")
    try:
        content = value if value.value is None else content_of(value, context)
        check = None if content is None else check_of(bare, content.value)
    except UnsupportedPromptError:
        return unsupported(kind, detail, part)
    except DefinitionError as problem:
        value.error(problem.message)
        return None
    return None if check is None else _thresholded(part, check, kind)


def _thresholded(part: Part, check: Check, kind: str) -> Made | None:
    """Return *check* under the assertion's own threshold and turned over, where it says so."""
    negate = kind.startswith("not-")
    words = f"not {check}" if negate else str(check)
    bar = part.at("threshold").number() if part.has("threshold") else None
    if part.has("threshold") and bar is None:
        return None
    if not negate and bar is None:
        return Made(words, check, kind=kind)
    try:
        rubric = Rubric(
            criteria=[Criterion(str(check), id="overall", answer=check)],
            threshold=bar,
            negate=negate,
            degenerate="judge",
        )
    except DefinitionError as problem:
        part.error(problem)
        return None
    return Made(words, rubric, kind=kind)


def _function(part: Part, kind: str) -> Check | None:
    """Return the check by the function that a `python` assertion names, if the caller gave one of that name."""
    value = part.value.get("value")
    if kind != "python" or not isinstance(value, str):
        return None
    path, _, name = value.removeprefix("file://").partition(":")
    names = (value, name, PurePosixPath(path).stem) if value.startswith("file://") else (value.strip(),)
    for known in names:
        if known in part.loading.functions:
            return Holds(part.loading.functions[known])
    return None
