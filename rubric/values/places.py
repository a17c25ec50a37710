"""Places in files, for messages and reports."""

from __future__ import annotations

from attrs import frozen


@frozen
class Place:
    """A place in a file; lines and columns count from 1."""

    source: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"
