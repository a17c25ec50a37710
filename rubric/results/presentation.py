"""Show a result of figures: one plain sentence, then tables, then what to know before trusting them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from attrs import asdict

from rubric.internals.containers import NoTruth
from rubric.internals.guided import GuidedABC
from rubric.internals.notebooks import as_html
from rubric.internals.text import cell, columns, table, visible

Table = tuple[str, tuple[str, ...], Sequence[tuple[object, ...]]]
"""A title (or ''), the names of the columns, and the rows."""


class Presented(NoTruth, metaclass=GuidedABC):
    """A result that is shown as text, as Markdown and as a card; `sentence` leads each."""

    __slots__ = ()

    @property
    def sentence(self) -> str:
        raise NotImplementedError

    def remarks(self) -> Sequence[str]:
        """What to know before a figure is trusted."""
        return ()

    def tables(self) -> list[Table]:
        """The figures, as tables with a title and a head each."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return its fields as plain JSON-able data, beside the sentence and the remarks."""
        kept = asdict(cast("Any", self), filter=lambda attribute, _: attribute.eq is True)
        return {"kind": type(self).__name__.lower(), "sentence": self.sentence, **kept, "remarks": [*self.remarks()]}

    def __repr__(self) -> str:
        return visible(f"<{type(self).__name__}: {self.sentence}>")[0]

    def plain_tables(self) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
        """Yield the tables with a text in each cell."""
        for title, head, rows in self.tables():
            yield title, head, [tuple(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row) for row in rows]

    def __str__(self) -> str:
        parts = [self.sentence]
        for title, head, rows in self.plain_tables():
            parts.append("\n".join([*([title] if title else []), columns([head, *rows])]))
        remarks = [f"- {remark}" for remark in self.remarks()]
        return visible("\n\n".join([*parts, *(["\n".join(remarks)] if remarks else [])]))[0]

    def _repr_markdown_(self) -> str:
        parts = [f"**{cell(self.sentence)}**"]
        for title, head, rows in self.plain_tables():
            parts.append(f"{cell(title)}\n\n{table(head, rows)}" if title else table(head, rows))
        return "\n\n".join([*parts, "\n".join(f"- {cell(remark)}" for remark in self.remarks())]).strip()

    _repr_html_ = as_html
