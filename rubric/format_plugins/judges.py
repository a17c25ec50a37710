"""What files of other frameworks share: the models that they name as judges, and where they list metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rubric import Case, DefinitionError, Judge, Rubric
from rubric.embed import Cursor
from rubric.formats.model_names import litellm_name
from rubric.formats.recognition import Seen, maps


def read_judge(at: Cursor | None) -> Judge | None:
    """Return the judge at the cursor, such as `openai:/gpt-5`; None, with a warning, where no such model is known."""
    if at is None or at.value is None or (name := at.text("the name of a model")) is None:
        return None
    try:
        return Judge(litellm_name(name.replace(":/", ":")))
    except DefinitionError as problem:
        at.warn(f"{problem.message}; the judge of the run takes its place")
        return None


def judged_case(id: str, root: Cursor, rubric: Rubric, judges: Mapping[str, Judge], count: int) -> Case:
    """Return the case of a file with *count* metrics; *judges* are those that they name, by criterion."""
    alone = next(iter(judges.values())) if len(judges) == count and len({*judges.values()}) == 1 else None
    return Case(id, rubric, judge=alone, judges={} if alone or count == 1 else judges, place=root.place)


def metrics(seen: Seen) -> list[Mapping[Any, Any]]:
    """Return the metrics or scorers of a file: what it lists, or itself."""
    return maps(seen.data if isinstance(seen.data, list) else seen.under("metrics", "scorers", "judges") or [seen.data])
