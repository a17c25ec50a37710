"""
Functions for `Dataset.map` of Hugging Face: `rubric_map(rubric)`, `arubric_map(rubric)`.

They add columns. Score and pass of an ungraded row are null, which a mean of pandas, Polars or Arrow leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from rubric import DefinitionError, Grade, Rubric, Ungraded, agrade_many, grade_many
from rubric.embed import JudgeLike, is_chat
from rubric.integrations.mapping import checked_options, importing, mapped, rubric_of

with importing("datasets", "datasets"):
    import pyarrow as pa

Columns = dict[str, Any]
"""A value a column for a row, a list a column for a batch."""


class _Typed(list[Any]):
    """Values of a column with their type: datasets takes that of the first ones, null if these were all ungraded."""

    def __init__(self, values: Sequence[Any], kind: Any) -> None:
        super().__init__(values)
        self.kind = kind

    def __arrow_array__(self, type: Any = None) -> Any:
        return pa.array(list(self), type or self.kind)


@frozen
class _Map:
    """Adds the columns of a result to a row, or to each row of a batch."""

    rubric: Rubric = field(converter=rubric_of)
    judge: JudgeLike | None
    columns: Mapping[str, str | Sequence[str] | None] | None
    prefix: str
    options: Mapping[str, Any] = field(converter=checked_options)

    def __call__(self, data: Mapping[str, Any]) -> Columns:
        rows, is_batch = self._rows(data)
        graded = grade_many(rows, self.rubric, self.judge, columns=self.columns, progress=False, **self.options)
        return self._columns([*graded], is_batch=is_batch)

    async def agrade(self, data: Mapping[str, Any]) -> Columns:
        rows, is_batch = self._rows(data)
        graded = agrade_many(rows, self.rubric, self.judge, columns=self.columns, progress=False, **self.options)
        return self._columns([each async for each in graded], is_batch=is_batch)

    def _rows(self, data: Mapping[str, Any]) -> tuple[list[dict[str, Any]], bool]:
        """Return *data* as rows, and whether it is a batch, whose columns are lists: an output is none by itself."""
        if not isinstance(data, Mapping):  # what it returned would replace the columns, not add to them
            raise DefinitionError("data", "the data set has a format of frames; call map on dataset.with_format(None)")
        plain = {name: data[name].tolist() if hasattr(data[name], "tolist") else data[name] for name in data}
        output = str((self.columns or {}).get("output") or "output")
        first = plain.get(output, plain.get("messages"))
        if not isinstance(first, list | tuple) or is_chat(first):
            return [plain], False
        return [dict(zip(plain, values, strict=True)) for values in zip(*plain.values(), strict=True)], True

    def _columns(self, graded: Sequence[Grade | Ungraded], *, is_batch: bool) -> Columns:
        results = [mapped(each) for each in graded]
        made = {
            "verdict": _Typed([each.label for each in results], pa.string()),
            "reason": _Typed([each.reason for each in results], pa.string()),
            "result": _Typed(
                [json.dumps(each.metadata["rubric"], ensure_ascii=False) for each in results], pa.string()
            ),
            "score": _Typed([each.score for each in results], pa.float64()),
            "cost": _Typed([each.cost for each in results], pa.float64()),
        }
        for id_ in self.rubric.ids:
            made[f"criterion.{id_}"] = _Typed([each.parts.get(id_) for each in results], pa.float64())
        made["passed"] = _Typed([each.passed for each in results], pa.bool_())
        return {f"{self.prefix}.{name}": values if is_batch else values[0] for name, values in made.items()}


def rubric_map(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    prefix: str = "rubric",
    **options: Any,
) -> Callable[[Mapping[str, Any]], Columns]:
    """
    Return a function for `Dataset.map(function, batched=True)`, which grades the rows of a batch side by side.

    Args:
        rubric: A rubric, a free-form text, or the path of a file.
        judge: A judge or the name of a model; None takes the model that the environment has a key for.
        columns: The column of each field of a candidate that has another name; None for a column to ignore.
        prefix: What the names of the new columns begin with.
        options: What `grade_many` takes besides: `concurrency`, `store`, `budget`, `limits`.
    """
    return _Map(rubric, judge, columns, prefix, options)


def arubric_map(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    prefix: str = "rubric",
    **options: Any,
) -> Callable[[Mapping[str, Any]], Coroutine[Any, Any, Columns]]:
    """Return an async function like that of `rubric_map`; `Dataset.map` runs many of them at once, batched or not."""
    return _Map(rubric, judge, columns, prefix, options).agrade
