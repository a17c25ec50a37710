"""The models that files of other frameworks name as judges."""

from __future__ import annotations

from rubric.errors import DefinitionError
from rubric.formats.cursor import Cursor
from rubric.formats.model_names import litellm_name
from rubric.values.judges import Judge


def judge_called(at: Cursor | None) -> Judge | None:
    """Return the judge at the cursor, such as `openai:/gpt-5`; None, with a warning, where no such model is known."""
    if at is None or at.value is None:
        return None
    name = at.text("the name of a model")
    if name is None:
        return None
    try:
        return Judge(litellm_name(name.replace(":/", ":")))
    except DefinitionError as problem:
        at.warn(f"{problem.message}; the judge of the run takes its place")
        return None
